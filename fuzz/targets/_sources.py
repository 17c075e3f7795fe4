"""What a chat stream of the compiled build runs through; a test sees to it that no target forgets a file."""

from __future__ import annotations

STREAM = (
    "_framer.pyx", "_lane.pxi", "_plain_json.pxi", "_repr.py", "_single_use.py", "assembly.py", "chat.py", "chunk.py",
    "completion.py", "errors.py", "events.py", "framing.py", "limits.py", "offered_tools.py", "profiles.py",
    "provider.py", "strict_json.py", "verdict.py",
)  # fmt: skip
