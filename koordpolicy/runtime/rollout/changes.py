"""What differs between two revisions: the decisions worth comparing, and the kinds that change."""

import json
from dataclasses import dataclass

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import UnknownDecision
from koordpolicy.language.cel import ir
from koordpolicy.language.kinds import KINDS
from koordpolicy.runtime.rollout.plan import KIND


@dataclass(frozen=True, slots=True)
class Changes:
    """`decisions` are computed otherwise; `kinds` have such a decision or a document that says something else.

    The Rollout itself is left out: it decides about the next revision, not about this one.
    """

    decisions: frozenset[str]
    kinds: frozenset[str]


def changes(old: RuleGraph, new: RuleGraph) -> Changes:
    """Compare two graphs. Takes as long as resolving every decision once: keep it off the loop."""
    names = {str(key): key.kind for graph in (old, new) for key in graph.decisions if key.kind != KIND}
    differing = {name: kind for name, kind in names.items() if _differs(old, new, name)}
    said, says = _documents(old), _documents(new)
    kinds = {kind for kind in said.keys() | says.keys() if said.get(kind) != says.get(kind)}
    return Changes(frozenset(differing), frozenset({*differing.values(), *kinds}))


def _differs(old: RuleGraph, new: RuleGraph, name: str) -> bool:
    try:
        return _expression(old, name) != _expression(new, name)
    except RecursionError:
        return True  # that of a thousand documents is too deep to compare


def _expression(graph: RuleGraph, name: str) -> ir.Node | None:
    try:
        return graph.expression(name)
    except UnknownDecision:
        return None


def _documents(graph: RuleGraph) -> dict[str, list[str]]:
    """What the documents of each kind that somebody asks say, in the order in which they win."""
    found: dict[str, list[str]] = {}
    for unit in sorted(graph.units, key=lambda unit: (unit.layer, unit.id)):
        if KINDS[unit.kind.name].components and unit.kind.name != KIND:
            spec = unit.document.data.get("spec")
            found.setdefault(unit.kind.name, []).append(
                json.dumps([unit.layer_name, unit.id, spec], sort_keys=True, default=str)
            )
    return found
