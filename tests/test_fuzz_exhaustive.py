"""The exhaustive checks: what they count, that they find what is planted, that their bare framers are the real ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from framing_model import facts

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from fuzz import bare, cuts, exhaustive  # noqa: E402
from fuzz.builds import SOURCE, Builds, Difference  # noqa: E402

LIMITS: tuple[dict[str, int], ...] = ({}, {"max_event_bytes": 4, "max_event_lines": 2, "max_events": 2})


@pytest.fixture(name="both")
def both_builds(builds: dict[str, ModuleType]) -> Builds:
    if len(builds) < 2:
        pytest.skip("one build only")
    return Builds(**builds)


def broken(tmp_path: Path, right: str, wrong: str) -> Any:
    """The pure framer with one line made wrong."""
    text = (SOURCE / "_framer_py.py").read_text(encoding="utf-8")
    assert right in text
    path = tmp_path / "_framer_py.py"
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    return bare.framer_class(path)


@pytest.mark.parametrize("caps", LIMITS)
def test_bare_framer_says_what_the_packages_own_says(glmsse: ModuleType, caps: dict[str, int]) -> None:
    alone = bare.framer_class(bare.file_of(glmsse))(bare.limits(**caps))
    limits = glmsse.Limits(**{**dict.fromkeys(bare.CAPS), **caps})
    whole = glmsse.SSEFramer(limits)
    for size in range(1, 4):
        for stream in exhaustive.strings(size):
            events, told = bare.read(alone, [stream])
            whole.reset()
            expected, error = [], None
            try:
                expected = whole.feed(stream)
                whole.close()
            except glmsse.GlmsseError as fault:
                expected += fault.events
                error = facts(fault)
            assert list(map(bare.plain, events)) == list(map(bare.plain, expected))
            assert (told is None) == (error is None)
            if told is not None and error is not None and error[0] in ("invalid_utf8", "unterminated_event"):
                assert told == (*error[:2], error[-1])
            elif told is not None and error is not None:
                assert told == (*error[2:5], error[1])


def test_strings_are_all_there_once() -> None:
    assert list(exhaustive.strings(1)) == list(exhaustive.TOKENS)
    assert len(list(exhaustive.strings(3))) == 11**3
    assert list(exhaustive.strings(2, (b"data",))) == [b"data" + token for token in exhaustive.TOKENS]


def test_every_string_of_up_to_4_tokens_is_cut_everywhere(both: Builds) -> None:
    framers = exhaustive.Strings.of(both)
    readings = sum(framers.check(stream) for size in range(1, 5) for stream in exhaustive.strings(size))
    assert readings == 158_854


def test_framer_that_forgets_half_a_crlf_is_found(tmp_path: Path) -> None:
    forgetful = broken(tmp_path, "self._after_cr = data[-1] == CR", "self._after_cr = False")
    framers = exhaustive.Strings(forgetful, forgetful)
    assert framers.check(b"data:x\n\n")
    with pytest.raises(Difference, match="a cut at 7 shows"):
        framers.check(b"data:x\r\ndata:x\n\n")


def test_twin_that_takes_nul_in_an_id_is_found(tmp_path: Path, glmsse: ModuleType) -> None:
    credulous = broken(tmp_path, "if 0 not in value:", "if 1 not in value:")
    framers = exhaustive.Strings(bare.framer_class(bare.file_of(glmsse)), credulous)
    assert framers.check(b"id:x\ndata\n\n")
    with pytest.raises(Difference, match="the framers differ"):
        framers.check(b"id:\0\ndata\n\n")


def test_case_counts_its_cuts_and_sees_one_that_shows() -> None:
    joined = cuts.Case("abcde", ["".join, "".join], lambda whole, part: None)
    assert joined.check(5, 5) == (1, 8, 12, 4)
    assert joined.check(5, 4) == (1, 8, 0, 4)
    assert joined.check(4, 4) == (1, 0, 0, 0)
    with pytest.raises(Difference, match="a cut at 1 shows"):
        cuts.Case("abc", [len], lambda whole, part: None).check(3, 0)
    with pytest.raises(Difference, match="cuts at 1 and 2 show"):
        cuts.Case("abc", [lambda pieces: len(pieces) > 2], lambda whole, part: None).check(3, 3)
    with pytest.raises(Difference, match="two readings of the whole differ"):
        cuts.Case("abc", ["".join, len], lambda whole, part: None).check(3, 0)


def test_case_shows_its_beginnings_to_its_judge() -> None:
    seen: list[tuple[str, str]] = []

    def judge(whole: str, part: str) -> None:
        seen.append((whole, part))

    cuts.Case("abc", ["".join], judge).check(3, 0)
    assert seen == [("abc", "a"), ("abc", "ab")]


ACCEPTED = {"outcome": "accepted", "done": True, "tolerated": []}
CUT = {"outcome": "incomplete", "done": False, "tolerated": []}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"verdict": CUT, "calls": [1]}, "offers calls"),
        ({"verdict": {**ACCEPTED, "done": False}, "calls": []}, "without its end"),
        ({"verdict": {**ACCEPTED, "usage": 1}, "calls": []}, "before its end"),
    ],
)
def test_stream_that_gives_too_much_when_cut_is_judged(part: dict[str, Any], words: str) -> None:
    with pytest.raises(Difference, match=words):
        cuts._judge_stream({"verdict": ACCEPTED}, part)
    cuts._judge_stream({"verdict": ACCEPTED}, {"verdict": ACCEPTED, "calls": [1]})
    cuts._judge_stream({"verdict": ACCEPTED}, {"verdict": CUT, "calls": []})


def test_event_and_call_that_the_whole_has_not_are_judged() -> None:
    cuts._judge_events((["a", "b"], None), (["a"], None))
    with pytest.raises(Difference, match="has an event"):
        cuts._judge_events((["a"], None), (["b"], None))
    whole = {"choices": [(0, "", "", [(0, 0, "c", "f", "{}", True)], "length")]}
    cuts._judge_reply(whole, {"choices": [(0, "", "", [(0, 0, "c", "f", "{", False)], "length")]})
    with pytest.raises(Difference, match="a call that is whole"):
        cuts._judge_reply(whole, {"choices": [(0, "", "", [(0, 0, "c", "f", "{1}", True)], "length")]})


def test_short_inputs_of_every_layer_are_clean_at_every_cut(both: Builds) -> None:
    for layer, cases in cuts.cases(both):
        totals = [case.check(40, 16) for case in cases if len(case.body) <= 40]
        assert len(totals) > 40, layer
        assert sum(total[1] for total in totals) > 500, layer


def test_command_prints_its_counts(
    both: Builds, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(exhaustive, "load_builds", lambda: both)
    exhaustive._framers.cache_clear()
    assert exhaustive.main(["--tokens", "2", "--single", "0", "--double", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines[-2:]] == ["1 tokens: 11 strings", "2 tokens: 121 strings"]


def test_command_shows_the_input_that_differs(
    both: Builds, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cases(builds: Builds) -> Sequence[tuple[str, Any]]:
        return [("letters", iter([cuts.Case("abc", [len], lambda whole, part: None)]))]

    monkeypatch.setattr(exhaustive, "load_builds", lambda: both)
    monkeypatch.setattr(cuts, "cases", cases)
    assert exhaustive.main(["--tokens", "0"]) == 1
    assert capsys.readouterr().err == "letters: a cut at 1 shows in 'abc'\n"
