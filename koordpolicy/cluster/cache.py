"""What the scheduler knows of the cluster: nodes, the pods on them, their metrics, as a table of facts.

Each event changes the row of its node alone. Pods that were just placed are on their node at once, before the cluster
has confirmed it; who put them there knows which these are. A pod on a node that is not known yet, or not any more,
waits for the node to come.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.algorithms.load import AssignedPod, NodeLoad
from koordpolicy.algorithms.records import pods_on_node, usage_of
from koordpolicy.cluster.change_log import ChangeLog
from koordpolicy.cluster.column_reports import (
    ColumnReports,
    PendingReport,
    sums_up,
    unseen_until,
    write_reports,
)
from koordpolicy.cluster.demand import Demand
from koordpolicy.cluster.loads import LoadPolicy, LoadRules, loads_of, new_load
from koordpolicy.cluster.node_rows import changed_facts, row_of_node, row_of_offers
from koordpolicy.cluster.nodes import node_schema
from koordpolicy.cluster.pods import PodView, holds_the_same, same_to_others
from koordpolicy.cluster.reservations import keeps_room
from koordpolicy.cluster.state import ClusterState
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.load import load_facts
from koordpolicy.model.facts.node import amount_facts, metric_facts
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node
from koordpolicy.model.pod import PodKey
from koordpolicy.model.reading import Amounts
from koordpolicy.model.table import NodeTable

_PROD = "prod"
"""The band whose use has a fact of its own."""

_OF_ANNOTATIONS = ("usageThresholds.", "cpuNormalization", "amplification.", "networkBandwidth")
"""Facts of nodes that they need not have; what begins in another way stays."""

_NOT_IN_A_TRIAL = "nodes and reports do not change in a trial"


@dataclass(slots=True)
class _Placed:
    """A pod on a node: what it takes there, and how load counts it."""

    view: PodView
    assigned: AssignedPod
    since: int


@dataclass(slots=True)
class _Entry:
    """One node's part of the cache. `node` is None while only its pods or its metric are known."""

    name: str
    node: Node | None = None
    metric: NodeMetric | None = None
    pods: dict[PodKey, _Placed] = field(default_factory=dict)
    demand: Demand = field(default_factory=Demand)
    changes: int = 0
    rules: LoadRules | None = None
    load: NodeLoad | None = None
    pending: PendingReport | None = None
    """A report whose row is written, and of which `metric` and `load` are not made yet."""
    unseen_until: int = -1
    """Up to when the pods that came here are taken for unseen by reports that begin no later; their estimates count until then."""

    @property
    def empty(self) -> bool:
        return self.node is None and self.metric is None and self.pending is None and not self.pods


