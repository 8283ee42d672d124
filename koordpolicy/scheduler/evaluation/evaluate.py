"""The first half of a scheduling cycle: what the profile says of all nodes, or of some, about one pod."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.cluster.nodes import NodeView, Rows
from koordpolicy.language.cel.lower.columns import ColumnResult
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.evaluation.answers import Filtered, Scored
from koordpolicy.scheduler.evaluation.evaluation import Evaluation, Speaking
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
    filtering: list[Filtered] = []
    scoring: list[Scored] = []
    try:
        keys = {} if local_only or (timed_only and not profile.looks_beyond_in_time) else cache_keys_of(cycle)
        program = profile.evaluate if nodes.count else None
        found = {} if program is None else program.call_all(table, records, rows)
        asked = silent.asked(profile, keys)
        if known is not None:
            asked = asked.unsettled(known, changed, filters, scores)
        for at, step in asked.filters:
            if (timed_only and not step.reads_time) or not (
                step.always or step.enabled.value(records) is not False
            ):
                continue
            plugin = step.plugin
            verdicts = None
            if plugin is not None and plugin.filter is not None:
                view = _seen(step, nodes, keys, known) if step.looks_beyond else nodes
                if view is not None:
                    values = step.fixed
                    if values is None:
                        values = step.values(records)
                    verdicts = plugin.filter(cycle.view, view, values)
            accepted = _accepted(found.get(step.place)) if step.expression else None
            if verdicts is not None or accepted is not None:
                filters[at] = filtered = Filtered(step, verdicts, accepted)
                filtering.append(filtered)
        for at, step in asked.scores if scores else ():
            weight = step.fixed_weight
            if weight is None:
                weight = step.weighs(records)
            if weight:
                view = _seen(step, nodes, keys, known) if step.looks_beyond else nodes
                result = found.get(step.place)
                failed = None if result is None else _failed(result)
                scores[at] = scored = Scored(step, _scores(step, cycle, view, result), weight, failed)
                scoring.append(scored)
    except Exception as problem:
        raise CycleProblem.of(problem, step) from problem
    for name, result in found.items():
        if result.errors is not None:
            for one in filtering:
                one.failed |= one.step.place == name
    evaluation = Evaluation(nodes.count, filters, scores, keys)
    if known is None:
        evaluation.speaking = Speaking(filtering, scoring)
    return evaluation


class _Asked(NamedTuple):
    """Filters and scores with their places in the profile."""

    filters: Sequence[tuple[int, Step]]
    scores: Sequence[tuple[int, Step]]

    def unsettled(
        self,
        known: Evaluation,
        changed: frozenset[str] | None,
        filters: list[Filtered],
        scores: list[Scored],
    ) -> "_Asked":
        """Take over what is known of plugins that read none of the facts that changed; the others."""
        for at, step in self.filters:
            if step.settled(changed):
                filters[at] = known.filters[at]
        for at, step in self.scores if scores else ():
            if step.settled(changed):
                scores[at] = known.scores[at]
        return _Asked(
            [one for one in self.filters if not one[1].settled(changed)],
            [one for one in self.scores if not one[1].settled(changed)],
        )


class _Silent(NamedTuple):
    """The answers of a profile's filters and scores of which none says anything, as most do about most pods.

    `few` are those that may say something, by the places of the plugins that have a cache key.
    """

    filters: list[Filtered]
    scores: list[Scored]
    few: dict[tuple[str, ...], _Asked]

    def asked(self, profile: Profile, keys: CacheKeys) -> _Asked:
        """Those that may say something where plugins at these places have a cache key."""
        places = tuple(keys)
        found = self.few.get(places)
        if found is None:
            if len(self.few) >= _MOST_SETS:
                self.few.clear()
            speaking = [
                [(at, step) for at, step in enumerate(steps) if _may_speak(step, places)]
                for steps in (profile.filters, profile.scores)
            ]
            found = self.few[places] = _Asked(*speaking)
        return found


_MOST_SETS: Final = 64
"""Sets of plugins with cache keys for which it is remembered who may say something: there are few."""


def _may_speak(step: Step, places: Collection[str]) -> bool:
    plugin = step.plugin
    if step.speaks_by_key and step.place not in places:
        return False
    if step.weight is not None:
        return step.fixed_weight != 0
    return step.expression or (plugin is not None and plugin.filter is not None)


def _silent(profile: Profile) -> _Silent:
    """Made once: nobody writes them."""
    found: _Silent | None = profile.kept.get(_Silent)
    if found is None:
        made = _Silent(
            [Filtered(step) for step in profile.filters],
            [Scored(step) for step in profile.scores],
            {},
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
