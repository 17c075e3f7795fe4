"""Recordings of streamed answers: kept, replayed, made shareable, and gated."""

from .recorder import Recorder
from .recording import Recording, UnfitRecording
from .sidecar import SCHEMA, Reading, Sidecar, Terminal
from .tape import Tape, record

__all__ = ["SCHEMA", "Reading", "Recorder", "Recording", "Sidecar", "Tape", "Terminal", "UnfitRecording", "record"]
