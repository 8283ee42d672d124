"""Inputs on which two expressions might differ: the boundaries of everything they compare, in everyday situations.

Nothing is claimed here. Whoever uses an input asks both graphs.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from koordpolicy.graph.analysis.example import example
from koordpolicy.graph.analysis.region import EVERYTHING, Box, boxes
from koordpolicy.graph.proof.moments import moments_of
from koordpolicy.graph.proof.situations import USUAL_MOMENT, Situation, at_moment, situations
from koordpolicy.graph.proof.validity import repaired
from koordpolicy.graph.samples import fill
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.facts import ROOTS

MOST_INPUTS = 600
"""Inputs tried for one decision, those at moments of their own beside them."""

_MOST_REGIONS = 40
_MOST_EDGES = 40
_MOST_AT_MOMENTS = 300


@dataclass(frozen=True, slots=True)
class Input:
    """Records by root, and the situation they were made from; `bent` is how many facts of it had to change."""

    situation: Situation
    records: dict[str, Any]
    bent: int = 0

    def phrase(self, roots: AbstractSet[str]) -> str:
        """What these roots show: `a batch pod on a node half used`; "" where neither pod nor node is among them."""
        parts = []
        if roots & {"pod", "container", "oldPod"}:
            parts.append(self.situation.pod)
        if roots & {"node", "zone"}:
            parts.append(self.situation.node)
        return " on ".join(part for part in parts if part)


def inputs(*expressions: ir.Node, moment: int | None = None) -> Iterator[Input]:
    """At most `MOST_INPUTS` inputs: first each region that a rule matches, in every situation, then its boundaries.

    They take place at `moment`, in nanoseconds since 1970. In between come the regions on days and at hours that the
    expressions tell apart.
    """
    regions = [EVERYTHING, *_distinct(_regions(expressions))][: _MOST_REGIONS + 1]
    edges = _distinct(_edges(expressions))[:_MOST_EDGES]
    usual = situations(moment)
    yield from (made for situation in usual for region in regions for made in _within(region, situation))
    yield from islice(_at_moments(expressions, regions, moment), _MOST_AT_MOMENTS)
    yield from islice(_at_edges(regions, edges, moment), MOST_INPUTS - len(usual) * len(regions))


def _at_moments(expressions: tuple[ir.Node, ...], regions: list[Box], moment: int | None) -> Iterator[Input]:
    """The first situation on other days and at other hours."""
    usual = situations(moment)[0]
    for other in moments_of(expressions, USUAL_MOMENT if moment is None else moment):
        for region in regions:
            for made in _within(region, at_moment(usual, other)):
                yield replace(made, bent=made.bent + 1)


def overlaid(records: Mapping[str, Any], moment: int | None) -> Iterator[Input]:
    """Every situation with what is not as usual in these records."""
    first = situations(moment)[0].records
    for situation in situations(moment):
        made = dict(situation.records)
        bent = 0
        for root, record in records.items():
            usual = first.get(root)
            if not isinstance(record, Mapping) or not isinstance(usual, Mapping):
                made[root] = record if record != usual else made[root]
                bent += record != usual
                continue
            said = {path: value for path, value in record.items() if value != usual.get(path)}
            bent += len(said)
            made[root] = {**made[root], **said}
        yield Input(situation, repaired(made, situation.records), bent)


def _at_edges(regions: list[Box], edges: list[Box], moment: int | None) -> Iterator[Input]:
    for situation in situations(moment):
        for region in regions:
            for edge in edges:
                met = region.meet(edge)
                if met is not None:
                    yield from _within(met, situation)


def _within(box: Box, situation: Situation) -> Iterator[Input]:
    """The situation with the facts that the box asks for."""

    def value(root: str, path: str) -> object:
        record = situation.records.get(root)
        known = record.get(path) if isinstance(record, dict) and path else record
        return fill(root, path) if known is None else known

    facts = example(box, frozenset((place.root, place.path) for place in box.domains), value)
    if facts is None:
        return
    records = dict(situation.records)
    for root, said in facts.items():
        known = records.get(root)
        if isinstance(known, dict):
            records[root] = {**known, **said}
        elif "" in said:
            records[root] = said[""]
    for place, domain in box.domains.items():
        if domain.present is False and place.key is None and isinstance(records.get(place.root), dict):
            records[place.root].pop(place.path, None)
    records = repaired(records, situation.records)
    bent = sum(
        place.key is None and value(place.root, place.path) != records.get(place.root, {}).get(place.path)
        for place in box.domains
        if isinstance(records.get(place.root), dict)
    )
    yield Input(situation, records, bent)


def _regions(expressions: tuple[ir.Node, ...]) -> Iterator[Box]:
    """Where each rule matches, those of parameters too: the conditions of all choices in the expressions."""
    for node in walk(*expressions):
        if isinstance(node, ir.Cond):
            yield from (box for box in boxes(node.condition) if box.domains and _is_of_roots(box))


def _edges(expressions: tuple[ir.Node, ...]) -> Iterator[Box]:
    """Both sides of every comparison of a fact, wherever it stands."""
    for node in walk(*expressions):
        if node.type.name != "bool" or isinstance(node, ir.Const | ir.And | ir.Or | ir.Cond):
            continue
        for side in (node, ir.Call(node.type, "!_(bool)", (node,))):
            for box in boxes(side):
                if box.domains and not box.opaque and _is_of_roots(box):
                    yield box


def _is_of_roots(box: Box) -> bool:
    """Whether a box speaks only of records that questions come with, not of elements of lists."""
    return all(place.root in ROOTS for place in box.domains)


def _distinct(found: Iterator[Box]) -> list[Box]:
    known: dict[frozenset[object], Box] = {}
    for box in found:
        known.setdefault(frozenset(box.domains.items()), box)
    return list(known.values())
