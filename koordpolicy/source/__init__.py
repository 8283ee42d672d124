"""Where revisions come from: trees of files with a name for their state. Blind to meaning.

What belongs here: reading directories as a whole and as of one moment, with limits, following them as they
change, and telling what could not be read. What never does: YAML, kinds, decisions.

Reading a tree is all that most commands need; what follows one as it changes is imported from `paths`.
"""

from koordpolicy.source.directory import Tree, read_tree
from koordpolicy.source.revision import Revision, Source, SourceTrouble, digest_of

__all__ = [
    "Revision",
    "Source",
    "SourceTrouble",
    "Tree",
    "digest_of",
    "read_tree",
]
