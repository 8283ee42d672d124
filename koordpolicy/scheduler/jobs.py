"""The plugins that look after pods that go together: they hear of pods, and say who is tried next.

Where a profile has no such plugin, nothing of this is asked.
"""

from collections.abc import Callable
from typing import Any

from koordpolicy.cluster.pods import PodView
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.decision import PodDecision, Refusals
from koordpolicy.scheduler.plugins import Plugin
from koordpolicy.scheduler.profile import Profile
from koordpolicy.scheduler.step import Step

StateOf = Callable[[Plugin], Any]


class JobPlugins:
    """Those of one scheduler. `present` says whether there are any; `open` whether one of them may say who is tried next.

    `state_of` gives the state of a plugin.
    """

    def __init__(self, state_of: StateOf) -> None:
        self._state_of = state_of
        self._steps: tuple[tuple[Step, Plugin], ...] = ()
        self.present = False

    def begin(self, profile: Profile) -> None:
        """Ask the plugins of a profile from now on."""
        found = [(step, step.plugin) for step in profile.filters if step.plugin is not None]
        self._steps = tuple((step, one) for step, one in found if one.jobs is not None and step.ever)
        self.present = bool(self._steps)

    def names(self) -> frozenset[str]:
        """Their filters."""
        return frozenset(step.name for step, _ in self._steps)

    def states(self) -> list[Any]:
        """Their states."""
        return [self._state_of(plugin) for _, plugin in self._steps]

    # --- pods come and go ---------------------------------------------------------------------------

    def came(self, view: PodView, node: str) -> None:
        """A pod is there or has changed, with its node; empty for none."""
        for _, plugin in self._steps:
            assert plugin.jobs is not None
            plugin.jobs.came(self._state_of(plugin), view, node)

    def went(self, key: PodKey) -> None:
        """A pod is gone, or nobody is to place it."""
        for _, plugin in self._steps:
            assert plugin.jobs is not None
            plugin.jobs.went(self._state_of(plugin), key)

    def heard(self) -> None:
        """An object that jobs are declared by has changed."""
        for _, plugin in self._steps:
            assert plugin.jobs is not None
            plugin.jobs.heard(self._state_of(plugin))

    # --- cycles -------------------------------------------------------------------------------------

    def next(self, may: Callable[[PodKey], bool], due: Callable[[PodKey], bool]) -> PodKey | None:
        """The pod that is tried before the queue's first, if any: of those that `may` be tried, or that are `due`."""
        for _, plugin in self._steps:
            assert plugin.jobs is not None
            found = plugin.jobs.next(self._state_of(plugin), may, due)
            if found is not None:
                return found
        return None

    def begin_cycle(self, cycle: Cycle, nodes: int) -> Refusals | None:
        """Who does not have a pod tried now that has its turn, of so many nodes. Raises CycleProblem."""
        for step, plugin in self._steps:
            assert plugin.jobs is not None
            try:
                if step.enabled.value(cycle.records) is False:
                    continue
                said = plugin.jobs.begin(self._state_of(plugin), cycle.view)
            except Exception as problem:
                raise CycleProblem.of(problem, step) from problem
            if said is not None:
                return Refusals(said.filter or step.name, said.reason, nodes, resolvable=False)
        return None

    def failed(self, view: PodView, decision: PodDecision) -> None:
        """A pod found no node, or was not tried."""
        for _, plugin in self._steps:
            assert plugin.jobs is not None
            plugin.jobs.failed(self._state_of(plugin), view, decision)

    def at_once(self) -> bool:
        """Whether the pods that are tried next are to be decided on in the same step."""
        for _, plugin in self._steps:
            assert plugin.jobs is not None
            if plugin.jobs.at_once(self._state_of(plugin)):
                return True
        return False

    def together(self, view: PodView) -> bool:
        """Whether a pod goes with others or not at all, so that nobody is displaced for it alone."""
        for _, plugin in self._steps:
            assert plugin.jobs is not None
            if plugin.jobs.together(self._state_of(plugin), view):
                return True
        return False
