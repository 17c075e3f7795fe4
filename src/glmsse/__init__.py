"""Reads the streamed answer of a large language model safely: bytes in, typed events out, one verdict at the end."""

from ._version import __version__
from .adapters import acollect, aiter_events, aiter_sse, check_response, collect, iter_events, iter_sse
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
from .limits import Limits
from .profiles import PROFILES, TOLERANCES
from .verdict import Verdict

__all__ = [
    "IMPLEMENTATION",
    "PROFILES",
    "TOLERANCES",
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
    "ProtocolError",
    "ProviderError",
    "ReasoningDelta",
    "RejectedError",
    "ResponseError",
    "SSEFramer",
    "ServerSentEvent",
    "ToolCall",
    "ToolCallEnd",
    "ToolCallStart",
    "Usage",
    "Verdict",
    "__version__",
    "acollect",
    "aiter_events",
    "aiter_sse",
    "check_response",
    "collect",
    "iter_events",
    "iter_sse",
]
