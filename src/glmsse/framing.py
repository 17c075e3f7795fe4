"""Chooses the framer, the compiled one or its pure twin, and hands over what both share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _framer_py
from .errors import MisuseError, fault, limit_fault
from .limits import checked_limits

if TYPE_CHECKING:
    from . import _framer as _core
else:
    _core = _framer_py

IMPLEMENTATION = "pure"

if os.environ.get("GLMSSE_PURE_PYTHON", "0") not in ("", "0"):
    IMPLEMENTATION_REASON = "GLMSSE_PURE_PYTHON is set"
else:
    try:
        from . import _framer
    except Exception as problem:
        IMPLEMENTATION_REASON = f"the extension cannot be imported ({type(problem).__name__})"
    else:
        # A binary built under another name may belong to another copy of this package.
        if _framer.SSEFramer.__module__ == _framer.__name__:
            _core = _framer
            IMPLEMENTATION = "compiled"
            IMPLEMENTATION_REASON = "the extension is there"
        else:
            IMPLEMENTATION_REASON = "the extension was built under another package name"

_core.bind(checked_limits, fault, limit_fault, MisuseError)

SSEFramer = _core.SSEFramer
ServerSentEvent = _core.ServerSentEvent
