"""The controller of nodes' resources: node after node, from what is known to what is written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from koordpolicy.algorithms.hysteresis import WELL, Standing
from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.errors import NotFound
from koordpolicy.kube.port import Cluster, MergePatch
from koordpolicy.kube.resources import Resource
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.controllers import amplification, device_resources, node_reservation
from koordpolicy.manager.controllers.formula_versions import FormulaVersions
from koordpolicy.manager.controllers.node_change import NodeChange, NodePolicy, to_write, together
from koordpolicy.manager.controllers.node_plan import NodePlan, plan_node
from koordpolicy.manager.controllers.overcommit import KIND, Calculation, calculate, reads_cluster
from koordpolicy.model.facts import Record
from koordpolicy.model.protocol import ABNORMAL
from koordpolicy.model.time import NANOSECONDS

NODE_POLICIES: Final[Mapping[str, NodePolicy]] = MappingProxyType(
    {
        device_resources.KIND: device_resources.devices_of,
        amplification.KIND: amplification.ratios_of,
        node_reservation.KIND: node_reservation.reservation_of,
    }
)
"""What is decided of a node beside overcommitted resources, by kind."""


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One request that carries out a part of a plan."""

    resource: Resource
    name: str
    patch: MergePatch
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What was decided about one node."""

    node: str
    calculations: Sequence[Calculation]
    plan: NodePlan
    changes: Mapping[str, NodeChange] = field(default_factory=dict)
    """What kinds want of the node beside that."""
    formulas: str = ""
    """By which formulas, see `FormulaVersions`."""

    @property
    def turns_in(self) -> float | None:
        """Seconds until the node counts otherwise if nothing happens: when to look again."""
        waits = [one.turns_in for one in self.calculations if one.turns_in is not None]
        return min(waits) / NANOSECONDS if waits else None

    @property
    def writes(self) -> tuple[PlannedWrite, ...]:
        """The requests, in order; none when everything is as it should be."""
        plan, change = self.plan, together(self.changes)
        whole = replace(
            change,
            annotations={**change.annotations, **plan.annotations},
            resources={**change.resources, **plan.resources},
        )
        writes = []
        if plan.zones is not None:
            zones = MergePatch({"zones": list(plan.zones)})
            writes.append(PlannedWrite(resources.NODE_RESOURCE_TOPOLOGIES, self.node, zones))
        if whole.status_patch:
            # Annotations and labels may go with a node's status, as kubelets send them: one request, one event for all who watch.
            patch = MergePatch({**whole.metadata_patch, **whole.status_patch})
            writes.append(PlannedWrite(resources.NODES, self.node, patch, "status"))
        elif whole.metadata_patch:
            writes.append(PlannedWrite(resources.NODES, self.node, MergePatch(whole.metadata_patch)))
        return tuple(writes)


Choose = Callable[[str, Mapping[str, str]], RuleGraph]
"""The graph that decides about a node, by its name and labels: during a rollout some are ahead."""

Heard = Callable[[RuleGraph, Record, Sequence[Calculation]], None]
"""Told of every decision: the graph that was asked, the node's facts, and what came of it."""


def _unheard(graph: RuleGraph, record: Record, calculations: Sequence[Calculation]) -> None:
    """Nobody listens."""


Told = Callable[[RuleGraph, str, Mapping[str, NodeChange]], None]
"""Told of what other kinds want of a node, with the graph that was asked and the node's name."""


def _untold(graph: RuleGraph, node: str, changes: Mapping[str, NodeChange]) -> None:
    """Nobody listens."""


def _nobody(node: str) -> None:
    """Nobody looks again."""


