"""Metrics in Prometheus' form. No label holds anything that a peer can choose freely."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from ..chat import ChatStream
from ..errors import CODES
from ..verdict import Verdict

SHARED_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that prometheus-client reads for the directory which worker processes share."""

_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1)
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_FINISH_CODES = frozenset(
    f"finish_{reason}"
    for reason in ("length", "sensitive", "content_filter", "model_context_window_exceeded", "network_error")
)


class Metrics:
    """The counters of one process; with a shared directory, `text` shows those of all."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.streams = Counter(
            "glmsse_proxy_streams", "Answers by verdict", ("route", "outcome", "code"), registry=registry
        )
        self.refused = Counter("glmsse_proxy_refused", "Requests refused by the proxy", ("reason",), registry=registry)
        self.plain = Counter("glmsse_proxy_plain", "Answers that were not asked for as a stream", registry=registry)
        self.tokens = Counter("glmsse_proxy_tokens", "Tokens by the usage reported", ("kind",), registry=registry)
        self.received = Counter("glmsse_proxy_received_bytes", "Bytes of answers received", registry=registry)
        self.sent = Counter("glmsse_proxy_sent_bytes", "Bytes of answers sent", registry=registry)
        self.events = Counter("glmsse_proxy_events", "Events received", registry=registry)
        self.fast_events = Counter("glmsse_proxy_fast_events", "Events that the fast lane took", registry=registry)
        self.fast_share = Histogram(
            "glmsse_proxy_fast_share",
            "Share of an answer's events that the fast lane took, by template or scanner",
            registry=registry,
            buckets=_SHARES,
        )
        self.open = Gauge(
            "glmsse_proxy_open_streams", "Answers open now", registry=registry, multiprocess_mode="livesum"
        )
        self.first_event = self._histogram("first_event", "to the first event")
        self.first_content = self._histogram("first_content", "to the first piece of text or of a call")
        self.duration = self._histogram("duration", "to the end")

    def _histogram(self, name: str, what: str) -> Histogram:
        return Histogram(
            f"glmsse_proxy_{name}_seconds",
            f"Seconds from the request {what} of an answer",
            registry=self.registry,
            buckets=_SECONDS,
        )

    def count_events(self, stream: ChatStream) -> None:
        self.events.inc(stream.events_seen)
        self.fast_events.inc(stream.fast_events_seen)
        if stream.events_seen:
            self.fast_share.observe(stream.fast_events_seen / stream.events_seen)

    def count_verdict(self, route: str, verdict: Verdict) -> None:
        self.streams.labels(route, verdict.outcome, _code_label(verdict.code)).inc()
        usage = verdict.usage
        if usage is not None:
            self.tokens.labels("prompt").inc(usage.prompt_tokens)
            self.tokens.labels("completion").inc(usage.completion_tokens)
            self.tokens.labels("cached").inc(usage.cached_tokens or 0)

    def text(self) -> bytes:
        directory = os.environ.get(SHARED_DIRECTORY)
        if not directory:
            return generate_latest(self.registry)
        _forget_dead_workers(directory)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=directory)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def _code_label(code: str | None) -> str:
    if code is None:
        return "none"
    return code if code in CODES or code in _FINISH_CODES else "finish_other"


def _forget_dead_workers(directory: str) -> None:
    for file in Path(directory).glob("gauge_live*_*.db"):
        pid = int(file.stem.rpartition("_")[2])
        try:
            with suppress(PermissionError):
                os.kill(pid, 0)
        except ProcessLookupError:
            mark_process_dead(pid, directory)  # type: ignore[no-untyped-call]
