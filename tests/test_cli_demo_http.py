"""`glmsse demo`: over HTTP where the extras are, in process where not, with the same table."""

from __future__ import annotations

import json
import sys

import pytest

from glmsse.__main__ import main

HEAD = "glmsse demo ("


def demo(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    assert main(["demo", *options]) == 0
    written = capsys.readouterr()
    assert written.err == ""
    return written.out.splitlines()


@pytest.fixture
def extras() -> None:
    for package in ("httpx", "starlette", "uvicorn"):
        pytest.importorskip(package)


@pytest.mark.usefixtures("extras")
def test_the_measured_streams_come_over_http(capsys: pytest.CaptureFixture[str]) -> None:
    lines = demo(capsys)

    assert lines[0].startswith(HEAD)
    assert lines[1].startswith("the first five over HTTP, from http://127.0.0.1:")


@pytest.mark.usefixtures("extras")
def test_both_ways_have_the_same_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo(capsys)[2:] == demo(capsys, "--in-process")[2:]


@pytest.mark.usefixtures("extras")
def test_json_says_which_streams_came_over_http(capsys: pytest.CaptureFixture[str]) -> None:
    over_http = [json.loads(line) for line in demo(capsys, "--json")]
    in_process = [json.loads(line) for line in demo(capsys, "--json", "--in-process")]

    assert [reading["over_http"] for reading in over_http] == [True] * 5 + [False] * (len(over_http) - 5)
    assert not any(reading["over_http"] for reading in in_process)
    assert [reading["outcome"] for reading in over_http] == [reading["outcome"] for reading in in_process]
    assert over_http[0]["checks"]["http_status"] is True
    assert in_process[0]["checks"]["http_status"] is None


def test_in_process_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo(capsys, "--in-process")[1] == "the first five in process, as asked"


@pytest.mark.usefixtures("extras")
@pytest.mark.parametrize("package", ["httpx", "starlette", "uvicorn"])
def test_without_an_extra_it_reads_in_process_and_says_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    assert demo(capsys)[1] == f"the first five in process, without {package}"


@pytest.mark.usefixtures("extras")
def test_without_loopback_it_reads_in_process_and_says_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from glmsse.server import running

    def refuse(*_: object) -> None:
        raise OSError("no loopback")

    monkeypatch.setattr(running, "listen", refuse)

    assert demo(capsys)[1] == "the first five in process, since loopback could not be used"


@pytest.mark.usefixtures("extras")
def test_a_server_that_goes_away_is_no_loopback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpx

    def fail(*_: object, **__: object) -> None:
        raise httpx.ReadError("gone")

    monkeypatch.setattr(httpx.Client, "stream", fail)

    assert demo(capsys)[1] == "the first five in process, since loopback could not be used"
