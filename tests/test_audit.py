"""Audits: a row for everything, the same however the work was cut, broken off or lost."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from conftest import BUILDS
from glmsse import MisuseError
from glmsse.__main__ import main
from glmsse.audit import COLUMNS, ERRORS, Progress, Settings, UnfitJournal, audit, finding, summary_of
from glmsse.audit.columns import NAMES
from glmsse.audit.finding import Found, batches, find
from glmsse.audit.journal import journal_path
from glmsse.audit.reading import read_batch
from glmsse.capture import Reading, Recording, Sidecar, Terminal
from glmsse.scenarios import SCENARIOS, body, finish, text

Rows = dict[str, dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The made-up streams, some of them packed, some deeper."""
    root = tmp_path / "recordings"
    (root / "deep" / "er").mkdir(parents=True)
    for number, scenario in enumerate(SCENARIOS.values()):
        place = root / ("", "deep", "deep/er")[number % 3] / f"{scenario.name}.sse"
        place.write_bytes(scenario.body)
    (root / "packed.sse.gz").write_bytes(gzip.compress(SCENARIOS["text"].body))
    (root / "notes.txt").write_text("no recording")
    return root


def rows_in(out: Path) -> Rows:
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    return {Path(row["path"]).name: row for row in lines}


def audited(*paths: Path | str, out: Path, **options: Any) -> Rows:
    audit(paths, out, **{"workers": 1, **options})
    return rows_in(out)


@pytest.mark.parametrize("build", list(BUILDS))
def test_rows_have_what_the_stream_itself_says(folder: Path, tmp_path: Path, build: str) -> None:
    glmsse = BUILDS[build]
    command = [sys.executable, "-m", "glmsse", "audit", str(folder), "-o", "v.jsonl", "--workers", "1", "--json"]
    environment = {**os.environ, "GLMSSE_PURE_PYTHON": "1" if build == "pure" else "0"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    rows = rows_in(tmp_path / "v.jsonl")

    assert done.returncode == 3  # there are protocol errors among them
    assert json.loads(done.stdout)["recordings"] == len(rows) == len(SCENARIOS) + 1
    for name, scenario in SCENARIOS.items():
        row = rows[f"{name}.sse"]
        stream = glmsse.ChatStream()
        events = stream.feed(scenario.body)
        verdict = stream.close()
        told = verdict.to_dict()
        assert {field: row[field] for field in ("outcome", "accepted", "stage", "code", "category", "replay")} == {
            field: told[field] for field in ("outcome", "accepted", "stage", "code", "category", "replay")
        }
        assert row["finish_reason"] == verdict.finish_reason
        assert row["offset"] == (None if verdict.error is None else verdict.error.offset)
        assert row["done"] == verdict.done
        assert row["events"] == stream.events_seen
        assert row["content_chars"] == sum(len(e.text) for e in events if e.type == "content.delta")
        assert row["reasoning_chars"] == sum(len(e.text) for e in events if e.type == "reasoning.delta")
        assert row["tool_calls"] == sum(e.type == "tool_call.start" for e in events)
        assert row["total_tokens"] == (None if verdict.usage is None else verdict.usage.total_tokens)
        assert row["size"] == len(scenario.body)
        assert row["profile"] == "zai"
        assert row["error"] is None
    same = {**rows["packed.sse.gz"], "path": None, "size": None}
    assert same == {**rows["text.sse"], "path": None, "size": None}


def test_rows_are_sorted_by_path_and_have_every_column(folder: Path, tmp_path: Path) -> None:
    audit([folder], tmp_path / "v.jsonl", workers=1)
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]

    assert [row["path"] for row in rows] == sorted(row["path"] for row in rows)
    assert all(tuple(row) == NAMES for row in rows)
    for column in COLUMNS:
        assert {type(row[column.name]) for row in rows} <= {column.kind, type(None)}, column.name


