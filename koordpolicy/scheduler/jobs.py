"""The plugins that look after pods that go together: they hear of pods, and say who is tried next.

Where a profile has no such plugin, nothing of this is asked.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from functools import partial
from typing import Any

from koordpolicy.cluster.pods import PodView
from koordpolicy.model.pod import PodKey
from koordpolicy.model.reading import NO_TEXT
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.decision import PodDecision, Refusals
from koordpolicy.scheduler.plugins import Plugin
from koordpolicy.scheduler.plugins.base import JobRoom, Jobs
from koordpolicy.scheduler.profile import Profile
from koordpolicy.scheduler.step import Step

StateOf = Callable[[Plugin], Any]


class JobPlugins:
    """Those of one scheduler. `present` says whether there are any.

    `state_of` gives the state of a plugin.
    """

    def __init__(self, state_of: StateOf) -> None:
        self._state_of = state_of
        self._steps: tuple[tuple[Step, Jobs, Any], ...] = ()
        self._concerned: tuple[Callable[[PodView], bool], ...] = ()
        self.open: Callable[[], bool] = bool
        """Whether anybody may be tried before the queue's first: asked twice of each decision."""
        self.at_once: Callable[[], bool] = bool
        """Whether the pods that are tried next are to be decided on in the same step."""
        self.present = False

    def begin(self, profile: Profile) -> None:
        """Ask the plugins of a profile from now on."""
        found = [(step, step.plugin) for step in profile.filters if step.plugin is not None]
        self._steps = tuple(
            (step, one.jobs, self._state_of(one)) for step, one in found if one.jobs is not None and step.ever
        )
        opens = [partial(jobs.open, state) for _, jobs, state in self._steps]
        self.open = opens[0] if len(opens) == 1 else lambda: any(one() for one in opens)
        decides = [partial(jobs.at_once, state) for _, jobs, state in self._steps]
        self.at_once = decides[0] if len(decides) == 1 else lambda: any(one() for one in decides)
        self.present = bool(self._steps)
        self._concerned = tuple(
            partial(step.plugin.concerned, state) if step.plugin and step.plugin.concerned else _every
            for step, _, state in self._steps
        )
        for _, jobs, state in self._steps:
            jobs.renewed(state)

    def names(self) -> frozenset[str]:
        """Their filters."""
        return frozenset(step.name for step, *_ in self._steps)

    def states(self) -> list[Any]:
        """Their states."""
        return [state for *_, state in self._steps]

    # --- pods come and go ---------------------------------------------------------------------------

    def came(self, view: PodView, node: str) -> None:
        """A pod is there or has changed, with its node; empty for none."""
        for _, jobs, state in self._steps:
            jobs.came(state, view, node)

    def went(self, key: PodKey) -> None:
        """A pod is gone, or nobody is to place it."""
        for _, jobs, state in self._steps:
            jobs.went(state, key)

    def heard(self) -> None:
        """An object that jobs are declared by has changed."""
        for _, jobs, state in self._steps:
            jobs.heard(state)

    # --- cycles -------------------------------------------------------------------------------------

    def next(self, may: Callable[[PodKey], bool], due: Callable[[PodKey], bool]) -> PodKey | None:
        """The pod that is tried before the queue's first, if any: of those that `may` be tried, or that are `due`."""
        for _, jobs, state in self._steps:
            found = jobs.next(state, may, due)
            if found is not None:
                return found
        return None

    def concern(self, view: PodView) -> bool:
        """Whether a pod goes with others: nothing else of this part is asked of one that does not. Raises what plugins raise."""
        for concerned in self._concerned:  # noqa: SIM110  # a generator takes longer, and this is asked of every pod
            if concerned(view):
                return True
        return False

    def begin_cycle(self, cycle: Cycle, nodes: Sized) -> Refusals | None:
        """Who does not have a pod tried now that has its turn, of these nodes. Raises CycleProblem."""
        for step, jobs, state in self._steps:
            try:
                if not step.always and step.enabled.value(cycle.records) is False:
                    continue
                said = jobs.begin(state, cycle.view)
            except Exception as problem:
                raise CycleProblem.of(problem, step) from problem
            if said is not None:
                return Refusals(said.filter or step.name, said.reason, len(nodes), resolvable=False)
        return None

    def failed(self, view: PodView, decision: PodDecision) -> None:
        """A pod found no node, or was not tried."""
        for _, jobs, state in self._steps:
            jobs.failed(state, view, decision)

    def together(self, view: PodView) -> bool:
        """Whether a pod goes with others or not at all, so that nobody is displaced for it alone."""
        return any(jobs.together(state, view) for _, jobs, state in self._steps)

    def company(self, view: PodView) -> Sequence[PodView]:
        """The pods without a node that go with one or not at all."""
        return [one for _, jobs, state in self._steps for one in jobs.company(state, view)]

    def annotations(self, key: PodKey) -> Mapping[str, str]:
        """What is written into the annotations of a pod when it is bound."""
        for _, jobs, state in self._steps:
            found: Mapping[str, str] = jobs.annotations(state, key)
            if found:
                return found
        return NO_TEXT

    def make_room(self, cycle: Cycle) -> JobRoom | None:
        """Who goes for such a pod, that found no node, and for those it goes with; None where nothing is to be said of that.

        Raises CycleProblem.
        """
        for step, jobs, state in self._steps:
            try:
                found = jobs.make_room(state, cycle.view)
            except Exception as problem:
                raise CycleProblem.of(problem, step) from problem
            if found is not None:
                return found
        return None


def _every(_view: PodView) -> bool:
    """A plugin that does not say whom it concerns is asked of every pod."""
    return True
