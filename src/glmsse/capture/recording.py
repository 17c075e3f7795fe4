"""A recorded body and what is known of it: `NAME.sse`, and `NAME.json` beside it.

The body is exactly what came; a body without a sidecar is a recording too, of which no times are known.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO

from ..chat import ChatStream
from ..errors import GlmsseError, MisuseError
from ..framing import ServerSentEvent, SSEFramer
from ..glm_text import ToolCallParser
from ..limits import DEFAULT_LIMITS, Limits
from .packed import PACKED_SUFFIX, BrokenGzip, unpacked
from .sidecar import Reading, Sidecar, UnfitSidecar

BODY_SUFFIX = ".sse"
SUFFIXES = (BODY_SUFFIX, f"{BODY_SUFFIX}{PACKED_SUFFIX}")
"""Of the bodies that audits and reports look for; a body that is named may be called otherwise."""

SIDECAR_SUFFIX = ".json"
MOST_SIDECAR_BYTES = 64 * 1024 * 1024
MOST_UNPACKED_BYTES = 1024**3
"""Of a packed body that is held; a thousandth of it may be stored."""


class UnfitRecording(ValueError):
    """The files are no recording that this version can read; the message says why, without any of their text."""


@dataclass(frozen=True, slots=True, repr=False)
class Recording:
    """A body, and what is known of it."""

    body: bytes
    sidecar: Sidecar = field(default_factory=Sidecar)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recording:
        """The recording whose body is at `path`, packed if that ends in .gz. OSError if it cannot be read;
        UnfitRecording if it cannot be unpacked, or the sidecar is there and is none, is of an unknown version, or
        belongs to another body."""
        body = _body(Path(path))
        beside = sidecar_path(path)
        if beside is None or not beside.is_file():
            return cls(body)
        try:
            sidecar = Sidecar.from_dict(_document(beside))
        except UnfitSidecar as problem:
            raise UnfitRecording(f"{beside.name}: {problem}") from None
        if (sidecar.bytes, sidecar.sha256) != (len(body), digest_of(body)):
            raise UnfitRecording(f"{beside.name}: it belongs to another body")
        return cls(body, sidecar)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Both files, atomically each, the body first: at no moment is there a sidecar that belongs to another body.

        Files that are there are replaced.
        """
        beside = sidecar_path(path)
        if beside is None:
            raise UnfitRecording(f"a body is not called *{SIDECAR_SUFFIX}: its sidecar is")
        sidecar = replace(self.sidecar, bytes=len(self.body), sha256=digest_of(self.body))
        with suppress(FileNotFoundError):
            beside.unlink()
        is_packed = Path(path).suffix == PACKED_SUFFIX
        write_whole(Path(path), gzip.compress(self.body, mtime=0) if is_packed else self.body)
        write_whole(beside, json.dumps(sidecar.to_dict(), indent=1).encode() + b"\n")

    @property
    def timed(self) -> bool:
        """Whether it is known when the pieces came."""
        return bool(self.sidecar.chunks)

    def pieces(self) -> Iterator[bytes]:
        """The body as it was read; in one piece where that is not known."""
        return (piece for _, piece in self.timed_pieces())

    def timed_pieces(self) -> Iterator[tuple[float, bytes]]:
        """The same, each with the seconds since the request was sent; 0 where they are not known."""
        at = 0
        for seconds, size in self.sidecar.chunks:
            yield seconds, self.body[at : at + size]
            at += size
        if at < len(self.body):
            yield 0.0, self.body[at:]

    def __repr__(self) -> str:
        return f"<Recording {len(self.body)} bytes, {len(self.sidecar.chunks)} chunks>"


def reading_limits(limits: Limits) -> dict[str, int | None]:
    """What `Reading.limits` says of these."""
    values = {limit.name: getattr(limits, limit.name) for limit in fields(Limits)}
    return {name: value for name, value in values.items() if value != getattr(DEFAULT_LIMITS, name)}


def stream_for(reading: Reading, *, deltas: bool = True, collect: bool = True, digest: bool = False) -> ChatStream:
    """A stream that reads as the recording was read; MisuseError names what of it is not known."""
    limits = _limits(reading.limits)
    tools = None if reading.tools is None else [{"function": {"name": name}} for name in reading.tools]
    parser = ToolCallParser(start="auto", limits=limits) if reading.content_markup == "glm" else None
    return ChatStream(
        reading.profile,
        allow=reading.allow,
        deny=reading.deny,
        choices=reading.choices,
        tools=tools,
        limits=limits,
        deltas=deltas,
        collect=collect,
        digest=digest,
        content_parser=parser,
    )


def framed(body: bytes, reading: Reading) -> list[ServerSentEvent]:
    """The events of a body under the reading's limits; those before its fault, if it has one."""
    framer = SSEFramer(_limits(reading.limits), errors="replace")
    try:
        return framer.feed(body)
    except GlmsseError as error:
        return list(error.events)


def _limits(changed: dict[str, int | None]) -> Limits:
    if not changed:
        return DEFAULT_LIMITS
    if not changed.keys() <= {limit.name for limit in fields(Limits)}:
        raise MisuseError("limits takes names of Limits only")
    return replace(DEFAULT_LIMITS, **changed)  # type: ignore[arg-type]  # Limits checks each value itself


def sidecar_path(path: str | os.PathLike[str]) -> Path | None:
    """Where the sidecar of a body is; None if the body has its name already."""
    body = Path(os.fspath(path).removesuffix(PACKED_SUFFIX))
    return None if body.suffix == SIDECAR_SUFFIX else body.with_suffix(SIDECAR_SUFFIX)


def digest_of(body: bytes) -> str:
    return sha256(body).hexdigest()


def write_whole(path: Path, data: bytes) -> None:
    """Either the whole file is there, and stays after a crash, or what was there before."""
    with written_whole(path) as file:
        file.write(data)


@contextmanager
def written_whole(path: Path) -> Generator[BinaryIO]:
    """A file to write to, which takes the place of what was there only when the block is left without an exception."""
    handle, name = mkstemp(dir=path.parent, prefix=f".{path.name[:64]}.")
    try:
        with open(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(handle)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)  # of a closed file: elsewhere an open one cannot be renamed
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
    with suppress(OSError):  # where directories cannot be opened, they need no sync
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _body(path: Path) -> bytes:
    stored = path.read_bytes()
    if path.suffix != PACKED_SUFFIX:
        return stored
    body = bytearray()
    try:
        for piece in unpacked(path.name, [stored]):
            body += piece
            if len(body) > MOST_UNPACKED_BYTES:
                raise UnfitRecording(f"{path.name}: it unpacks to more than {MOST_UNPACKED_BYTES:,} bytes")
    except BrokenGzip as problem:
        raise UnfitRecording(f"{path.name}: {problem}") from None
    return bytes(body)


def _document(path: Path) -> object:
    if path.stat().st_size > MOST_SIDECAR_BYTES:
        raise UnfitSidecar("it is too large for a sidecar")
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        pass
    raise UnfitSidecar("it is no JSON")