def test_every_format_says_the_same(folder: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for ending in ("jsonl", "csv", "parquet"):
        audit([folder], tmp_path / f"v.{ending}", workers=1)

    expected = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    table = parquet.read_table(tmp_path / "v.parquet")
    assert table.to_pylist() == expected
    assert {field.name: str(field.type) for field in table.schema} == {
        column.name: {str: "string", int: "int64", float: "double", bool: "bool"}[column.kind] for column in COLUMNS
    }
    with (tmp_path / "v.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    spelt = {None: "", True: "true", False: "false"}
    assert lines == [
        {
            name: spelt.get(cell, str(cell)) if not isinstance(cell, int) or isinstance(cell, bool) else str(cell)
            for name, cell in row.items()
        }
        for row in expected
    ]


def test_a_sidecar_says_how_its_body_is_read_and_what_else_is_known(tmp_path: Path) -> None:
    data = body([text("Hi"), finish("stop", None)])
    sidecar = Sidecar(
        model="glm-5.2",
        route="/v4/chat/completions",
        status=200,
        headers={"content-type": "text/event-stream"},
        chunks=((0.5, 10), (2.5, len(data) - 10)),
        first_event_seconds=0.5,
        first_content_seconds=0.75,
        reading=Reading("hosted", limits={"max_events": 50}),
    )
    Recording(data, sidecar).write(tmp_path / "a.sse")
    Recording(data, Sidecar(status=429, headers={"retry-after": "7"})).write(tmp_path / "refused.sse")
    Recording(data[:40], Sidecar(terminal=Terminal("deadline_idle"))).write(tmp_path / "late.sse")
    (tmp_path / "packed.sse.gz").write_bytes(gzip.compress(data))
    (tmp_path / "packed.json").write_bytes((tmp_path / "a.json").read_bytes())

    rows = audited(tmp_path, out=tmp_path / "v.jsonl", settings=Settings(sha256=True))

    for name in ("a.sse", "packed.sse.gz"):
        row = rows[name]
        assert (row["outcome"], row["profile"], row["model"]) == ("accepted", "hosted", "glm-5.2")
        assert row["route"] == "/v4/chat/completions"
        assert (row["first_event_seconds"], row["first_content_seconds"], row["total_seconds"]) == (0.5, 0.75, 2.5)
        assert row["sha256"] == json.loads((tmp_path / "a.json").read_bytes())["sha256"]
    assert (rows["refused.sse"]["outcome"], rows["refused.sse"]["code"]) == ("http_error", "http_status")
    assert rows["late.sse"]["code"] == "deadline_idle"
    assert summary_of(tmp_path / "v.jsonl").slowest[0] == (str(tmp_path / "a.sse"), 2.5)


def test_options_are_for_bodies_without_a_sidecar(tmp_path: Path) -> None:
    (tmp_path / "a.sse").write_bytes(body([text("Hi"), finish("stop", None)], done=False))
    arguments = ["audit", str(tmp_path), "-o", str(tmp_path / "v.jsonl"), "--workers", "1"]

    assert main(arguments) == 1
    assert main([*arguments, "--profile", "gateway"]) == 0  # other settings: it is read again
    assert rows_in(tmp_path / "v.jsonl")["a.sse"]["profile"] == "gateway"
    assert main([*arguments, "--profile", "gateway", "--limit", "max_events=1"]) == 4
    assert main([*arguments, "--deny", "usage_optional"]) == 1


def unfit_files(root: Path) -> dict[str, str]:
    """Files that cannot be read, and what each is called for."""
    packed = gzip.compress(SCENARIOS["text"].body)
    good = SCENARIOS["text"].body
    files = {
        "cut.sse.gz": ("broken_gzip", packed[:-12]),
        "damaged.sse.gz": ("broken_gzip", packed[:20] + b"\xff\xff\xff" + packed[23:]),
        "not_packed.sse.gz": ("broken_gzip", good),
        "huge.sse": ("too_large", b":" * 100_001),
        "bomb.sse.gz": ("too_large", gzip.compress(bytes(100_001))),
        "no_json.sse": ("unfit_sidecar", good),
        "no_sidecar.sse": ("unfit_sidecar", good),
        "other_version.sse": ("unfit_sidecar", good),
        "other_body.sse": ("unfit_sidecar", good),
        "other_options.sse": ("unfit_reading", good),
    }
    for name, (_, data) in files.items():
        (root / name).write_bytes(data)
    fit = Sidecar(bytes=len(good), sha256="0" * 64).to_dict()
    (root / "no_json.json").write_text("{" * 100_000)
    (root / "no_sidecar.json").write_text("[]")
    (root / "other_version.json").write_text(json.dumps({**fit, "version": 99}))
    (root / "other_body.json").write_text(json.dumps({**fit, "bytes": 7}))
    (root / "other_options.json").write_text(json.dumps({**fit, "reading": {"profile": "CANARY"}}))
    os.symlink("nowhere", root / "dangling.sse")
    os.mkfifo(root / "pipe.sse")
    (root / "good.sse").write_bytes(good)
    return {name: error for name, (error, _) in files.items()} | {"dangling.sse": "not_found", "pipe.sse": "not_a_file"}


@pytest.mark.skipif(os.name == "nt", reason="pipes and links")
@pytest.mark.parametrize("workers", [1, 2])
def test_what_cannot_be_read_is_a_row_with_its_error(tmp_path: Path, workers: int) -> None:
    root = tmp_path / "in"
    root.mkdir()
    expected = unfit_files(root) | {"gone.sse": "not_found", "good.sse": None}
    settings = Settings(max_file_bytes=100_000)

    rows = audited(root, root / "gone.sse", out=tmp_path / "v.jsonl", workers=workers, settings=settings)

    assert {name: row["error"] for name, row in rows.items()} == expected
    assert {row["error"] for row in rows.values()} - {None} <= set(ERRORS)
    assert all((row["outcome"] == "unreadable") == (row["error"] is not None) for row in rows.values())
    assert "CANARY" not in (tmp_path / "v.jsonl").read_text()
    summary = summary_of(tmp_path / "v.jsonl")
    assert summary.unreadable == len(expected) - 1
    assert summary.errors["unfit_sidecar"] == 4


def test_a_digest_that_differs_is_another_body_if_digests_are_asked_for(tmp_path: Path) -> None:
    good = SCENARIOS["text"].body
    (tmp_path / "a.sse").write_bytes(good)
    (tmp_path / "a.json").write_text(json.dumps(Sidecar(bytes=len(good), sha256="0" * 64).to_dict()))

    assert audited(tmp_path, out=tmp_path / "v.jsonl")["a.sse"]["error"] is None
    rows = audited(tmp_path, out=tmp_path / "v.jsonl", settings=Settings(sha256=True))
    assert rows["a.sse"]["error"] == "unfit_sidecar"


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        (PermissionError(13, "CANARY"), "permission"),
        (FileNotFoundError(2, "CANARY"), "not_found"),
        (OSError(5, "CANARY"), "unreadable"),
        (MemoryError("CANARY"), "out_of_memory"),
        (RuntimeError("CANARY"), "failed"),
    ],
)
def test_errors_have_a_word_and_a_class_and_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception, error: str
) -> None:
    (tmp_path / "a.sse").write_bytes(SCENARIOS["text"].body)

    def refuse(*_: object) -> int:
        raise problem

    monkeypatch.setattr("glmsse.audit.reading.os.open", refuse)
    row = dict(zip(NAMES, read_batch(Settings(), [Found(str(tmp_path / "a.sse"), 5)])[0], strict=True))

    assert (row["error"], row["error_class"], row["size"]) == (error, type(problem).__name__, 5)
    assert "CANARY" not in repr(row)


