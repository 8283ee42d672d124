"""The CPUs and NUMA zones of all nodes with what pods have of them.

What a pod has is its own as long as it is there: it is taken when a node is chosen for it, or found on a pod that has one, and
given back once. Where a pod leaves its node in a trial, what it has is free until it is back. Nodes are told apart by name; by
row of the node table stands what is asked of all of them at once (`algorithms/zone_columns.py`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.cpu_accumulator import BindPolicy, CPUExclusive
from koordpolicy.algorithms.cpu_binding import NodeRules, PodNeeds
from koordpolicy.algorithms.node_cpus import NodeAccount
from koordpolicy.algorithms.zone_allocation import HintProvider, NodeRoom, NoRoom, allocate
from koordpolicy.algorithms.zone_columns import RoomColumns
from koordpolicy.cluster.claims import ClaimLedger
from koordpolicy.cluster.cpu_policy import CPUPolicy
from koordpolicy.cluster.undo_log import UndoLog
from koordpolicy.model.cpu_layout import CPULayout
from koordpolicy.model.cpu_topology import Allocation, NodeCPUs
from koordpolicy.model.facts import Record
from koordpolicy.model.pod import PodKey
from koordpolicy.model.protocol import CPU

_NO_CPUS: Final = NodeCPUs(CPULayout.of(()), {})
_NOTHING: Final[NodeAccount[PodKey]] = NodeAccount(_NO_CPUS, NodeRules(), ())
_SPARE: Final = 64
"""Rows that columns have beyond those that are there, at least: nodes come one by one."""


class CPUClaim(NamedTuple):
    """What a pod has of the CPUs and zones of a node. `spec` is the annotation that says how it was bound, empty where that says so
    already; `of` the class that its label says; `lender` the UID of the pod out of whose claim it is, empty for none. `zones` are
    those in which everything is allocated for it (a mask; None: any). `by_node` says that its CPUs are its own where the node gives
    all pods theirs, and nowhere else: so its annotation says, and its class owns none.
    """

    pod: PodKey
    node: str
    allocation: Allocation
    exclusive: CPUExclusive = CPUExclusive.NONE
    spec: str = ""
    of: str = ""
    uid: str = ""
    lender: str = ""
    zones: int | None = None
    by_node: bool = False


@dataclass(slots=True)
class _Node:
    topology: NodeCPUs | None = None
    account: NodeAccount[PodKey] | None = None
    refused: dict[PodNeeds, str] = field(default_factory=dict)
    """Why pods do not fit, as long as nothing changes here; empty where they do."""


class CPUAccounts:
    """All of it. `version` is another one after each change. `facts_of` gives the facts of a node that has a row."""

    def __init__(self, undo: UndoLog | None = None) -> None:
        self._undo = undo or UndoLog()
        self.policy: CPUPolicy | None = None
        self.version = 0
        self.facts_of: Callable[[str], Record] = lambda node: {}
        self.known = False
        """Whether an object tells of the CPUs of any node."""
        self._nodes: dict[str, _Node] = {}
        self._claims = ClaimLedger[CPUClaim](self._undo, self._hold, self._release, less)
        self.dealt: Mapping[PodKey, CPUClaim] = self._claims.held
        """What pods have. An attribute, as it is asked of every pod that comes or goes."""
        self._rows: dict[str, int] = {}
        self._columns: RoomColumns | None = None
        self._stale: set[str] = set()
        self._any_rules = -1, False
        """As of which version."""

    def again(self) -> "CPUAccounts":
        """The same CPUs and what is taken of them, without the rows of nodes."""
        found = CPUAccounts(self._undo)
        found.version = self.version + 1
        found._nodes, found.known = self._nodes, self.known
        found._claims = self._claims.again(found._hold, found._release)
        found.dealt = found._claims.held
        return found

    def begin(self, policy: CPUPolicy) -> None:
        """Give CPUs out as a revision says."""
        self.policy = policy
        for node in self._nodes.values():
            node.account = None
            node.refused.clear()
        self._columns = None
        self.version += 1

    # --- nodes ----------------------------------------------------------------------------------

    def set(self, node: str, topology: NodeCPUs) -> bool:
        """A node has these CPUs and zones; whether they are others than before."""
        known = self._node(node)
        if known.topology == topology:
            return False
        known.topology = topology
        self.known = True
        self._begun_anew(node)
        return True

    def remove(self, node: str) -> None:
        """Nothing is known of a node's CPUs any more. What pods have stays theirs."""
        known = self._nodes.get(node)
        if known is not None and known.topology is not None:
            known.topology = None
            self._begun_anew(node)
            self._forget(node)
            self.known = any(one.topology is not None for one in self._nodes.values())

    def node_came(self, node: str, row: int) -> None:
        """A node has a row, the next one."""
        self._rows[node] = row
        if self.known:
            self._begun_anew(node)

    def node_changed(self, node: str) -> None:
        """A node is another now: other rules may hold there."""
        known = self._nodes.get(node) if self.known else None
        if known is None or known.account is None or known.topology is None or self.policy is None:
            return
        account = known.account
        if self.policy.rules(self.facts_of(node), known.topology) != (account.rules, account.reserved_by):
            self._begun_anew(node)

    def node_left(self, node: str, row: int, moved: str) -> None:
        """A node's row is gone, and the last row, of the node `moved`, has taken its number."""
        self._rows[moved] = row
        self._rows.pop(node, None)
        if self.known:
            self._changed(moved)

    # --- what pods have ---------------------------------------------------------------------------

    def take(self, claim: CPUClaim) -> None:
        """A pod has so much from now on. What it had before is given back."""
        self._claims.take(claim)

    def give(self, claim: CPUClaim) -> None:
        """A pod has nothing any more."""
        if self._claims.give(claim):
            self._forget(claim.node)

    def came(self, pod: PodKey) -> None:
        """A pod is on its node, again perhaps."""
        self._claims.came(pod)

    def left(self, pod: PodKey) -> None:
        """A pod is not on its node, as far as is tried."""
        self._claims.left(pod)

    def owners(self, node: str) -> Mapping[PodKey, CPUClaim]:
        """Who has something of a node's CPUs and zones; a reserve pod what its owners have not."""
        return self._claims.on(node)

    def claim_of(self, pod: PodKey) -> CPUClaim | None:
        """What a pod has."""
        return self._claims.of(pod)

    def room_of(self, node: str, lender: str, *, only: bool) -> NodeRoom:
        """What a pod finds on a node that takes out of what the pod of a UID has there: that is free for it, and comes first.
        `only` means that CPUs come out of nothing else, where there are any.
        """
        kept = self._claims.kept_by(node, lender)
        if kept is None:
            return self.account(node).room
        self.left(kept.pod)
        try:
            room = self.account(node).room
        finally:
            self.came(kept.pod)
        cpus = kept.allocation.cpus
        return room._replace(preferred=cpus, free=room.free & cpus if only and cpus else room.free)

    # --- as they are ------------------------------------------------------------------------------

    def knows(self, node: str) -> bool:
        """Whether an object tells of a node's CPUs."""
        known = self._nodes.get(node)
        return known is not None and known.topology is not None

    def account(self, node: str) -> NodeAccount[PodKey]:
        """A node's CPUs and zones with what pods have of them. Not to be written."""
        known = self._nodes.get(node)
        if known is None or known.topology is None or self.policy is None:
            return _NOTHING
        if known.account is None:
            rules, reserved = self.policy.rules(self.facts_of(node), known.topology)
            known.account = NodeAccount(_as_sold(known.topology), rules, reserved)
            for claim in self.owners(node).values():
                _hold(known.account, claim)
        return known.account

    def why_not(self, node: str, needs: PodNeeds, providers: Iterable[HintProvider] = ()) -> str:
        """Why a node has no room for what a pod needs, tried out; empty where it has.

        Remembered until something changes there, but for what depends on others that provide hints.
        """
        assert self.policy is not None
        if others := tuple(providers):
            try:
                allocate(self.account(node).room, needs, self.policy.scoring, others)
            except NoRoom as problem:
                return str(problem)
            return ""
        known = self._node(node)
        found = known.refused.get(needs)
        if found is None:
            try:
                allocate(self.account(node).room, needs, self.policy.scoring)
                found = ""
            except NoRoom as problem:
                found = str(problem)
            known.refused[needs] = found
        return found

    def columns(self) -> RoomColumns:
        """The rooms of all nodes by row, and perhaps rows beyond that mean nothing."""
        columns = self._columns
        if columns is None or len(columns) < len(self._rows):
            columns = self._columns = RoomColumns(len(self._rows) + max(_SPARE, len(self._rows) // 8))
            columns.used = len(self._rows)
            self._stale = set(self._rows)
        for gone in range(len(self._rows), columns.used):
            columns.put(gone, _NOTHING.room)
        for node in self._stale:
            row = self._rows.get(node)
            if row is not None:
                columns.put(row, self.account(node).room)
        self._stale.clear()
        columns.used = len(self._rows)
        return columns

    @property
    def any_rules(self) -> bool:
        """Whether any node binds pods that do not ask for it, or keeps them in its zones."""
        if not self.known:
            return False
        if self._any_rules[0] != self.version:  # asked several times of every pod
            self._any_rules = self.version, self.columns().any_rules
        return self._any_rules[1]

    def sold(self) -> NDArray[np.float64]:
        """What the CPUs that pods own are sold for, in millicores, by row."""
        return self.columns().sold[: len(self._rows)]

    def ratios(self) -> NDArray[np.float64]:
        """How many times over CPU is sold, by row."""
        return self.columns().ratios[: len(self._rows)]

    # --- changes ----------------------------------------------------------------------------------

    def _hold(self, claim: CPUClaim) -> None:
        known = self._node(claim.node)
        if known.account is not None:
            _hold(known.account, claim)
        self._changed(claim.node)

    def _release(self, claim: CPUClaim) -> None:
        known = self._node(claim.node)
        if known.account is not None:
            known.account.give_back(claim.pod)
        self._changed(claim.node)

    def _begun_anew(self, node: str) -> None:
        known = self._nodes.get(node)
        if known is not None:
            known.account = None
        self._changed(node)

    def _changed(self, node: str) -> None:
        self.version += 1
        known = self._nodes.get(node)
        if known is not None:
            known.refused.clear()
        self._stale.add(node)

    def _node(self, name: str) -> _Node:
        found = self._nodes.get(name)
        if found is None:
            found = self._nodes[name] = _Node()
        return found

    def _forget(self, node: str) -> None:
        """Keep nothing of a node of which nothing is known."""
        known = self._nodes.get(node)
        if known is not None and known.topology is None and not self.owners(node):
            del self._nodes[node]


def _hold(account: NodeAccount[PodKey], claim: CPUClaim) -> None:
    """Have a claim count on its node."""
    allocation = claim.allocation
    if claim.by_node and account.rules.bind is BindPolicy.NONE:
        allocation = Allocation(zones=allocation.zones)
    account.hold(claim.pod, allocation, claim.exclusive)


def less(claim: CPUClaim, others: Sequence[CPUClaim]) -> CPUClaim:
    """What of a claim these have not, who take out of it."""
    cpus = claim.allocation.cpus.difference(*(other.allocation.cpus for other in others if not other.by_node))
    zones = {
        zone: {
            name: max(0, amount - sum(other.allocation.zones.get(zone, {}).get(name, 0) for other in others))
            for name, amount in amounts.items()
        }
        for zone, amounts in claim.allocation.zones.items()
    }
    return claim._replace(allocation=Allocation(cpus, zones))


def _as_sold(topology: NodeCPUs) -> NodeCPUs:
    """The amounts of zones before amplification, which accounts add themselves: some objects have it in them already."""
    ratio = topology.ratios.get(CPU, 1.0)
    if not ratio > 1.0:
        return topology
    zones = {
        zone: {**amounts, CPU: int(amounts[CPU] / ratio)} if CPU in amounts else amounts
        for zone, amounts in topology.zones.items()
    }
    return replace(topology, zones=zones)
