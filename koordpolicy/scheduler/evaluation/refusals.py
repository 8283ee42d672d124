"""Each node that is refused counts for the first filter that refuses it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Mask
from koordpolicy.cluster.nodes import Rows
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns import ColumnProgram
from koordpolicy.model.distinct import distinct
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.plugins.base import FilterResults, FilterStep


@dataclass(frozen=True, slots=True)
class FirstRefusal:
    """The `nodes` that a filter is the first to refuse, and those of them that fewer pods would not help.

    Row i of `refused` marks those that are for `reasons[i]`. Where not the plugin of the filter refuses but its
    expression, there are no `reasons` here: `reasons_of` asks for them.
    """

    step: FilterStep
    nodes: Mask
    unresolvable: Mask
    refused: Mask
    reasons: tuple[str, ...] = ()

    def counts(self, cycle: Cycle, table: NodeTable, rows: Rows) -> dict[str, int]:
        """How many nodes for which reason; a node that is refused for several counts for each.

        `rows` are those of the nodes that were asked about.
        """
        if not self.reasons:
            return reasons_of(cycle, self.step, rows[self.nodes], table).counts()
        said = self.said(cycle, table, rows)
        refused = zip(said.reasons, said.refused, strict=True)
        return {reason: int(count) for reason, mask in refused if (count := np.count_nonzero(mask))}

    def said(self, cycle: Cycle, table: NodeTable, rows: Rows) -> "FirstRefusal":
        """The same, with the reason that policy gives beside a plugin in place of the plugin's, where it gives one."""
        program = cycle.profile.reasons.get(self.step.name)
        if not self.reasons or program is None:
            return self
        where = np.flatnonzero(self.nodes)
        said = _given(program, cycle, table, rows[where])
        if said is None:
            return self
        refused = self.refused.copy()
        refused[:, where[said.places != _SILENT]] = False
        own = np.zeros((len(said.texts), refused.shape[1]), np.bool_)
        for at in range(len(said.texts)):
            own[at, where[said.places == at]] = True
        left = [at for at in range(len(refused)) if refused[at].any()]
        reasons = (*said.texts, *(self.reasons[at] for at in left))
        return replace(self, reasons=reasons, refused=np.vstack((own, refused[left])))


class FirstRefusals:
    """The first refusals of an evaluation by filter and part, in order; one that is the first for no node is left out.

    Only nodes in some `places` of the evaluation, and only so many `filters`, if given. `left` are the nodes that
    none has refused so far.
    """

    def __init__(
        self, evaluation: FilterResults, places: Rows | None = None, filters: int | None = None
    ) -> None:
        self._filters = evaluation.filters[:filters]
        self._places: Rows | slice = slice(None) if places is None else places
        self.left: Mask = np.ones(evaluation.nodes if places is None else len(places), np.bool_)

    def __iter__(self) -> Iterator[FirstRefusal]:
        left, places = self.left, self._places
        for one in self._filters:
            verdicts, accepted = one.verdicts, one.accepted
            if verdicts is not None and not verdicts.none:
                refused = verdicts.refused[:, places] & left
                nodes: Mask = np.asarray(refused.any(axis=0))
                if nodes.any():
                    left &= ~nodes
                    unresolvable = verdicts.unresolvable[places] & nodes
                    yield FirstRefusal(one.step, nodes, unresolvable, refused, verdicts.reasons)
            if accepted is not None:
                nodes = np.asarray(left & ~accepted[places])
                if nodes.any():
                    left &= ~nodes
                    unresolvable = np.zeros_like(nodes) if one.step.depends_on_pods else nodes
                    yield FirstRefusal(one.step, nodes, unresolvable, nodes[np.newaxis])


def unresolvable(cycle: Cycle, results: FilterResults) -> Mask:
    """The nodes whose first refusal is one that fewer pods there would not change.

    All are where a filter refuses the pod without a look at nodes.
    """
    state, found = cycle.state, np.zeros(results.nodes, np.bool_)
    for one in results.filters:
        plugin = None if one.verdicts is None else one.step.plugin
        refuses_as_such = None if plugin is None else plugin.unresolvable
        if refuses_as_such is not None and state is not None and refuses_as_such(cycle.view, state):
            return np.ones(results.nodes, np.bool_)
    for first in FirstRefusals(results):
        found |= first.unresolvable
    return found


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why some nodes are refused: the `texts` that are said of any, and the place in these of what is said of each node."""

    texts: tuple[str, ...]
    places: NDArray[np.intp]

    def counts(self) -> dict[str, int]:
        """How many nodes for each reason."""
        counted = np.bincount(self.places, minlength=len(self.texts))
        return dict(zip(self.texts, counted.tolist(), strict=True))

    def groups(self, rows: Rows) -> list[tuple[str, Rows]]:
        """The rows of the nodes for each reason."""
        return [(text, rows[self.places == at]) for at, text in enumerate(self.texts)]

    def each(self) -> list[str]:
        """The reason of one node after the other."""
        return [self.texts[place] for place in self.places.tolist()]


def reasons_of(cycle: Cycle, step: FilterStep, rows: Rows, table: NodeTable) -> Reasons:
    """Why a filter's expression refused the nodes of some rows, one at least: the reasons that policy gives.

    Where it gives none, or where all of them together cost too much, what holds of one node stands for all of these.
    """
    program = cycle.profile.reasons.get(step.name)
    given = None if program is None else _given(program, cycle, table, rows)
    if given is None:
        return Reasons((_without_reason(cycle, step, int(rows[0]), table),), np.zeros(len(rows), np.intp))
    texts, places = dict.fromkeys(given.texts), given.places
    silent = places == _SILENT
    if silent.any():
        instead = _without_reason(cycle, step, int(rows[int(np.argmax(silent))]), table)
        texts.setdefault(instead)
        places[silent] = list(texts).index(instead)
    return Reasons(tuple(texts), places)


_SILENT: Final = -1
"""The place of a node of which policy says nothing."""


def _given(program: ColumnProgram, cycle: Cycle, table: NodeTable, rows: Rows) -> Reasons | None:
    """What policy says of the nodes of some rows; None where all of them together cost too much."""
    try:
        result = program.call(table, cycle.records, rows)
    except CelError:
        return None
    places = np.full(len(rows), _SILENT, np.intp)
    silent = np.zeros(len(rows), np.bool_) if result.errors is None else result.errors
    texts: dict[str, int] = {}
    for code in distinct(result.values[~silent]):
        same = (result.values == code) & ~silent
        text = str(result.value(int(np.argmax(same))))
        if text:
            places[same] = texts.setdefault(text, len(texts))
    return Reasons(tuple(texts), places)


def _without_reason(cycle: Cycle, step: FilterStep, row: int, table: NodeTable) -> str:
    """What stands for the reason of nodes for which policy gives none.

    Where the filter could not be evaluated, what went wrong on one of them speaks for all.
    """
    text, error = f"node(s) didn't pass the filter {step.name}", error_on(cycle, step, row, table)
    return f"{text}: {error}" if error else text


def error_on(cycle: Cycle, step: FilterStep, row: int, table: NodeTable) -> str:
    """What went wrong where the expression of a filter or score could not be evaluated about a node; empty where it could."""
    if cycle.profile.evaluate is None:
        return ""
    found = cycle.profile.evaluate.call_all(table, cycle.records, np.array([row]))
    error = found[step.place].error(0)
    return "" if error is None else str(error)
