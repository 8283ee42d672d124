"""What changes between two revisions: decisions, settings, documents, and on whom it falls.

Two graphs are compared by what they would answer, not by their texts: a decision changes when its whole
expression does, and each change comes with an example input that was run through both graphs. What only moved
or was laid out anew is no change.
"""

from koordpolicy.graph.diff.affected import Affected, Estate, Shift, affected
from koordpolicy.graph.diff.changes import (
    DecisionChange,
    Difference,
    DocumentChange,
    Edit,
    Effect,
    Example,
    How,
    SettingChange,
    Told,
)
from koordpolicy.graph.diff.compare import compare

__all__ = [
    "Affected",
    "DecisionChange",
    "Difference",
    "DocumentChange",
    "Edit",
    "Effect",
    "Estate",
    "Example",
    "How",
    "SettingChange",
    "Shift",
    "Told",
    "affected",
    "compare",
]
