"""What a row says: the one list of columns that journal, output formats and documentation are made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

Cell = str | int | float | bool | None
Row = tuple[Cell, ...]
"""One cell for each of COLUMNS, in their order; None is "not known"."""

UNREADABLE = "unreadable"
"""The outcome of what could not be read, beside those of a verdict."""


class Column(NamedTuple):
    name: str
    kind: type
    meaning: str


COLUMNS = (
    Column("path", str, "as it was given or found: a local path, or a URL"),
    Column("size", int, "bytes of the file as stored"),
    Column("sha256", str, "of the body, unpacked; with `--sha256` only"),
    Column("profile", str, "that it was read by: the sidecar's, else the one asked for"),
    Column("route", str, "of the sidecar"),
    Column("model", str, "of the sidecar"),
    Column("outcome", str, "of the verdict, or `unreadable`"),
    Column("accepted", bool, "of the verdict"),
    Column("stage", str, "of the verdict: where it failed"),
    Column("code", str, "of the verdict: why"),
    Column("category", str, "of an http or provider error"),
    Column("offset", int, "the byte at which it failed"),
    Column("replay", str, "of the verdict: safe, ambiguous or pointless"),
    Column("finish_reason", str, "of the verdict; `other` if it is no plain word"),
    Column("done", bool, "whether `[DONE]` came"),
    Column("events", int, "read, up to the one that ended the stream"),
    Column("content_chars", int, "of all choices"),
    Column("reasoning_chars", int, "of all choices"),
    Column("tool_calls", int, "of all choices, whole or not"),
    Column("prompt_tokens", int, "of the last usage"),
    Column("completion_tokens", int, "of the last usage"),
    Column("total_tokens", int, "of the last usage"),
    Column("cached_tokens", int, "of the last usage"),
    Column("first_event_seconds", float, "of the sidecar"),
    Column("first_content_seconds", float, "of the sidecar"),
    Column("total_seconds", float, "of the sidecar: when the last bytes came"),
    Column("error", str, "why it could not be read: one of the words below"),
    Column("error_class", str, "the class of the exception behind it, if there was one"),
)

NAMES = tuple(column.name for column in COLUMNS)
PLACES = {name: place for place, name in enumerate(NAMES)}
FLAGS = tuple(place for place, column in enumerate(COLUMNS) if column.kind is bool)

ERRORS = {
    "not_found": "it is not there, or was gone when its turn came",
    "permission": "it, or the folder, may not be read",
    "not_a_file": "a device, a pipe or the like",
    "unreadable": "any other failure to read it, of the disk or the network",
    "broken_gzip": "the packed body is damaged or cut",
    "too_large": "it has more bytes than `--max-file-bytes`",
    "unfit_sidecar": "the sidecar is none, is of an unknown version, or belongs to another body",
    "unfit_reading": "the sidecar asks for options that this version does not know",
    "out_of_memory": "there was no memory for it; raise the machine's or lower the limits",
    "worker_lost": "each process that read it was lost: killed, out of memory, or its machine gone",
    "failed": "a fault of this program; `error_class` says which, and it is worth a report",
}


def row_of(cells: Mapping[str, Cell]) -> Row:
    """The row with these cells by name; the others are None."""
    return tuple(map(cells.get, NAMES))


def unreadable(path: str, size: int | None, error: str, error_class: str | None = None) -> Row:
    """The row of what could not be read."""
    cells = {"path": path, "size": size, "outcome": UNREADABLE, "accepted": False}
    return row_of({**cells, "error": error, "error_class": error_class})
