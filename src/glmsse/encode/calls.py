"""A tool call on its way out: which of its argument text may be written now, and whether more may still come."""

from __future__ import annotations

import re

from ..strict_json import is_blank

_IN_STRING = re.compile(r'["\\]')
_OUTSIDE = re.compile(r'["{}\[\]]')


class ObjectScan:
    """Follows JSON text just closely enough to know when a first object is whole.

    Text that is not JSON gives no wrong "whole" that matters: what follows a whole object, blanks aside, is no JSON.
    """

    __slots__ = ("_depth", "_escaped", "_in_string", "_opened", "blank", "overrun", "whole")

    def __init__(self) -> None:
        self._depth = 0
        self._opened = self._in_string = self._escaped = False
        self.blank = True
        """Nothing but white space so far."""
        self.whole = False
        """An object has begun with the first character that is not blank, and has ended."""
        self.overrun = False
        """Something that is not blank followed it."""

    def take(self, text: str) -> None:
        if self.blank:
            self.blank = is_blank(text)
            if self.blank:
                return
            self._opened = text.lstrip(" \t\r\n").startswith("{")
        if not self._opened or self.overrun:
            return
        at = 0
        while at < len(text) and not self.whole:
            at = self._step(text, at)
        if self.whole and not is_blank(text[at:]):
            self.overrun = True

    def _step(self, text: str, at: int) -> int:
        """To behind the next character that matters."""
        if self._escaped:
            self._escaped = False
            return at + 1
        found = (_IN_STRING if self._in_string else _OUTSIDE).search(text, at)
        if found is None:
            return len(text)
        character = found.group()
        if character == "\\":
            self._escaped = True
        elif character == '"':
            self._in_string = not self._in_string
        else:
            self._depth += 1 if character in "{[" else -1
            self.whole = self._depth <= 0
        return found.end()


class OutgoingCall:
    """One call: `take` its pieces, write what `release` gives, and at the end what `settle` gives.

    Two beginnings are held back, as a verdict may have replaced them: blank text (`args_empty_as_object`) and a first
    `{}` (`args_leading_empty_object`), the latter until its call ends. What is held is part of the argument text that
    the parser has capped already (`max_argument_bytes`, `max_tool_calls`).
    """

    __slots__ = (
        "_held",
        "_late",
        "_scan",
        "_sent",
        "_size",
        "_starts_with_empty_object",
        "ended",
        "id",
        "index",
        "name",
    )

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name: str | None = None
        self.ended = False
        self._held: list[str] = []
        self._size = 0
        self._sent = 0
        self._late = 0
        self._scan = ObjectScan()
        self._starts_with_empty_object = False

    @property
    def known(self) -> bool:
        """Whether the call can be announced: it has an id and a name."""
        return bool(self.id and self.name)

    @property
    def whole(self) -> bool:
        """Whether its arguments can be taken as complete: a whole object, all of it let out."""
        return self._scan.whole and not self._scan.overrun and not self._must_wait

    @property
    def _must_wait(self) -> bool:
        if self._scan.blank:
            return True
        return self._starts_with_empty_object and not self._sent and (self._scan.overrun or not self.ended)

    def take(self, piece: str) -> None:
        was_whole = self._scan.whole
        self._scan.take(piece)
        self._held.append(piece)
        self._size += len(piece)
        if self._scan.whole and not was_whole:
            self._starts_with_empty_object = not self._sent and "".join(self._held).startswith("{}")

    def take_late(self, piece: str) -> None:
        """A piece after the call was closed; only white space can then still be right, and it is left out."""
        self._scan.take(piece)
        self._late += len(piece)

    def release(self) -> list[str]:
        """The pieces that may be written now."""
        return [] if self._must_wait else self._release_all()

    def settle(self, arguments: str | None, *, accepted: bool) -> list[str] | None:
        """The last pieces; None if those written already are not the arguments that were accepted.

        arguments  the accepted text, None where the verdict has none to show
        """
        if not accepted:
            return self._release_all()
        if arguments is None and self._scan.blank:
            arguments = "{}"
        if self._late and self._scan.overrun:
            return None
        if arguments is None:
            return None if self._scan.overrun else self._release_all()
        if not self._sent and "".join(self._held) != arguments:
            self._held = [arguments]
            self._size = len(arguments)
        if self._size + self._late != len(arguments):
            return None
        return self._release_all()

    def _release_all(self) -> list[str]:
        pieces, self._held = self._held, []
        self._sent += sum(map(len, pieces))
        return pieces
