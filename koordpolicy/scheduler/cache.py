"""What the scheduler knows of the cluster: nodes, the pods on them, their metrics, as a table of facts.

Each event changes the row of its node alone. Pods that were just placed are on their node at once
(assumed), before the cluster has confirmed it. A pod on a node that is not known yet, or not any more,
waits for the node to come.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from koordpolicy.language.facts import TIMES
from koordpolicy.mechanism.classify import Catalogue
from koordpolicy.mechanism.load import AssignedPod, NodeLoad
from koordpolicy.mechanism.node_capacity import trimmed_allocatable
from koordpolicy.mechanism.records import pods_on_node, usage_of
from koordpolicy.model.facts import COUNTED, Record, paths
from koordpolicy.model.facts_load import load_facts, threshold_facts
from koordpolicy.model.facts_node import NodeDemand, amount_facts, metric_facts, node_facts
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node, node_reservation
from koordpolicy.model.protocol import BATCH_CPU, BATCH_MEMORY, PODS
from koordpolicy.model.reading import Amounts, ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.decision import PodKey
from koordpolicy.scheduler.loads import LoadPolicy, LoadRules, loads_of, new_load
from koordpolicy.scheduler.nodes import TAINTS, node_schema, taint_text
from koordpolicy.scheduler.pods import PodView

_KEPT = frozenset({BATCH_CPU, BATCH_MEMORY})
"""Resources that are published with the node's reservation already taken off."""

_PROD = "prod"
"""The band whose use has a fact of its own."""

_REQUESTED = paths("requested", COUNTED)
_NONZERO = paths("nonzeroRequested", COUNTED)
_FREE = paths("free", COUNTED)


@dataclass(slots=True)
class _Placed:
    """A pod on a node: what it takes there, and how load counts it."""

    view: PodView
    assigned: AssignedPod
    since: int


@dataclass(slots=True)
class _Node:
    """One node's part of the cache. `node` is None while only its pods or its metric are known."""

    name: str
    node: Node | None = None
    metric: NodeMetric | None = None
    pods: dict[PodKey, _Placed] = field(default_factory=dict)
    requested: dict[str, int] = field(default_factory=dict)
    nonzero: dict[str, int] = field(default_factory=dict)
    rules: LoadRules | None = None
    load: NodeLoad | None = None

    @property
    def empty(self) -> bool:
        return self.node is None and self.metric is None and not self.pods


