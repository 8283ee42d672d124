"""What changes between two revisions: decisions, settings, documents, and on whom it falls.

Two graphs are compared by what they would answer, not by their texts: a decision changes when its whole
expression does, and each change comes with an example input that was run through both graphs. What is written
differently without an example is proved to decide alike, or said to be open (`graph/proof`). What only moved, has
another name or was laid out anew is no change.
"""

from koordpolicy.graph.diff.affected import Affected, ClusterFacts, Shift, Sides, affected
from koordpolicy.graph.diff.changes import (
    DecisionChange,
    Difference,
    DocumentChange,
    Edit,
    Effect,
    Example,
    How,
    Later,
    Moves,
    Open,
    SettingChange,
    Told,
)
from koordpolicy.graph.diff.compare import compare
from koordpolicy.graph.diff.later import compare_from

__all__ = [
    "Affected",
    "ClusterFacts",
    "DecisionChange",
    "Difference",
    "DocumentChange",
    "Edit",
    "Effect",
    "Example",
    "How",
    "Later",
    "Moves",
    "Open",
    "SettingChange",
    "Shift",
    "Sides",
    "Told",
    "affected",
    "compare",
    "compare_from",
]
