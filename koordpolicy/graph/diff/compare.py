"""Two graphs side by side: which decisions differ, who edited them, and an input that shows it."""

from collections.abc import Mapping
from typing import Final

from koordpolicy.graph.diff.changes import (
    DecisionChange,
    Difference,
    Effect,
    Open,
)
from koordpolicy.graph.diff.documents import changed_documents, changed_settings, renamed_documents
from koordpolicy.graph.diff.pair import Comparing, DecisionPair
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.proof import Counterexample, GaveUp, ProofBudget, Proved, Verdict
from koordpolicy.graph.proof.examples import texts_named_by
from koordpolicy.graph.proof.solve import Named
from koordpolicy.language.cel.values import Timestamp

BUDGET: Final = ProofBudget()


def compare(
    old: RuleGraph,
    new: RuleGraph,
    budget: ProofBudget = BUDGET,
    moment: Timestamp | None = None,
    compared: tuple[tuple[RuleGraph, RuleGraph], ...] = (),
) -> Difference:
    """What differs. Every example was asked of both graphs; the same graphs give the same result.

    `budget` is what may be spent on one decision whose difference everyday inputs do not show. Examples take place at
    `moment` unless a difference is at another one. Decisions whose expressions are those of a pair in `compared` are
    passed over: of them all is known.
    """
    names = sorted({str(key) for key in (*old.decisions, *new.decisions)})
    renamed = renamed_documents(old.units, new.units)
    how = Comparing(known_texts(old, new), budget, None if moment is None else moment.ns)
    pairs = {
        name: pair
        for name in names
        if (pair := DecisionPair.of(old, new, name, dict(renamed), how)).differs
        and not any(pair.decides_as(*other) for other in compared)
    }
    answers = _verdicts(pairs)
    edited = {
        name: pair.edits()
        for name, pair in pairs.items()
        if pair.edited and isinstance(answers[name], Counterexample)
    }
    affected = [
        name for name, pair in pairs.items() if not pair.edited and isinstance(answers[name], Counterexample)
    ]
    # What changes with several parameters is told with the first of them.
    behind = {name: min(pairs[name].parameters() & edited.keys(), default="") for name in affected}
    effects = {name: pairs[name].shown(pairs[why].selecting() if why else ()) for name, why in behind.items()}
    cause = _cause(old, new) or "what it reads"
    decisions = [
        DecisionChange(
            name,
            pairs[name].decision.meaning,
            found,
            tuple(Effect(one, *effects[one]) for one, why in behind.items() if why == name),
        )
        for name, found in edited.items()
    ]
    decisions.sort(key=lambda one: (one.edits[0].span.file, one.edits[0].span.start.line, one.decision))
    told = {edit.document for one in decisions for edit in one.edits}
    decisions += [
        DecisionChange(name, pairs[name].decision.meaning, (), (Effect(name, *effects[name]),), cause)
        for name, why in behind.items()
        if not why
    ]
    gone = {name for pair in renamed for name in pair}
    return Difference(
        old.digest,
        new.digest,
        tuple(decisions),
        changed_settings(old.units, new.units),
        tuple(
            one
            for one in changed_documents(old.units, new.units)
            if one.document not in told and one.document not in gone
        ),
        tuple(name for name, answer in answers.items() if isinstance(answer, Proved)),
        tuple(
            Open(name, answer.why, pairs[name].edits() if pairs[name].edited else ())
            for name, answer in answers.items()
            if isinstance(answer, GaveUp)
        ),
        renamed,
    )


def _verdicts(pairs: Mapping[str, DecisionPair]) -> dict[str, Verdict]:
    """What is known of each decision. Inputs on which one differs are tried on those that everyday inputs do not show."""
    seen = [pair.witness() for pair in pairs.values() if pair.differs_everyday]
    hidden = [pair for pair in pairs.values() if not pair.differs_everyday]
    for pair in hidden:
        pair.tries(seen)
    answers = {name: pair.verdict() for name, pair in pairs.items()}
    found = {pair.name: pair.witness() for pair in hidden if isinstance(answers[pair.name], Counterexample)}
    for pair in hidden:
        if not isinstance(answers[pair.name], Proved):
            pair.tries(records for name, records in found.items() if name != pair.name)
            answers[pair.name] = pair.verdict()
    return answers


def known_texts(*graphs: RuleGraph) -> Named:
    """The names of classes and bands in these graphs, where facts have them."""
    return texts_named_by(*(graph.catalogue for graph in graphs))


def _cause(old: RuleGraph, new: RuleGraph) -> str:
    """The documents behind changes of what everybody reads: libraries, classes, bands, the bundle's packs."""
    kinds = ("Library", "QoSClass", "PriorityBand", "PolicyBundle")
    before, after = (
        {(unit.layer_name, unit.id): unit.document.data for unit in graph.units if unit.kind.name in kinds}
        for graph in (old, new)
    )
    changed = sorted({name for _, name in before.keys() ^ after.keys()})
    changed += sorted(
        key[1] for key in before.keys() & after.keys() if before[key].get("spec") != after[key].get("spec")
    )
    return ", ".join(changed)
