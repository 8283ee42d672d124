"""Where revisions come from: trees of files with a name for their state. Blind to meaning.

What belongs here: reading directories as a whole and as of one moment, with limits, following them as they
change, and telling what could not be read. What never does: YAML, kinds, decisions.
"""

from koordpolicy.source.directory import Tree, read_tree
from koordpolicy.source.paths import PathSource, Timing, open_source
from koordpolicy.source.revision import Revision, Source, SourceTrouble, digest_of

__all__ = [
    "PathSource",
    "Revision",
    "Source",
    "SourceTrouble",
    "Timing",
    "Tree",
    "digest_of",
    "open_source",
    "read_tree",
]
