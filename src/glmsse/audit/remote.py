"""Recordings behind a URL, by fsspec (extra: audit). The only module that knows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, cast

from ..capture.recording import MOST_SIDECAR_BYTES, SUFFIXES
from ..errors import MisuseError
from .finding import Found, Unread, error_of, sidecar_of

BLOCK_BYTES = 4 * 1024 * 1024
"""A file up to this size is fetched by one request, a larger one in blocks."""

_CHANGES = ("ETag", "etag", "md5Hash", "content_md5", "mtime", "LastModified", "last_modified", "updated", "created")
"""What file systems call that which changes with the file."""


def check_url(url: str) -> None:
    """MisuseError if there is nothing here that could read such URLs."""
    fsspec: Any = import_module("fsspec")

    problem = None
    try:
        fsspec.get_filesystem_class(url.partition("://")[0])
    except ImportError as missing:
        problem = f"URLs of this kind need one more package: {missing}"
    except ValueError:
        problem = "fsspec knows no URLs of this kind"
    if problem is None and "::" in url:
        problem = "URLs within URLs are not read"
    if problem is not None:
        raise MisuseError(problem)


def find_remote(url: str) -> Iterator[Found]:
    """The recordings at a URL: a file, a folder with all below it, or a pattern.

    Of a folder the names in it are held, since file systems hand them over so; of the folders below only one at a time.
    """
    try:
        system, path = _system(url)
        plain = _plain_part(path)
        if plain != path:
            utils: Any = import_module("fsspec.utils")
            pattern: re.Pattern[str] = re.compile(utils.glob_translate(path))
            levels = None if "**" in path else path.count("/") - plain.count("/")
            yield from _in_folder(system, plain, pattern.match, levels)
        elif system.isdir(path):
            yield from _in_folder(system, path)
        else:
            yield _found(system, path, system.info(path), _beside(system, path))
    except Exception as problem:  # each file system has exceptions of its own
        yield _unfound(url, problem)


def read_remote(url: str, size: int | None) -> Iterator[bytes]:
    """The bytes of one file, in pieces."""
    with _its_faults():
        system, path = _system(url)
        if size is not None and size <= BLOCK_BYTES:
            yield cast("bytes", system.cat_file(path))
            return
        with system.open(path, "rb", block_size=BLOCK_BYTES, cache_type="readahead") as file:
            while data := cast("bytes", file.read(BLOCK_BYTES)):
                yield data


def read_remote_sidecar(url: str) -> bytes | None:
    """The bytes of a sidecar, of a too large one the first; None if it has gone."""
    with _its_faults(), suppress(FileNotFoundError):
        system, path = _system(url)
        return cast("bytes", system.cat_file(path, start=0, end=MOST_SIDECAR_BYTES + 1))
    return None


@contextmanager
def _its_faults() -> Generator[None]:
    """Each file system has exceptions of its own, which are no faults of this program."""
    fault: str | None = None
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as problem:
        fault = type(problem).__name__
    if fault is not None:
        raise Unread(fault)


def _system(url: str) -> tuple[Any, str]:
    """The file system of a URL, which fsspec keeps, and the path within it; nothing of listings is kept."""
    fsspec: Any = import_module("fsspec")

    return cast("tuple[Any, str]", fsspec.url_to_fs(url, use_listings_cache=False))


def _plain_part(path: str) -> str:
    """The folders before the first that is a pattern."""
    plain, magic, _ = re.split(r"([*?[])", path, maxsplit=1) if re.search(r"[*?[]", path) else (path, "", "")
    return plain.rpartition("/")[0] if magic else path


def _in_folder(
    system: Any, folder: str, fits: Callable[[str], object] = bool, levels: int | None = None
) -> Iterator[Found]:
    """The recordings that fit in and below a folder, down to so many levels."""
    folders = [(folder, 1)]
    while folders:
        folder, level = folders.pop()
        try:
            entries = cast("list[dict[str, Any]]", system.ls(folder, detail=True))
        except Exception as problem:
            yield _unfound(system.unstrip_protocol(folder), problem)
            continue
        files = {entry["name"]: entry for entry in entries if entry["type"] == "file"}
        for entry in entries:
            name: str = entry["name"]
            if entry["type"] == "directory":
                if name.strip("/") != folder.strip("/") and level != levels:
                    folders.append((name, level + 1))
            elif name.endswith(SUFFIXES) and fits(name):
                yield _found(system, name, entry, files.get(sidecar_of(name) or ""))


def _beside(system: Any, path: str) -> dict[str, Any] | None:
    """The details of the sidecar of a single file, if there is one."""
    beside = sidecar_of(path)
    if beside is not None:
        with suppress(FileNotFoundError):
            details = cast("dict[str, Any]", system.info(beside))
            return details if details["type"] == "file" else None
    return None


def _found(system: Any, path: str, details: dict[str, Any], sidecar: dict[str, Any] | None) -> Found:
    stamps = [_stamp(details), *(() if sidecar is None else (_stamp(sidecar),))]
    stamp = None if None in stamps else " ".join(map(str, stamps))
    return Found(system.unstrip_protocol(path), details.get("size"), stamp, sidecar is not None)


def _stamp(details: dict[str, Any]) -> str | None:
    changes = next((str(details[name]) for name in _CHANGES if details.get(name)), None)
    return None if changes is None else f"{details.get('size')}:{changes}"


def _unfound(url: str, problem: Exception) -> Found:
    return Found(url, error=error_of(problem), error_class=type(problem).__name__)
