"""Characters that can stand for others: of the same class and script and as many UTF-8 bytes, so that nothing but the
text itself changes. And pseudonyms, which keep equal things equal and different things different.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from random import Random
from unicodedata import category

# Scripts with more characters than a block has: what is drawn from must not tell much of what was there.
_WIDE_RANGES = ((0x3400, 0x4DB5), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0x20000, 0x2A6D6))
_BLOCK = 256
_SMALLEST_POOL = 8
_EMOJI = [chr(code) for code in (*range(0x1F300, 0x1F320), *range(0x1F330, 0x1F36C), *range(0x1F400, 0x1F43E))]
_DINGBATS = [chr(code) for code in (*range(0x2600, 0x2605), *range(0x2660, 0x2668), *range(0x2701, 0x2705))]
_SPARE = {
    ("Lu", 2): "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ",
    ("Ll", 2): "àáâãäåæçèéêëìíîï",
    ("Lu", 3): "ḀḂḄḆḈḊḌḎ",
    ("Ll", 3): "ḁḃḅḇḉḋḍḏ",
    ("Lu", 4): "𐐀𐐁𐐂𐐃𐐄𐐅𐐆𐐇",
    ("Ll", 4): "𐐨𐐩𐐪𐐫𐐬𐐭𐐮𐐯",
}
_MOST_TRIES = 200
_WORD = re.compile(r"[^\W\d_]{4,}")
_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{0,3}")
"""The letters of an escape are no word's: a broken one stays as it is, so that it stays broken."""


def width(char: str) -> int:
    """UTF-8 bytes of a character."""
    code = ord(char)
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


@lru_cache(maxsize=4096)
def pool(char: str) -> str:
    """What may stand for the character; "" if it says nothing by itself and stays."""
    kind = category(char)
    if kind == "So":
        return "".join(_EMOJI if ord(char) > 0xFFFF else _DINGBATS if ord(char) >= 0x2300 else ())
    if kind[0] != "L" and kind != "Nd":
        return ""
    code = ord(char)
    for first, last in _WIDE_RANGES:
        if first <= code <= last:
            return "".join(map(chr, range(first, last + 1)))
    start = code - code % _BLOCK
    alike = [chr(other) for other in range(start, start + _BLOCK) if category(chr(other)) == kind]
    alike = [other for other in alike if width(other) == width(char)]
    if len(alike) >= _SMALLEST_POOL:
        return "".join(alike)
    return _SPARE.get((kind, width(char)), "".join(alike))


class Pseudonyms:
    """One stand-in for each text, of the same shape, and never the same one for two."""

    def __init__(self, random: Random, avoided: frozenset[str]) -> None:
        self._random = random
        self._avoided = avoided
        self._of: dict[str, str] = {}
        self._taken: set[str] = set()

    def keep(self, texts: Iterable[str]) -> None:
        """These stand for themselves."""
        for text in texts:
            self._of[text] = text
            self._taken.add(text)

    def __call__(self, text: str) -> str:
        known = self._of.get(text)
        if known is None:
            known = self._of[text] = self._new(text)
            self._taken.add(known)
        return known

    def _new(self, text: str) -> str:
        pools = [pool(char) or char for char in text]
        drawn = ("".join(map(self._random.choice, pools)) for _ in range(_MOST_TRIES))
        # For a shape with few texts, such as one digit, every one may be needed.
        shuffled = ["".join(self._random.sample(choices, len(choices))) for choices in pools[:4]]
        counted = map("".join, product(*shuffled)) if len(text) <= 4 else iter(())
        for candidate in (*drawn, *counted):
            if candidate not in self._taken and self._avoided.isdisjoint(words(candidate)):
                return candidate
        return text


def words(text: str) -> list[str]:
    """The runs of four or more letters, without case: what could be recognised."""
    return [found.casefold() for found in _WORD.findall(_ESCAPE.sub(" ", text))]
