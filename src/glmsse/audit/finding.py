"""Finding the recordings: files, folders, patterns and URLs, one after the other and never all at once.

The order is that of the file system; the result is sorted by the journal.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..capture.packed import PACKED_SUFFIX
from ..capture.recording import SIDECAR_SUFFIX, SUFFIXES

DEEPEST = 200
"""Folders within each other; each is open while those in it are looked at."""

BATCH_BYTES = 8 * 1024 * 1024
BATCH_FILES = 256


class Found(NamedTuple):
    """A file to be read, or what is wrong with it.

    stamp       changes when the file or its sidecar does; None if that cannot be told
    has_sidecar None if that could not be told
    error       one of columns.ERRORS, with the class of the exception
    """

    path: str
    size: int | None = None
    stamp: str | None = None
    has_sidecar: bool | None = None
    error: str | None = None
    error_class: str | None = None


class Unread(Exception):
    """A failure behind a URL that is no OSError; the message is the class of the exception that it had there."""


def find(paths: Iterable[str]) -> Iterator[Found]:
    """Everything under these paths; what cannot be looked at is found with its error."""
    for path in paths:
        if is_url(path):
            from .remote import check_url, find_remote  # needs the extra

            check_url(path)
            yield from find_remote(path)
        else:
            yield from _find_local(os.path.normpath(path))


def is_url(path: str) -> bool:
    return "://" in path


def batches(found: Iterable[Found]) -> Iterator[list[Found]]:
    """The same, in batches of about as many bytes each, so that a task is worth sending."""
    batch: list[Found] = []
    size = 0
    for one in found:
        batch.append(one)
        size += one.size or 0
        if size >= BATCH_BYTES or len(batch) >= BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def sidecar_of(path: str) -> str | None:
    """Where the sidecar of a body is, packed or not; None if the body has its name already."""
    stem, suffix = os.path.splitext(path.removesuffix(PACKED_SUFFIX))
    return None if suffix == SIDECAR_SUFFIX else stem + SIDECAR_SUFFIX


def error_of(problem: Exception) -> str:
    """The word for it of columns.ERRORS."""
    if isinstance(problem, (FileNotFoundError, NotADirectoryError)):
        return "not_found"
    return "permission" if isinstance(problem, PermissionError) else "unreadable"


def _find_local(path: str) -> Iterator[Found]:
    if glob.has_magic(path) and not os.path.lexists(path):
        yield from _of_pattern(path)
        return
    try:
        status = os.stat(path)
    except OSError as problem:
        yield _unfound(path, problem)
        return
    if stat.S_ISDIR(status.st_mode):
        yield from _in_folder(path)
    else:
        yield _of_file(path, status)


def _of_pattern(pattern: str) -> Iterator[Found]:
    for match in glob.iglob(pattern, recursive=True):
        if os.path.isdir(match):
            if "**" not in pattern:  # else what is in there is matched by itself
                yield from _in_folder(match)
        elif match.endswith(SUFFIXES):
            yield from _find_local(match)


def _in_folder(path: str, depth: int = 0) -> Iterator[Found]:
    """The recordings in and below a folder; nothing is held but the way down to it.

    Links to folders are not followed: they may lead round in a circle.
    """
    if depth == DEEPEST:
        yield Found(path, error="unreadable", error_class=RecursionError.__name__)
        return
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _in_folder(entry.path, depth + 1)
                elif entry.name.endswith(SUFFIXES):
                    yield _of_entry(entry)
    except OSError as problem:
        yield _unfound(path, problem)


def _of_entry(entry: os.DirEntry[str]) -> Found:
    try:
        status = entry.stat()
    except OSError as problem:
        return _unfound(entry.path, problem)
    return _of_file(entry.path, status)


def _of_file(path: str, status: os.stat_result) -> Found:
    if not stat.S_ISREG(status.st_mode):
        return Found(path, error="not_a_file")
    beside = sidecar_of(path)
    sidecar: os.stat_result | None = None
    has_sidecar: bool | None = False
    if beside is not None:
        try:
            sidecar = os.stat(beside)
        except OSError as problem:
            has_sidecar = False if error_of(problem) == "not_found" else None
        else:
            has_sidecar = stat.S_ISREG(sidecar.st_mode)
    stamp = f"{_stamp(status)} {_stamp(sidecar)}" if sidecar and has_sidecar else _stamp(status)
    return Found(path, status.st_size, stamp, has_sidecar)


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size}:{status.st_mtime_ns}"


def _unfound(path: str, problem: OSError) -> Found:
    return Found(path, error=error_of(problem), error_class=type(problem).__name__)
