"""Named deviations from the strict contract: each tolerance changes one rule, each profile is a set of tolerances."""

from __future__ import annotations

from collections.abc import Iterable

from .errors import MisuseError

TOLERANCES: dict[str, str] = {
    "reasoning_alias": "`delta.reasoning` is read where `reasoning_content` is absent, null or empty",
    "args_empty_as_object": "arguments that are empty or blank at the end become `{}`",
    "usage_optional": "no usage is accepted",
    "id_keep_first": "another id at a used index, the name absent or equal: the first id stays",
    "content_parts": "content may be a list of text and thinking parts",
    "id_synthesize": "a call without id at the end gets `local-<index>`, `local-<choice>-<index>` beyond choice 0",
    "stop_with_tools": "the reason stop with calls is accepted, as tool_calls",
    "done_optional": "a clean end of the body without `[DONE]` is accepted",
    "flush_tail": "at a clean end an event without its blank line is read if it is a whole object or the sentinel",
    "index_by_id": "a piece of a call without index goes to the call with its id, or to the one opened last",
    "index_reuse_split": "at a used index a piece with another id and a name opens a new call",
    "response_id_unstable": "the response id may change",
    "finish_null_string": "the text `null` as a finish reason is absent",
    "finish_aliases": "other words for stop and tool_calls are read as these",
    "ignore_non_object_events": "an event that is JSON but no object is ignored",
    "ignore_comment_data": "an event whose data begins with a colon is ignored",
    "name_concat": "a differing name piece is appended, until the first argument piece starts the call",
    "args_object_serialize": "arguments that are an object are appended as compact JSON",
    "args_leading_empty_object": "a first argument piece of exactly `{}` is left out at the end if more followed",
    "args_any_json": "arguments may be any JSON value",
    "split_adjacent_json_lines": "an event of several lines that are JSON objects each is read as so many chunks",
    "dup_keys_last": "the last of equal keys wins",
    "nonfinite_ok": "NaN, Infinity and numbers beyond a double pass",
    "surrogate_replace": "half of a surrogate pair becomes U+FFFD; in arguments that escape one the text stays",
    "finish_keep_tool_calls": "the reason stop after tool_calls is ignored",
    "finish_advisory": "text and reasoning after a finish reason are taken",
    "multi_choice": "every choice up to max_choices is taken, each one seen needs its finish reason",
    "choice_index_ignore": "every choice is read as choice 0",
    "legacy_function_call": "`delta.function_call` is a piece of call 0 with id `legacy-0`",
    "message_as_delta": "`message` is read as the delta where that is absent, null or empty",
    "content_type_optional": "a missing media type passes, a wrong one never",
}
"""Every tolerance by name, with the one rule it changes. All are off unless a profile or `allow=` turns them on."""

_ROUTER = ("reasoning_alias", "args_empty_as_object")
_HOSTED = (*_ROUTER, "usage_optional", "id_keep_first", "content_parts", "id_synthesize", "stop_with_tools")
_GATEWAY = (
    *_HOSTED,
    "done_optional",
    "flush_tail",
    "index_by_id",
    "index_reuse_split",
    "response_id_unstable",
    "finish_null_string",
    "finish_aliases",
    "ignore_non_object_events",
    "ignore_comment_data",
)

PROFILES: dict[str, tuple[str, ...]] = {"zai": (), "router": _ROUTER, "hosted": _HOSTED, "gateway": _GATEWAY}
"""Every profile by name, with its tolerances. `zai` is strict."""

FINISH_ALIASES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "tool_use": "tool_calls",
    "tool_call": "tool_calls",
}


_PROFILE_SETS = {profile: frozenset(tolerances) for profile, tolerances in PROFILES.items()}


class Policy:
    """The tolerances that are on for one stream, and those that were really used."""

    __slots__ = ("_allowed", "_used")

    def __init__(
        self,
        profile: str = "zai",
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        *,
        also: tuple[str, ...] = (),
    ) -> None:
        tolerances = PROFILES.get(profile) if isinstance(profile, str) else None
        if tolerances is None:
            raise MisuseError(f"profile takes one of {', '.join(PROFILES)}")
        self._allowed = _PROFILE_SETS[profile]
        if allow != () or deny != () or also:
            allowed, denied = _checked_names("allow", allow), _checked_names("deny", deny)
            self._allowed = self._allowed.union(allowed, also).difference(denied)
        self._used: frozenset[str] = frozenset()  # shared by all streams that need none

    def allows(self, tolerance: str) -> bool:
        """Whether the tolerance is on; asking does not count as using it."""
        return tolerance in self._allowed

    def use(self, tolerance: str) -> bool:
        """Whether the tolerance is on; it then counts as used, so ask only where the strict rule decides otherwise."""
        if tolerance in self._allowed:
            if tolerance not in self._used:
                self._used |= {tolerance}
            return True
        return False

    @property
    def count_used(self) -> int:
        return len(self._used)

    def has_used(self, tolerance: str) -> bool:
        return tolerance in self._used

    @property
    def used(self) -> tuple[str, ...]:
        """The tolerances used so far, in the order of TOLERANCES."""
        return tuple(name for name in TOLERANCES if name in self._used) if self._used else ()


def _checked_names(option: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise MisuseError(f"{option} takes a list of tolerances, not {type(names).__name__}")
    checked = tuple(names)
    for name in checked:
        if not isinstance(name, str) or name not in TOLERANCES:
            raise MisuseError(f"{option} takes names of TOLERANCES only: {', '.join(TOLERANCES)}")
    return checked