def test_a_folder_that_cannot_be_looked_into_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shut").mkdir()
    (tmp_path / "a.sse").write_bytes(SCENARIOS["text"].body)
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if path.endswith("shut"):
            raise PermissionError(13, "no")
        return scandir(path)

    monkeypatch.setattr("glmsse.audit.finding.os.scandir", refuse)
    rows = audited(tmp_path, out=tmp_path / "v.jsonl")

    assert {name: row["error"] for name, row in rows.items()} == {"shut": "permission", "a.sse": None}


def test_links_that_lead_round_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a.sse").write_bytes(SCENARIOS["text"].body)
    os.symlink(tmp_path, tmp_path / "round", target_is_directory=True)

    assert list(audited(tmp_path, out=tmp_path / "v.jsonl")) == ["a.sse"]


def test_patterns_are_matched_here_and_files_with_such_names_are_files(folder: Path, tmp_path: Path) -> None:
    (folder / "a[1].sse").write_bytes(SCENARIOS["text"].body)
    (folder / "text.json").write_text("{}")

    def names(*paths: str) -> list[str]:
        return sorted(Path(found.path).name for found in find(paths))

    assert names(str(folder / "t*.sse")) == sorted(f"{n}.sse" for n in list(SCENARIOS)[::3] if n[0] == "t")
    assert names(str(folder / "**" / "*.sse")) == sorted([*(f"{name}.sse" for name in SCENARIOS), "a[1].sse"])
    assert names(str(folder / "a[1].sse")) == ["a[1].sse"]
    assert names(str(folder / "d*")) == names(str(folder / "deep"))
    assert names(str(folder / "*")) == names(str(folder / "**")) == names(str(folder))  # no sidecars, no notes
    assert names(str(folder / "text.json"), str(folder / "notes.txt")) == ["notes.txt", "text.json"]
    assert names(str(folder / "nothing*")) == []


