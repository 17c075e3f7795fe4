"""Reading plain JSON faster changes nothing: the same values, the same faults, in both builds."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from test_strict_json import INVALID, VALID

CHUNK = (
    '{"id":"r-1","created":1767225600,"choices":[{"index":0,"finish_reason":"stop","delta":{"content":"é中"}}],'
    '"usage":{"prompt_tokens":24,"completion_tokens":18,"total_tokens":42,"cost":0.25,"prompt_tokens_details":null}}'
)
ODD = (
    *(
        "",
        " ",
        "{",
        "[",
        '"',
        "{}x",
        "[] []",
        "nul",
        "nulll",
        "truefalse",
        "+1",
        "-",
        "- 1",
        "0x1",
        "01",
        "-01",
        "1.",
        ".5",
    ),
    *(
        "1" * 17,
        "1" * 18,
        "1" * 19,
        "-" + "9" * 18,
        "9223372036854775808",
        "1" * 64,
        "1" * 65,
        "-0",
        "1e5",
        "1E5",
        "1.5",
    ),
    *('{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '{"a"}', '{"a":}', '{"a":1,}', "[1,]", "[,1]", "{1:2}", "{'a':1}"),
    *(
        '"\\n"',
        '"\x01"',
        '"\x1f"',
        '"\x7f"',
        '"\u2028"',
        '"\ud800"',
        '"\\ud800"',
        "[" * 64 + "]" * 64,
        "[" * 65 + "]" * 65,
    ),
    *("\ufeff{}", "\xa0{}", "\x0b[]", "[1\x0c]", "NaN", "[Infinity]", "[-Infinity]", "1e999"),
)


def _reading(package: ModuleType, text: str, plain: Any, **caps: int) -> Any:
    decoder = package.strict_json.StrictDecoder(package.Limits(**caps), plain)
    try:
        value = decoder.decode(text)
    except package.strict_json.JSONFault as refusal:
        return refusal.code
    return repr(value), decoder.duplicate_key, decoder.nonfinite  # the repr tells 1, 1.0, True and key order apart


def _assert_alike(package: ModuleType, text: str, **caps: int) -> None:
    plain = package.framing.decode_plain
    assert _reading(package, text, plain, **caps) == _reading(package, text, None, **caps)


def test_compiled_build_reads_a_usual_chunk_itself(glmsse: ModuleType) -> None:
    plain = glmsse.framing.decode_plain
    assert (plain is None) == (glmsse.IMPLEMENTATION == "pure")
    if plain is not None:
        assert plain('{"a":[1,"x",null,true]}', 64, 64, None) == {"a": [1, "x", None, True]}
        assert plain('{"a":1,"a":2}', 64, 64, "instead") == "instead"


@pytest.mark.parametrize("text", [*VALID, *INVALID, *ODD, CHUNK])
def test_text_is_read_alike(glmsse: ModuleType, text: str) -> None:
    _assert_alike(glmsse, text)
    _assert_alike(glmsse, text, max_json_depth=2, max_number_chars=2)


def test_every_beginning_of_a_chunk_is_read_alike(glmsse: ModuleType) -> None:
    for length in range(len(CHUNK)):
        _assert_alike(glmsse, CHUNK[:length])


@pytest.mark.parametrize("seed", range(40))
def test_changed_chunk_is_read_alike(glmsse: ModuleType, seed: int) -> None:
    pick = random.Random(seed)
    for _ in range(100):
        text = list(CHUNK)
        for _ in range(pick.randint(1, 3)):
            at = pick.randrange(len(text))
            text[at : at + pick.randint(0, 2)] = pick.choice(
                ["", *'{}[]:,"\\0123456789-+.eE \n\t\x00\x1fnultrfas', "é"]
            )
        _assert_alike(
            glmsse, "".join(text), max_json_depth=pick.choice((1, 3, 64)), max_number_chars=pick.choice((1, 64))
        )
