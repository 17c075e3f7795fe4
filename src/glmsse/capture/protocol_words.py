"""The words of the protocols, which say nothing of an answer's content and stay when it is redacted."""

from __future__ import annotations

from dataclasses import fields

from ..errors import CODES, GENERATION
from ..limits import Limits
from ..profiles import FINISH_ALIASES, TOLERANCES
from ..provider import AMBIGUOUS_CATEGORIES, CATEGORY_OF_CODE, CATEGORY_OF_STATUS, CATEGORY_OF_TYPE, SAFE_CATEGORIES
from ..verdict import Verdict


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


KEYS = _set("""
    id object created model choices index delta message role content reasoning_content reasoning reasoning_details
    refusal annotations audio tool_calls tool_call_id function function_call name arguments type text thinking
    finish_reason native_finish_reason stop_reason stop_sequence logprobs top_logprobs token logprob bytes
    matched_stop obfuscation system_fingerprint service_tier provider usage prompt_tokens completion_tokens total_tokens
    prompt_tokens_details completion_tokens_details cached_tokens reasoning_tokens audio_tokens image_tokens
    video_tokens accepted_prediction_tokens rejected_prediction_tokens prompt_cache_hit_tokens prompt_cache_miss_tokens
    input_tokens output_tokens cache_creation_input_tokens cache_read_input_tokens cache_creation cost cost_details
    is_byok queue_time prompt_time completion_time total_time time_info
    error code param status error_type request_id web_search content_filter
    content_block partial_json signature input
""")

NUMBERS = _set("""
    index created status code prompt_tokens completion_tokens total_tokens cached_tokens reasoning_tokens
""")
"""Keys whose numbers stay; so does every number in `usage`."""

TEXTS = _set("content reasoning_content reasoning text thinking")
"""Keys whose texts are read in pieces, beside `arguments`."""

REASONING = _set("reasoning_content reasoning reasoning_details thinking")

PSEUDONYMS = _set("id request_id tool_call_id name")
"""Keys whose texts are compared: equal ones stay equal."""

EVENT_NAMES = _set("""
    error message message_start message_delta message_stop content_block_start content_block_delta content_block_stop
    ping
""")

VALUES = EVENT_NAMES.union(
    _set("""
        assistant user system tool developer function
        chat.completion.chunk chat.completion list
        text thinking reasoning.text reasoning.summary reasoning.encrypted
        text_delta thinking_delta input_json_delta signature_delta tool_use
    """),
    FINISH_ALIASES,
    CATEGORY_OF_TYPE,
)
"""Of `role`, `object` and `type`."""

FRAMING_WORDS = _set("data event retry true false null infinity")
"""What is no text of anybody, in any body."""

PATHS = _set("api paas coding anthropic openai v1 v2 v3 v4 chat completions messages responses")
"""Steps of endpoints' paths."""

_ERRORS = {cls for cls, _, _ in CODES.values()}

VERDICT_FIELDS = frozenset(field.name for field in fields(Verdict)).union(
    (name for cls in _ERRORS for name in cls.fact_names if name != "id_digests"),
    _set("""
        accepted parent_code offset choice index http_status media_type events_parse no_error tools
        prompt_tokens completion_tokens total_tokens cached_tokens
    """),
)
"""Keys of `Verdict.to_dict()`, at any depth."""

VERDICT_WORDS = frozenset(CODES).union(
    (stage for _, stage, _ in CODES.values()),
    (cls.outcome for cls in _ERRORS),
    CATEGORY_OF_CODE.values(),
    CATEGORY_OF_STATUS.values(),
    CATEGORY_OF_TYPE.values(),
    SAFE_CATEGORIES,
    AMBIGUOUS_CATEGORIES,
    TOLERANCES,
    (field.name for field in fields(Limits)),
    (GENERATION,),
    _set("accepted safe ambiguous pointless done finish_reason usage"),
)
"""Their values, beside codes of the form finish_<reason>."""
