"""Pods that go together, as a scheduler has them: who comes and goes, who goes for all of them, and who would, where one only asks."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.scheduler.binding_cycle import BindingCycles
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.decision import PodDecision, Refusals
from koordpolicy.scheduler.framework import Framework
from koordpolicy.scheduler.ledger import Ledger
from koordpolicy.scheduler.plugins.gang.gangs import Gangs
from koordpolicy.scheduler.waitlist import Waitlist

LOG: Final = logging.getLogger(__name__)

_PREEMPTION: Final = "Preemption"


class JobsRoom:
    """That of one scheduler. `cache` gives the one of now."""

    def __init__(
        self, binding: BindingCycles, ledger: Ledger, waitlist: Waitlist, cache: Callable[[], ClusterCache]
    ) -> None:
        self._binding = binding
        self._ledger = ledger
        self._waitlist = waitlist
        self._cache = cache

    def made(self, cycle: Cycle, decision: PodDecision) -> PodDecision:
        """A decision on a pod that goes with others and found no node, with who goes for all of them, or why nobody does.

        From now on their nodes are promised to them. Raises CycleProblem.
        """
        found = self._binding.jobs.make_room(cycle)
        if found is None:
            return decision
        if found.made is not None:
            self._ledger.made_room(cycle.view, found.made)
            for key, node in found.made.beside:
                other = self._waitlist.pods.get(key) or self._cache().view(key)
                if other is not None:
                    self._ledger.promise(other, node)
        return replace(decision, preemption=found.made, remark=found.remark)

    def free_of(self, node: str) -> None:
        """Once nobody has to leave a node any more, those who wait for it are tried, who may have been refused for others' sake."""
        waiting = self._ledger.promised_on(node)
        if waiting and not any(
            self._ledger.leaves(view.pod) for view in self._cache().pods_on(node).values()
        ):
            for key in waiting:
                self._waitlist.reconsider(key)

    def came(self, view: PodView, node: str = "") -> None:
        """A pod is there that may go together with others; a plugin that fails over that costs it its company alone."""
        if self._binding.jobs.present:
            try:
                self._binding.jobs.came(view, node)
            except Exception:
                LOG.exception("pod %s is by itself: internal error, please report", "/".join(view.pod.key))

    def went(self, key: PodKey) -> None:
        """A pod is gone that others may go together with."""
        if self._binding.jobs.present:
            try:
                self._binding.jobs.went(key)
            except Exception:
                LOG.exception("pod %s is still counted: internal error, please report", "/".join(key))

    def give_back(self, decision: PodDecision) -> None:
        """Those who have to go and are not bound yet give their nodes back, and are tried again."""
        for victim in () if decision.preemption is None else decision.preemption.victims:
            if victim.waits:
                reason = f"node {victim.node} was taken for pod {'/'.join(decision.pod)}"
                self._binding.send_back(victim.pod, Refusals(_PREEMPTION, reason, 1))
                self._waitlist.reconsider(victim.pod)


def rehearse(framework: Framework, gangs: Gangs | None, pod: Pod) -> PodDecision:
    """A decision on a pod with all that would follow: who would have to go for it or for its gang. Nothing is kept."""
    view = framework.view(pod)
    if gangs is None or not gangs.together(view):
        return framework.rehearse(view)
    decision = framework.rehearse(view, alone=False)
    if decision.placed or decision.problem:
        return decision
    try:
        said = gangs.rehearse_room(view)
    except CycleProblem as problem:
        return framework.problem(pod, problem)
    return decision if said is None else replace(decision, preemption=said.made, remark=said.remark)
