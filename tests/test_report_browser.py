"""Pages in a real browser: they fit, their style applies under their policy, and they know dark and print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from glmsse.report import Collection, entry_of, section_of, timeline_of
from glmsse.report.page import collection_page, recording_page
from test_report import HEAD, timed

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None and "CI" not in os.environ, reason="Chromium is needed: apt-get install chromium"
)

# Looks into a page of the same directory, which the browser is told to allow, and leaves what it sees in the title.
LOOK = """<!doctype html><iframe id=f width={width} height=800 src="{page}"></iframe><script>
f.onload = () => {{
  const page = f.contentDocument, body = getComputedStyle(page.body);
  document.title = [page.documentElement.scrollWidth, page.styleSheets.length, body.maxWidth,
                    page.querySelectorAll("svg rect").length, page.fonts.status].join(" ");
}};
</script>"""
BACKGROUND = {"light": "255,255,255", "dark": "20,23,27"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    recording = timed(route="/api/paas/v4/chat/completions", recorded_at="2026-12-03T12:00:00Z", **HEAD)
    timeline = timeline_of(recording)
    section = section_of("a-rather-long-name-" * 5, recording, timeline, anchor="r1", show_text=True)
    collection = Collection()
    for number in range(30):
        collection.add(entry_of(f"{'deep/' * 6}{number}.sse", recording, timeline))
    written = {"one": recording_page(section), "many": collection_page("many", collection, [section])}
    for name, html in written.items():
        (folder / f"{name}.html").write_text(html)
    return {name: folder / f"{name}.html" for name in written}


def chromium(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM, "Chromium is needed: apt-get install chromium"
    always = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={folder / 'profile'}",
    )
    return subprocess.run(
        [CHROMIUM, *always, "--enable-logging=stderr", *words], capture_output=True, text=True, timeout=120, check=True
    )


@pytest.mark.parametrize("name", ["one", "many"])
@pytest.mark.parametrize("width", [390, 1100])
def test_a_page_fits_and_is_styled(pages: dict[str, Path], tmp_path: Path, name: str, width: int) -> None:
    look = pages[name].parent / f"look-{name}-{width}.html"
    look.write_text(LOOK.format(page=pages[name].name, width=width))

    done = chromium(
        tmp_path, "--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom", look.as_uri()
    )

    seen = re.search(r"<title>(\d+) (\d+) (\S+) (\d+)", done.stdout)
    assert seen is not None, done.stdout
    assert int(seen.group(1)) <= width, "it is wider than the screen"
    assert seen.group(2) == "1"
    assert seen.group(3) != "none"
    assert int(seen.group(4)) > 10
    assert "Content Security Policy" not in done.stderr


@pytest.mark.parametrize(("scheme", "number"), [("light", 1), ("dark", 0)])
def test_a_page_follows_the_scheme(pages: dict[str, Path], tmp_path: Path, scheme: str, number: int) -> None:
    picture = tmp_path / "page.png"
    scheme_switch = f"--blink-settings=preferredColorScheme={number}"

    chromium(tmp_path, scheme_switch, f"--screenshot={picture}", pages["one"].as_uri())

    assert first_pixel(picture.read_bytes()) == BACKGROUND[scheme]


def test_a_page_prints(pages: dict[str, Path], tmp_path: Path) -> None:
    paper = tmp_path / "page.pdf"

    chromium(tmp_path, f"--print-to-pdf={paper}", pages["many"].as_uri())

    assert paper.read_bytes().startswith(b"%PDF-")
    assert paper.stat().st_size > 10_000


def first_pixel(png: bytes) -> str:
    """Whatever the row's filter is, the first pixel of the first row is as it is (PNG specification, 9.2)."""
    from zlib import decompressobj

    data = b"".join(re.findall(rb"(?s)IDAT(.*?)(?=.{4}.{4}(?:IDAT|IEND))", png))
    return ",".join(map(str, decompressobj().decompress(data, 4)[1:4]))
