"""How koordpolicy fares in a cluster, made of the objects that its processes leave there.

Nothing is judged by a number of our own: how old a report is, or how much is lent, is said, and people know what they wanted.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from koordpolicy.algorithms.pod_request import effective_requests
from koordpolicy.cli.statuses.waiting import Waiting, waiting_pods
from koordpolicy.model.agent_runs import AgentRuns, read_agent_runs, read_dry_run
from koordpolicy.model.metric import NodeMetric, read_best_effort_cpu, read_node_metric
from koordpolicy.model.node import Node, read_node
from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.model.policy_revision import InstanceState, PolicyRevision, StatusCondition, from_json
from koordpolicy.model.protocol import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY
from koordpolicy.model.reading import Amounts, Json, mapping, text, texts
from koordpolicy.model.third_party import third_party_allocations
from koordpolicy.model.time import parse_time
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.runtime.policies.revisions import Reason
from koordpolicy.runtime.reports.conditions import READY
from koordpolicy.runtime.reports.presence import COMPONENT, INSTANCE, LABEL, SOURCE_TROUBLE
from koordpolicy.runtime.rollout.state import WAITS, Phase

LENT: Final[Mapping[str, str]] = MappingProxyType(
    {BATCH_CPU: CPU, BATCH_MEMORY: MEMORY, MID_CPU: CPU, MID_MEMORY: MEMORY}
)
"""What nodes offer a second time, and what it is made of."""

_OURS: Final = "koordpolicy-"

_ENDED: Final = frozenset({Reason.ABORTED, Reason.GUARD_REFUSED})
"""Why a revision that each process could take does not decide."""

_MISSED: Final = 2
"""Intervals after which a report is missing for sure, wherever in its interval a node was last heard."""


@dataclass(frozen=True, slots=True)
class FoundRevision:
    """A revision and since when it is known, in nanoseconds since 1970."""

    revision: PolicyRevision
    created: int

    @property
    def ready(self) -> StatusCondition | None:
        """The condition that says whether it is in force."""
        return next((one for one in self.revision.status.conditions if one.type == READY), None)

    @property
    def refused(self) -> bool:
        """Whether it is not in force for a fault of its own, as far as anybody still follows it: who went back to another speaks of it no more."""
        ready = self.ready
        if ready is None or ready.status != "False" or ready.reason == "Superseded":
            return False
        agents = self.revision.status.agents
        return bool(self.revision.status.instances or agents.rejected)

    @property
    def in_force(self) -> bool:
        """Whether somebody says so."""
        return self.ready is not None and self.ready.status == "True"


@dataclass(frozen=True, slots=True)
class FoundProcess:
    """A process that holds a lease of its own. `renewed` as the lease says, in nanoseconds since 1970, None where it does not.

    `runs` is the revision that it decides by, "" where none names it; `rejects` one that it cannot take, `turned_back` one
    that its rollout ended, which is no fault of the process; `shadows` one whose answers it only compares, `canary` one that it
    decides by for a part, both at a step of a rollout; `leads` the leases that it holds as leader. `source_trouble` is why it has no new policies for now, "" where its source is well.
    """

    component: str
    instance: str
    renewed: int | None
    runs: str = ""
    rejects: str = ""
    turned_back: str = ""
    shadows: str = ""
    canary: str = ""
    leads: tuple[str, ...] = ()
    source_trouble: str = ""


@dataclass(frozen=True, slots=True)
class Lent:
    """What all nodes offer of a resource a second time: CPU in millicores, memory in bytes.

    `of` is the capacity that it is lent from; `requested` is what pods that are not over ask of it on their nodes.
    """

    resource: str
    of: int
    offered: int
    requested: int
    nodes: int


@dataclass(frozen=True, slots=True)
class KeptOutside:
    """What nodes keep from pods for a scheduler outside Kubernetes, such as `hadoop-yarn`: CPU in millicores, memory in bytes."""

    scheduler: str
    cpu: int
    memory: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Suppressed:
    """Nodes on which best-effort work may use less CPU than is offered there, in millicores summed over these nodes."""

    nodes: int = 0
    offered: int = 0
    allowed: int = 0
    told: int = 0
    """How many nodes say what best-effort work may use."""


@dataclass(frozen=True, slots=True)
class NodeReports:
    """Reports of nodes: how old they are, in nanoseconds, sorted; how many nodes have none; what is used of what those have that told it.

    `rehearsed` is how many of those without have an agent in a dry run, which reports nothing.
    `late` is how many nodes have missed a report: their last one is older than twice the interval that the manager has set for them.
    """

    nodes: int = 0
    ages: tuple[int, ...] = ()
    absent: int = 0
    rehearsed: int = 0
    late: int = 0
    used: Amounts = field(default_factory=dict)
    capacity: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """All of it. `absent` are resources that the cluster does not serve, `forbidden` those that may not be read, `unreadable` why objects were left out."""

    revisions: tuple[FoundRevision, ...] = ()
    processes: tuple[FoundProcess, ...] = ()
    reports: NodeReports = field(default_factory=NodeReports)
    lent: tuple[Lent, ...] = ()
    suppressed: Suppressed = field(default_factory=Suppressed)
    waiting: Waiting = field(default_factory=lambda: Waiting(0, 0, ()))
    agents: Mapping[str, int] = field(default_factory=dict)
    """How many agents decide by which revision; "" for none."""
    dry_runs: Mapping[str, int] = field(default_factory=dict)
    """How many agents only tell what they would do by which revision; "" for none."""
    kept_outside: tuple[KeptOutside, ...] = ()
    """By name of the scheduler."""
    absent: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    @property
    def troubles(self) -> tuple[str, ...]:
        """What somebody should look at, a sentence each."""
        return tuple(_troubles(self))


def _troubles(status: ClusterStatus) -> Iterator[str]:
    if not status.revisions and not status.absent:
        yield "no process has reported a revision of policies"
    elif status.revisions and not any(one.in_force for one in status.revisions):
        yield "no revision is in force"
    newest = next(iter(status.revisions), None)
    if newest is not None and newest.refused and newest.ready is not None:
        yield f"the newest revision of `{newest.revision.bundle}` is not in force: {newest.ready.reason}"
    for known in status.revisions:
        rollout = known.revision.status.rollout
        if rollout is not None and rollout.phase == Phase.PAUSED:
            name = known.revision.name
            why = f" ({rollout.message})" if rollout.message not in ("", WAITS) else ""
            yield f"rollout `{name}` waits to be resumed{why}: koordpolicy rollout resume {name}"
    for one in status.processes:
        if one.rejects:
            yield f"{one.component} {one.instance} cannot take revision {one.rejects}"
        if one.source_trouble:
            yield f"{one.component} {one.instance} gets no new policies: {one.source_trouble}"
    lagging = sum(one.revision.status.agents.rejected for one in status.revisions if one.in_force)
    if lagging:
        yield f"{lagging} agents cannot take the revision that is in force"
    if status.reports.nodes and status.reports.absent:
        rehearsed = status.reports.rehearsed
        why = f"; the agents of {rehearsed} are in a dry run, which reports nothing" if rehearsed else ""
        yield f"{status.reports.absent} of {status.reports.nodes} nodes do not report what they use{why}"
    if status.reports.late:
        yield (
            f"{status.reports.late} of {status.reports.nodes} nodes have missed a report: their last one is older than twice "
            "the interval of their NodeMetric"
        )


@dataclass(slots=True)
class _Reader:
    """Reads objects, and keeps why some were left out."""

    unreadable: list[str] = field(default_factory=list)

    def name(self, obj: Json) -> str:
        metadata = obj.get("metadata")
        return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""

    def left_out(self, kind: str, obj: Json, found: Unreadable) -> None:
        self.unreadable.append(f"{kind} `{self.name(obj)}`: {found.reason}")


def cluster_status(
    listed: Mapping[str, Sequence[Json]],
    now: int,
    *,
    absent: Sequence[str] = (),
    forbidden: Sequence[str] = (),
) -> ClusterStatus:
    """What the objects of a cluster say, by the plural of their resource; `now` in nanoseconds since 1970."""
    reader = _Reader()
    revisions = tuple(_revisions(listed.get("policyrevisions", ()), reader))
    nodes = dict(_nodes(listed.get("nodes", ()), reader))
    reports, suppressed, agents, dry_runs = _reports(listed.get("nodemetrics", ()), nodes, now, reader)
    pods = tuple(_pods(listed.get("pods", ()), reader))
    return ClusterStatus(
        revisions,
        tuple(_processes(listed.get("leases", ()), revisions, reader)),
        reports,
        tuple(_lent(nodes.values(), pods)),
        suppressed,
        waiting_pods(pods, now),
        agents,
        dry_runs,
        tuple(_kept_outside(nodes.values(), reader)),
        tuple(absent),
        tuple(forbidden),
        tuple(reader.unreadable),
    )


def _revisions(found: Iterable[Json], reader: _Reader) -> Iterator[FoundRevision]:
    """The newest first."""
    read: list[FoundRevision] = []
    for obj in found:
        revision = readable(from_json, obj)
        created = readable(_created, obj)
        if isinstance(revision, Unreadable):
            reader.left_out("PolicyRevision", obj, revision)
        elif isinstance(created, Unreadable):
            reader.left_out("PolicyRevision", obj, created)
        else:
            read.append(FoundRevision(revision, created))
    yield from sorted(read, key=lambda one: (-one.created, one.revision.name))


def _created(obj: Json) -> int:
    return parse_time(text(mapping(obj, "metadata"), "creationTimestamp", "metadata"))


def _processes(
    leases: Iterable[Json], revisions: Sequence[FoundRevision], reader: _Reader
) -> Iterator[FoundProcess]:
    """By component and instance. A process has one identity in all leases that it holds."""
    runs: dict[tuple[str, str], str] = {}
    rejects: dict[tuple[str, str], str] = {}
    turned_back: dict[tuple[str, str], str] = {}
    shadows: dict[tuple[str, str], str] = {}
    canary: dict[tuple[str, str], str] = {}
    for known in reversed(revisions):  # what the newest says of a process is what holds
        ended = known.ready is not None and known.ready.reason in _ENDED
        by_state = {
            InstanceState.ACTIVE: runs,
            InstanceState.REJECTED: turned_back if ended else rejects,
            InstanceState.SHADOW: shadows,
            InstanceState.CANARY: canary,
        }
        for one in known.revision.status.instances:
            by_state[one.state][one.component, one.name] = known.revision.revision
    members: list[_Held] = []
    leads: dict[str, list[str]] = defaultdict(list)
    for obj in leases:
        lease = readable(_lease, obj)
        if isinstance(lease, Unreadable):
            reader.left_out("Lease", obj, lease)
        elif lease is not None and lease.instance:
            members.append(lease)
        elif lease is not None:
            leads[lease.holder].append(lease.name)
    for member in sorted(members, key=lambda one: (one.component, one.instance)):
        key = (member.component, member.instance)
        led = tuple(sorted(leads.get(member.holder, ())))
        running, rejected, back, shadowed, tried = (
            table.get(key, "") for table in (runs, rejects, turned_back, shadows, canary)
        )
        yield FoundProcess(
            *key, member.renewed, running, rejected, back, shadowed, tried, led, member.source_trouble
        )


class _Held(NamedTuple):
    """A lease and its holder; of a process that is there, or, without `instance`, of a leader."""

    name: str
    holder: str
    renewed: int | None
    component: str = ""
    instance: str = ""
    source_trouble: str = ""


def _lease(obj: Json) -> _Held | None:
    """None where nobody holds it, or it is none of ours."""
    metadata, spec = mapping(obj, "metadata"), mapping(obj, "spec")
    name, holder = text(metadata, "name", "metadata"), text(spec, "holderIdentity", "spec")
    if not holder or not name.startswith(_OURS):
        return None
    renewed = text(spec, "renewTime", "spec")
    held = _Held(name, holder, parse_time(renewed) if renewed else None)
    if LABEL not in texts(metadata, "labels", "metadata"):
        return held
    said = texts(metadata, "annotations", "metadata")
    return held._replace(
        component=said.get(COMPONENT, ""),
        instance=said.get(INSTANCE, ""),
        source_trouble=said.get(SOURCE_TROUBLE, ""),
    )


def _nodes(found: Iterable[Json], reader: _Reader) -> Iterator[tuple[str, Node]]:
    for obj in found:
        node = readable(read_node, obj)
        if isinstance(node, Unreadable):
            reader.left_out("Node", obj, node)
        else:
            yield node.name, node


def _reports(
    metrics: Iterable[Json], nodes: Mapping[str, Node], now: int, reader: _Reader
) -> tuple[NodeReports, Suppressed, Mapping[str, int], Mapping[str, int]]:
    ages: list[int] = []
    used: dict[str, int] = defaultdict(int)
    capacity: dict[str, int] = defaultdict(int)
    agents: dict[str, int] = defaultdict(int)
    dry_runs: dict[str, int] = defaultdict(int)
    told, held, offered, allowed, late, rehearsed = 0, 0, 0, 0, 0, 0
    for obj in metrics:
        metric, runs, dry_run, limit = (
            readable(read, obj)
            for read in (read_node_metric, read_agent_runs, read_dry_run, read_best_effort_cpu)
        )
        for one in (metric, runs, dry_run, limit):
            if isinstance(one, Unreadable):
                reader.left_out("NodeMetric", obj, one)
                break
        node = nodes.get(metric.name) if isinstance(metric, NodeMetric) else None
        if not isinstance(metric, NodeMetric) or node is None:
            continue
        if isinstance(runs, AgentRuns):
            agents[runs.revision] += 1
        if isinstance(dry_run, AgentRuns):
            dry_runs[dry_run.revision] += 1
        if metric.updated_at is None:
            rehearsed += isinstance(dry_run, AgentRuns)
            continue
        ages.append(max(0, now - metric.updated_at))
        late += ages[-1] > _MISSED * metric.report_interval
        for resource in (CPU, MEMORY):
            if metric.node_usage is not None and resource in metric.node_usage:
                used[resource] += metric.node_usage[resource]
                capacity[resource] += node.capacity.get(resource, 0)
        if isinstance(limit, int):
            told += 1
            lent = node.allocatable.get(BATCH_CPU, 0)
            if limit < lent:
                held, offered, allowed = held + 1, offered + lent, allowed + limit
    reports = NodeReports(
        len(nodes), tuple(sorted(ages)), len(nodes) - len(ages), rehearsed, late, used, capacity
    )
    return reports, Suppressed(held, offered, allowed, told), agents, dry_runs


def _pods(found: Iterable[Json], reader: _Reader) -> Iterator[Pod]:
    for obj in found:
        pod = readable(read_pod, obj)
        if isinstance(pod, Unreadable):
            reader.left_out("Pod", obj, pod)
        else:
            yield pod


def _lent(nodes: Iterable[Node], pods: Iterable[Pod]) -> Iterator[Lent]:
    """Of what any node offers."""
    offered: dict[str, int] = defaultdict(int)
    capacity: dict[str, int] = defaultdict(int)
    count: dict[str, int] = defaultdict(int)
    for node in nodes:
        for resource in LENT:
            if node.allocatable.get(resource):
                offered[resource] += node.allocatable[resource]
                capacity[resource] += node.capacity.get(LENT[resource], 0)
                count[resource] += 1
    requested: dict[str, int] = defaultdict(int)
    for pod in pods:
        if pod.node_name and not pod.terminal:
            asked = effective_requests(pod)
            for resource in LENT:
                requested[resource] += asked.get(resource, 0)
    for resource in LENT:
        if count[resource]:
            yield Lent(resource, capacity[resource], offered[resource], requested[resource], count[resource])


def _kept_outside(nodes: Iterable[Node], reader: _Reader) -> Iterator[KeptOutside]:
    cpu: dict[str, int] = defaultdict(int)
    memory: dict[str, int] = defaultdict(int)
    count: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        found = readable(third_party_allocations, node.annotations)
        if isinstance(found, Unreadable):
            reader.unreadable.append(f"Node `{node.name}`: {found.reason}")
            continue
        for one in found:
            cpu[one.name] += one.resources.get(BATCH_CPU, 0)
            memory[one.name] += one.resources.get(BATCH_MEMORY, 0)
            count[one.name].add(node.name)
    for name in sorted(count):
        yield KeptOutside(name, cpu[name], memory[name], len(count[name]))
