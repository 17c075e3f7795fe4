"""Audits beyond this machine's disk and processes: a real Dask cluster, and a real server that speaks S3."""

from __future__ import annotations

import gzip
import json
import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from glmsse.__main__ import main
from glmsse.audit import Progress, audit
from glmsse.audit.finding import find
from glmsse.audit.remote import read_remote
from glmsse.capture import Reading, Recording, Sidecar
from glmsse.scenarios import SCENARIOS

fsspec = pytest.importorskip("fsspec")
distributed = pytest.importorskip("distributed")


def rows_in(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()]


def without_paths(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["path"].rpartition("/")[2]: {**row, "path": None} for row in rows}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Recordings in two folders, one with a sidecar, one packed."""
    root = tmp_path / "in"
    (root / "deep").mkdir(parents=True)
    for number, scenario in enumerate(SCENARIOS.values()):
        (root / ("", "deep")[number % 2] / f"{scenario.name}.sse").write_bytes(scenario.body)
    Recording(SCENARIOS["text"].body, Sidecar(reading=Reading("hosted"))).write(root / "known.sse")
    (root / "packed.sse.gz").write_bytes(gzip.compress(SCENARIOS["text"].body))
    return root


# Dask


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two workers in processes of their own, which start anew when they are killed."""
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, protocol="tcp"
        ) as cluster,
    ):
        warnings.simplefilter("ignore")
        yield cluster


def test_an_audit_on_a_cluster_has_all_rows_though_a_worker_is_killed(tmp_path: Path, cluster: Any) -> None:
    root = tmp_path / "in"
    root.mkdir()
    for number in range(3000):
        scenario = list(SCENARIOS.values())[number % len(SCENARIOS)]
        (root / f"{number:05}.sse").write_bytes(scenario.body)
    audit([root], tmp_path / "here.jsonl", workers=1)
    victims = [worker.process.pid for worker in cluster.workers.values()]

    def kill_one(progress: Progress) -> None:
        if victims and progress.read >= 256:
            os.kill(victims.pop(), signal.SIGKILL)
            victims.clear()

    with pytest.MonkeyPatch.context() as patch, distributed.Client(cluster) as client:
        patch.setattr("glmsse.audit.finding.BATCH_FILES", 50)
        executor = client.get_executor(pure=False)
        audit([root], tmp_path / "there.jsonl", executor=executor, in_flight=6, progress=kill_one)

    assert not victims
    assert rows_in(tmp_path / "there.jsonl") == rows_in(tmp_path / "here.jsonl")


def test_the_command_works_on_a_cluster(folder: Path, tmp_path: Path, cluster: Any) -> None:
    out = str(tmp_path / "v.jsonl")
    assert main(["audit", str(folder), "-o", out, "--dask", cluster.scheduler_address]) == 3
    audit([folder], tmp_path / "here.jsonl", workers=1)
    assert rows_in(tmp_path / "v.jsonl") == rows_in(tmp_path / "here.jsonl")


