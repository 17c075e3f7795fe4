"""The inputs kept in the repository: `corpus/NAME.jsonl` has one JSON string an input, a character for each byte."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "corpus"


def read(name: str) -> list[bytes]:
    """The inputs of a corpus, in the order of the file."""
    lines = (FOLDER / f"{name}.jsonl").read_text("ascii").splitlines()
    return [json.loads(line).encode("latin-1") for line in lines]


def write(name: str, inputs: Iterable[bytes]) -> None:
    """Replaces a corpus; short inputs come first."""
    ordered = sorted(set(inputs), key=lambda data: (len(data), data))
    text = "".join(json.dumps(data.decode("latin-1")) + "\n" for data in ordered)
    (FOLDER / f"{name}.jsonl").write_text(text, "ascii")


def spread(inputs: Iterable[bytes], folder: Path) -> None:
    """Writes inputs as files, as libFuzzer reads them and names them."""
    folder.mkdir(parents=True, exist_ok=True)
    for data in inputs:
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def gathered(paths: Iterable[Path]) -> Iterator[bytes]:
    """The inputs in these files and folders."""
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                yield file.read_bytes()
