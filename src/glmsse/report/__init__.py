"""Pictures of recordings: timelines of one, and many at a glance. Texts of reasoning are in none of them."""

from .collection import Collection, Entry, entry_of
from .section import Section, section_of
from .timeline import Moment, Phase, Timeline, timeline_of

__all__ = ["Collection", "Entry", "Moment", "Phase", "Section", "Timeline", "entry_of", "section_of", "timeline_of"]
