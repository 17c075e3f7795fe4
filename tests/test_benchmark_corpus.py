"""The streams that benchmarks read are what their names say."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import corpus

EVENTS = 502


def read(glmsse: ModuleType, body: bytes, **options: object) -> tuple[Counter[str], object]:
    stream = glmsse.ChatStream(**options)
    return Counter(event.type for event in stream.feed(body)), stream


def test_usual_stream_has_each_kind_of_piece_in_its_share(glmsse: ModuleType) -> None:
    for body in (corpus.glm(EVENTS), corpus.vllm(EVENTS)):
        types, stream = read(glmsse, body)
        assert stream.events_seen == EVENTS
        assert types["reasoning.delta"] == 150
        assert types["content.delta"] == 250
        assert types["tool_call.start"] == 4
        assert types["tool_call.arguments.delta"] == 96
        assert (types["usage"], types["finish"], types["done"], types["failed"]) == (1, 1, 1, 0)
        assert 190 < len(body) / EVENTS < 290


def test_short_stream_is_an_accepted_answer_of_20_events(glmsse: ModuleType) -> None:
    types, stream = read(glmsse, corpus.glm_short())
    assert stream.events_seen == 20
    assert stream.verdict.accepted
    assert types["reasoning.delta"] == 6
    assert types["content.delta"] == 12


def test_padded_stream_says_the_same_as_the_usual_one(glmsse: ModuleType) -> None:
    usual, padded = (read(glmsse, make(EVENTS))[1].snapshot for make in (corpus.glm, corpus.template_hostile))
    assert padded == usual
    blocks = set(corpus.template_hostile(EVENTS).split(b"obfuscation")[1:])
    assert len(blocks) > 0.9 * EVENTS


def test_every_character_of_the_chinese_stream_is_wide(glmsse: ModuleType) -> None:
    types, stream = read(glmsse, corpus.multibyte(100))
    assert types["content.delta"] == 100
    assert not any(char.isascii() for char in stream.snapshot.choices[0].content)


def test_usage_comes_with_every_piece(glmsse: ModuleType) -> None:
    types, stream = read(glmsse, corpus.usage_in_every_chunk(50))
    assert (types["content.delta"], types["usage"]) == (50, 50)
    assert stream.usage.completion_tokens == 50


@pytest.mark.parametrize(
    ("make", "events"),
    [
        (corpus.comments_only, 0),
        (corpus.blank_lines, 0),
        (corpus.endless_line, 0),
        (corpus.many_data_lines, 1),
        (corpus.cr_line_ends, 49),
        (corpus.crlf_line_ends, 49),
        (corpus.named_events, 222),
    ],
)
def test_hostile_stream_dispatches_that_many_events(glmsse: ModuleType, make: object, events: int) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_event_lines=None))
    assert len(framer.feed(make(10_000))) == events


def test_pieces_join_to_the_stream() -> None:
    body = corpus.glm(EVENTS)
    assert b"".join(corpus.pieces(body, 1460)) == body
    assert b"".join(corpus.event_pieces(body)) == body
    assert len(corpus.event_pieces(body)) == EVENTS
