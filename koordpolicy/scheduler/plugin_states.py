"""Between the choice of a node and the binding: what plugins take for a pod there, and whether they permit it.

Each plugin has one state for a scheduler, made when it is first needed; it outlives revisions, as the ledger does.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.graph import RuleGraph
from koordpolicy.model.pod import PodKey
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.decision import Refusals
from koordpolicy.scheduler.filter_run import CycleFilters
from koordpolicy.scheduler.framework import Framework
from koordpolicy.scheduler.jobs import JobPlugins
from koordpolicy.scheduler.ledger import Account, Claim, Ledger, Stage, Undo
from koordpolicy.scheduler.plugins import Plugin
from koordpolicy.scheduler.plugins.base import Refusal, Wait
from koordpolicy.scheduler.profile import Profile
from koordpolicy.scheduler.step import Step

Reconsider = Callable[[Collection[str], Sequence[PodKey]], None]
"""Has some filters asked again about pods; all pods that they hold up where none is named."""


class PermitAnswer(NamedTuple):
    """Who refuses a pod, and until when it waits otherwise (None: it need not). `unheard` as of `Refusal`."""

    refused: Refusals | None = None
    until: int | None = None
    unheard: bool = False


class PluginHost:
    """What the state of one plugin knows of its scheduler."""

    __slots__ = ("_plugin", "_states")

    def __init__(self, states: "PluginStates", plugin: Plugin) -> None:
        self._states = states
        self._plugin = plugin

    @property
    def cluster(self) -> ClusterState:
        """What there is in the cluster beside nodes, as it is now."""
        return self._states.cluster

    @property
    def graph(self) -> RuleGraph:
        """What policy says now."""
        return self._states.graph

    @property
    def cache(self) -> ClusterCache:
        """The nodes with the pods on them; changed in trials alone."""
        return self._states.framework().cache

    def filters(self, view: PodView, /) -> CycleFilters:
        """The filters as they are asked about a pod now."""
        return self._states.framework().filters(view)

    def now(self) -> int:
        """The time in nanoseconds since 1970."""
        return self._states.clock()

    @property
    def promises(self) -> Ledger:
        """Who waits for which node."""
        return self._states.ledger

    def release(self, *pods: PodKey) -> None:
        """No node is promised to these pods any more."""
        self._states.release(pods)

    def permit(self, *pods: PodKey) -> None:
        """The plugin permits these pods that it let wait."""
        self._states.permitted(self._states.names(self._plugin), pods)

    def has_turn(self, pod: PodKey) -> bool:
        """Whether a pod is to be tried yet, at once or after its back-off, whatever happens."""
        return self._states.has_turn(pod)

    def reconsider(self, *pods: PodKey) -> None:
        """Ask again about these pods (none named: all) that the plugin lets wait, or that it refused."""
        self._states.reconsider(self._states.names(self._plugin), pods)


class Part(NamedTuple):
    """A filter whose plugin has something to say here, with the plugin's state and whom it `concerns` (None: every pod). `undo` and
    `redo` of the plugin are bound to its state once, since each claim has them.
    """

    step: Step
    plugin: Plugin
    state: Any
    concerns: Callable[[PodView], bool] | None
    undo: Undo
    redo: Undo | None

    @classmethod
    def of(cls, step: Step, plugin: Plugin, state: Any) -> "Part":
        return cls(
            step,
            plugin,
            state,
            _concerns(plugin, state),
            _nothing if plugin.undo is None else partial(plugin.undo, state),
            None if plugin.redo is None else partial(plugin.redo, state),
        )

    def claim(self, data: object) -> Claim:
        """What the plugin has taken for a pod."""
        plugin = self.plugin
        prebind = plugin.prebind
        if prebind is not None and (plugin.writes is None or plugin.writes(data)):
            prebind = partial(prebind, self.state, data)
        else:
            prebind = None
        said = None if plugin.annotates is None else plugin.annotates(data)
        return Claim(
            self.step.name, data, self.undo, prebind, plugin.adopt is not None, self.redo, annotations=said
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """The filters of a profile, and those that have something to say here."""

    steps: tuple[Step, ...] = ()
    parts: tuple[Part, ...] = ()
    """Those that reserve or permit."""
    permitting: tuple[Part, ...] = ()
    names: frozenset[str] = frozenset()
    """The names of those that permit."""
    events: frozenset[Event] = frozenset()
    _of_ordinary: dict[int, tuple[Part, ...]] = field(default_factory=dict)

    def asked_of(self, view: PodView, cluster: ClusterState) -> tuple[Part, ...]:
        """Those that may reserve for a pod or permit it: of ordinary ones few, which are found once for all that may be there."""
        if not view.ordinary:
            return self.parts
        present = cluster.present_for(view)
        found = self._of_ordinary.get(present)
        if found is None:
            found = self._of_ordinary[present] = tuple(
                one for one in self.parts if one.plugin.may_concern_ordinary(present)
            )
        return found

    @classmethod
    def of(cls, profile: Profile, parts: Sequence[Part]) -> "_Asked":
        permitting = tuple(one for one in parts if one.plugin.permit is not None)
        return cls(
            profile.filters,
            tuple(
                one for one in parts if one.plugin.reserve or one.plugin.reserve_anywhere or one.plugin.permit
            ),
            permitting,
            frozenset(one.step.name for one in permitting),
            frozenset().union(*(one.plugin.helped_by for one in permitting)),
        )


class PluginStates:
    """The plugins of one scheduler that reserve or permit, with their states."""

    def __init__(
        self,
        ledger: Ledger,
        framework: Callable[[], Framework],
        clock: Callable[[], int],
        reconsider: Reconsider,
        release: Callable[[Sequence[PodKey]], None],
        has_turn: Callable[[PodKey], bool],
        permitted: Reconsider,
    ) -> None:
        self.ledger = ledger
        self.release = release
        self.has_turn = has_turn
        self.framework = framework
        self.clock = clock
        self.reconsider = reconsider
        self.permitted = permitted
        self.gate_events: frozenset[Event] = frozenset()
        """The events after which a gate may be open."""
        self.graph: RuleGraph
        self.cluster: ClusterState
        """What policy says, and what there is beside nodes; from `begin` on."""
        self._states: dict[int, tuple[Plugin, Any]] = {}
        """By the identity of the plugin, which is kept beside: hashing all that it may be takes longer than asking it."""
        self._asked = _Asked()
        self._ahead: tuple[Profile, _Asked] | None = None
        self._adopting: tuple[Part, ...] = ()
        self._gating: tuple[Part, ...] = ()
        self._gating_again: tuple[Part, ...] = ()
        self.jobs = JobPlugins(self._state)
        self._settling: tuple[Part, ...] = ()

    def begin(self, framework: Framework) -> None:
        """Ask the plugins of its profile from now on."""
        self.graph, self.cluster, profile = framework.graph, framework.cache.state, framework.profile
        parts = self._parts(profile)
        self._asked = _Asked.of(profile, parts)
        self._gating = tuple(one for one in parts if one.plugin.gate is not None)
        self._gating_again = tuple(one for one in self._gating if one.plugin.settle is not None)
        self.gate_events = frozenset().union(
            *(one.plugin.helped_by for one in self._gating if one.plugin.settle is None)
        )
        self._settling = tuple(one for one in parts if one.plugin.settle is not None)
        self._adopting = tuple(one for one in parts if one.plugin.adopt is not None)
        self.jobs.begin(profile)

    def go_along(self, profile: Profile | None) -> None:
        """Ask those of another profile about the pods that it places; None for no more."""
        self._ahead = None if profile is None else (profile, _Asked.of(profile, self._parts(profile)))

    def _parts(self, profile: Profile) -> Sequence[Part]:
        return [
            Part.of(step, one, self._state(one))
            for step in profile.filters
            if (one := step.plugin) is not None
            and (one.gate or one.reserve or one.reserve_anywhere or one.permit or one.adopt or one.settle)
        ]

    @property
    def events(self) -> frozenset[Event]:
        """The events after which a pod that waits may be permitted."""
        return self._asked.events if self._ahead is None else self._asked.events | self._ahead[1].events

    def names(self, plugin: Plugin) -> frozenset[str]:
        """The filters that are this plugin."""
        steps = self._asked.steps if self._ahead is None else (*self._asked.steps, *self._ahead[1].steps)
        return frozenset(step.name for step in steps if step.plugin is plugin)

    def _of(self, cycle: Cycle) -> _Asked:
        ahead = self._ahead
        return ahead[1] if ahead is not None and cycle.profile is ahead[0] else self._asked

    # --- gates ------------------------------------------------------------------------------------

    def gates(self, view: PodView, *, again: bool = False) -> Sequence[Part]:
        """The gates that there are for a pod.

        `again` means those alone that may be closed for it by the time that it is taken from the queue. Raises CycleProblem.
        """
        found: Sequence[Part] = ()
        for part in self._gating_again if again else self._gating:
            try:
                if part.concerns is None or part.concerns(view):
                    found = (*found, part)
            except Exception as problem:
                raise CycleProblem.of(problem, part.step) from problem
        return found

    def settle(self) -> bool:
        """Let plugins see to whom they keep waiting; whether one of them is not done yet."""
        more = False
        for part in self._settling:
            assert part.plugin.settle is not None
            more |= part.plugin.settle(part.state)
        return more

    def gate(self, view: PodView, gates: Sequence[Part]) -> Refusals | None:
        """Whose gate of these is closed for a pod, if any. Raises CycleProblem.

        The facts of a cycle are collected only where policy reads any: most gates ask about the pod alone.
        """
        cycle: Cycle | None = None
        for step, plugin, state, *_ in gates:
            assert plugin.gate is not None
            try:
                values = step.fixed if step.always else None
                if values is None:
                    cycle = cycle or self.framework().cycle(view)
                    if not step.always and step.enabled.value(cycle.records) is False:
                        continue
                    values = step.values(cycle.records)
                said = plugin.gate(state, view, values)
            except Exception as problem:
                raise CycleProblem.of(problem, step) from problem
            if said is not None:
                return Refusals(step.name, said.reason, 0)
        return None

    # --- reserve ----------------------------------------------------------------------------------

    def concerned(self, cycle: Cycle) -> Sequence[Part]:
        """Those that reserve for a pod, or permit it. Raises CycleProblem."""
        return _concerned(cycle, self._of(cycle).asked_of(cycle.view, self.cluster))

    def reserve(
        self, cycle: Cycle, table: NodeTable, account: Account, parts: Sequence[Part]
    ) -> Refusals | None:
        """Take what a pod needs on its node; who of these refuses it there, if anyone does. Raises CycleProblem.

        What was taken before a refusal or an error stands in the account.
        """
        nodes: NodeView | None = None
        for part in parts:
            step, plugin, state = part.step, part.plugin, part.state
            try:
                if plugin.reserve is not None:
                    if nodes is None:
                        nodes = NodeView(table, np.array([table.index(account.node)]), cycle.state)
                    found = plugin.reserve(state, cycle.view, nodes, step.values(cycle.records))
                elif plugin.reserve_anywhere is not None:
                    found = plugin.reserve_anywhere(state, cycle.view)
                else:
                    continue
            except Exception as problem:
                raise CycleProblem.of(problem, step) from problem
            if isinstance(found, Refusal):
                return Refusals(step.name, found.reason, 1)
            if found is not None:
                self.ledger.claim(account, part.claim(found))
        return None

    def adopt(self, account: Account) -> None:
        """Take what a pod that is on its node already holds there, but for what is claimed. Raises what plugins raise."""
        known, view = {claim.owner for claim in account.claims}, account.view
        for part in self._adopting:
            plugin, concerns = part.plugin, part.concerns
            if part.step.name not in known and (concerns is None or concerns(view)):
                assert plugin.adopt is not None
                found = plugin.adopt(part.state, view, account.node)
                if found is not None:
                    self.ledger.claim(account, part.claim(found))

    @property
    def adopts(self) -> bool:
        """Whether a plugin wants to know of pods that are on nodes."""
        return bool(self._adopting)

    # --- permit -----------------------------------------------------------------------------------

    def permit(self, cycle: Cycle, account: Account, parts: Sequence[Part]) -> PermitAnswer:
        """Ask these whether a pod may go to its node. Raises CycleProblem."""
        until = account.until if account.stage == Stage.WAITING else None
        for part in parts:
            step, plugin, state = part.step, part.plugin, part.state
            if plugin.permit is None:
                continue
            try:
                said = plugin.permit(state, cycle.view, account.node, step.values(cycle.records))
            except Exception as problem:
                raise CycleProblem.of(problem, step) from problem
            if isinstance(said, Refusal):
                return PermitAnswer(Refusals(step.name, said.reason, 1), unheard=said.unheard)
            if isinstance(said, Wait):
                self.ledger.permit(account, step.name, said.reason)
                until = said.until if until is None else min(until, said.until)
            else:
                self.ledger.permit(account, step.name, None)
        if account.permits:
            for name in account.permits.keys() - self._of(cycle).names:
                self.ledger.permit(account, name, None)  # another revision has no such filter
        return PermitAnswer(until=until if account.permits else None)

    def permit_again(self, cycle: Cycle, account: Account, names: Collection[str]) -> PermitAnswer:
        """Ask those that have these names, of those that a pod waits for. Raises CycleProblem."""
        asked = [
            part
            for part in _concerned(cycle, self._of(cycle).permitting)
            if part.step.name in names and part.step.name in account.permits
        ]
        return self.permit(cycle, account, asked)

    # --- states -----------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """What is shown of the plugins' states, by filter."""
        shown = {
            step.name: step.plugin.status(self._state(step.plugin))
            for step in self._asked.steps
            if step.plugin is not None and step.plugin.status is not None
        }
        return {name: one for name, one in shown.items() if one is not None}

    def _state(self, plugin: Plugin) -> Any:
        known = self._states.get(id(plugin))
        if known is None:
            made = None if plugin.state is None else plugin.state(PluginHost(self, plugin))
            known = self._states[id(plugin)] = plugin, made
        return known[1]


def _concerns(plugin: Plugin, state: Any) -> Callable[[PodView], bool] | None:
    """Of which pods a plugin is asked at all; None for all."""
    by_pod, by_state = plugin.concerns, plugin.concerned
    if by_state is None:
        return by_pod
    asked = partial(by_state, state)
    return asked if by_pod is None else lambda view: by_pod(view) and asked(view)


def _concerned(cycle: Cycle, parts: Sequence[Part]) -> list[Part]:
    """Those that a pod concerns. Raises CycleProblem."""
    found = []
    for part in parts:
        step, concerns = part.step, part.concerns
        try:
            if (concerns is None or concerns(cycle.view)) and (
                step.always or step.enabled.value(cycle.records) is not False
            ):
                found.append(part)
        except Exception as problem:
            raise CycleProblem.of(problem, step) from problem
    return found


def _nothing(_data: object) -> None:
    """There is nothing to give back."""


def claims_of(account: Account) -> Mapping[str, object]:
    """What plugins have taken, by filter."""
    return {claim.owner: claim.data for claim in account.claims if claim.owner}
