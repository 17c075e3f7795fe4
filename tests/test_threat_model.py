"""The threat model page: every test it names exists, and the threats that no other file holds a test for."""

from __future__ import annotations

import ast
import gzip
import re
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from wire import CALL, HELLO, body, chunk, content, end, event, piece, tools

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
PACKAGE = ROOT / "src" / "glmsse"

# Layers 1 to 8: what a vendor copies.
CORE = sorted({*PACKAGE.glob("*.py"), *(PACKAGE / "encode").glob("*.py")})
BANNED = {"splitlines", "eval", "exec", "literal_eval", "pickle", "marshal", "shelve", "re", "regex"}
# Two classes of one character each, without repetition: they cannot backtrack.
ALLOWED = {("encode/calls.py", "re")}


def _names(path: Path) -> Iterator[str]:
    """Every name that a module imports, calls or looks up."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.name.partition(".")[0] for alias in node.names)
            yield (getattr(node, "module", None) or "").partition(".")[0]
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_core_uses_nothing_that_is_banned(path: Path) -> None:
    name = path.relative_to(PACKAGE).as_posix()
    assert {used for used in BANNED.intersection(_names(path)) if (name, used) not in ALLOWED} == set()


def test_compiled_sources_use_nothing_that_is_banned() -> None:
    for path in (*PACKAGE.glob("*.pyx"), *PACKAGE.glob("*.pxi")):
        used = set(re.findall(r"\w+", re.sub(r"#.*|\"\"\".*?\"\"\"", "", path.read_text("utf-8"), flags=re.DOTALL)))
        assert used & BANNED == set(), path.name


def test_every_threat_is_on_the_page_once() -> None:
    found = [int(number) for number in re.findall(r"^### T(\d+) \([HML]\) ", PAGE, re.MULTILINE)]
    assert sorted(found) == list(range(1, 33))


def test_every_threat_has_a_test_or_does_not_apply() -> None:
    for section in re.split(r"^### T27 .*\n|^##+ ", PAGE, flags=re.MULTILINE):
        if re.match(r"T\d+ ", section) and not section.startswith("T26 "):
            assert "Held by `tests/" in section or "Does not apply" in section, section.partition("\n")[0]


def test_every_test_on_the_page_exists() -> None:
    named = re.findall(r"`(tests/\w+\.py)(?:::(\w+))?`", PAGE)
    assert len(named) > 60
    for path, name in named:
        text = (ROOT / path).read_text("utf-8")
        assert not name or re.search(rf"^(?:async )?def {name}\(", text, re.MULTILINE), f"{path}::{name}"


@pytest.mark.parametrize("unit", [b"x", b"data: x", b": x", b"data:x\n", b":\n", b"id: x\n", "€".encode()], ids=repr)
def test_ten_times_the_cap_never_takes_more_memory_than_the_cap(glmsse: ModuleType, unit: bytes) -> None:
    cap = 256 * 1024
    framer = glmsse.SSEFramer(glmsse.Limits(max_event_bytes=cap, max_event_lines=None))
    data = unit * (4096 // len(unit))

    def feed() -> None:
        for _ in range(10 * cap // len(data)):
            framer.feed(data)

    tracemalloc.start()
    try:
        with pytest.raises(glmsse.GlmsseError):
            feed()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A buffer that grows by halves holds its old and its new self for a moment.
    assert most < 3 * cap + 64 * 1024


def test_body_that_unpacks_a_thousandfold_trips_the_cap(glmsse: ModuleType) -> None:
    sent = b"\n" * 20_000_000
    packed = gzip.compress(sent)
    assert len(packed) * 1000 < len(sent)
    unpacked = 0

    def decoded() -> Iterator[bytes]:
        """As an HTTP client hands over a body that it decodes."""
        nonlocal unpacked
        decoder = zlib.decompressobj(wbits=31)
        for at in range(0, len(packed), 512):
            piece = decoder.decompress(packed[at : at + 512])
            unpacked += len(piece)
            yield piece

    stream = glmsse.ChatStream(limits=glmsse.Limits(max_stream_bytes=100_000))
    _, verdict = glmsse.collect(decoded(), stream)

    assert (verdict.outcome, verdict.code) == ("limit_exceeded", "stream_too_large")
    assert unpacked < 2_000_000


@pytest.mark.parametrize("data", [HELLO, CALL], ids=["text", "call"])
def test_no_cut_of_a_stream_is_safe_to_ask_again(glmsse: ModuleType, data: bytes) -> None:
    for cut in range(len(data)):
        stream = glmsse.ChatStream()
        stream.feed(data[:cut])
        verdict = stream.close(ConnectionError())
        assert verdict.replay == ("pointless" if verdict.accepted else "ambiguous"), cut


def test_indexes_that_collide_are_capped_in_number(glmsse: ModuleType) -> None:
    collide = 2**61 - 1  # hash(n * collide) is 0
    stream = glmsse.ChatStream()
    parts = [tools(piece("{}", index=number * collide, id=f"c{number}", name="f")) for number in range(65)]

    events = stream.feed(body(*parts, done=False))

    assert hash(7 * collide) == 0
    assert events[-1].error.code == "too_many_tool_calls"
    assert len(stream.snapshot.choices[0].tool_calls) == 64
    far = glmsse.ChatStream(allow=["multi_choice"])
    assert far.feed(event(content("x", index=collide)))[-1].error.code == "too_many_choices"


@pytest.mark.parametrize("kind", ["framer", "chat"])
def test_two_threads_in_one_stream_meet_misuse_and_nothing_else(glmsse: ModuleType, kind: str) -> None:
    shared: Any = glmsse.SSEFramer() if kind == "framer" else glmsse.ChatStream()
    data = event(chunk({"content": "word"})) * 40
    odd: list[BaseException] = []
    texts: list[str] = []
    begin = threading.Barrier(2)

    def hammer() -> None:
        begin.wait(10)
        for _ in range(60):
            try:
                events = shared.feed(data)
            except glmsse.MisuseError:
                continue
            except BaseException as error:
                odd.append(error)
                return
            texts.extend(one.text if kind == "chat" else one.data for one in events)

    threads = [threading.Thread(target=hammer) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert odd == []
    whole = "word" if kind == "chat" else data.partition(b"\n\n")[0].removeprefix(b"data: ").decode()
    assert set(texts) <= {whole}
    if kind == "chat":
        shared.feed(event(end()) + b"data: [DONE]\n\n")
        assert shared.close().accepted
