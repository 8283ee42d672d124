"""Where revisions come from: trees of files with a name for their state. Blind to meaning.

What belongs here: reading directories as a whole and as of one moment, with limits, and telling what
could not be read. What never does: YAML, kinds, decisions.
"""

from koordpolicy.source.directory import Tree, read_tree

__all__ = ["Tree", "read_tree"]