def test_finding_holds_no_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        (tmp_path / f"{number}.sse").write_bytes(b"")
    looked_at: list[str] = []
    of_entry = finding._of_entry
    monkeypatch.setattr("glmsse.audit.finding._of_entry", lambda e: (looked_at.append(e.name), of_entry(e))[1])
    found = find([str(tmp_path)])

    for number in range(1, 4):
        next(found)
        assert len(looked_at) == number
    found.close()  # type: ignore[attr-defined]


def test_batches_are_bounded_by_bytes_and_by_files() -> None:
    found = [Found(str(number), 3 * 2**20) for number in range(7)] + [Found(str(number), 1) for number in range(600)]

    sizes = [len(batch) for batch in batches(found)]

    assert sizes == [3, 3, 257 - 1, 256, 89]


class Watched(Executor):
    """Does nothing until it is asked whether it has; remembers how much was under way."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(2)
        self.under_way = self.most = self.submitted = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        future = self.pool.submit(fn, *args, **kwargs)
        future.add_done_callback(lambda _: setattr(self, "under_way", self.under_way - 1))
        return future


@pytest.fixture
def single_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glmsse.audit.finding.BATCH_FILES", 1)


@pytest.mark.usefixtures("single_files")
def test_any_executor_does_and_the_batches_in_flight_are_bounded(folder: Path, tmp_path: Path) -> None:
    expected = audited(folder, out=tmp_path / "expected.jsonl")
    watched = Watched()

    with watched.pool:
        rows = audited(folder, out=tmp_path / "v.jsonl", executor=watched, in_flight=4)

    assert rows == expected
    assert watched.submitted == len(rows)
    assert watched.most <= 4


def test_the_next_work_is_looked_for_only_when_there_is_room(folder: Path, tmp_path: Path) -> None:
    asked = 0

    def paths() -> Iterator[str]:
        nonlocal asked
        for path in sorted(folder.rglob("*.sse")):
            asked += 1
            yield str(path)

    class Slow(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            ahead.append(asked)
            future: Future[Any] = Future()
            future.set_result(fn(*args, **kwargs))
            return future

    ahead: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glmsse.audit.finding.BATCH_FILES", 1)
        audit(paths(), tmp_path / "v.jsonl", executor=Slow())
    assert ahead == list(range(1, len(SCENARIOS) + 1))


def kill_for(name: str, settings: Settings, batch: list[Found]) -> list[Any]:
    """A task that takes its process down when it comes to one file."""
    if any(Path(found.path).name == name for found in batch):
        os.kill(os.getpid(), signal.SIGKILL)
    return read_batch(settings, batch)


class Deadly(Executor):
    """A pool of processes in which one file is deadly."""

    def __init__(self, name: str) -> None:
        self.pool = ProcessPoolExecutor(2)
        self.name = name

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self.pool.submit(kill_for, self.name, *fn.args, *args)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.pool.shutdown(wait, cancel_futures=cancel_futures)


def test_a_file_that_takes_its_worker_down_costs_nobody_else_a_row(folder: Path, tmp_path: Path) -> None:
    expected = audited(folder, out=tmp_path / "expected.jsonl")

    rows = audited(folder, out=tmp_path / "v.jsonl", executor=lambda: Deadly("tool.sse"))

    assert rows.pop("tool.sse")["error"] == "worker_lost"
    del expected["tool.sse"]
    assert rows == expected


def test_a_pool_that_takes_nothing_any_more_makes_rows_and_the_next_run_tries_them_again(
    folder: Path, tmp_path: Path
) -> None:
    class Broken(Executor):
        def submit(self, *_: Any, **__: Any) -> Future[Any]:
            raise BrokenExecutor

    lost = audited(folder, out=tmp_path / "v.jsonl", executor=Broken())
    assert {row["error"] for row in lost.values()} == {"worker_lost"}

    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    assert audited(folder, out=tmp_path / "v.jsonl", executor=closed) == lost

    rows = audited(folder, out=tmp_path / "v.jsonl")
    assert {row["error"] for row in rows.values()} == {None}
    assert set(rows) == set(lost)


class Bare(Executor):
    """Its workers have lost the package, after the first so many tasks."""

    def __init__(self, able: int = 0) -> None:
        self.able = able
        self.submitted = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted += 1
        future: Future[Any] = Future()
        if self.submitted <= self.able:
            future.set_result(fn(*args, **kwargs))
        else:
            future.set_exception(ModuleNotFoundError("CANARY"))
        return future


@pytest.mark.usefixtures("single_files")
def test_what_an_engine_raises_is_named(folder: Path, tmp_path: Path) -> None:
    rows = audited(folder, out=tmp_path / "v.jsonl", executor=Bare(able=1), in_flight=1)

    assert sorted({(str(row["error"]), str(row["error_class"])) for row in rows.values()}) == [
        ("None", "None"),
        ("worker_lost", "ModuleNotFoundError"),
    ]


def test_workers_that_can_do_nothing_are_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    many(tmp_path / "in", 512)
    bare = Bare()

    with pytest.raises(MisuseError, match=r"^the workers can read nothing \(ModuleNotFoundError\)") as raised:
        audit([tmp_path / "in"], tmp_path / "v.csv", executor=bare)

    assert "CANARY" not in str(raised.value)
    assert bare.submitted < 10
    assert not (tmp_path / "v.csv").exists()
    monkeypatch.setattr("glmsse.audit.running.local_pool", lambda _: Bare())
    assert main(["audit", str(tmp_path / "in"), "-o", str(tmp_path / "v.csv")]) == 2
    assert "ModuleNotFoundError" in capsys.readouterr().err


def test_a_script_that_does_not_guard_its_main_part_is_told_so(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"from glmsse.audit import audit\naudit([{str(folder)!r}], 'v.jsonl', workers=2)\n")

    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, timeout=120, check=False)

    assert done.returncode == 1
    assert b"MisuseError: no process can be started: a script calls audit under" in done.stderr


def test_a_lost_batch_is_tried_again(folder: Path, tmp_path: Path) -> None:
    class Forgetful(ThreadPoolExecutor):
        calls = 0

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            self.calls += 1
            if self.calls % 2:
                future: Future[Any] = Future()
                future.cancel()
                future.set_running_or_notify_cancel()
                return future
            return super().submit(fn, *args, **kwargs)

    expected = audited(folder, out=tmp_path / "expected.jsonl")
    with Forgetful(2) as pool:
        assert audited(folder, out=tmp_path / "v.jsonl", executor=pool) == expected


def many(root: Path, count: int) -> None:
    root.mkdir()
    bodies = [scenario.body for scenario in SCENARIOS.values()]
    for number in range(count):
        (root / f"{number:05}.sse").write_bytes(bodies[number % len(bodies)])


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_a_run_that_is_killed_is_taken_up_again_and_ends_the_same(tmp_path: Path) -> None:
    many(tmp_path / "in", 6000)
    audit([tmp_path / "in"], tmp_path / "unbroken.csv", workers=1)
    command = [sys.executable, "-m", "glmsse", "audit", str(tmp_path / "in"), "-o", "v.csv", "--workers", "2"]
    journal = tmp_path / "v.csv.journal-wal"
    killed = 0
    for size in (1, 400_000):
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None and not (journal.exists() and journal.stat().st_size > size):
                time.sleep(0.005)
            killed += process.poll() is None
            process.kill()

    assert killed == 2
    assert not (tmp_path / "v.csv").exists()
    told: list[Progress] = []
    audit([tmp_path / "in"], tmp_path / "v.csv", workers=1, progress=told.append)
    assert 0 < told[-1].known < 6000
    assert told[-1].known + told[-1].read == 6000
    assert (tmp_path / "v.csv").read_bytes() == (tmp_path / "unbroken.csv").read_bytes()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="/proc")
def test_workers_end_with_a_main_process_that_is_killed(tmp_path: Path) -> None:
    many(tmp_path / "in", 4000)
    command = [sys.executable, "-m", "glmsse", "audit", str(tmp_path / "in"), "-o", "v.csv", "--workers", "2"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while len(pids := children.read_text().split()) < 3:  # two workers, and Python's own tracker
            time.sleep(0.01)
        while not (tmp_path / "v.csv.journal-wal").exists():
            time.sleep(0.01)
        process.kill()
    until = time.monotonic() + 20
    while any(_is_running(pid) for pid in pids):
        assert time.monotonic() < until
        time.sleep(0.05)


def _is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_second_run_reads_what_is_new_or_has_changed_and_forgets_what_is_gone(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "v.jsonl"
    before = audited(folder, out=out)
    (folder / "new.sse").write_bytes(SCENARIOS["tool"].body)
    (folder / "text.sse").write_bytes(SCENARIOS["thinking"].body)
    (folder / "packed.sse.gz").unlink()
    told: list[Progress] = []

    rows = audited(folder, out=out, progress=told.append)

    assert (told[-1].read, told[-1].known) == (2, len(before) - 2)
    assert set(rows) == {*before, "new.sse"} - {"packed.sse.gz"}
    assert rows["text.sse"]["reasoning_chars"] == before["thinking.sse"]["reasoning_chars"]
    assert rows == audited(folder, out=tmp_path / "anew.jsonl")


def test_a_sidecar_that_comes_changes_or_goes_has_its_body_read_again(tmp_path: Path) -> None:
    root, out = tmp_path / "in", tmp_path / "v.jsonl"
    root.mkdir()
    path = root / "a.sse"
    recording = Recording(SCENARIOS["text"].body, Sidecar(model="glm-5.2"))
    path.write_bytes(recording.body)
    models = [audited(root, out=out)["a.sse"]["model"]]

    recording.write(path)
    os.utime(path, ns=(1, 1))
    before = audited(root, out=out)
    os.utime(path, ns=(1, 1))
    beside = path.with_suffix(".json")
    beside.write_text(beside.read_text().replace("glm-5.2", "glm-5.2-air"))
    models += [before["a.sse"]["model"], audited(root, out=out)["a.sse"]["model"]]
    beside.unlink()
    models.append(audited(root, out=out)["a.sse"]["model"])

    assert models == [None, "glm-5.2", "glm-5.2-air", None]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_what_is_called_as_a_sidecar_and_is_no_file_is_none(tmp_path: Path) -> None:
    for name in ("pipe", "folder"):
        (tmp_path / f"{name}.sse").write_bytes(SCENARIOS["text"].body)
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()

    command = [sys.executable, "-m", "glmsse", "audit", ".", "-o", "v.jsonl", "--workers", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False)

    assert done.returncode == 0
    assert [row["outcome"] for row in rows_in(tmp_path / "v.jsonl").values()] == ["accepted", "accepted"]


def test_a_file_that_is_named_twice_has_one_row(folder: Path, tmp_path: Path) -> None:
    expected = audited(folder, out=tmp_path / "v.jsonl")
    for _ in range(2):
        assert audited(folder, f"{folder}/./", folder / "deep", out=tmp_path / "twice.jsonl") == expected
    assert summary_of(tmp_path / "twice.jsonl") == summary_of(tmp_path / "v.jsonl")


def test_one_output_has_one_audit_at_a_time(folder: Path, tmp_path: Path) -> None:
    def second(_: Progress) -> None:
        with pytest.raises(UnfitJournal, match="another audit"):
            audit([folder], tmp_path / "v.csv", workers=1)
        seen.append(True)

    seen: list[bool] = []
    audit([folder], tmp_path / "v.csv", workers=1, progress=second)
    assert seen


def test_a_journal_that_is_none_is_said_to_be_none(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal_path(tmp_path / "v.csv").write_bytes(b"CANARY" * 1000)

    assert main(["audit", str(folder), "-o", str(tmp_path / "v.csv")]) == 2
    assert "it is no journal" in (told := capsys.readouterr().err)
    assert "CANARY" not in told
    with pytest.raises(UnfitJournal, match="there is no journal"):
        summary_of(tmp_path / "other.csv")


def test_names_that_are_no_text_and_words_that_cannot_be_written_are_spelt_out(tmp_path: Path) -> None:
    root = tmp_path / "in"
    root.mkdir()
    good = SCENARIOS["text"].body
    try:
        Path(os.fsdecode(os.fsencode(root) + b"/\xff.sse")).write_bytes(good)
    except OSError:
        pytest.skip("names are text here")
    (root / "a.sse").write_bytes(good)
    known = Sidecar(bytes=len(good), sha256="0" * 64, model="\ud800").to_dict()
    (root / "a.json").write_text(json.dumps(known))

    for _ in range(2):
        rows = audited(root, out=tmp_path / "v.jsonl")
        assert set(rows) == {r"\xff.sse", "a.sse"}
        assert {row["error"] for row in rows.values()} == {None}
        assert rows["a.sse"]["model"] == "?"


def test_numbers_and_reasons_of_hostile_bodies_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "a.sse").write_bytes(body([text("Hi"), finish("CANARY text", 10**40)]))
    for name in "bc":
        (tmp_path / f"{name}.sse").write_bytes(body([text("Hi"), finish("stop", 2**63 - 1)]))

    rows = audited(tmp_path, out=tmp_path / "v.jsonl")

    assert (rows["a.sse"]["finish_reason"], rows["a.sse"]["total_tokens"]) == ("other", None)
    assert rows["b.sse"]["total_tokens"] == 2**63 - 1
    assert summary_of(tmp_path / "v.jsonl").total_tokens >= 2**63 - 1


MARK = "CANARY do-not-show"


def test_no_text_of_an_answer_is_in_any_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "in"
    root.mkdir()
    for number, scenario in enumerate(SCENARIOS.values()):
        data = scenario.body.replace(b"harbour", MARK.encode()).replace(b"Ready", MARK.encode())
        (root / f"{number}.sse").write_bytes(data)
        (root / f"cut{number}.sse").write_bytes(b"data: {" + MARK.encode() + b"\n\n")
    for ending in ("csv", "jsonl", "parquet"):
        main(["audit", str(root), "-o", str(tmp_path / f"v.{ending}"), "--workers", "1"])

    told = capfd.readouterr()
    assert MARK not in told.out + told.err
    for path in tmp_path.iterdir():
        assert path.is_dir() or MARK.encode() not in path.read_bytes()


def test_a_body_is_read_in_pieces(tmp_path: Path) -> None:
    script = """