class ClusterCache:
    """The nodes as a table, kept from events. `table` is read by others and written here alone.

    `reads` are the paths of node facts that anybody asks for: rows leave away the costly ones nobody does.
    """

    __slots__ = ("_assumed", "_catalogue", "_nodes", "_policy", "_reads_pods", "_where", "table")

    def __init__(self, policy: LoadPolicy, catalogue: Catalogue, reads: frozenset[str]) -> None:
        self.table = NodeTable(node_schema())
        self._policy = policy
        self._catalogue = catalogue
        self._reads_pods = any(path == "pods" or path.startswith("usage.prod") for path in reads)
        self._nodes: dict[str, _Node] = {}
        self._where: dict[PodKey, str] = {}
        self._assumed: set[PodKey] = set()

    # --- pods -----------------------------------------------------------------------------------

    def node_of(self, key: PodKey) -> str | None:
        """The node that a pod is on, or assumed to be on; None when it is on none."""
        return self._where.get(key)

    def view(self, key: PodKey) -> PodView | None:
        """A pod as it is known on its node; None when it is on none."""
        node = self._where.get(key)
        return None if node is None else self._nodes[node].pods[key].view

    def is_assumed(self, key: PodKey) -> bool:
        """Whether a pod was placed here and the cluster has not confirmed it."""
        return key in self._assumed

    @property
    def pod_count(self) -> int:
        """How many pods are on nodes."""
        return len(self._where)

    def place(self, view: PodView, node: str, now: int, *, assumed: bool = False) -> None:
        """Put a pod on a node, or replace what is known of it there."""
        key = view.pod.key
        before = self._where.get(key)
        if before is not None and before != node:
            self.displace(key)
        state = self._state(node)
        known = state.pods.get(key)
        placed = self._placed(state, view, now if known is None else known.since)
        state.pods[key] = placed
        self._where[key] = node
        (self._assumed.add if assumed else self._assumed.discard)(key)
        if known is not None and self._weighs_the_same(known, placed):
            return
        if known is not None:
            _add(state.requested, known.view.occupied, -1)
            _add(state.nonzero, known.view.occupied_nonzero, -1)
        _add(state.requested, view.occupied, 1)
        _add(state.nonzero, view.occupied_nonzero, 1)
        if state.load is not None:
            state.load.add(placed.assigned)
        self._write_demand(state)

    def _weighs_the_same(self, known: _Placed, placed: _Placed) -> bool:
        """Whether a pod's update changes nothing in its node's row."""
        return (
            not self._reads_pods
            and known.assigned == placed.assigned
            and known.view.occupied == placed.view.occupied
            and known.view.occupied_nonzero == placed.view.occupied_nonzero
        )

    def displace(self, key: PodKey) -> bool:
        """Take a pod off its node; whether it was on one."""
        name = self._where.pop(key, None)
        if name is None:
            return False
        self._assumed.discard(key)
        state = self._nodes[name]
        view = state.pods.pop(key).view
        _add(state.requested, view.occupied, -1)
        _add(state.nonzero, view.occupied_nonzero, -1)
        if state.load is not None:
            state.load.remove(key)
        if state.empty:
            del self._nodes[name]
        else:
            self._write_demand(state)
        return True

    def _placed(self, state: _Node, view: PodView, since: int) -> _Placed:
        rules = state.rules or self._policy.rules({})
        return _Placed(view, self._policy.assigned(view, rules, since), since)

    # --- nodes ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, name: object) -> bool:
        return name in self.table

    def nodes(self) -> Iterable[Node]:
        """The nodes as they came."""
        return (state.node for state in self._nodes.values() if state.node is not None)

    def pods(self) -> Iterable[tuple[PodView, str, int, bool]]:
        """All placed pods: the pod, its node, since when, and whether that is assumed only."""
        for name, state in self._nodes.items():
            for key, placed in state.pods.items():
                yield placed.view, name, placed.since, key in self._assumed

    def metrics(self) -> Iterable[NodeMetric]:
        """The metrics of all nodes."""
        return (state.metric for state in self._nodes.values() if state.metric is not None)

    def set_node(self, node: Node) -> None:
        """A node is new or has changed."""
        state = self._state(node.name)
        state.node = node
        self._write(state)

    def remove_node(self, name: str) -> None:
        """A node is gone. Its pods stay known until they are removed themselves."""
        state = self._nodes.get(name)
        if state is None or state.node is None:
            return
        state.node = None
        state.rules = state.load = None
        self.table.remove(name)
        if state.empty:
            del self._nodes[name]

    def set_metric(self, metric: NodeMetric) -> None:
        """A node's report."""
        state = self._state(metric.name)
        state.metric = metric
        if state.node is not None:
            self._write(state)

    def renew_metrics(self, now: int) -> None:
        """All nodes with a report have just sent the same again: only its time is another."""
        self.table.fill("metric.updatedAt", TIMES.timestamp(now))

    def remove_metric(self, name: str) -> None:
        """A node's report is gone."""
        state = self._nodes.get(name)
        if state is None:
            return
        state.metric = None
        if state.node is not None:
            self._write(state)
        elif state.empty:
            del self._nodes[name]

    def _state(self, name: str) -> _Node:
        found = self._nodes.get(name)
        if found is None:
            found = self._nodes[name] = _Node(name)
        return found

    # --- rows -----------------------------------------------------------------------------------

    def _write(self, state: _Node) -> None:
        """Write the whole row of a node."""
        node = state.node
        assert node is not None
        shown = _trimmed(node)
        demand = NodeDemand(dict(state.requested), dict(state.nonzero), len(state.pods))
        facts = node_facts(shown, demand)
        facts.update(self._pod_facts(state))
        facts.update(threshold_facts(node, TIMES))
        facts[TAINTS] = taint_text(node.taints)
        facts["metric.known"] = state.metric is not None
        if state.metric is not None:
            # The age is left away: it would change with the clock, while a row changes with events.
            facts.update(metric_facts(state.metric, 0, TIMES))
            facts.pop("metric.age", None)
        self._count_load(state, facts)
        self.table.put(state.name, facts)

    def _count_load(self, state: _Node, facts: Record) -> None:
        """Begin the load of a node anew, after its limits, its report or the node itself changed."""
        rules = self._policy.rules(facts)
        if rules != state.rules:
            state.rules = rules
            for key, placed in state.pods.items():
                state.pods[key] = self._placed(state, placed.view, placed.since)
        if state.metric is None:
            state.load = None
            return
        state.load = new_load(
            rules, state.metric, [placed.assigned for placed in state.pods.values()], self._catalogue
        )
        facts.update(load_facts(loads_of(state.load, rules)))

    def _write_demand(self, state: _Node) -> None:
        """Write what follows from the pods on a node."""
        if state.node is None:
            return
        requested = {**state.requested, PODS: len(state.pods)}
        nonzero = {**state.nonzero, PODS: len(state.pods)}
        facts: Record = {"resources.requested": requested, "resources.nonzeroRequested": nonzero}
        allocatable = self.table.row(self.table.index(state.name))["resources.allocatable"]
        assert isinstance(allocatable, dict)
        for path, resource in _REQUESTED:
            facts[path] = requested.get(resource, 0)
        for path, resource in _NONZERO:
            facts[path] = nonzero.get(resource, 0)
        for path, resource in _FREE:
            facts[path] = allocatable.get(resource, 0) - requested.get(resource, 0)
        if state.load is not None and state.rules is not None:
            facts.update(load_facts(loads_of(state.load, state.rules)))
        facts.update(self._pod_facts(state))
        self.table.update(state.name, facts)

    def _pod_facts(self, state: _Node) -> Record:
        """The pods of a node one by one, and their measured use together, where policy asks for that."""
        if not self._reads_pods:
            return {}
        pods = [placed.view.pod for placed in state.pods.values()]
        records = pods_on_node(pods, state.metric, self._catalogue, TIMES)
        facts: Record = {"pods": records}
        if state.metric is not None and state.metric.node_usage is not None:
            facts.update(amount_facts("usage.prod", usage_of(records, [_PROD])))
        return facts


def _trimmed(node: Node) -> Node:
    """The node less what its annotation keeps for work outside Kubernetes; as it is when unreadable."""
    try:
        reservation = node_reservation(node.annotations)
    except ObjectError:
        return node
    allocatable = trimmed_allocatable(node.allocatable, reservation, _KEPT)
    return node if allocatable is node.allocatable else replace(node, allocatable=allocatable)


def _add(total: dict[str, int], part: Amounts, sign: int) -> None:
    for resource, value in part.items():
        total[resource] = total.get(resource, 0) + sign * value
