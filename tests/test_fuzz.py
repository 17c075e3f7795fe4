"""The fuzzers: their corpora are clean, each target and driver finds a planted bug, and the ledger counts."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import BUILDS

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from fuzz import corpora, distil, ledger, run  # noqa: E402
from fuzz.builds import SOURCE, Builds, Difference, source_hash  # noqa: E402
from fuzz.drivers.loop import Loop  # noqa: E402
from fuzz.mutate import Mutator  # noqa: E402
from fuzz.targets import NAMES, target  # noqa: E402

if "compiled" not in BUILDS or not SOURCE.is_dir():
    pytest.skip("the fuzzers compare two builds, and hash their sources", allow_module_level=True)

BOTH = Builds(**BUILDS)
SWAPPED = Builds(BUILDS["pure"], BUILDS["compiled"])


@pytest.mark.parametrize("builds", [BOTH, SWAPPED], ids=["compiled first", "pure first"])
@pytest.mark.parametrize("name", NAMES)
def test_corpus_replays_clean(name: str, builds: Builds) -> None:
    check = target(name).checker(builds)
    for data in corpora.read(target(name).CORPUS):
        check(data)


@pytest.mark.parametrize("name", NAMES)
def test_corpus_is_small_and_of_inputs_that_the_target_takes(name: str) -> None:
    inputs = corpora.read(target(name).CORPUS)
    assert 20 < len(inputs) < 400
    assert max(map(len, inputs)) <= target(name).MOST_BYTES
    assert len(set(inputs)) == len(inputs)


@pytest.mark.parametrize("name", NAMES)
def test_no_source_that_a_target_runs_through_is_missing_in_its_hash(name: str) -> None:
    check = target(name).checker(BOTH)
    seen = set()

    def note(frame: Any, event: str, argument: object) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        for data in corpora.read(target(name).CORPUS):
            check(data)
    finally:
        sys.setprofile(None)
    folder = str(Path(BUILDS["pure"].__file__ or "").parent)
    ran = {Path(file).relative_to(folder).as_posix() for file in seen if file.startswith(folder)}
    assert ran <= set(target(name).SOURCES)
    assert all((SOURCE / file).is_file() for file in target(name).SOURCES)


class ForgetsCarriageReturn:
    """A framer that does not know any more whether the piece before ended in CR."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._framer = BUILDS["pure"].SSEFramer(*args, **options)

    def feed(self, data: bytes) -> list[Any]:
        events: list[Any] = self._framer.feed(data)
        self._framer._after_cr = False
        return events

    def __getattr__(self, name: str) -> Any:
        return getattr(self._framer, name)


def _with(build: str, **replaced: Any) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(BUILDS[build]), **replaced})


def _broken_stream() -> Builds:
    class LosesLastByte(BUILDS["pure"].ChatStream):  # type: ignore[misc, name-defined]
        __slots__ = ()

        def feed(self, data: bytes) -> Any:
            return super().feed(data[:-1] if data[-1:] == b"]" else data)

    return BOTH._replace(pure=_with("pure", chat=SimpleNamespace(ChatStream=LosesLastByte)))


def _broken_parser() -> Builds:
    class DropsSpace(BUILDS["pure"].ToolCallParser):  # type: ignore[misc, name-defined]
        __slots__ = ()

        def feed(self, text: str) -> Any:
            return super().feed(text.rstrip(" "))

    return BOTH._replace(pure=_with("pure", ToolCallParser=DropsSpace))


def _broken_encoders() -> Builds:
    encode = BUILDS["compiled"].encode

    def broken(base: Any) -> Any:
        class Injects(base):  # type: ignore[misc]
            __slots__ = ()

            def encode(self, events: Any) -> Any:
                return super().encode(events).replace(b"Hm", b"H")

        return Injects

    made = SimpleNamespace(OpenAIEncoder=broken(encode.OpenAIEncoder), AnthropicEncoder=broken(encode.AnthropicEncoder))
    return BOTH._replace(compiled=_with("compiled", encode=made))


PLANTED = {
    "framer": lambda: BOTH._replace(compiled=_with("pure", SSEFramer=ForgetsCarriageReturn)),
    "framer_twins": lambda: BOTH._replace(pure=_with("pure", SSEFramer=ForgetsCarriageReturn)),
    "chat": _broken_stream,
    "raw_text": _broken_parser,
    "encoders": _broken_encoders,
}