import resource, sys
from glmsse.audit import audit
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
audit([sys.argv[1]], sys.argv[2], workers=1)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    with (tmp_path / "long.sse").open("wb") as file:
        for _ in range(60):
            file.write((b":" * 1000 + b"\n\n") * 1000)
    with (tmp_path / "long.sse.gz").open("wb") as file:
        file.write(gzip.compress((b":" * 1000 + b"\n\n") * 60_000))
    command = [sys.executable, "-c", script, str(tmp_path), str(tmp_path / "v.csv")]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert int(done.stdout) < 20  # MiB, for two bodies of 60


def test_the_command_writes_a_page(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    command = ["audit", str(folder), "-o", str(tmp_path / "v.csv"), "--workers", "1", "--report"]

    assert main([*command, str(page)]) == 3
    html = page.read_text()
    assert "19 recordings" in html
    assert "accepted 7" in html
    assert "finish_length" in html

    assert main([*command, str(tmp_path / "no" / "page.html")]) == 2
    assert "page.html: No such file" in capsys.readouterr().err


def test_the_command_says_what_it_did(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(folder), "-o", str(tmp_path / "v.csv"), "--workers", "1"]) == 3
    told = capsys.readouterr().out
    assert "19 audited: 7 accepted, 6 incomplete, 3 not_accepted, 2 protocol_error, 1 provider_error" in told
    assert "finish_length" in told
    assert main(["audit", str(folder / "text.sse"), "-o", str(tmp_path / "one.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcomes"] == {"accepted": 1}
    assert main(["audit", str(folder / "gone.sse"), "-o", str(tmp_path / "one.csv")]) == 2
    assert "not_found" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "v.txt"], "ends in .csv, .jsonl, .parquet"),
        (["-o", "v.csv", "--workers", "0"], "positive"),
        (["-o", "v.csv", "--max-file-bytes", "0"], "positive"),
        (["-o", "v.csv", "--limit", "max_events=x"], "--limit"),
        (["-o", "nowhere/v.csv"], "journal"),
        (["-o", "v.csv", "--dask", "x", "--workers", "1"], "--workers is for this machine"),
    ],
)
def test_options_that_cannot_be_meant(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("glmsse.cli.extras.missing_from", lambda _: [])
    assert main(["audit", str(folder), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_nothing_to_be_found_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(tmp_path), "-o", str(tmp_path / "v.csv")]) == 2
    assert "no recording" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["s3://bucket", "-o", "v.csv"], "glmsse[audit]"),
        (["x", "-o", "v.parquet"], "glmsse[audit]"),
        (["x", "-o", "v.csv", "--dask", "tcp://x:1"], "glmsse[dask]"),
    ],
)
def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], extra: str
) -> None:
    for name in ("fsspec", "pyarrow", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["audit", *arguments]) == 2
    assert f'python -m pip install "{extra}"' in capsys.readouterr().err


def test_local_folders_and_text_need_no_extra(folder: Path, tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules.update(dict.fromkeys(('fsspec', 'pyarrow', 'distributed', 'rich')));"
        "from glmsse.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "audit", str(folder), "-o", str(tmp_path / "v.csv"), "--workers", "1"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 3


def test_progress_is_a_line_every_so_often_where_there_is_no_terminal(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("glmsse.cli.audit_progress.EVERY_SECONDS", 0.0)
    main(["audit", str(folder), str(folder / "gone.sse"), "-o", str(tmp_path / "v.csv"), "--workers", "1"])
    assert "glmsse: 20 recordings read" in (told := capsys.readouterr().err)
    assert "1 unreadable" in told


def test_wrong_options_of_the_function(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(MisuseError):
        audit([folder], tmp_path / "v.csv", in_flight=0)
    with pytest.raises(MisuseError, match="profile"):
        audit([folder], tmp_path / "v.csv", settings=Settings(Reading("CANARY")))
    assert not (tmp_path / "v.csv.journal").exists()


def test_the_page_names_every_error(builds: dict[str, ModuleType]) -> None:
    assert all(meaning and not meaning.endswith(".") for meaning in ERRORS.values())
