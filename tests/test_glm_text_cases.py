"""Replies that went wrong for somebody, and one for each rule, with their right outcome at every cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from glm_text_reading import read

DATA = json.loads((Path(__file__).parent / "data" / "glm_text_cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", DATA["cases"], ids=lambda case: case["id"])
def test_case_has_its_outcome_for_every_cutting(case: dict[str, Any]) -> None:
    outcome = read(
        case["text"],
        tools=DATA["tools"][case["tools"]],
        start=case.get("start", "content"),
        unoffered=case.get("unoffered", "text"),
        end=case.get("end", "stop"),
    )

    assert outcome.content == case.get("content", "")
    assert outcome.reasoning == case.get("reasoning", "")
    assert outcome.calls == [tuple(call) for call in case.get("calls", ())]
    assert outcome.names_of_flags >= set(case.get("flags", ()))
