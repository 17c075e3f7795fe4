"""Writers: the typed events of an answer, out again as the stream of another protocol."""

from .sse import write_comment, write_event

__all__ = ["write_comment", "write_event"]
