"""Audits: a row for every recording of a collection of any size."""

from .columns import COLUMNS, ERRORS, Column
from .journal import UnfitJournal
from .reading import Settings
from .running import Progress, audit, rows_of, summary_of
from .summary import Summary

__all__ = [
    "COLUMNS",
    "ERRORS",
    "Column",
    "Progress",
    "Settings",
    "Summary",
    "UnfitJournal",
    "audit",
    "rows_of",
    "summary_of",
]