@dataclass(slots=True)
class OvercommitController:
    """Decides for each node, from the cluster's objects, by the graph that `policies` gives for it.

    `now` is nanoseconds since 1970, `clock` nanoseconds of a clock that nobody sets, None for `now`. `heard` and `told` are told of every decision. It remembers when it settled a node
    last, and by which formulas: a new process settles each once, and so do policies that say something else. How nodes count, abnormal or well, stands in their annotations as well: who leads
    anew goes by these, and lets what speaks for another state begin anew, so that no abnormal node is well too early.
    """

    policies: Choose
    objects: ClusterObjects
    now: Callable[[], int]
    heard: Heard = _unheard
    told: Told = _untold
    clock: Callable[[], int] | None = None
    _standing: dict[str, dict[str, Standing]] = field(default_factory=dict)
    _settled: dict[str, tuple[int, str]] = field(default_factory=dict)
    """When each node was settled, and by which of `_formulas`."""
    _formulas: FormulaVersions = field(default_factory=FormulaVersions)
    _written: dict[str, str] = field(default_factory=dict)
    _writing: dict[str, set[str]] = field(default_factory=dict)
    """Versions of nodes heard of while a write was under way."""

    def decide(self, name: str) -> Reconciliation | None:
        """What is to be written for a node; None when there is no such node, or none that can be read."""
        sight = self.objects.sight(name)
        if sight is None:
            for known in (self._settled, self._written, self._standing):
                known.pop(name, None)
            return None
        graph, now = self.policies(name, sight.node.labels), self.now()
        record = node_record(sight, graph.catalogue, TIMES, now)
        cluster = self.cluster_of(graph)
        calculations = self._calculations(graph, sight, record, now, cluster)
        self.heard(graph, record, calculations)
        topology = self.objects.state.zones[name].raw if sight.zones else None
        settled, version = self._settled.get(name), self._formulas.of(graph)
        # However little changes by a commit, whoever made it is to see it.
        written = None if settled is None or settled[1] != version else settled[0]
        plan = plan_node(graph, sight.node, record, calculations, topology, written, now, cluster)
        changes = {
            kind: _change(policy, graph, sight, record, now)
            for kind, policy in NODE_POLICIES.items()
            if graph.subjects(kind)
        }
        self.told(graph, name, changes)
        abnormal = ",".join(sorted(self.abnormal(name)))
        marked = NodeChange(to_write(sight.node.annotations, {ABNORMAL: abnormal or None}))
        return Reconciliation(name, calculations, plan, {**changes, KIND: marked}, version)

    def _calculations(
        self, graph: RuleGraph, sight: NodeSight, record: Record, now: int, cluster: Record
    ) -> Sequence[Calculation]:
        """What each resource comes to, by how the node counted so far."""
        name = sight.node.name
        before = self._standing.get(name)
        if before is None:
            said = sight.node.annotations.get(ABNORMAL, "").split(",")
            before = {resource: Standing(resource in said) for resource in graph.subjects(KIND)}
        clock = now if self.clock is None else self.clock()
        found = [
            calculate(graph, resource, record, now, cluster, before.get(resource, WELL), clock)
            for resource in graph.subjects(KIND)
        ]
        self._standing[name] = {one.resource: one.standing for one in found if one.standing is not None}
        return found

    def abnormal(self, name: str) -> Sequence[str]:
        """The resources for which a node counts as abnormal."""
        return [resource for resource, one in self._standing.get(name, {}).items() if one.abnormal]

    def begin(self) -> None:
        """We lead from now on: how nodes count, others may have decided since we knew."""
        self._standing.clear()

    def cluster_of(self, graph: RuleGraph) -> Record:
        """The record `cluster`, as far as the policies of a graph read it."""
        return self.objects.cluster_facts() if reads_cluster(graph) else {}

    def done(self, decided: Reconciliation) -> None:
        """Note that the writes of a decision were carried out."""
        if decided.plan.settles:
            self._settled[decided.node] = self.now(), decided.formulas

    def settled_at(self, name: str) -> int | None:
        """When a node was settled last, in nanoseconds since 1970; None for never."""
        settled = self._settled.get(name)
        return None if settled is None else settled[0]

    def note_settled(self, name: str) -> None:
        """Note that a node offers what the formulas that settled it before come to now."""
        self._settled[name] = self.now(), self._settled[name][1]

    def is_own(self, name: str, version: str) -> bool:
        """Whether a version of a node is what we made of it by amounts alone, so that there is nothing to look at.

        Where other kinds wrote, too, there is: some of them go by what their own annotations say. One that is heard of while we write counts as ours until the write's answer says which is: see `others`.
        """
        under_way = self._writing.get(name)
        if under_way is not None:
            under_way.add(version)
            return True
        return self._written.get(name) == version

    async def reconcile(
        self, cluster: Cluster, name: str, others: Callable[[str], None] = _nobody
    ) -> Reconciliation | None:
        """Decide for a node and write what differs. Raises KubeError; nothing is noted then.

        `others` is told of the node where somebody else has changed it while we wrote.
        """
        decided = self.decide(name)
        if decided is None:
            return None
        heard: set[str] = set()
        others_wrote = any(one.changes_anything for one in decided.changes.values())
        try:
            for write in decided.writes:
                if write.resource is resources.NODES:
                    self._writing[name] = heard
                stored = await cluster.patch(
                    write.resource, write.name, write.patch, subresource=write.subresource
                )
                if write.resource is resources.NODES and not others_wrote:
                    self._written[name] = str(stored["metadata"]["resourceVersion"])
        except NotFound:
            return decided  # gone in the meantime; its deletion is on the way to us
        finally:
            self._writing.pop(name, None)
            if heard - {self._written.get(name)}:
                others(name)
        self.done(decided)
        return decided


def _change(policy: NodePolicy, graph: RuleGraph, sight: NodeSight, record: Record, now: int) -> NodeChange:
    try:
        return policy(graph, sight, record, now)
    except CelError as error:
        return NodeChange(problems=(str(error),))
