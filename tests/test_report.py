"""Timelines, pages and strips: what they say, and what they must not."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from glmsse.__main__ import main
from glmsse.capture import Recording, Sidecar, Terminal
from glmsse.report import Collection, Entry, entry_of, section_of, timeline_of
from glmsse.report.charts import HEIGHT, WIDTH, chart_of
from glmsse.report.collection import MOST_ROWS, TOP
from glmsse.report.figures import place, seconds, size
from glmsse.report.page import collection_page, recording_page
from glmsse.report.strip import plain, strip
from glmsse.scenarios import body, finish, reasoning, text, tool_piece

HOSTILE = '<script>alert("x")</script>\u202e&'
SECRET = "Rosalind's private thoughts"
HEAD: dict[str, Any] = {"status": 200, "headers": {"content-type": "text/event-stream"}}
CHUNKS = [
    reasoning("Let me see. "),
    reasoning("Yes."),
    text("Hello "),
    text("world"),
    tool_piece('{"a":', name="f", call_id="c1"),
    tool_piece("1}"),
    finish("tool_calls", 20),
]


def timed(chunks: list[Any] = CHUNKS, *, pauses: list[float] | None = None, **known: Any) -> Recording:
    """A recording of one read an event, half a second apart unless told."""
    data = body(chunks)
    pieces = re.findall(rb"(?s).+?\n\n", data)
    times = list(accumulate(pauses or [0.5] * len(pieces)))
    return Recording(data, Sidecar(chunks=tuple(zip(times, map(len, pieces), strict=True)), **known))


def page(recording: Recording, name: str = "one.sse", *, show_text: bool = False) -> str:
    return recording_page(section_of(name, recording, timeline_of(recording), show_text=show_text))


def test_a_timed_recording_has_its_events_in_seconds() -> None:
    timeline = timeline_of(timed())

    assert timeline.timed
    assert timeline.end == 4.0
    assert [(moment.at, moment.lane, moment.size) for moment in timeline.moments if moment.size] == [
        (0.5, "reasoning", 12),
        (1.0, "reasoning", 4),
        (1.5, "content", 6),
        (2.0, "content", 5),
        (2.5, "tool_calls", 5),
        (3.0, "tool_calls", 2),
    ]
    assert timeline.phases == (
        ("waiting", 0.0, 0.5),
        ("reasoning", 0.5, 1.5),
        ("answering", 1.5, 2.5),
        ("calling", 2.5, 4.0),
    )
    assert timeline.received[-1] == (4.0, len(timed().body))
    assert timeline.verdict.accepted
    assert timeline.first("content") == 1.5


def test_a_recording_without_times_has_them_by_number() -> None:
    timeline = timeline_of(Recording(body(CHUNKS)))

    assert not timeline.timed
    assert [moment.at for moment in timeline.moments] == list(range(len(timeline.moments)))
    assert [phase.name for phase in timeline.phases] == ["reasoning", "answering", "calling"]
    assert timeline.longest_pause() is None
    assert timeline.tokens_per_second() is None


def test_the_longest_pause_and_the_speed_are_figures_of_the_times() -> None:
    timeline = timeline_of(timed(pauses=[0.5, 0.5, 3.0, 0.5, 0.25, 0.25, 0.25, 0.25]))

    assert timeline.longest_pause() == (1.0, 4.0)
    assert timeline.verdict.usage is not None
    # From the first piece of reasoning at 0.5 s to the end of the call, which comes with the finish reason, at 5.25 s.
    assert timeline.tokens_per_second() == pytest.approx(timeline.verdict.usage.completion_tokens / 4.75)


@pytest.mark.parametrize(
    ("data", "end", "code"),
    [
        (b"", None, "empty_stream"),
        (body(CHUNKS)[:300], None, "unterminated_event"),
        (body(CHUNKS)[:300], "deadline_idle", "deadline_idle"),
        (b"data: {\n\n", None, "bad_json"),
        (b"\xff\n\n", None, "invalid_utf8"),
    ],
)
def test_every_body_has_a_timeline_and_a_page(data: bytes, end: str | None, code: str) -> None:
    recording = Recording(data, Sidecar(terminal=Terminal(end=end)))

    timeline = timeline_of(recording)

    assert timeline.verdict.code == code
    assert code in page(recording)
    assert all(isinstance(line, str) for line in plain(strip(timeline, 80)))


def test_shapes_stay_within_the_drawing() -> None:
    chart = chart_of(timeline_of(timed()))

    boxes = [*chart.bands, *(box for lane in chart.lanes for box in lane.boxes)]
    assert boxes
    for box in boxes:
        assert box.x >= 0
        assert box.x + box.width <= WIDTH + 1
        assert box.y >= 0
        assert box.y + box.height <= HEIGHT
    points = [tuple(map(float, point.split(","))) for point in chart.received.split()]
    assert points[0] == (0, HEIGHT)
    assert points[-1] == (WIDTH, 0)
    assert [lane.events for lane in chart.lanes] == [2, 2, 4, 3]
    assert chart.ticks[0] == "0 s"
    assert chart.ticks[-1] == "4.00 s"


def test_tokens_are_shared_out_by_text() -> None:
    timeline = timeline_of(timed())

    assert timeline.verdict.usage is not None
    whole = timeline.verdict.usage.completion_tokens
    assert timeline.tokens[0] == (0.5, whole * 12 // 34)
    assert timeline.tokens[-1] == (3.0, whole)
    assert not chart_of(timeline_of(Recording(body(CHUNKS[:3])))).tokens


def check_that_it_loads_nothing(html: str) -> None:
    style = re.search(r"(?s)<style>(.*?)</style>", html)
    assert style is not None
    digest = b64encode(sha256(style.group(1).encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert f'content="{policy}"' in html.replace("&#39;", "'")
    assert not re.search(r"<(script|link|img|iframe|object|embed|form|base)\b", html)
    assert not re.search(r"\s(style|on\w+|src)=", html)
    assert not re.search(r"url\(|@import|https?:", html)
    assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', html))


def test_a_page_loads_nothing_and_escapes_everything() -> None:
    chunks = [dict(text(HOSTILE), model=HOSTILE), finish("stop", 20)]
    recording = timed(chunks, route=HOSTILE, recorded_at=HOSTILE, recorded_by=HOSTILE)

    html = page(recording, f"{HOSTILE}.sse", show_text=True)

    check_that_it_loads_nothing(html)
    assert "<script>" not in html
    assert html.count("&lt;script&gt;") >= 5


def test_text_is_there_on_demand_and_reasoning_never() -> None:
    recording = timed([reasoning(SECRET), text("The visible answer"), finish("stop", 20)])

    assert "visible answer" not in page(recording)
    assert "The visible answer" in page(recording, show_text=True)
    assert "Rosalind" not in page(recording, show_text=True)


def test_a_page_says_how_it_ended() -> None:
    html = page(timed(terminal=Terminal(end="error", error_class="ReadError"), retries=2, **HEAD))

    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
    for words_found in (
        "accepted",
        "error (ReadError)",
        "1 begun, 1 usable",
        "retries before 2",
        "longest pause 500 ms",
    ):
        assert words_found in words


def test_a_collection_counts_everything_and_keeps_a_bounded_number() -> None:
    collection = Collection()
    for number in range(MOST_ROWS + 100):
        outcome, code = ("accepted", None) if number % 4 else ("incomplete", "incomplete_stream")
        collection.add(Entry(f"{number}.sse", outcome, code, bytes=number, events=2, seconds=number / 10))

    assert collection.total == MOST_ROWS + 100
    assert collection.outcomes["incomplete"] == (MOST_ROWS + 100) // 4
    assert len(collection.rows) == MOST_ROWS
    assert [entry.bytes for entry in collection.largest] == list(range(MOST_ROWS + 99, MOST_ROWS + 99 - TOP, -1))
    assert collection.slowest == collection.largest
    html = collection_page("many", collection, [])
    check_that_it_loads_nothing(html)
    assert "The first 2,000 of 2,100 recordings" in html


def test_drift_is_told_by_model_and_route() -> None:
    collection = Collection()
    for number in range(6):
        chunks = [text("word"), finish("stop", 20)]
        if number >= 3:
            chunks = [dict(text("word"), matched_stop=None), finish("length", 20)]
        recording = timed(chunks, recorded_at=f"2026-12-0{number + 1}", route="/v1/chat/completions")
        entry = entry_of(f"{number}.sse", recording, timeline_of(recording))
        collection.add(entry)
        collection.add_shape(entry, recording)

    (drift,) = collection.drift()
    assert (drift.group, drift.older, drift.newer) == ("glm-5.2 /v1/chat/completions", 3, 3)
    assert drift.changes == ("new fields: matched_stop", "new finish reasons: length")


@pytest.mark.parametrize(("ascii_only", "bars"), [(False, "▁▂▃▄▅▆▇█"), (True, ".:-=+*#@")])
def test_a_strip_fits_its_width(ascii_only: bool, bars: str) -> None:
    lines = list(plain(strip(timeline_of(timed()), 60, ascii_only=ascii_only)))

    assert all(len(line) <= 60 for line in lines)
    assert lines[0].split() == ["phase", "w" * 5 + "r" * 12 + "a" * 11 + "c" * 18]
    assert lines[1].startswith("   reasoning")
    assert set(lines[1].split()[1]) <= set(bars)
    assert lines[-1].split() == ["0", "s", "2.00", "s", "4.00", "s"]
    assert ascii_only <= all(line.isascii() for line in lines)


def test_figures_are_as_people_read_them() -> None:
    assert [size(count) for count in (0, 1023, 1024, 5 * 2**20)] == ["0 B", "1023 B", "1.0 KiB", "5.0 MiB"]
    assert [seconds(value) for value in (0, 0.0042, 0.34, 1.25, 200)] == [
        "0 s",
        "4.2 ms",
        "340 ms",
        "1.25 s",
        "3 min 20 s",
    ]
    assert place(3, timed=False) == "event 3"


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "recordings"
        (folder / "deep").mkdir(parents=True)
        timed().write(folder / "whole.sse")
        (folder / "deep" / "cut.sse").write_bytes(body(CHUNKS)[:400])
        return folder

    def test_a_file_is_drawn_in_the_terminal(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["report", str(folder / "whole.sse")]) == 0

        out = capsys.readouterr().out
        assert out.startswith("whole.sse: accepted, 8 events\n")
        assert "tool_calls" in out

    def test_a_file_becomes_a_page(self, folder: Path, tmp_path: Path) -> None:
        out = tmp_path / "report.html"

        assert main(["report", str(folder / "whole.sse"), "-o", str(out)]) == 0

        check_that_it_loads_nothing(out.read_text())

    def test_a_directory_becomes_a_page_with_links(self, folder: Path, tmp_path: Path) -> None:
        out = tmp_path / "report.html"

        assert main(["report", str(folder), "-o", str(out)]) == 0

        html = out.read_text()
        check_that_it_loads_nothing(html)
        for target in re.findall(r'href="#([^"]+)"', html):
            assert f'id="{target}"' in html
        assert "deep/cut.sse" in html

    def test_an_unreadable_one_is_counted_and_the_rest_is_shown(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (folder / "whole.json").write_text('{"schema": "glmsse.recording", "version": 99}')
        out = tmp_path / "report.html"

        assert main(["report", str(folder), "-o", str(out)]) == 2

        assert "unreadable 1" in out.read_text()
        assert "incomplete 1" in out.read_text()
        assert "version 99" in capsys.readouterr().err

    def test_packed_ones_are_drawn_too(self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        packed, out = folder / "packed.sse.gz", tmp_path / "report.html"
        timed().write(packed)

        assert main(["report", str(packed)]) == 0
        assert capsys.readouterr().out.startswith("packed.sse.gz: accepted, 8 events\n")
        assert main(["report", str(folder), "-o", str(out)]) == 0
        assert "packed.sse.gz" in out.read_text()
        assert "3 recordings" in out.read_text()

        packed.write_bytes(packed.read_bytes()[:-9])
        assert main(["report", str(packed)]) == 2
        assert "packed.sse.gz: the packed body is cut" in capsys.readouterr().err

    def test_one_that_vanishes_before_it_is_drawn_costs_its_picture_only(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = tmp_path / "report.html"
        load = Recording.load
        seen: list[Path] = []

        def load_once(path: Path) -> Recording:
            if path.name == "cut.sse" and path in seen:
                path.unlink()
            seen.append(path)
            return load(path)

        monkeypatch.setattr(Recording, "load", load_once)
        assert main(["report", str(folder), "-o", str(out)]) == 2

        html = out.read_text()
        assert "incomplete 1" in html
        assert "deep/cut.sse" in html
        for target in re.findall(r'href="#([^"]+)"', html):
            assert f'id="{target}"' in html
        assert "cut.sse: No such file or directory; its timeline is left out" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("words", "hint"),
        [
            (["report", "."], "needs --out"),
            (["report", "no-such-file.sse"], "No such file"),
            (["report", "{empty}", "-o", "x.html"], "no *.sse"),
            (["report", "{file}", "-o", "{empty}/no/such/x.html"], "No such file"),
        ],
    )
    def test_what_cannot_be_done_is_said(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], hint: str
    ) -> None:
        empty = tmp_path / "empty"
        empty.mkdir()
        filled = [word.format(empty=empty, file=folder / "whole.sse") for word in words]

        assert main(filled) == 2

        assert hint in capsys.readouterr().err

    def test_a_missing_extra_is_named(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setitem(__import__("sys").modules, "jinja2", None)

        assert main(["report", str(folder / "whole.sse"), "-o", "x.html"]) == 2

        assert "glmsse[report]" in capsys.readouterr().err

    def test_options_say_how_to_read_what_has_no_sidecar(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        bare = folder / "bare.sse"
        bare.write_bytes(body(CHUNKS))

        assert main(["report", "--limit", "max_events=3", str(bare)]) == 0

        assert "limit_exceeded (too_many_events)" in capsys.readouterr().out
