"""The profile as an extender of kube-scheduler: what it says of some nodes, put as kube-scheduler asks it.

    extender = Extender(Scheduler(graph, clock, role=Role(restricted_to("own"))))
    extender.filter(args); extender.prioritize(args); extender.room(args)      # plain values: `wire`

The scheduler's cache is kept from the cluster as ever, pods that kube-scheduler places among the rest; its queue
is not used. Answers are about nodes as the cache has them, whatever the call says of them. A node that the
cache does not know yet is refused for now. All methods raise CycleProblem when the cycle itself fails.

Scores keep their scale: 100 of 100 by all scores that have something to say of a pod is 10 of 10. So that they count in
kube-scheduler's sum as they do in the profile's, the extender's `weight` there is the sum of the weights of those that speak of most pods.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.evaluation import Evaluation, FirstRefusals
from koordpolicy.scheduler.evaluation.refusals import reasons_of
from koordpolicy.scheduler.extender.wire import MOST, ExtenderArgs, Going, Passed, PreemptionArgs
from koordpolicy.scheduler.plugins.gang.elsewhere import EXTENDER, GANGS_IN_EXTENDER, GangsElsewhere
from koordpolicy.scheduler.scheduler import Scheduler
from koordpolicy.scheduler.select_host import weighted

UNKNOWN: Final = "node is not known to the extender yet"


class Extender:
    """Answers from a scheduler's cache; changes nothing there."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._gangs = GangsElsewhere(EXTENDER)

    def filter(self, args: ExtenderArgs) -> Passed:
        """The nodes that no filter refuses; for each of the others, what the first filter says that does."""
        cycle = self._scheduler.framework.cycle(args.pod)
        alone = self._alone(cycle)
        if alone is not None:
            return Passed((), {}, dict.fromkeys(args.names, alone))
        cycle, evaluation, rows = self._about(args)
        failed: dict[str, str] = {name: UNKNOWN for name in args.names if name not in rows}
        unresolvable: dict[str, str] = {}
        order = np.array([*rows.values()], dtype=np.int64)
        names = [*rows]
        folded = FirstRefusals(evaluation, order)
        for first in folded:
            first = first.said(cycle, self._scheduler.cache.table, order)  # noqa: PLW2901 - the same, in policy's words
            places = np.flatnonzero(first.nodes)
            texts: Iterable[str] = (
                (_said(first.reasons, first.refused[:, at]) for at in places.tolist())
                if first.reasons
                else reasons_of(cycle, first.step, order[places], self._scheduler.cache.table).each()
            )
            for at, text in zip(places.tolist(), texts, strict=True):
                into = unresolvable if first.unresolvable[at] else failed
                into[names[at]] = text
        return Passed(
            tuple(name for name, stays in zip(names, folded.left, strict=True) if stays), failed, unresolvable
        )

    def prioritize(self, args: ExtenderArgs) -> list[tuple[str, int]]:
        """A score of 0 to 10 for each node, in the order in which they were asked; 0 for one that is not known."""
        cycle, evaluation, rows = self._about(args)
        weight = sum(one.weight for one in evaluation.scores if one.scores is not None)
        found: Mapping[str, int] = {}
        if rows and weight:
            order = np.array([*rows.values()], dtype=np.int64)
            parts = weighted(cycle, evaluation, order, self._scheduler.cache.table)
            totals = np.zeros(len(order)) + sum(part for _, part in parts)
            tens = np.clip(np.floor(totals / weight * (MOST / 100) + 0.5), 0, MOST).astype(np.int64)
            found = dict(zip(rows, tens.tolist(), strict=True))
        return [(name, found.get(name, 0)) for name in args.names]

    def room(self, args: PreemptionArgs) -> dict[str, Going]:
        """The nodes that pass once those who are to go have gone, more of them if need be; the others are left out."""
        cache = self._scheduler.cache
        cycle = self._scheduler.framework.cycle(args.pod)
        found: dict[str, Going] = {}
        for node, going in args.nodes.items():
            if node not in cache:
                continue
            there = {view.pod.uid: key for key, view in cache.pods_on(node).items()}
            keys = [there[uid] for uid in going.uids if uid in there]
            victims = self._scheduler.framework.post_filters.beside(cycle, node, keys)
            if victims is None:
                continue
            more = victims.keys[len(keys) :]
            if more:
                uids = {key: uid for uid, key in there.items()}
                found[node] = Going(
                    (*going.uids, *_uids(more, uids)), max(going.violations, victims.violations)
                )
            else:
                found[node] = going
        return found

    def _alone(self, cycle: Cycle) -> str | None:
        """Why a pod is placed nowhere: it is in a gang, which nobody keeps together. Raises CycleProblem."""
        for step in cycle.profile.filters:
            if step.plugin is not GANGS_IN_EXTENDER:
                continue
            try:
                if not step.always and step.enabled.value(cycle.records) is False:
                    return None
            except Exception as problem:
                raise CycleProblem.of(problem, step) from problem
            framework = self._scheduler.framework
            return self._gangs.refusal(
                cycle.view, framework.graph, framework.cache.state, cycle.records["now"].ns
            )
        return None

    def _about(self, args: ExtenderArgs) -> tuple[Cycle, Evaluation, dict[str, int]]:
        """What is known of all nodes, and the rows of those that were asked for."""
        table = self._scheduler.cache.table
        cycle = self._scheduler.framework.cycle(args.pod)
        evaluation = self._scheduler.framework.evaluation(cycle)
        return cycle, evaluation, {name: table.index(name) for name in args.names if name in table}


def _said(reasons: Sequence[str], refused: Mask) -> str:
    return ", ".join(reasons[at] for at in np.flatnonzero(refused).tolist())


def _uids(keys: Sequence[PodKey], uids: Mapping[PodKey, str]) -> tuple[str, ...]:
    return tuple(uids[key] for key in keys)
