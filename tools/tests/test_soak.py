"""The soak reads right and tells growth from what is flat."""

from __future__ import annotations

import random

import pytest

import glmsse
import soak


@pytest.mark.parametrize("seed", range(8))
def test_what_is_made_is_read_as_it_says(seed: int) -> None:
    pick = random.Random(seed)
    body = soak.make_body(pick, 3000)
    soak.read_chat(glmsse, body, pick)
    soak.read_frames(glmsse, body, pick)


def test_kinds_of_streams_are_all_made() -> None:
    pick = random.Random(1)
    assert {soak.make_body(pick, 300).code for _ in range(60)} == {None, "incomplete_stream", "bad_json"}


def test_wrong_verdict_is_met() -> None:
    body = soak.Body(b"data: [DONE]\n\n", None, "", "", 1)
    with pytest.raises(AssertionError, match="the code is"):
        soak.read_chat(glmsse, body, random.Random(1))


@pytest.mark.parametrize(("each", "grows"), [(0, False), (128 * 1024, True)])
def test_growth_is_told_from_noise(each: int, grows: bool) -> None:
    memory = soak.Memory()
    for at in range(1, 101):
        memory.seen.append((float(at), 20_000_000 + each * at + (at % 3) * 100_000))
    assert (memory.growth() > soak.MOST_GROWTH) is grows
