"""The first half of a scheduling cycle: what the profile says of all nodes about one pod.

`evaluate` gives the masks of each filter and the scores of each score, for all nodes or for those that
changed; `choosing.choose` makes a decision of them.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.cluster import ClusterState
from koordpolicy.cluster.nodes import NodeView, Rows
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.volume_plan import NOTHING_TO_BIND, VolumePlan
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns import ColumnResult
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.plugins import ParameterError, Scores, Verdicts
from koordpolicy.scheduler.profile import Profile
from koordpolicy.scheduler.step import Step

Records = Mapping[str, Any]
"""The records of a decision by root, the node excepted."""


CacheKeys: TypeAlias = dict[str, Hashable]
"""The cache_keys of plugins by where they stand: `filter:NAME`, `score:NAME`."""


class CycleProblem(Exception):
    """The cycle itself failed: no answer is to be had about any node.

    `step` is the filter or score that failed (`filter:NAME`), empty where that is not known; `cause` is an error that
    nobody foresaw, None for one of policy, of a parameter or of the pod.
    """

    def __init__(self, text: str, step: str = "", cause: Exception | None = None) -> None:
        super().__init__(text)
        self.step = step
        self.cause = cause

    @classmethod
    def of(cls, problem: Exception, step: Step | None = None) -> "CycleProblem":
        """Whatever was raised, over a step if one was being asked."""
        if isinstance(problem, CycleProblem):
            return problem
        known = isinstance(problem, CelError | ParameterError | ObjectError)
        return cls(str(problem), "" if step is None else step.place, None if known else problem)


@dataclass(slots=True)
class Evaluation:
    """What the profile says of every node about one pod.

    `verdicts` are those of the plugin of each filter (None where it has none), `accepted` what each
    filter's expression says (None likewise), `scores` the scores in order; None for one that takes no
    part. A score's weight is 0 where it is switched off. `barred` nodes are promised to other pods. `cache_keys`
    are those of the plugins that look beyond nodes and have something to say, as `filter:NAME` and
    `score:NAME`.
    """

    verdicts: list[Verdicts | None]
    accepted: list[Mask | None]
    scores: list[Scores | None]
    weights: list[int]
    barred: Mask | None = None
    cache_keys: CacheKeys = field(default_factory=dict)

    def refusing(self, row: int) -> "Evaluation":
        """The same, one more node barred that passes by itself but not with those it is promised to."""
        first = next(
            one for one in (*(v.unresolvable for v in self.verdicts if v), *self.accepted) if one is not None
        )
        barred = np.zeros(len(first), np.bool_) if self.barred is None else self.barred.copy()
        barred[row] = True
        return replace(self, barred=barred)


@dataclass(frozen=True, slots=True)
class Cycle:
    """A pod, asked of a profile. `view` is the pod, `records` the facts that expressions read.

    `state` is what there is beside nodes; without it, plugins that look beyond nodes are not asked.
    """

    profile: Profile
    view: PodView
    records: Records
    state: ClusterState | None = None


def evaluate(
    cycle: Cycle,
    table: NodeTable,
    rows: Rows | None = None,
    *,
    local_only: bool = False,
    timed_only: bool = False,
    known: Evaluation | None = None,
    changed: frozenset[str] | None = None,
) -> Evaluation:
    """Ask all filters and scores about all nodes, or about some rows. Raises CycleProblem.

    `local_only` asks only filters whose verdict about a node follows from its row, and no scores: for
    tables of nodes that are only supposed. `timed_only` asks only filters that read the time, and no scores: for
    what was asked before as of another moment. Plugins whose cache_keys differ from those of what is `known` of
    all nodes are asked about all of them again; what is known by plugins that read none of the `changed`
    facts (None: any may have changed) is taken over.
    """
    profile, records = cycle.profile, cycle.records
    nodes = NodeView(table, rows, cycle.state)
    evaluation = Evaluation(
        [None] * len(profile.filters),
        [None] * len(profile.filters),
        [None] * len(profile.scores),
        [0] * len(profile.scores),
    )
    step: Step | None = None
    try:
        found = (
            {}
            if profile.evaluate is None or nodes.count == 0
            else profile.evaluate.call_all(table, records, rows)
        )
        cache_keys = evaluation.cache_keys = {} if local_only else cache_keys_of(cycle)
        for at, step in enumerate(profile.filters):
            if (step.speaks_by_stamp and step.place not in cache_keys) or (
                timed_only and not step.reads_time
            ):
                continue
            if known is not None and step.settled(changed):
                evaluation.verdicts[at] = known.verdicts[at]
            elif step.enabled.value(records) is not False:
                if not step.looks_beyond or step.place in cache_keys:
                    view = _asked(step, cache_keys, nodes, known)
                    evaluation.verdicts[at] = _verdicts(step, cycle, view)
                if step.expression:
                    evaluation.accepted[at] = _accepted(found.get(step.place))
        if not (local_only or timed_only):
            for at, step in enumerate(profile.scores):
                if known is not None and step.settled(changed):
                    evaluation.weights[at], evaluation.scores[at] = known.weights[at], known.scores[at]
                elif weight := step.weighs(records):
                    evaluation.weights[at] = weight
                    asks = not step.looks_beyond or step.place in cache_keys
                    seen = _asked(step, cache_keys, nodes, known) if asks else None
                    evaluation.scores[at] = _scores(step, cycle, seen, found.get(step.place))
    except Exception as problem:
        raise CycleProblem.of(problem, step) from problem
    return evaluation


def cache_keys_of(cycle: Cycle) -> CacheKeys:
    """The cache_keys of the plugins that look beyond nodes and have something to say."""
    found: CacheKeys = {}
    state = cycle.state
    if state is not None:
        for name, step, cache_key in cycle.profile.beyond:
            made = cache_key(cycle.view, state, lambda step=step: step.values(cycle.records))  # type: ignore[misc]
            if made is not None:
                found[name] = made
    return found


def unchanged(cycle: Cycle, known: Evaluation) -> bool:
    """Whether answers about nodes that have not changed would still be the same."""
    try:
        found = cache_keys_of(cycle)
    except (CelError, ParameterError, ObjectError):
        return False
    return found.keys() == known.cache_keys.keys() and not any(stale(known, found, name) for name in found)


def stale(known: Evaluation, fresh: CacheKeys, name: str) -> bool:
    """Whether what is known of a plugin's answers does not hold any more, though no node has changed.

    One by one: a dict finds a cache_key equal to itself, though it says that it equals nothing.
    """
    return bool(known.cache_keys.get(name) != fresh.get(name))


def _asked(step: Step, cache_keys: CacheKeys, nodes: NodeView, known: Evaluation | None) -> NodeView:
    """The nodes that the plugin of a step is asked about."""
    if known is None or not step.looks_beyond or not stale(known, cache_keys, step.place):
        return nodes
    return nodes.whole()


def reservation(cycle: Cycle, table: NodeTable, node: str) -> VolumePlan:
    """What the plugins of filters want done before the pod is bound to a node. Raises CycleProblem."""
    nodes = NodeView(table, np.array([table.index(node)]), cycle.state)
    step: Step | None = None
    try:
        for step in cycle.profile.filters:
            plugin = step.plugin
            if plugin is None or plugin.reserve is None:
                continue
            if step.enabled.value(cycle.records) is not False:
                return plugin.reserve(cycle.view, nodes, step.values(cycle.records))
    except Exception as problem:
        raise CycleProblem.of(problem, step) from problem
    return NOTHING_TO_BIND


def _verdicts(step: Step, cycle: Cycle, nodes: NodeView) -> Verdicts | None:
    if step.plugin is None or step.plugin.filter is None:
        return None
    return step.plugin.filter(cycle.view, nodes, step.values(cycle.records))


def _accepted(result: ColumnResult | None) -> Mask | None:
    """Where an expression is true. A node that it fails on is refused, with the error as its reason."""
    if result is None:
        return None
    accepted: Mask = result.values
    return accepted if result.errors is None else accepted & ~result.errors


def _scores(step: Step, cycle: Cycle, nodes: NodeView | None, result: ColumnResult | None) -> Scores | None:
    """A score before normalisation: the plugin's and the expression's, together where both are given."""
    scores: Scores | None = None
    if nodes is not None and step.plugin is not None and step.plugin.score is not None:
        scores = step.plugin.score(cycle.view, nodes, step.values(cycle.records))
    if result is not None:
        value = result.values if result.errors is None else np.where(result.errors, 0, result.values)
        scores = value if scores is None else scores + value
    return scores


def ranked(step: Step, cycle: Cycle, table: NodeTable, rows: Rows) -> Scores | None:
    """A score of the nodes that are left, in view of each other. Raises CycleProblem."""
    assert step.plugin is not None
    assert step.plugin.rank is not None
    nodes = NodeView(table, None, cycle.state)
    try:
        return step.plugin.rank(cycle.view, nodes, rows, step.values(cycle.records))
    except Exception as problem:
        raise CycleProblem.of(problem, step) from problem
