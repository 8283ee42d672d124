"""The first half of a scheduling cycle: what the profile says of all nodes, or of some, about one pod."""

from typing import NamedTuple

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.cluster.nodes import NodeView, Rows
from koordpolicy.language.cel.lower.columns import ColumnResult
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.evaluation.answers import Filtered, Scored
from koordpolicy.scheduler.evaluation.evaluation import Evaluation
from koordpolicy.scheduler.evaluation.keys import CacheKeys, cache_keys_of, stale
from koordpolicy.scheduler.profile import Profile
from koordpolicy.scheduler.step import Step


def evaluate(
    cycle: Cycle,
    table: NodeTable,
    rows: Rows | None = None,
    *,
    filters_only: bool = False,
    local_only: bool = False,
    timed_only: bool = False,
    known: Evaluation | None = None,
    changed: frozenset[str] | None = None,
) -> Evaluation:
    """Ask all filters and scores about all nodes, or about some rows. Raises CycleProblem.

    `filters_only` asks no scores. `local_only` asks only filters whose verdict about a node follows from its row, and no
    scores: for tables of nodes that are only supposed. `timed_only` asks only filters that read the time, and no scores:
    for what was asked before as of another moment. Plugins whose cache keys differ from those of what is `known` of
    all nodes are asked about all of them again; what is known by plugins that read none of the `changed`
    facts (None: any may have changed) is taken over.
    """
    profile, records = cycle.profile, cycle.records
    nodes = NodeView(table, rows, cycle.state)
    silent = _silent(profile)
    filters = silent.filters.copy()
    scores = [] if filters_only or local_only or timed_only else silent.scores.copy()
    step: Step | None = None
    try:
        program = profile.evaluate if nodes.count else None
        found = {} if program is None else program.call_all(table, records, rows)
        keys = {} if local_only or (timed_only and not profile.looks_beyond_in_time) else cache_keys_of(cycle)
        for at, step in enumerate(profile.filters):
            if known is not None and step.settled(changed):
                filters[at] = known.filters[at]
                continue
            if (
                (step.speaks_by_key and step.place not in keys)
                or (timed_only and not step.reads_time)
                or not (step.always or step.enabled.value(records) is not False)
            ):
                continue
            view = _seen(step, nodes, keys, known) if step.looks_beyond else nodes
            plugin = step.plugin
            verdicts = None
            if view is not None and plugin is not None and plugin.filter is not None:
                verdicts = plugin.filter(cycle.view, view, step.values(records))
            accepted = _accepted(found.get(step.place)) if step.expression else None
            if verdicts is not None or accepted is not None:
                filters[at] = Filtered(step, verdicts, accepted)
        for at, step in enumerate(profile.scores if scores else ()):
            if known is not None and step.settled(changed):
                scores[at] = known.scores[at]
                continue
            if step.speaks_by_key and step.place not in keys:
                continue
            weight = step.fixed_weight
            if weight is None:
                weight = step.weighs(records)
            if weight:
                view = _seen(step, nodes, keys, known) if step.looks_beyond else nodes
                result = found.get(step.place)
                failed = None if result is None else _failed(result)
                scores[at] = Scored(step, _scores(step, cycle, view, result), weight, failed)
    except Exception as problem:
        raise CycleProblem.of(problem, step) from problem
    return Evaluation(nodes.count, filters, scores, keys)


class _Silent(NamedTuple):
    """The answers of a profile's filters and scores of which none says anything, as most do about most pods."""

    filters: list[Filtered]
    scores: list[Scored]


def _silent(profile: Profile) -> _Silent:
    """Made once: nobody writes them."""
    found: _Silent | None = profile.kept.get(_Silent)
    if found is None:
        made = _Silent(
            [Filtered(step) for step in profile.filters], [Scored(step) for step in profile.scores]
        )
        found = profile.kept[_Silent] = made
    return found


def _seen(step: Step, nodes: NodeView, keys: CacheKeys, known: Evaluation | None) -> NodeView | None:
    """The nodes that the plugin of a step that looks beyond rows is asked about; None where it has nothing to say."""
    if step.place not in keys:
        return None
    return nodes if known is None or not stale(known.cache_keys, keys, step.place) else nodes.whole()


def _accepted(result: ColumnResult | None) -> Mask | None:
    """Where an expression is true. A node that it fails on is refused, with the error as its reason."""
    if result is None:
        return None
    accepted: Mask = result.values
    return accepted if result.errors is None else accepted & ~result.errors


def _failed(result: ColumnResult) -> Mask | None:
    """The nodes on which the expression of a score fails; None where it fails on none."""
    errors = result.errors
    return errors if errors is not None and errors.any() else None


def _scores(step: Step, cycle: Cycle, nodes: NodeView | None, result: ColumnResult | None) -> Scores | None:
    """A score before normalisation: the plugin's and the expression's, together where both are given."""
    scores: Scores | None = None
    if nodes is not None and step.plugin is not None and step.plugin.score is not None:
        scores = step.plugin.score(cycle.view, nodes, step.values(cycle.records))
    if result is not None:
        value = result.values if result.errors is None else np.where(result.errors, 0, result.values)
        scores = value if scores is None else scores + value
    return scores


def rank(step: Step, cycle: Cycle, table: NodeTable, rows: Rows) -> Scores | None:
    """A score of the nodes that are left, in view of each other. Raises CycleProblem."""
    assert step.plugin is not None
    assert step.plugin.rank is not None
    nodes = NodeView(table, None, cycle.state)
    try:
        return step.plugin.rank(cycle.view, nodes, rows, step.values(cycle.records))
    except Exception as problem:
        raise CycleProblem.of(problem, step) from problem
