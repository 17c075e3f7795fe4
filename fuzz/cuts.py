"""Inputs of every layer at every single and double cut, and broken off at every place.

The inputs are the corpora of the targets and the vectors, so framing, whole streams and raw text have some of all that
is known of them.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import bare, corpora
from .builds import ROOT, Builds, Difference
from .targets import _framing, chat, framer, raw_text

VECTORS = ROOT / "vectors"
MOST_VECTOR_BYTES = 2048
COUNTED = ("inputs", "single cuts", "double cuts", "broken off")

Reading = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class Case:
    """An input, and the readings of its pieces that must all come to the same.

    judge  takes what the first reading says of the whole and of a beginning, and raises Difference if the beginning
           gives more than it may
    """

    body: Any
    readings: Sequence[Reading]
    judge: Callable[[Any, Any], None]

    def check(self, single: int, double: int) -> tuple[int, ...]:
        """Single cuts and beginnings if the body is no longer than `single`, double ones if not than `double`; the
        numbers of what COUNTED names."""
        body, size = self.body, len(self.body)
        whole = self.readings[0]([body])
        singles = range(1, size) if size <= single else ()
        doubles = [(at, then) for at in range(1, size) for then in range(at + 1, size)] if size <= double else ()
        for reading in self.readings:
            if reading([body]) != whole:
                raise Difference("two readings of the whole differ")
            for at in singles:
                if reading([body[:at], body[at:]]) != whole:
                    raise Difference(f"a cut at {at} shows")
            for at, then in doubles:
                if reading([body[:at], body[at:then], body[then:]]) != whole:
                    raise Difference(f"cuts at {at} and {then} show")
        for at in singles:
            self.judge(whole, self.readings[0]([body[:at]]))
        many = len(self.readings)
        return 1, len(singles) * many, len(doubles) * many, len(singles)


def framing(builds: Builds) -> Iterator[Case]:
    """Event streams, by both framers."""
    classes = [bare.framer_class(bare.file_of(package)) for package in builds]
    readings = [
        [_framer_reading(made(bare.limits(**caps), errors=errors)) for made in classes]
        for errors in ("strict", "replace")
        for caps in _framing.CAPS
    ]
    for data in corpora.read(framer.CORPUS):
        yield Case(data[_framing.HEAD :], readings[data[0] & 15], _judge_events)
    for body in vector_bodies("framing"):
        yield Case(body, readings[0], _judge_events)


def _framer_reading(framer: Any) -> Reading:
    def read(pieces: Sequence[bytes]) -> Any:
        events, facts = bare.read(framer, pieces)
        return list(map(bare.plain, events)), facts

    return read


def _judge_events(whole: Any, part: Any) -> None:
    if whole[0][: len(part[0])] != part[0]:
        raise Difference("a stream that breaks off has an event that the whole has not")


def streams(builds: Builds) -> Iterator[Case]:
    """Whole streams, by both builds, with the fast lane and without."""
    readers = [chat.Reader(package, lane=lane) for package in builds for lane in (True, False)]

    def case(body: bytes, options: int, caps: int) -> Case:
        readings = [partial(by.read, options=options, caps=caps, error=None) for by in readers]
        return Case(body, readings, _judge_stream)

    for data in corpora.read(chat.CORPUS):
        if len(data) >= chat.HEAD:
            yield case(data[chat.HEAD :], data[0] & 15, data[1] & 15)
    for body in vector_bodies("chat"):
        yield case(body, 0, 0)


def _judge_stream(whole: Any, part: Any) -> None:
    """Accepted is only what has its end: `[DONE]`, or what a tolerance takes for it."""
    verdict = part["verdict"]
    early = "flush_tail" in verdict["tolerated"] or "done_optional" in verdict["tolerated"]
    if verdict["outcome"] != "accepted":
        if part["calls"]:
            raise Difference("a stream that was not accepted offers calls")
    elif not (verdict["done"] or early):
        raise Difference("a stream is accepted without its end")
    elif not early and whole["verdict"] != verdict:
        raise Difference("a stream is accepted before its end, and not as the whole is")


def replies(builds: Builds) -> Iterator[Case]:
    """Raw text, by both builds. Its end is always that of an answer that was cut, which makes no call whole."""
    readers = [raw_text.Reader(package) for package in builds]

    def case(text: str, options: int, caps: int) -> Case:
        options = options & ~0x30 | raw_text.ENDS.index("length") << 4
        return Case(text, [partial(by.read, options=options, caps=caps) for by in readers], _judge_reply)

    for data in corpora.read(raw_text.CORPUS):
        if len(data) >= raw_text.HEAD:
            yield case(data[raw_text.HEAD :].decode("utf-8", "surrogateescape"), data[0], data[1] & 7)
    for body in vector_bodies("glm_text"):
        yield case(body.decode("utf-8", "surrogatepass"), 0, 0)


def _judge_reply(whole: Any, part: Any) -> None:
    (*_, part_calls, _), (*_, whole_calls, _) = part["choices"][0], whole["choices"][0]
    for call, expected in zip(part_calls, whole_calls, strict=False):
        if call[-1] and call != expected:  # the last says whether it is whole
            raise Difference("a call that is whole is another one in the whole reply")


def vector_bodies(layer: str) -> Iterator[bytes]:
    """The bodies of a layer's vectors, but for the few long ones."""
    for line in (VECTORS / f"{layer}.jsonl").read_text("ascii").splitlines():
        vector = json.loads(line)
        coded = vector.get("body_base64")
        body = vector["body"].encode("utf-8", "surrogatepass") if coded is None else b64decode(coded)
        if len(body) <= MOST_VECTOR_BYTES:
            yield body


def cases(builds: Builds) -> Iterator[tuple[str, Iterator[Case]]]:
    """Everything there is, by layer."""
    yield "framing", framing(builds)
    yield "streams", streams(builds)
    yield "raw text", replies(builds)
