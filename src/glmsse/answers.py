"""From an accepted stream to a JSON answer: the whole content, strictly read, checked by a schema."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from ._checks import Objection, Schema, check_schema_argument, objection_of_schema
from .chat import ChatStream
from .completion import _Record
from .errors import MisuseError
from .limits import Limits, checked_limits
from .strict_json import is_blank, read_strictly

ANSWER_REFUSALS = {
    "answer_is_tool_calls": "the answer is tool calls, not JSON",
    "answer_empty": "the answer is empty",
    "answer_not_json": "the answer is not one JSON text and nothing else",
    "duplicate_key": "the answer has the same key twice in an object",
    "json_nonfinite": "the answer holds NaN, Infinity or a number beyond a double",
    "json_too_deep": "the answer nests too deep",
    "json_number_too_long": "a number in the answer has too many digits",
    "lone_surrogate": "a text in the answer holds half of a surrogate pair",
    "schema": "the answer does not fit the schema",
}
"""Why an answer is refused, by code, in the words that the model can be told."""

_WORDS_OF_JSON = {"bad_json": "answer_not_json"}


@dataclass(frozen=True, slots=True, repr=False)
class Answer(_Record):
    """A JSON answer that passed: its value, and the exact text it was read from."""

    value: Any
    text: str
    choice: int = 0

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # the value may be a dict


@dataclass(frozen=True, slots=True, repr=False)
class AnswerRefusal(_Record):
    """A whole and accepted answer that is not the JSON asked for; `code` is one of ANSWER_REFUSALS.

    Not an exception and not a verdict: the connection was fine, and asking again is another question, not a retry.
    """

    code: str
    choice: int = 0
    hint: str | None = None
    cause: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Code, words and hint."""
        told = {"code": self.code, "message": ANSWER_REFUSALS[self.code]}
        return {**told, "hint": self.hint} if self.hint else told

    def message(self) -> dict[str, Any]:
        """A user message that asks the model for another answer, to follow the refused one."""
        return {"role": "user", "content": json.dumps({"error": self.to_dict()})}

    def __repr__(self) -> str:
        return f"AnswerRefusal({self.code!r}, choice={self.choice})"


class AnswerGate:
    """Takes the answer of a JSON workload out of a stream that has ended.

    schema  a callable that takes the value and refuses by raising, or by returning False or a hint for the model; see
            `json_schema` and `pydantic_schema`. None takes any JSON value
    limits  the JSON caps of the answer
    """

    def __init__(self, schema: Schema | None = None, *, limits: Limits | None = None) -> None:
        check_schema_argument(schema)
        self._schema = schema
        self._limits = checked_limits(limits)

    def review(self, stream: ChatStream, *, choice: int = 0) -> Answer | AnswerRefusal:
        """The answer of one choice, or why it cannot be used. Raises the verdict's error unless it is accepted.

        It takes the stream itself, because a snapshot alone can be a prefix.
        """
        if not isinstance(stream, ChatStream):
            raise MisuseError(f"review takes a ChatStream, not {type(stream).__name__}")
        if stream.verdict is None:
            raise MisuseError("the stream has no verdict yet: close it first")
        stream.verdict.raise_for_verdict()
        if not stream.collects:
            raise MisuseError("the stream kept no text: use collect=True")
        found = [item for item in stream.snapshot.choices if item.index == choice]
        if not found:
            raise MisuseError("the stream has no such choice")
        if found[0].tool_calls:
            return AnswerRefusal("answer_is_tool_calls", choice)
        return self._judge(found[0].content, choice)

    def _judge(self, text: str, choice: int) -> Answer | AnswerRefusal:
        if is_blank(text):
            return AnswerRefusal("answer_empty", choice)
        value, code = read_strictly(text, self._limits)
        if code is not None:
            return AnswerRefusal(_WORDS_OF_JSON.get(code, code), choice)
        objection = objection_of_schema(self._schema, value)
        if objection is not None:
            return _refused(objection, choice)
        # Read once more: a schema may have changed the object it was given.
        return Answer(read_strictly(text, self._limits)[0], text, choice)


def _refused(objection: Objection, choice: int) -> AnswerRefusal:
    return AnswerRefusal("schema", choice, objection.hint, objection.cause)