def test_a_cluster_that_is_not_there_is_said_to_be_not_there(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        out = str(tmp_path / "v.csv")
        assert main(["audit", str(folder), "-o", out, "--dask", "tcp://127.0.0.1:9"]) == 2
    assert "no Dask scheduler" in capsys.readouterr().err


# URLs


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket on a server of this machine; the place of the server is what the environment says."""
    server_of = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    pytest.importorskip("s3fs")
    server = server_of.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        boto3.client("s3").create_bucket(Bucket="answers")
        yield "s3://answers"
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        server.stop()


def put(folder: Path, url: str) -> None:
    import boto3  # type: ignore[import-untyped]

    client = boto3.client("s3")
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    for path in folder.rglob("*"):
        if path.is_file():
            key = "/".join(filter(None, (prefix, path.relative_to(folder).as_posix())))
            client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())


@pytest.mark.filterwarnings("ignore")
def test_a_bucket_is_read_like_a_folder(folder: Path, tmp_path: Path, s3: str) -> None:
    put(folder, f"{s3}/day")
    audit([folder], tmp_path / "here.jsonl", workers=1)

    for workers in ("1", "2"):
        out = tmp_path / f"v{workers}.jsonl"
        assert main(["audit", f"{s3}/day", "-o", str(out), "--workers", workers]) == 3
        assert without_paths(rows_in(out)) == without_paths(rows_in(tmp_path / "here.jsonl"))
    rows = rows_in(out)
    assert {row["path"] for row in rows} >= {"s3://answers/day/text.sse", "s3://answers/day/deep/thinking.sse"}
    told: list[Progress] = []
    audit([f"{s3}/day"], out, workers=1, progress=told.append)
    assert told == []  # nothing is read again


@pytest.mark.filterwarnings("ignore")
def test_patterns_and_single_files_of_a_bucket(folder: Path, tmp_path: Path, s3: str) -> None:
    put(folder, s3)

    def names(url: str) -> list[str]:
        return sorted(found.path.removeprefix(f"{s3}/") for found in find([url]))

    assert names(f"{s3}/t*.sse") == ["text.sse", "too_many_events.sse", "tool.sse"]
    assert "deep/thinking.sse" in names(f"{s3}/**/*.sse")
    assert "text.sse" in names(f"{s3}/**/*.sse")
    assert names(f"{s3}/*/thinking.sse") == ["deep/thinking.sse"]
    assert names(f"{s3}/known.sse") == ["known.sse"]
    audit([f"{s3}/known.sse", f"{s3}/gone.sse", "s3://nobody/x"], tmp_path / "v.jsonl", workers=1)
    rows = {row["path"]: row for row in rows_in(tmp_path / "v.jsonl")}
    assert rows[f"{s3}/known.sse"]["profile"] == "hosted"
    assert rows[f"{s3}/gone.sse"]["error"] == "not_found"
    assert rows["s3://nobody/x"]["error"] == "not_found"


@pytest.mark.filterwarnings("ignore")
def test_a_large_object_is_read_in_pieces(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with fsspec.open(f"{s3}/large.sse", "wb") as file:
        file.write(b":" * 100_000)
    monkeypatch.setattr("glmsse.audit.remote.BLOCK_BYTES", 30_000)

    pieces = list(read_remote(f"{s3}/large.sse", 100_000))

    assert [len(piece) for piece in pieces] == [30_000, 30_000, 30_000, 10_000]


def test_any_file_system_that_fsspec_knows(folder: Path, tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(folder), "/audited", recursive=True)
    try:
        audit(["memory://audited"], tmp_path / "v.jsonl", workers=1)
        audit([folder.as_uri()], tmp_path / "local.jsonl", workers=1)
        audit([folder], tmp_path / "here.jsonl", workers=1)
    finally:
        memory.rm("/audited", recursive=True)
    expected = without_paths(rows_in(tmp_path / "here.jsonl"))
    assert without_paths(rows_in(tmp_path / "v.jsonl")) == expected
    assert without_paths(rows_in(tmp_path / "local.jsonl")) == expected


@pytest.mark.parametrize("path", ["sidecars", "sidecars/a.sse", "sidecars/*.sse", "sidecars/*"])
def test_a_sidecar_that_changes_behind_a_url_has_its_body_read_again(tmp_path: Path, path: str) -> None:
    out, models = tmp_path / "v.jsonl", []
    system = fsspec.filesystem("memory")
    system.pipe("/sidecars/a.sse", SCENARIOS["text"].body)
    for model in (None, "glm-5.2", "glm-5.2-air"):
        if model is not None:
            Recording(SCENARIOS["text"].body, Sidecar(model=model)).write(tmp_path / "a.sse")
            system.pipe("/sidecars/a.json", (tmp_path / "a.json").read_bytes())
        audit([f"memory://{path}"], out, workers=1)
        (row,) = rows_in(out)
        models.append(row["model"])
    system.rm("/sidecars", recursive=True)

    assert models == [None, "glm-5.2", "glm-5.2-air"]


def test_failures_of_a_file_system_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = fsspec.filesystem("memory")
    for name in ("a/one.sse", "a/shut/two.sse", "a/three.sse"):
        memory.pipe(f"/broken/{name}", SCENARIOS["text"].body)
    ls, cat_file = type(memory).ls, type(memory).cat_file

    def refuse_to_list(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        if path.endswith("shut"):
            raise PermissionError("CANARY")
        return ls(self, path, *args, **kwargs)

    def refuse_to_read(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        if path.endswith("three.sse"):
            raise RuntimeError("CANARY")
        return cat_file(self, path, *args, **kwargs)

    monkeypatch.setattr(type(memory), "ls", refuse_to_list)
    monkeypatch.setattr(type(memory), "cat_file", refuse_to_read)
    try:
        audit(["memory://broken"], tmp_path / "v.jsonl", workers=1)
    finally:
        memory.rm("/broken", recursive=True)
    rows = without_paths(rows_in(tmp_path / "v.jsonl"))
    assert {name: row["error"] for name, row in rows.items()} == {
        "one.sse": None,
        "shut": "permission",
        "three.sse": "unreadable",
    }
    assert rows["three.sse"]["error_class"] == "RuntimeError"
    assert "CANARY" not in (tmp_path / "v.jsonl").read_text()


@pytest.mark.parametrize("url", ["nonsense://x", "simplecache::memory://x"])
def test_urls_of_no_known_kind_are_refused(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", url, "-o", str(tmp_path / "v.csv")]) == 2
    assert "URLs" in capsys.readouterr().err
