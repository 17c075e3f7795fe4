"""The sidecar's schema, as this package reads it and as jsonschema does."""

from __future__ import annotations

from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from glmsse import ChatStream
from glmsse.capture import SCHEMA, Recorder
from glmsse.capture.schema import first_misfit
from glmsse.scenarios import SCENARIOS


def _document() -> dict[str, Any]:
    recorder, stream = Recorder(model="glm-5.2"), ChatStream()
    recorder.start(200, {"content-type": "text/event-stream"})
    recorder.piece(SCENARIOS["text"].body, 1.5)
    stream.feed(SCENARIOS["text"].body)
    recording = recorder.finish(stream.close())
    assert recording is not None
    return recording.sidecar.to_dict()


WHOLE = _document()
VALUES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text(max_size=3) | st.lists(st.none())
VALUES |= st.dictionaries(st.sampled_from(["end", "profile", "choices", "x"]), VALUES, max_size=2)


def _has_whole_float(value: object) -> bool:
    if isinstance(value, (dict, list)):
        return any(map(_has_whole_float, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float) and value.is_integer()


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(sorted(WHOLE)), VALUES, min_size=1, max_size=2))
def test_our_reading_of_the_schema_is_that_of_jsonschema(changed: dict[str, Any]) -> None:
    document = WHOLE | changed

    ours = first_misfit(document, SCHEMA)

    # JSON Schema also calls 1.0 an integer, which no writer of ours does.
    if not _has_whole_float(changed):
        assert (ours is None) == jsonschema.Draft202012Validator(SCHEMA).is_valid(document)
