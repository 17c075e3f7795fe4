"""Writers: the typed events of an answer, out again as the stream of another protocol."""

from .anthropic import AnthropicEncoder
from .openai import OpenAIEncoder
from .sse import write_comment, write_event

__all__ = ["AnthropicEncoder", "OpenAIEncoder", "write_comment", "write_event"]