class ClusterCache:
    """The nodes as a table, kept from events. `table` is read by others and written here alone.

    `reads` are the paths of node facts that anybody asks for: rows leave away the costly ones nobody does.
    `state` is what else there is; a cache without nodes and pods begins with what is handed to it.
    """

    __slots__ = (
        "_catalogue",
        "_changes",
        "_kept",
        "_nodes",
        "_policy",
        "_reads_pods",
        "_rows_only",
        "_where",
        "log",
        "state",
        "table",
    )

    def __init__(
        self,
        policy: LoadPolicy,
        catalogue: Catalogue,
        reads: frozenset[str],
        state: ClusterState | None = None,
    ) -> None:
        self.table = NodeTable(node_schema())
        self.state = ClusterState() if state is None else state
        self.state.reservations.pods_on, self.state.reservations.changes_on = self.pods_on, self.changes_on
        self.state.reservations.labels_of = self._labels_of
        self.state.reservations.facts_of = self._facts_of
        self.state.reservations.node_names = self._node_names
        self.state.cpus.facts_of = self._facts_of
        self._policy = policy
        self._catalogue = catalogue
        self._reads_pods = any(path == "pods" or path.startswith("usage.prod") for path in reads)
        self._nodes: dict[str, _Entry] = {}
        self._where: dict[PodKey, str] = {}
        self._changes = 0
        self.log = ChangeLog()
        """On which nodes pods came, went or changed; trials leave nothing in it."""
        self._kept: set[str] | None = None
        """The nodes that the present trial has changed; None without one."""
        self._rows_only = False

    # --- pods -----------------------------------------------------------------------------------

    def node_of(self, key: PodKey) -> str | None:
        """The node that a pod is on, or assumed to be on; None when it is on none."""
        return self._where.get(key)

    def view(self, key: PodKey) -> PodView | None:
        """A pod as it is known on its node; None when it is on none."""
        node = self._where.get(key)
        return None if node is None else self._nodes[node].pods[key].view

    def since(self, key: PodKey) -> int:
        """Since when a pod is on its node, in nanoseconds. Raises KeyError for one that is on none."""
        return self._nodes[self._where[key]].pods[key].since

    @property
    def pod_count(self) -> int:
        """How many pods are on nodes."""
        return len(self._where)

    def place(self, view: PodView, node: str, now: int) -> None:
        """Put a pod on a node, or replace what is known of it there."""
        key = view.pod.key
        before = self._where.get(key)
        if before is not None and before != node:
            self.displace(key)
        entry, trying = self._made(self._entry(node)), self._kept is not None
        if trying:
            self._keep(entry)
        known = entry.pods.get(key)
        placed = self._placed(entry, view, now if known is None else known.since)
        entry.pods[key] = placed
        entry.unseen_until = max(entry.unseen_until, unseen_until(placed.assigned))
        self._changed(entry)
        if trying:
            self._move(key, node)
        else:
            self._where[key] = node
            self.log.note(node)
        if not self._rows_only and (known is None or not same_to_others(known.view, view)):
            row = self._row(entry)
            if known is not None:
                self.state.pod_left(known.view, row)
            self.state.pod_came(view, row)
        if (
            known is not None
            and self._weighs_the_same(entry, known, placed)
            and holds_the_same(known.view, view)
        ):
            if self.state.reservations.available and keeps_room(view):
                self._share(entry)  # it may have owners already as it begins to keep room
            return
        if known is not None:
            entry.demand.count(known.view, -1)
        entry.demand.count(view, 1)
        if entry.load is not None:
            entry.load.add(placed.assigned)
        self._write_demand(entry, view if known is None else None)
        if self.state.reservations.available:
            self._share(entry)

    def _weighs_the_same(self, entry: _Entry, known: _Placed, placed: _Placed) -> bool:
        """Whether a pod's update changes nothing in its node's row."""
        return (
            not self._reads_pods
            and (entry.load is None or known.assigned == placed.assigned)
            and known.view.occupied == placed.view.occupied
            and known.view.occupied_nonzero == placed.view.occupied_nonzero
            and known.view.owned_cpu == placed.view.owned_cpu
        )

    def displace(self, *keys: PodKey) -> bool:
        """Take pods off their nodes; whether any was on one. Of one node many at once are quicker than one by one."""
        entry: _Entry | None = None
        gone: list[PodView] = []
        for key in keys:
            name = self._where.get(key)
            if name is None:
                continue
            if entry is not None and entry.name != name:
                self._left(entry, gone)
                gone = []
            entry = self._made(self._nodes[name])
            gone.append(self._taken_off(entry, key))
        if entry is None:
            return False
        self._left(entry, gone)
        return True

    def _taken_off(self, entry: _Entry, key: PodKey) -> PodView:
        """Take a pod off a node, whose row is not written yet."""
        self._keep(entry)
        self._move(key, None)
        view = entry.pods.pop(key).view
        self._changed(entry)
        if self._kept is None:
            self.log.note(entry.name)
        if not self._rows_only:
            self.state.pod_left(view, self._row(entry))
        entry.demand.count(view, -1)
        if entry.load is not None:
            entry.load.remove(key)
        return view

    def _left(self, entry: _Entry, gone: Sequence[PodView]) -> None:
        """Write the row of a node that pods have left."""
        if not entry.empty:
            self._write_demand(entry, gone[0] if len(gone) == 1 else None)
            if self.state.reservations.available:
                self._share(entry)
        elif self._kept is None:
            self._drop(entry.name)

    def _share(self, entry: _Entry) -> None:
        """Have reserve pods count with what their owners on the node have not taken, after any pod there came or went."""
        shares = self.state.reservations.shares(
            entry.name, {key: placed.view for key, placed in entry.pods.items()}
        )
        for key, view in shares.items():
            placed = entry.pods[key]
            entry.pods[key] = replace(placed, view=view)
            entry.demand.count(placed.view, -1)
            entry.demand.count(view, 1)
        if shares:
            self._changed(entry)
            self._write_demand(entry, None)

    def _changed(self, entry: _Entry) -> None:
        self._changes = entry.changes = self._changes + 1

    def _labels_of(self, node: str) -> Mapping[str, str]:
        entry = self._nodes.get(node)
        return {} if entry is None or entry.node is None else entry.node.labels

    def _node_names(self) -> Sequence[str]:
        return [self.table.name(row) for row in range(len(self.table))]

    def _facts_of(self, node: str) -> Record:
        return dict(self.table.row(self.table.index(node))) if node in self.table else {}

    def _move(self, key: PodKey, node: str | None) -> None:
        """Note where a pod is from now on."""
        before = self._where.get(key)
        self._back(key, node)
        if self._kept is not None and before != node:
            self.state.undo.note(lambda: self._back(key, before))

    def _back(self, key: PodKey, node: str | None) -> None:
        if node is None:
            del self._where[key]
        else:
            self._where[key] = node

    def _placed(self, entry: _Entry, view: PodView, since: int) -> _Placed:
        rules = entry.rules or self._policy.rules({})
        return _Placed(view, self._policy.assigned(view, rules, since), since)

    # --- what if --------------------------------------------------------------------------------

    def changes_on(self, node: str) -> int:
        """A number that is another one after every change of the pods on a node."""
        entry = self._nodes.get(node)
        return -1 if entry is None else entry.changes

    def pods_on(self, node: str) -> Mapping[PodKey, PodView]:
        """The pods on a node, in the order in which they came."""
        entry = self._nodes.get(node)
        return {} if entry is None else {key: placed.view for key, placed in entry.pods.items()}

    @property
    def trying(self) -> bool:
        """Whether a trial is under way."""
        return self._kept is not None

    @contextmanager
    def trial(self, *, rows_only: bool = False) -> Iterator[None]:
        """Try something: all pods that are placed and displaced meanwhile are as before at the end, whatever happens.

        So is whatever else is noted in `state.undo`. Trials may be nested, and concern many nodes. Nodes and reports must
        not change meanwhile. With `rows_only` only rows follow, which is quicker: enough for filters that look no farther.
        """
        kept, before = self._kept, self._rows_only
        self._kept, self._rows_only = set(), rows_only or before
        mark = self.table.mark()
        try:
            with self.state.undo.trial():
                yield
        finally:
            self._kept, self._rows_only = kept, before
            self.table.unmark(mark)

    def _keep(self, entry: _Entry) -> None:
        """Keep a node as it is before its first change in a trial."""
        if self._kept is None or entry.name in self._kept:
            return
        self._kept.add(entry.name)
        pods, demand, load, changes = entry.pods, entry.demand, entry.load, entry.changes
        entry.pods, entry.demand = dict(pods), demand.copy()
        entry.load = None if load is None else load.copy()
        at = self._row(entry)
        row = None if at is None else dict(self.table.row(at))

        def undo() -> None:
            entry.pods, entry.demand, entry.load, entry.changes = pods, demand, load, changes
            if row is not None:
                now = self.table.row(self.table.index(entry.name))
                changed = {path: value for path, value in row.items() if now.get(path) is not value}
                self.table.update(entry.name, changed, [path for path in now if path not in row])

        self.state.undo.note(undo)

    # --- nodes ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, name: object) -> bool:
        return name in self.table

    def nodes(self) -> Iterable[Node]:
        """The nodes as they came."""
        return (entry.node for entry in self._nodes.values() if entry.node is not None)

    def pods(self) -> Iterable[tuple[PodView, str, int]]:
        """All placed pods: the pod, its node, and since when."""
        for name, entry in self._nodes.items():
            for placed in entry.pods.values():
                yield placed.view, name, placed.since

    def metrics(self) -> Iterable[NodeMetric]:
        """The metrics of all nodes."""
        return (made.metric for made in map(self._made, self._nodes.values()) if made.metric is not None)

    def metric(self, node: str) -> NodeMetric | None:
        """The report of a node."""
        entry = self._nodes.get(node)
        return None if entry is None else entry.metric

    def set_node(self, node: Node) -> Collection[str]:
        """A node is new or has changed; the facts of its row that are others now."""
        assert self._kept is None, _NOT_IN_A_TRIAL
        entry = self._entry(node.name)
        if entry.node is not None:
            changed = self._write_node(entry, entry.node, node)
            if changed is not None:
                return changed
        self._made(entry)
        row: Mapping[str, object] = (
            {} if entry.node is None else {**self.table.row(self.table.index(node.name))}
        )
        before, entry.node = entry.node, node
        try:
            self._write(entry)
        finally:
            # A fact of another class than its column's leaves the row there nevertheless.
            if node.name not in self.table:
                entry.node = before
            elif before is None:
                at = self.table.index(node.name)
                self.state.node_came(node, at, [placed.view for placed in entry.pods.values()])
            else:
                self.state.node_changed(before, node, self.table.index(node.name))
        return changed_facts(row, self.table.row(self.table.index(node.name)))

    def remove_node(self, name: str) -> None:
        """A node is gone. Its pods stay known until they are removed themselves."""
        assert self._kept is None, _NOT_IN_A_TRIAL
        entry = self._nodes.get(name)
        if entry is None or entry.node is None:
            return
        self._made(entry)
        entry.node = None
        entry.rules = entry.load = None
        row, last = self.table.index(name), len(self.table) - 1
        moved, pods = self.table.name(last), [placed.view for placed in entry.pods.values()]
        self.table.remove(name)
        self.state.node_left(name, row, last, moved, pods)
        if entry.empty:
            self._drop(name)

    def set_metric(self, metric: NodeMetric) -> None:
        """A node's report."""
        assert self._kept is None, _NOT_IN_A_TRIAL
        entry = self._entry(metric.name)
        entry.metric, entry.pending = metric, None
        if entry.node is not None:
            self._write(entry)

    def set_reports(self, reports: ColumnReports) -> None:
        """Reports of many nodes: as columns, where rows follow from sums, else one by one.

        Those are of nodes that have not reported before, and of such as have pods whose estimates still stand for what is
        not measured of them.
        """
        assert self._kept is None, _NOT_IN_A_TRIAL
        for name in self._set_in_columns(reports):
            self.set_metric(reports.whole(name))

    def _set_in_columns(self, reports: ColumnReports) -> Sequence[str]:
        """Take what can be taken at once; the nodes that are left."""
        if self._reads_pods or self._policy.reads_reports:
            return reports.names
        updated = TIMES.timestamp(reports.updated_at)
        if len(reports.names) == len(self.table):
            self.table.fill("metric.updatedAt", updated)
        by_rules: dict[LoadRules, list[int]] = {}
        left: list[str] = []
        since = reports.updated_at - reports.interval
        counts = reports.measured.tolist()
        for at, name in enumerate(reports.names):
            entry = self._nodes.get(name)
            if (
                entry is None
                or entry.node is None
                or entry.rules is None
                or (entry.metric is None and entry.pending is None)
                or entry.unseen_until > since
                or len(entry.pods) != counts[at]
                or not sums_up(entry.rules)
            ):
                left.append(name)
            else:
                by_rules.setdefault(entry.rules, []).append(at)
                entry.pending = PendingReport(reports, name)
                if len(reports.names) != len(self.table):
                    self.table.update(name, {"metric.updatedAt": updated})
        for rules, places in by_rules.items():
            write_reports(self.table, rules, reports.some(np.array(places, np.int64)))
        return left

    def _made(self, entry: _Entry) -> _Entry:
        """The entry with its last report and load as values, which are made once somebody needs them."""
        pending = entry.pending
        if pending is not None:
            entry.pending = None
            entry.metric = pending.metric()
            if entry.rules is not None:
                entry.load = self._new_load(entry, entry.rules, entry.metric)
        return entry

    def _new_load(self, entry: _Entry, rules: LoadRules, metric: NodeMetric) -> NodeLoad:
        return new_load(rules, metric, [placed.assigned for placed in entry.pods.values()], self._catalogue)

    def renew_metrics(self, now: int) -> None:
        """All nodes with a report have just sent the same again: only its time is another."""
        self.table.fill("metric.updatedAt", TIMES.timestamp(now))

    def remove_metric(self, name: str) -> None:
        """A node's report is gone."""
        assert self._kept is None, _NOT_IN_A_TRIAL
        entry = self._nodes.get(name)
        if entry is None:
            return
        entry.metric = entry.pending = None
        if entry.node is not None:
            self._write(entry)
        elif entry.empty:
            self._drop(name)

    def _drop(self, name: str) -> None:
        """Know nothing of a node any more."""
        del self._nodes[name]
        self.log.forget(name)

    def _row(self, entry: _Entry) -> int | None:
        """The row of a node; None while it is not known."""
        return None if entry.node is None else self.table.index(entry.name)

    def _entry(self, name: str) -> _Entry:
        found = self._nodes.get(name)
        if found is None:
            found = self._nodes[name] = _Entry(name)
            if self._kept is not None:
                self.state.undo.note(lambda: self._nodes.pop(name))
        return found

    # --- rows -----------------------------------------------------------------------------------

    def _write(self, entry: _Entry) -> None:
        """Write the whole row of a node."""
        assert entry.node is not None
        facts = row_of_node(entry.node, entry.demand)
        facts.update(self._pod_facts(entry))
        facts["metric.known"] = entry.metric is not None
        if entry.metric is not None:
            # The age is left away: it would change with the clock, while a row changes with events.
            facts.update(metric_facts(entry.metric, 0, TIMES))
            facts.pop("metric.age", None)
        self._count_load(entry, facts)
        self.table.put(entry.name, facts)

    def _write_node(self, entry: _Entry, before: Node, node: Node) -> Collection[str] | None:
        """Write what follows from a node alone into its row; the facts that are others now. None where more may follow, and the row is
        as it was.
        """
        if self._reads_pods or entry.rules is None:
            return None
        at = self.table.index(entry.name)
        row = self.table.row(at)
        gone: Sequence[str] = ()
        facts = row_of_offers(before, node, entry.demand)
        if facts is None:
            facts = row_of_node(node, entry.demand)
            gone = [path for path in row if path not in facts and path.startswith(_OF_ANNOTATIONS)]
        changes = {path: value for path, value in facts.items() if row.get(path) != value}
        if self._policy.counts_by((*changes, *gone)) and self._policy.rules({**row, **facts}) != entry.rules:
            return None
        entry.node = node
        try:
            self.table.update(entry.name, changes, gone)
        finally:
            self.state.node_changed(before, node, at)
        return frozenset((*changes, *gone))

    def _count_load(self, entry: _Entry, facts: Record) -> None:
        """Begin the load of a node anew, after its limits, its report or the node itself changed."""
        rules = self._policy.rules(facts)
        if rules != entry.rules:
            entry.rules = rules
            for key, placed in entry.pods.items():
                entry.pods[key] = self._placed(entry, placed.view, placed.since)
        if entry.metric is None:
            entry.load = None
            return
        entry.load = self._new_load(entry, rules, entry.metric)
        facts.update(load_facts(loads_of(entry.load, rules)))

    def _write_demand(self, entry: _Entry, only: PodView | None) -> None:
        """Write what follows from the pods on a node, of which `only` one has come or gone (None: any)."""
        if entry.node is None:
            return
        row = self.table.row(self.table.index(entry.name))
        if only is None:
            changes, facts = Record(), self._demand_facts(entry, row)
        else:
            changes = entry.demand.touched(only, _allocatable(row))
            facts = self._load_facts(entry)
        for path, value in facts.items():
            if row.get(path) != value:
                changes[path] = value
        self.table.update(entry.name, changes)

    def _demand_facts(self, entry: _Entry, row: Mapping[str, object]) -> Record:
        """What follows from the pods on a node. `row` are its other facts."""
        facts = entry.demand.facts(_allocatable(row))
        facts.update(self._load_facts(entry))
        return facts

    def _load_facts(self, entry: _Entry) -> Record:
        """The part of it that any pod may change."""
        if entry.load is None or entry.rules is None:
            return self._pod_facts(entry)
        facts = load_facts(loads_of(entry.load, entry.rules))
        if self._reads_pods:
            facts.update(self._pod_facts(entry))
        return facts

    def _pod_facts(self, entry: _Entry) -> Record:
        """The pods of a node one by one, and their measured use together, where policy asks for that."""
        if not self._reads_pods:
            return {}
        pods = [placed.view.pod for placed in entry.pods.values()]
        records = pods_on_node(pods, entry.metric, self._catalogue, TIMES)
        facts: Record = {"pods": records}
        if entry.metric is not None and entry.metric.node_usage is not None:
            facts.update(amount_facts("usage.prod", usage_of(records, [_PROD])))
        return facts


def _allocatable(row: Mapping[str, object]) -> Amounts:
    return row["resources.allocatable"]  # type: ignore[return-value]  # the fact's type says so
