"""Reads the streamed answer of a large language model safely: bytes in, typed events out, one verdict at the end."""

from ._version import __version__
from .chat import ChatStream
from .completion import Choice, Completion, ToolCall
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
]