@pytest.mark.parametrize("name", NAMES)
def test_each_target_finds_a_planted_bug(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = target(name)
    check = chosen.checker(PLANTED[name]())
    part = Loop(chosen, check, 1, tmp_path).run(20_000, 60)
    assert part.found is not None
    data = part.found.read_bytes()
    with pytest.raises(Difference):
        check(data)
    chosen.checker(BOTH)(data)
    assert "Difference" in capsys.readouterr().err


def test_loop_executes_as_often_as_it_was_asked_to(tmp_path: Path) -> None:
    chosen = target("framer")
    loop = Loop(chosen, chosen.checker(BOTH), 1, tmp_path)
    assert loop.run(1234, 60) == (1234, None)
    assert loop.run(10**9, 0).executions < 1000


def test_same_seed_makes_the_same_inputs() -> None:
    chosen = target("chat")
    pool = corpora.read("chat")
    made = [
        [mutator.mutate(pool) for _ in range(200)]
        for mutator in (Mutator(seed, chosen.TOKENS, chosen.JOINT, chosen.MOST_BYTES) for seed in (5, 5, 6))
    ]
    assert made[0] == made[1] != made[2]
    assert max(map(len, made[0])) <= chosen.MOST_BYTES


def test_distilled_inputs_run_through_all_that_the_others_do() -> None:
    check = target("framer").checker(Builds(BUILDS["pure"], BUILDS["pure"]))
    inputs = corpora.read("framer")
    kept = distil.distilled(inputs * 2, check)
    assert set(kept) <= set(inputs)
    assert distil.steps_of(kept, check) == distil.steps_of(inputs, check)


ENTRY = ledger.Entry("1 framer", "framer", "loop", 100, 1.5, 7, "abc", source_hash(target("framer").SOURCES), "clean")


def test_ledger_counts_unchanged_sources_apart_from_all_time(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    assert ledger.read(path) == []
    ledger.append(path, ENTRY)
    ledger.append(path, replace(ENTRY, executions=50))
    ledger.append(path, replace(ENTRY, run="0 framer", executions=1000, hash="0" * 16))
    assert ledger.read(path)[0] == ENTRY
    row = next(line for line in ledger.table(path).splitlines() if line.split()[0] == "framer")
    assert row.split() == ["framer", "150", "0.0", "0", "1,150"]


def test_runs_are_taken_over_once_and_in_one_line(tmp_path: Path) -> None:
    path, other = tmp_path / "ledger.jsonl", tmp_path / "other.jsonl"
    for entry in (ENTRY, ENTRY, replace(ENTRY, run="0 framer", hash="0" * 16)):
        ledger.append(other, entry)
    assert ledger.collect(path, [other]) == 1
    assert ledger.read(path) == [replace(ENTRY, executions=200, seconds=3.0)]
    assert ledger.collect(path, [other]) == 0
    ledger.append(other, ENTRY)
    assert ledger.collect(path, [other]) == 1
    assert [entry.executions for entry in ledger.read(path)] == [300]


def test_ledger_of_the_repository_is_clean_and_readable(capsys: pytest.CaptureFixture[str]) -> None:
    assert all(entry.result == ledger.CLEAN for entry in ledger.current(ledger.read(ledger.LEDGER)))
    assert run.main(["--ledger"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["target", *NAMES]


def test_run_records_what_it_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "load_builds", lambda: BOTH)
    path = tmp_path / "ledger.jsonl"
    options = ["--ledger-file", str(path), "--work", str(tmp_path), "--seed", "3"]
    assert run.main(["framer", "--executions", "500", *options]) == 0
    (entry,) = ledger.read(path)
    assert (entry.target, entry.driver, entry.executions, entry.seed, entry.result) == (
        "framer",
        "loop",
        500,
        3,
        "clean",
    )
    assert entry.hash == source_hash(target("framer").SOURCES)


def test_run_keeps_what_it_finds_and_reads_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "load_builds", PLANTED["framer"])
    monkeypatch.setattr(corpora, "read", lambda name: [b"\0\0\0data: a\n\n"])
    path = tmp_path / "ledger.jsonl"
    options = ["--ledger-file", str(path), "--work", str(tmp_path), "--seed", "3"]
    assert run.main(["framer", "--executions", "50000", *options]) == 1
    (entry,) = ledger.read(path)
    found = tmp_path / "framer" / "found" / entry.result
    with pytest.raises(Difference):
        run.main(["framer", "--input", str(found)])
    monkeypatch.setattr(run, "load_builds", lambda: BOTH)
    assert run.main(["framer", "--input", str(found)]) == 0
