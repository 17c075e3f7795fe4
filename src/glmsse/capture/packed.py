"""Bodies that are stored packed, as `NAME.sse.gz`. No I/O."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

PACKED_SUFFIX = ".gz"
PIECE_BYTES = 64 * 1024


class BrokenGzip(ValueError):
    """The packed body is damaged or cut; the message says so and no more."""


def unpacked(path: str, stored: Iterable[bytes]) -> Iterator[bytes]:
    """The body of a file with this name, by what is stored: a packed one is unpacked, a bounded piece at a time."""
    return _unpacked(stored) if path.endswith(PACKED_SUFFIX) else iter(stored)


def _unpacked(stored: Iterable[bytes]) -> Iterator[bytes]:
    """The members of a gzip file, one after the other."""
    unpacker, members, begun = _unpacker(), 0, False
    for piece in _cut(stored):
        data = piece.lstrip(b"\0") if members and not begun else piece  # padding behind the last member
        while data:
            begun = True
            try:
                body = unpacker.decompress(data, PIECE_BYTES)
            except zlib.error:
                raise BrokenGzip("the packed body is damaged") from None
            yield body
            data = unpacker.unconsumed_tail
            if unpacker.eof:
                data = unpacker.unused_data.lstrip(b"\0")
                unpacker, members, begun = _unpacker(), members + 1, False
    if begun:
        raise BrokenGzip("the packed body is cut")


def _unpacker() -> zlib._Decompress:
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


def _cut(stored: Iterable[bytes]) -> Iterator[bytes]:
    """The same in small pieces: what is not unpacked yet of one is copied each time."""
    for data in stored:
        for at in range(0, len(data), PIECE_BYTES):
            yield data[at : at + PIECE_BYTES]
