"""What a filter or score may have to know beside the node that it is asked about.

Everything here is kept from events, and asked for by row of the node table: the cache tells of every row
that comes, goes or moves, and of every pod that comes to a node or leaves it.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from koordpolicy.cluster.budgets import Budgets
from koordpolicy.cluster.cpu_accounts import CPUAccounts
from koordpolicy.cluster.device_cards import DeviceCards
from koordpolicy.cluster.domains import Topology
from koordpolicy.cluster.images import NodeImages
from koordpolicy.cluster.label_sets import PodLabelSets
from koordpolicy.cluster.network import ClusterNetwork
from koordpolicy.cluster.pod_groups import PodGroups
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.ports import UsedPorts
from koordpolicy.cluster.quotas import Quotas
from koordpolicy.cluster.reservations import Reservations
from koordpolicy.cluster.terms import TermBook
from koordpolicy.cluster.undo_log import UndoLog
from koordpolicy.cluster.volumes import Volumes
from koordpolicy.cluster.workloads import Workloads
from koordpolicy.cluster.zones_and_devices import ZonesAndDevices
from koordpolicy.model.cpu_topology import read_node_cpus
from koordpolicy.model.devices import NodeDevices
from koordpolicy.model.facts import Record
from koordpolicy.model.images import node_images
from koordpolicy.model.neighbours import ALONE, Neighbours
from koordpolicy.model.node import Node
from koordpolicy.model.numa import Zone
from koordpolicy.model.pod_ports import HostPort
from koordpolicy.model.pod_volumes import NO_VOLUMES, PodVolumes
from koordpolicy.model.reading import NOTHING, Json, ObjectError

T = TypeVar("T")

_NO_PORTS: tuple[HostPort, ...] = ()


TERMS: Final = 1
RESERVATIONS: Final = 2
CPUS: Final = 4
DEVICES: Final = 8
PLANS: Final = 16
"""What `ClusterState.present` is made of: affinities and anti-affinities of pods on nodes, reservations that others may have to make
way for, nodes of which CPUs or devices are dealt out one by one, gangs whose pods have a node planned.
"""


class ClusterState(ZonesAndDevices):
    """All of it.

    `apart`, `near` and `wishes` are what pods on nodes say of others: required anti-affinity, required
    affinity, and preferred ones by weight. `namespaces` are their facts by name, `zones` the NUMA zones and `devices` the devices by node. `undo` is
    where changes are noted that are only tried.
    """

    __slots__ = (
        "apart", "budgets", "cards", "cpus", "images", "label_sets", "namespaces", "near", "network", "pod_groups", "ports", "quotas",
        "reservations", "topology", "undo", "volumes", "wishes", "workloads",
    )  # fmt: skip

    def __init__(self, undo: UndoLog | None = None) -> None:
        super().__init__()
        self.undo = undo or UndoLog()
        self.namespaces: dict[str, Record] = {}
        self.budgets = Budgets()
        self.topology = Topology()
        self.network = ClusterNetwork()
        self.label_sets = PodLabelSets()
        self.apart = TermBook()
        self.near = TermBook()
        self.wishes = TermBook()
        self.ports = UsedPorts()
        self.images = NodeImages()
        self.volumes = Volumes(self.undo)
        self.workloads = Workloads()
        self.pod_groups = PodGroups()
        self.quotas = Quotas(self.undo, self.namespaces)
        self.reservations = Reservations()
        self.cards = DeviceCards(self.undo)
        self.cpus = CPUAccounts(self.undo)

    def again(self) -> "ClusterState":
        """The same without nodes and pods, which are to come anew."""
        found = ClusterState(self.undo)
        found.namespaces = self.namespaces
        found.budgets = self.budgets
        found.zones = self.zones
        found.devices = self.devices
        found.label_sets = self.label_sets.again()
        found.network = self.network.again()
        found.volumes = self.volumes.again()
        found.workloads = self.workloads
        found.pod_groups = self.pod_groups
        found.quotas = self.quotas
        found.reservations = self.reservations
        found.cards = self.cards.again()
        found.cpus = self.cpus.again()
        found.quotas.begin(None)
        return found

    # --- what stands by itself ------------------------------------------------------------------

    @property
    def present(self) -> int:
        """Which things are there by which a plugin may have something to say of any pod, as bits. Asked of every decision."""
        return (
            (TERMS if self.apart or self.near or self.wishes else 0)
            | (RESERVATIONS if self.reservations.make_way else 0)
            | (CPUS if self.cpus.known else 0)
            | (DEVICES if self.cards.known else 0)
            | (PLANS if self.network.planned else 0)
        )

    def present_for(self, view: PodView) -> int:
        """The same for one pod: who gets CPUs of its own may have to stay away from nodes of whose CPUs nobody tells."""
        return self.present | CPUS if view.owns_cpus else self.present

    def set_namespace(self, facts: Record) -> bool:
        """A namespace has these facts now; whether its labels are others."""
        name = str(facts["name"])
        self.namespaces[name] = facts
        self.quotas.namespace_changed(name)
        return self.label_sets.name_space(name, facts["labels"])  # type: ignore[arg-type]  # the fact's type says so

    def remove_namespace(self, name: str) -> bool:
        """A namespace is gone; whether it had labels."""
        self.namespaces.pop(name, None)
        return self.label_sets.name_space(name, None)

    def set_zones(self, node: str, zones: tuple[Zone, ...], raw: Json) -> bool:
        """A node has these NUMA zones and CPUs, as an object says; whether its CPUs are others. Raises ObjectError."""
        cpus = read_node_cpus(raw)
        super().set_zones(node, zones, raw)
        return self.cpus.set(node, cpus)

    def remove_zones(self, node: str) -> None:
        """Nothing is known of a node's zones any more."""
        super().remove_zones(node)
        self.cpus.remove(node)

    def set_devices(self, node: str, devices: NodeDevices) -> None:
        """A node has these devices, as an object says."""
        super().set_devices(node, devices)
        self.cards.set(node, devices)

    def remove_devices(self, node: str) -> None:
        """Nothing is known of a node's devices any more."""
        super().remove_devices(node)
        self.cards.remove(node)

    # --- nodes ----------------------------------------------------------------------------------

    def node_came(self, node: Node, row: int, pods: Iterable[PodView]) -> None:
        """A node has a row, the next one; these pods are on it."""
        self.topology.put(row, node.labels)
        self.network.put(row, node.name, node.labels)
        self.quotas.node_offers(node.name, node.allocatable)
        self.images.put(row, _or(lambda: node_images(node.raw), NOTHING))
        self.volumes.node_came(node.name, row)
        self.cards.node_came(node.name, row)
        self.cpus.node_came(node.name, row)
        for pod in pods:
            self._count(pod, row, 1)

    def node_changed(self, before: Node, node: Node, row: int) -> None:
        """A node is another now."""
        self.topology.put(row, node.labels)
        self.network.put(row, node.name, node.labels)
        if before.allocatable is not node.allocatable:
            self.quotas.node_offers(node.name, node.allocatable)
        if before.raw is not node.raw:
            self.images.put(row, _or(lambda: node_images(node.raw), NOTHING))
        if self.cpus.known:
            self.cpus.node_changed(node.name)

    def node_left(self, name: str, row: int, last: int, moved: str, pods: Iterable[PodView]) -> None:
        """A node's row is gone, and the last row, of the node `moved`, has taken its number."""
        for pod in pods:
            self._count(pod, row, -1)
        self.quotas.node_offers(name, None)
        self.topology.drop(row)
        self.images.drop(row)
        self.volumes.node_left(name, row, last, moved)
        self.cards.node_left(name, row, moved)
        self.cpus.node_left(name, row, moved)
        for part in (self.label_sets, self.apart, self.near, self.wishes, self.ports, self.network):
            part.drop(row, last)

    # --- pods -----------------------------------------------------------------------------------

    def pod_came(self, pod: PodView, row: int | None) -> None:
        """A pod is on a node; `row` is None for one that is not known."""
        if self.cards.dealt:
            self.cards.came(pod.pod.key)
        if self.cpus.dealt:
            self.cpus.came(pod.pod.key)
        if self.quotas.active:
            self.quotas.came(pod)
            if self.undo.depth:
                self.undo.note(lambda: self.quotas.left(pod))
        if row is not None:
            self._count(pod, row, 1)
            if self.undo.depth:
                self.undo.note(lambda: self._count(pod, row, -1))

    def pod_left(self, pod: PodView, row: int | None) -> None:
        """A pod is not on a node any more."""
        if self.cards.dealt:
            self.cards.left(pod.pod.key)
        if self.cpus.dealt:
            self.cpus.left(pod.pod.key)
        if self.quotas.active:
            self.quotas.left(pod)
            if self.undo.depth:
                self.undo.note(lambda: self.quotas.came(pod))
        if row is not None:
            self._count(pod, row, -1)
            if self.undo.depth:
                self.undo.note(lambda: self._count(pod, row, 1))

    def _count(self, view: PodView, row: int, sign: int) -> None:
        pod = view.pod
        if sign > 0:
            self.label_sets.add(view.kind, pod.labels, row)
        else:
            self.label_sets.remove(view.kind, row)
        if view.plain:
            return
        if view.network_group:
            self.network.count(view.network_group, row, sign)
        ports = _or(lambda: view.ports, _NO_PORTS)
        if ports:
            (self.ports.add if sign > 0 else self.ports.remove)(ports, row)
        volumes: PodVolumes = _or(lambda: view.volumes, NO_VOLUMES)
        if volumes is not NO_VOLUMES:
            self.volumes.add_pod(pod.namespace, volumes, row, sign)
        wants: Neighbours = _or(lambda: view.neighbours, ALONE)
        if wants is ALONE:
            return
        for book, terms in ((self.apart, wants.apart), (self.near, wants.near)):
            for term in terms:
                (book.add if sign > 0 else book.remove)(term, row)
        for wish in wants.wishes:
            (self.wishes.add if sign > 0 else self.wishes.remove)(wish.term, row, wish.weight)


def _or(read: Callable[[], T], otherwise: T) -> T:
    """What a pod on a node says; nothing where that cannot be read: it is there all the same."""
    try:
        return read()
    except ObjectError:
        return otherwise
