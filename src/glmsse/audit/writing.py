"""The result as a file: one writer for each format, chosen by the name, all fed row by row."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from ..capture.recording import written_whole
from ..errors import MisuseError
from .columns import COLUMNS, FLAGS, NAMES, Row

GROUP_ROWS = 50_000
"""Rows of a Parquet row group: what is held at a time."""


_CSV_FLAGS: dict[object, str | None] = {True: "true", False: "false", None: None}


def writer_for(out: str | os.PathLike[str]) -> Callable[[Iterable[Row]], None]:
    """What writes rows to this file, which is replaced only when all is written. MisuseError if its name has none of
    the known endings; ImportError if Parquet's library is not there."""
    path = Path(out)
    write = FORMATS.get(path.suffix.lower())
    if write is None:
        raise MisuseError(f"out takes a file that ends in {', '.join(FORMATS)}")
    if write is _parquet:
        import_module("pyarrow.parquet")

    def write_to(rows: Iterable[Row]) -> None:
        with written_whole(path) as file:
            write(file, rows)

    return write_to


def _csv(file: BinaryIO, rows: Iterable[Row]) -> None:
    with _text(file) as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(NAMES)
        for row in rows:
            cells: list[object] = list(row)
            for place in FLAGS:
                cells[place] = _CSV_FLAGS[cells[place]]
            writer.writerow(cells)


def _jsonl(file: BinaryIO, rows: Iterable[Row]) -> None:
    with _text(file) as text:
        for row in rows:
            text.write(json.dumps(dict(zip(NAMES, row, strict=True)), ensure_ascii=False) + "\n")


def _parquet(file: BinaryIO, rows: Iterable[Row]) -> None:
    pa: Any = import_module("pyarrow")
    pq: Any = import_module("pyarrow.parquet")

    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    schema = pa.schema([(column.name, types[column.kind]) for column in COLUMNS])
    with pq.ParquetWriter(file, schema) as writer:
        for group in _groups(rows):
            columns = [pa.array(cells, kind.type) for cells, kind in zip(zip(*group, strict=True), schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    left = iter(rows)
    while group := list(islice(left, GROUP_ROWS)):
        yield group


@contextmanager
def _text(file: BinaryIO) -> Generator[TextIO]:
    """A binary file as a text file; the binary one stays open."""
    text = TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        yield text
    finally:
        text.detach()


FORMATS: dict[str, Callable[[BinaryIO, Iterable[Row]], None]] = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}
