"""Invariants as values: what must hold of decisions on every input, typed, its names not yet resolved."""

from collections.abc import Mapping
from dataclasses import dataclass

from koordpolicy.diagnostics import Span
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.language.cel import ir

DECISIONS = "decisions"
"""The space of the decisions by the invariant's own names."""

RAISED = "raised"
"""The space of the same decisions on the second record, and what stands before the names of its roots."""

BEFORE = "before"
"""The space of the same decisions in an earlier revision."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """One Invariant document.

    `decisions` are those that `require` and `where` refer to by name, `raised` the facts, as (root, path), that are
    higher in the second record. `compares` tells that it speaks of two revisions.
    """

    name: str
    document: str
    layer: str
    meaning: str
    decisions: Mapping[str, DecisionKey]
    where: ir.Node | None
    require: ir.Node
    raised: tuple[tuple[str, str], ...]
    compares: bool
    text: str
    span: Span
