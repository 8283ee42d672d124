"""Differences to come: what exceptions mask today, and what those of another day bring."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from koordpolicy.graph.diff.changes import DecisionChange, Difference, Edit, Later, Open
from koordpolicy.graph.diff.compare import BUDGET, compare
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.proof import ProofBudget
from koordpolicy.language.cel.values import Timestamp

MOST_MOMENTS: Final = 100
"""Moments at which exceptions begin or end that are looked at."""

_Told = tuple[str, ...]
"""What has been told: a decision that changes with others, or a rule's change of a decision."""


def compare_from(
    old: RuleGraph,
    new: RuleGraph,
    moment: Timestamp,
    budget: ProofBudget = BUDGET,
    examples: Timestamp | None = None,
    most: int = MOST_MOMENTS,
) -> Difference:
    """What differs at a moment, and what will whenever exceptions begin or end after it.

    Each change is told once, at the first moment that shows it. Examples take place at `examples`.
    Of moments to come at most `most` are looked at; what lies beyond them is said to be open.
    """
    pairs = [(old.at(moment), new.at(moment))]
    now = compare(*pairs[0], budget, examples)
    told = _told(now.decisions)
    gave_up = {left.decision for left in now.open}
    later: list[Later] = []
    for count, at in enumerate(_moments(old, new, moment, most + 1)):
        if count == most:
            why = f"exceptions begin or end at more than {most:,} moments"
            later.append(Later(at, (), (Open("what changes by then", why),)))
            break
        pair = (old.at(at), new.at(at))
        if pair in pairs:
            continue
        found = compare(*pair, budget, examples, tuple(pairs))
        pairs.append(pair)
        decisions = tuple(_unseen(found.decisions, told))
        left = tuple(one for one in found.open if one.decision not in gave_up)
        if decisions or left:
            later.append(Later(at, decisions, left))
        told |= _told(found.decisions)
        gave_up |= {one.decision for one in left}
    return _without_masked(now, tuple(later))


def _moments(old: RuleGraph, new: RuleGraph, moment: Timestamp, most: int) -> Iterator[Timestamp]:
    """When exceptions of either begin or end after a moment, the first ones; none where both revisions are one."""
    at = moment
    if old.at(at).digest == new.at(at).digest:
        return
    for _ in range(most):
        edges = [edge for graph in (old, new) if (edge := graph.changes_after(at)) is not None]
        if not edges:
            return
        at = min(edges, key=lambda edge: edge.ns)
        yield at


def _key(decision: str, edit: Edit) -> _Told:
    return decision, edit.layer, edit.document


def _told(changes: Iterable[DecisionChange]) -> set[_Told]:
    """Rules whose change an example shows, and decisions that change with them."""
    found: set[_Told] = set()
    for change in changes:
        found |= {_key(change.decision, edit) for edit in change.edits if edit.example is not None}
        found |= {(effect.decision,) for effect in change.effects}
    return found


def _unseen(changes: Iterable[DecisionChange], told: set[_Told]) -> Iterator[DecisionChange]:
    """The changes without what was told before, and without rules that matter at another moment only."""
    for change in changes:
        edits = tuple(
            edit
            for edit in change.edits
            if _key(change.decision, edit) not in told and (edit.example is not None or edit.gave_up)
        )
        effects = tuple(effect for effect in change.effects if (effect.decision,) not in told)
        if edits or (effects and not change.edits):
            yield replace(change, edits=edits, effects=effects)
        elif effects:
            yield from (
                DecisionChange(effect.decision, "", (), (effect,), f"what changes in {change.decision}")
                for effect in effects
            )


def _without_masked(now: Difference, later: tuple[Later, ...]) -> Difference:
    """The difference with what is to come; nothing of that is said to be equal, or to matter nowhere."""
    names = {change.decision for one in later for change in one.decisions}
    names |= {effect.decision for one in later for change in one.decisions for effect in change.effects}
    names |= {left.decision for one in later for left in one.open}
    keys = {key for one in later for key in _told(one.decisions)}
    decisions = []
    for change in now.decisions:
        edits = tuple(
            edit
            for edit in change.edits
            if edit.example is not None or _key(change.decision, edit) not in keys
        )
        decisions.append(replace(change, edits=edits) if edits else change)
    return replace(
        now,
        decisions=tuple(decisions),
        equal=tuple(name for name in now.equal if name not in names),
        later=later,
    )
