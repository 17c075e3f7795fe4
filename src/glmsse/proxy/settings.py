"""What a proxy is configured with. Nothing in a request can change any of it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import partial
from urllib.parse import urlsplit

from ..chat import ChatStream
from ..deadlines import Deadlines
from ..errors import MisuseError
from ..glm_text import ToolCallParser
from ..limits import Limits

MODES = ("enforce", "observe")
MARKUPS = ("none", "glm")

_SHAPE_OF_A_WHOLE = ("message_as_delta", "index_by_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One proxy.

    upstream         base URL; requests go to its `/chat/completions`, whatever path they came in by
    mode             enforce: nothing goes out after a fault; observe: everything does, and is reported
    profile, allow, deny, limits   how answers are read, as in ChatStream
    key              sent upstream instead of the client's own; None passes the client's on
    client_key       what clients must send as their key; None lets everybody in
    model            asked for upstream by /v1/messages; None takes the request's
    content_markup   glm: content is raw model text, out of which reasoning and calls are read
    verdict_comment  write the verdict as a comment before `[DONE]`
    deadlines        of each answer, from the moment its request is sent
    connect_seconds  to reach the upstream
    send_seconds     one write to a client may wait; a client that reads slower is dropped
    request_seconds  a client may take to send its request body
    ping_seconds     after which Anthropic clients get a ping if nothing else was sent; None sends none
    record           a directory that answers are recorded in; None records none
    max_recordings   files of it; then no more are written
    max_record_bytes of an answer; a longer one is not recorded
    max_streams      answers open at once; more are refused with 503
    max_body_bytes, max_header_bytes   of a request; more are refused with 413 and 431
    """

    upstream: str
    mode: str = "enforce"
    profile: str = "zai"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    key: str | None = field(default=None, repr=False)
    client_key: str | None = field(default=None, repr=False)
    model: str | None = None
    content_markup: str = "none"
    verdict_comment: bool = False
    deadlines: Deadlines = field(default_factory=partial(Deadlines, first_byte=300, idle=120, total=3600))
    connect_seconds: float = 10
    send_seconds: float = 30
    request_seconds: float = 30
    ping_seconds: float | None = 15
    record: str | None = None
    max_recordings: int = 1000
    max_record_bytes: int = 4 * 1024 * 1024
    max_streams: int = 4000
    max_body_bytes: int = 8 * 1024 * 1024
    max_header_bytes: int = 32 * 1024

    def __post_init__(self) -> None:
        url = urlsplit(self.upstream)
        if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
            raise MisuseError("upstream takes an http or https URL without query or fragment")
        if url.username is not None or url.password is not None:
            raise MisuseError("upstream takes no credentials: hand the key over by an environment variable")
        if self.mode not in MODES:
            raise MisuseError(f"mode takes one of {', '.join(MODES)}")
        if self.content_markup not in MARKUPS:
            raise MisuseError(f"content_markup takes one of {', '.join(MARKUPS)}")
        if self.mode == "observe" and (self.verdict_comment or self.content_markup != "none"):
            raise MisuseError("observe forwards the bytes as they are: no verdict_comment, no content_markup")
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.name == "ping_seconds" and value is None:
                continue
            if setting.name.startswith("max_") and (type(value) is not int or value < 1):
                raise MisuseError(f"{setting.name} takes a positive int")
            if setting.name.endswith("_seconds") and (
                isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf")
            ):
                raise MisuseError(f"{setting.name} takes a positive number of seconds")
        self.tap(1)

    @property
    def enforces(self) -> bool:
        return self.mode == "enforce"

    @property
    def chat_url(self) -> str:
        return self.upstream.rstrip("/") + "/chat/completions"

    def tap(self, choices: int) -> ChatStream:
        """A stream that judges and keeps no text."""
        return self._stream(choices, deltas=False)

    def rewritten(self) -> ChatStream:
        """A stream whose events are written anew."""
        return self._stream(1, deltas=True)

    def _stream(self, choices: int, *, deltas: bool) -> ChatStream:
        return ChatStream(
            self.profile,
            allow=self.allow,
            deny=self.deny,
            limits=self.limits,
            choices=choices,
            deltas=deltas,
            collect=False,
        )

    def whole(self, parser: ToolCallParser) -> ChatStream:
        """A stream whose one event is a whole completion, with raw model text in its message."""
        return ChatStream(
            self.profile,
            allow=(*self.allow, *_SHAPE_OF_A_WHOLE),
            deny=[name for name in self.deny if name not in _SHAPE_OF_A_WHOLE],
            limits=self.limits,
            content_parser=parser,
        )
