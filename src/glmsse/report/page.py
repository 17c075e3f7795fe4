"""Pages in HTML: whole in one file, without scripts, and with a policy that lets them load nothing (extra: report)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from .._version import __version__
from . import charts, figures
from .collection import OUTCOMES, Collection
from .section import Section
from .timeline import PHASES


def recording_page(section: Section) -> str:
    """One recording: its timeline, how it ended, and what was checked."""
    return _render("recording.html", title=section.name, section=section)


def collection_page(title: str, collection: Collection, sections: Sequence[Section]) -> str:
    """Many recordings: outcomes, drift, the slowest and the largest, and those that have a section of their own."""
    return _render(
        "collection.html",
        title=title,
        collection=collection,
        drift=collection.drift(),
        sections=sections,
        anchors={section.name: section.anchor for section in sections},
    )


def _render(template: str, **values: Any) -> str:
    style = _style()
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return (
        _environment()
        .get_template(template)
        .render(
            values,
            style=style,
            style_hash=digest,
            version=__version__,
            width=charts.WIDTH,
            height=charts.HEIGHT,
            phases=PHASES,
            outcomes=OUTCOMES,
        )
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__ or ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(size=figures.size, seconds=figures.seconds, number=figures.number)
    return environment


@lru_cache(maxsize=1)
def _style() -> str:
    return _environment().get_template("style.css").render()
