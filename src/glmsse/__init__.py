"""Reads the streamed answer of a large language model safely: bytes in, typed events out, one verdict at the end."""

from ._checks import json_schema, pydantic_schema
from ._version import __version__
from .adapters import acollect, aiter_events, aiter_sse, check_response, collect, iter_events, iter_sse
from .answers import Answer, AnswerGate, AnswerRefusal
from .chat import ChatStream
from .completion import Choice, Completion, ToolCall
from .deadlines import Deadlines
from .errors import (
    GlmsseError,
    IncompleteStream,
    LimitError,
    MisuseError,
    ProtocolError,
    ProviderError,
    RejectedError,
    ResponseError,
)
from .events import (
    ArgumentsDelta,
    ChatEvent,
    ContentDelta,
    Done,
    Failed,
    Finish,
    ReasoningDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from .framing import IMPLEMENTATION, ServerSentEvent, SSEFramer
from .glm_text import ToolCallParser
from .limits import Limits
from .policies import ProposedCall, amount_within, path_within, url_within
from .profiles import PROFILES, TOLERANCES
from .tools import Approval, PermittedCall, Refusal, ReviewedCall, ToolGate, ToolRule
from .verdict import Verdict

__all__ = [
    "IMPLEMENTATION",
    "PROFILES",
    "TOLERANCES",
    "Answer",
    "AnswerGate",
    "AnswerRefusal",
    "Approval",
    "ArgumentsDelta",
    "ChatEvent",
    "ChatStream",
    "Choice",
    "Completion",
    "ContentDelta",
    "Deadlines",
    "Done",
    "Failed",
    "Finish",
    "GlmsseError",
    "IncompleteStream",
    "LimitError",
    "Limits",
    "MisuseError",
    "PermittedCall",
    "ProposedCall",
    "ProtocolError",
    "ProviderError",
    "ReasoningDelta",
    "Refusal",
    "RejectedError",
    "ResponseError",
    "ReviewedCall",
    "SSEFramer",
    "ServerSentEvent",
    "ToolCall",
    "ToolCallEnd",
    "ToolCallParser",
    "ToolCallStart",
    "ToolGate",
    "ToolRule",
    "Usage",
    "Verdict",
    "__version__",
    "acollect",
    "aiter_events",
    "aiter_sse",
    "amount_within",
    "check_response",
    "collect",
    "iter_events",
    "iter_sse",
    "json_schema",
    "path_within",
    "pydantic_schema",
    "url_within",
]
