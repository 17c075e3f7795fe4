"""Real clients against a real server on loopback: every fault has the same verdict whoever carries the bytes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from clients import ASYNC, HEADERS, SYNC, body_for, httpx
from glmsse.scenarios import SCENARIOS
from loopback import Provider, provider

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("read_*.py"))


@pytest.fixture
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture(params=[*SYNC, *ASYNC])
def client(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def read(glmsse: ModuleType, server: Provider, client: str, model: str, stream: Any = None, **options: Any) -> Any:
    """The verdict over one answer, read with one client; options go to collect."""
    stream = stream or glmsse.ChatStream()
    url = f"{server.base_url}/chat/completions"
    if client in SYNC:
        SYNC[client](url, model, stream, lambda source: glmsse.collect(source, stream, **options))
    else:

        async def consume(source: AsyncIterator[bytes]) -> None:
            await glmsse.acollect(source, stream, **options)

        asyncio.run(asyncio.wait_for(ASYNC[client](url, model, stream, consume), 20))
    return stream.close()


@pytest.mark.parametrize("model", SCENARIOS)
def test_every_scenario_has_its_verdict_with_every_client(
    glmsse: ModuleType, server: Provider, client: str, model: str
) -> None:
    scenario = SCENARIOS[model]
    caps = {name: getattr(scenario.limits, name) for name in scenario.limits.__dataclass_fields__}
    expected = glmsse.ChatStream(limits=glmsse.Limits(**caps))
    expected.feed(scenario.body)

    verdict = read(glmsse, server, client, model, glmsse.ChatStream(limits=glmsse.Limits(**caps)))

    assert (verdict.outcome, verdict.code) == (expected.close().outcome, expected.close().code)
    assert verdict.error == expected.close().error
    assert verdict.tool_calls == expected.close().tool_calls


def test_reading_ends_at_done_though_the_server_stays(glmsse: ModuleType, server: Provider, client: str) -> None:
    assert read(glmsse, server, client, "stays_open").accepted
    assert server.left.wait(10)


# iter_content(None) of requests waits for the end of such a body; response.raw does not.
@pytest.mark.parametrize("client", [name for name in (*SYNC, *ASYNC) if name != "requests"])
def test_a_body_that_only_the_connection_ends_is_streamed(glmsse: ModuleType, server: Provider, client: str) -> None:
    assert read(glmsse, server, client, "until_close").accepted
    assert server.left.wait(10)


@pytest.mark.parametrize("model", ["reset", "cut_chunk"])
def test_a_broken_connection_is_incomplete(glmsse: ModuleType, server: Provider, client: str, model: str) -> None:
    verdict = read(glmsse, server, client, model)

    assert verdict.outcome == "incomplete"
    assert verdict.replay == "ambiguous"


def test_a_refusal_has_its_category(glmsse: ModuleType, server: Provider, client: str) -> None:
    verdict = read(glmsse, server, client, "rate")

    assert (verdict.code, verdict.category, verdict.provider_code) == ("http_status", "rate", "1302")
    assert (verdict.replay, verdict.retry_after, verdict.request_id) == ("safe", 3, "req-1")


def test_html_under_200_is_refused(glmsse: ModuleType, server: Provider, client: str) -> None:
    assert read(glmsse, server, client, "html").code == "content_type"


def test_comments_alone_run_out_as_idle(glmsse: ModuleType, server: Provider, client: str) -> None:
    verdict = read(glmsse, server, client, "comments", deadlines=glmsse.Deadlines(idle=0.1))

    assert verdict.code == "deadline_idle"
    assert server.left.wait(10)


@pytest.mark.parametrize(("model", "code"), [("stall", "deadline_idle"), ("silence", "deadline_first_byte")])
@pytest.mark.parametrize("client", ASYNC)
def test_an_async_read_that_waits_is_broken_off(
    glmsse: ModuleType, server: Provider, client: str, model: str, code: str
) -> None:
    verdict = read(glmsse, server, client, model, deadlines=glmsse.Deadlines(first_byte=0.3, idle=0.1, total=5))

    assert verdict.code == code
    assert server.left.wait(10)


def test_each_event_is_there_before_the_next_is_sent(glmsse: ModuleType, server: Provider, client: str) -> None:
    stream = glmsse.ChatStream()
    url = f"{server.base_url}/chat/completions"
    types: list[str] = []

    def one_by_one(source: Any) -> None:
        for event in glmsse.iter_events(source, stream):
            types.append(event.type)
            if event.type != "usage":  # comes together with finish
                server.step.release()

    async def async_one_by_one(source: Any) -> None:
        async for event in glmsse.aiter_events(source, stream):
            types.append(event.type)
            if event.type != "usage":
                server.step.release()

    server.step.release()
    if client in SYNC:
        SYNC[client](url, "one_by_one", stream, one_by_one)
    else:
        asyncio.run(asyncio.wait_for(ASYNC[client](url, "one_by_one", stream, async_one_by_one), 20))

    assert types == ["content.delta", "content.delta", "content.delta", "usage", "finish", "done"]
    assert stream.verdict.accepted


@pytest.mark.parametrize("client", ASYNC)
def test_cancelling_closes_the_connection(glmsse: ModuleType, server: Provider, client: str) -> None:
    stream = glmsse.ChatStream()
    seen: list[str] = []

    async def consume(source: AsyncIterator[bytes]) -> None:
        async for event in glmsse.aiter_events(source, stream):
            seen.append(event.type)

    async def cancel() -> None:
        task = asyncio.create_task(
            ASYNC[client](f"{server.base_url}/chat/completions", "stall", stream, consume)  # type: ignore[arg-type]
        )
        while not seen:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancel(), 20))

    assert stream.verdict.code == "cancelled"
    assert server.left.wait(10)


@pytest.mark.parametrize("drain", [None, 2.0])
def test_a_drained_connection_is_used_again(glmsse: ModuleType, server: Provider, drain: float | None) -> None:
    ports = []
    with httpx.Client(timeout=20) as session:
        for _ in range(2):
            url = f"{server.base_url}/chat/completions"
            with session.stream("POST", url, headers=HEADERS, json=body_for("trailing")) as response:
                connection = response.extensions["network_stream"]
                ports.append(connection.get_extra_info("client_addr"))
                assert glmsse.collect(response.iter_bytes(), drain=drain)[1].accepted

    if drain is not None:
        assert ports[0] == ports[1]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    ("model", "exit_code", "last_line"),
    [
        ("text", 0, "-- accepted"),
        ("no_done", 1, "-- incomplete incomplete_stream"),
        ("rate", 1, "-- http_error http_status rate"),
    ],
)
def test_examples_run(server: Provider, example: Path, model: str, exit_code: int, last_line: str) -> None:
    environment = {**os.environ, "GLMSSE_BASE_URL": server.base_url, "GLMSSE_MODEL": model, "ZAI_API_KEY": "test"}

    ran = subprocess.run([sys.executable, str(example)], env=environment, capture_output=True, text=True, timeout=60)

    assert (ran.returncode, ran.stderr) == (exit_code, "")
    lines = ran.stdout.splitlines()
    assert lines[-1].strip() == last_line
    assert lines[0] == {"text": "Ready when you are.", "no_done": "Ready", "rate": ""}[model]


def test_there_is_an_example_for_each_client() -> None:
    assert [path.stem for path in EXAMPLES] == [
        "read_aiohttp", "read_httpx", "read_httpx_async", "read_openai", "read_requests", "read_urllib",
    ]  # fmt: skip
