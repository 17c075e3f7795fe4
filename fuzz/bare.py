"""A framer by itself, with stand-ins for the errors: a real error takes longer to make than a short stream to read."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

CAPS = ("max_event_bytes", "max_event_lines", "max_events", "max_stream_bytes")

plain = attrgetter("event", "data", "id", "retry", "offset")
"""An event as a tuple: those of two framers are never equal themselves."""


class Told(Exception):
    """Any fault, as its facts."""

    def __init__(self, *facts: object) -> None:
        self.facts = facts
        self.events: list[Any] = []

    def again(self) -> Told:
        return self


class Misused(Told):
    """In place of MisuseError, which no input can be a reason for."""


def fault(code: str, offset: int, tail: int | None = None) -> Told:
    return Told(code, offset, tail)


def limits(**caps: int) -> SimpleNamespace:
    """In place of Limits: no cap but these."""
    return SimpleNamespace(**{**dict.fromkeys(CAPS), **caps})


def framer_class(path: Path) -> Any:
    """The class SSEFramer of a module file, compiled or not, that nobody else has."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copy(path, folder))  # an extension can be loaded once, so each time it has to be another
        name = f"glmsse.{path.name.partition('.')[0]}"
        spec = importlib.util.spec_from_file_location(name, copy)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    module.bind(lambda caps: caps or limits(), fault, Told, Misused, None, None, None)
    return module.SSEFramer


def file_of(package: ModuleType) -> Path:
    """Where the framer lies that a package has chosen."""
    file = package.framing._core.__file__
    assert file is not None
    return Path(file)


def read(framer: Any, pieces: Sequence[bytes]) -> tuple[list[Any], tuple[object, ...] | None]:
    """The events of a stream that comes in these pieces and ends, and the facts of its fault."""
    framer.reset()
    events: list[Any] = []
    try:
        for piece in pieces:
            events += framer.feed(piece)
        framer.close()
    except Told as told:
        events += told.events
        return events, told.facts
    return events, None
