"""Which policies the agents of a real cluster run, in the status of PolicyRevision objects. The leader writes it.

Each agent says it on the NodeMetric object of its own node, which the manager watches anyway. So that thousands of agents that
change at once make a few writes, they are counted now and then, and only sums that changed are written.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.kube.errors import KubeError, NotFound
from koordpolicy.kube.mirror import Mirror, ObjectChange
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import POLICY_REVISIONS
from koordpolicy.language.cel.errors import CelError
from koordpolicy.manager.controllers.agent_sum import (
    KIND,
    AgentSighting,
    HeldSum,
    SummaryPace,
    added_up,
    summary_pace,
)
from koordpolicy.model.agent_runs import AgentRuns, read_agent_runs
from koordpolicy.model.policy_revision import (
    NO_AGENTS,
    LaggingState,
    RevisionAgents,
    agents_of,
    agents_to_json,
    revision_name,
)
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.policies.published import POINTER
from koordpolicy.runtime.reports.revision_objects import has_conditions, regarding
from koordpolicy.runtime.reports.status_patches import apply_status

LOG: Final = logging.getLogger(__name__)

MANAGER: Final = "koordpolicy-agents"
"""The field manager of the sums: one name, so that who leads next can take them back."""
_METRIC: Final = "koordpolicy_agents"
_WRITES: Final = "koordpolicy_policy_status_writes_total"
_SHORTEST: Final = 1.0
_RETRY: Final = 30.0
"""Seconds until policies are asked again that had no answer."""


class AgentSums:
    """Every replica hears of the objects, `known`; the leader counts and writes.

    `published` gives the objects of revisions by the digests of the parts that agents were given of them.
    """

    def __init__(
        self,
        component: RunningComponent,
        objects: ClusterObjects,
        known: Mirror,
        published: Callable[[], Mapping[str, str]],
    ) -> None:
        self._component = component
        self._objects = objects
        self._published = published
        self._runs: dict[str, AgentRuns | Unreadable] = {}
        self.sums: Mapping[str, RevisionAgents] = {}
        """What was counted last, by the names of objects."""
        self._failing = False
        known.follow(self._heard)

    def _heard(self, change: ObjectChange) -> None:
        name = change.key[1]
        runs = None if change.new is None else readable(read_agent_runs, change.new)
        if runs is None:
            self._runs.pop(name, None)
        else:
            self._runs[name] = runs

    async def lead(self) -> None:
        """Count and write, until cancelled. The copy has to be there."""
        try:
            while True:
                pause = await self._round()
                await asyncio.sleep(pause)
        finally:
            self.sums = {}
            self._component.process.metrics.clear(_METRIC)

    async def _round(self) -> float:
        """Count once; in how many seconds again."""
        graph = self._component.live.graph
        try:
            pace = summary_pace(graph)
        except CelError as error:
            self._component.troubles.add(KIND, graph.digest, str(error))
            return _RETRY
        try:
            await self.write(pace)
        except KubeError as error:
            if not self._failing:
                LOG.warning("what agents run cannot be told: %s", error)
            self._failing = True
            self._component.process.metrics.add(_WRITES, kind=POLICY_REVISIONS.kind, result="failed")
        else:
            self._failing = False
        return max(pace.every / NANOSECONDS, _SHORTEST)

    async def write(self, pace: SummaryPace) -> int:
        """Write what differs; how many objects that were. Raises KubeError."""
        active = self._component.live.active
        if active is None:
            return 0
        name = revision_name(active.bundle, active.revision.commit or active.revision.digest)
        listed = (await self._component.cluster.list(POLICY_REVISIONS)).items
        names = {called: str(obj["metadata"]["name"]) for obj in listed for called in _calls(obj)}
        names |= self._published()
        held = self._held()
        self.sums = added_up(self._sightings(held), names, name, pace, now_ns(), held)
        self._show(self.sums.get(name, NO_AGENTS))
        return sum([await self._write(obj) for obj in listed])

    def _held(self) -> HeldSum | None:
        """The revision that a rollout lets some nodes have."""
        candidate, stage = self._component.live.candidate, self._component.live.stage
        if candidate is None or stage is None or stage.reach is None:
            return None
        revision = candidate.revision
        return HeldSum(revision_name(candidate.bundle, revision.commit or revision.digest), stage.reach.step)

    def _sightings(self, held: HeldSum | None) -> Iterator[AgentSighting]:
        stage = self._component.live.stage
        ahead = None if held is None or stage is None else stage.nodes
        # Where agents are given nothing else than they have, they have nothing to take.
        given = held is not None and held.name in self._published().values()
        for node, runs in self._runs.items():
            sight = self._objects.sight(node)
            if sight is not None:  # else the node is gone, and soon its report
                due = (
                    ahead is not None
                    and (given or not _is_given(runs))
                    and ahead(node, self._objects.nodes[node].labels)
                )
                reported = None if sight.metric is None else sight.metric.updated_at
                yield AgentSighting(node, runs, reported, due)

    async def _write(self, obj: Object) -> bool:
        """Write the sum of one revision where it says something else; whether it did."""
        name = str(obj["metadata"]["name"])
        wanted = self.sums.get(name, NO_AGENTS)
        standing = readable(agents_of, obj.get("status") or {})
        if standing == wanted or not has_conditions(obj):
            return False
        told = agents_to_json(wanted)
        try:
            await apply_status(
                self._component.cluster, POLICY_REVISIONS, name, {"agents": told} if told else {}, MANAGER
            )
        except NotFound:
            return False
        self._component.process.metrics.add(_WRITES, kind=POLICY_REVISIONS.kind, result="written")
        before = standing.rejected if isinstance(standing, RevisionAgents) else 0
        if wanted.rejected and not before:
            self._tell(obj, wanted)
        return True

    def _tell(self, obj: Object, agents: RevisionAgents) -> None:
        metadata = obj["metadata"]
        first = next(
            (f": {one.node}: {one.message}" for one in agents.lagging if one.state is LaggingState.REJECTED),
            "",
        )
        self._component.recorder.record(
            regarding(str(metadata["name"]), metadata.get("uid", "")),
            "AgentsReject",
            f"{agents.rejected} {'agent' if agents.rejected == 1 else 'agents'} cannot take the revision{first}",
            type="Warning",
            action="Reject",
        )

    def _show(self, agents: RevisionAgents) -> None:
        metrics = self._component.process.metrics
        for state, number in _by_state(agents).items():
            metrics.set(_METRIC, number, state=state)

    def status(self) -> Mapping[str, Any]:
        """What `/statusz` shows."""
        return {
            "agents": {name: _by_state(one) | {"total": one.total} for name, one in sorted(self.sums.items())}
        }


def _by_state(agents: RevisionAgents) -> dict[str, Any]:
    return {
        "running": agents.running,
        "rejected": agents.rejected,
        "behind": agents.behind,
        "silent": agents.silent,
    }


def _is_given(runs: AgentRuns | Unreadable) -> bool:
    """Whether an agent follows what a manager publishes, as far as it can be told."""
    return isinstance(runs, Unreadable) or runs.origin.endswith(f"/{POINTER}")


def _calls(obj: Object) -> Iterator[str]:
    """What agents call the revision of an object: its commit, or its digest."""
    spec = obj.get("spec") or {}
    if spec.get("commit"):
        yield str(spec["commit"])
    if spec.get("digest"):
        yield f"sha256:{spec['digest']}"
