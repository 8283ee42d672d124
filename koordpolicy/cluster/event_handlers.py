"""What components hear of a cluster: one ordered table of resources and what their objects mean.

    handlers = EventHandlers(scheduler, unreadable=noted)
    for resource, mirror in handlers.mirrors.items(): ...an informer of its own keeps each up to date

Scheduler, manager, simulator, `explain pod` and `diff --cluster` are fed by it and read no objects themselves. An object
that cannot be read is noted and told of: it must not stop the others. `handle` says what holds of it then.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from koordpolicy.algorithms.work import Work
from koordpolicy.cluster.binding_seen import bound_view
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.pods import PodView
from koordpolicy.kube import Object, Resource, resources
from koordpolicy.kube.mirror import Mirror, ObjectChange
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.model.devices import read_devices
from koordpolicy.model.disruption import read_budget
from koordpolicy.model.facts.pod import namespace_facts
from koordpolicy.model.gang import read_kubernetes_pod_group, read_pod_group
from koordpolicy.model.metric import NodeMetric, read_node_metric
from koordpolicy.model.network_topology import read_network_topology
from koordpolicy.model.node import Node, read_node
from koordpolicy.model.numa import read_zones
from koordpolicy.model.pod import Pod, PodKey, read_pod
from koordpolicy.model.quota import read_quota
from koordpolicy.model.reservation import read_reservation, reserve_pod_key, schedulable
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.model.unreadable_pod import readable_part
from koordpolicy.model.volumes import (
    read_attach_limits,
    read_attachment,
    read_capacity_tracking,
    read_claim,
    read_storage_capacity,
    read_storage_class,
    read_volume,
)

if TYPE_CHECKING:
    from koordpolicy.cluster.state import (
        ClusterState,
    )  # whoever hears of nodes alone needs none of its tables


class ClusterListener(Protocol):
    """Who keeps a picture of a cluster. `set_...` says how something is now, `remove_...` that it is gone."""

    def set_state(self, change: "Callable[[ClusterState], bool | None]", event: Event | None) -> None:
        """Something beside nodes, reports and pods changes, as `change` does it.

        That says whether anything is another now (None: it may be); `event` is what it is for pods that wait.
        """

    def set_node(self, node: Node) -> None:
        """A node is new or has changed."""

    def remove_node(self, name: str) -> None:
        """A node is gone, or cannot be read."""

    def set_metric(self, metric: NodeMetric) -> None:
        """A node has reported."""

    def remove_metric(self, name: str) -> None:
        """A node's report is gone."""

    def assumed(self, key: PodKey) -> tuple[PodView, str] | None:
        """A pod whose binding is awaited, and its node: what is heard of it then need not be read as a whole."""

    def set_pod(self, pod: Pod, bound: PodView | None = None) -> None:
        """A pod is new or has changed; `bound` is its view where that is known."""

    def hold_back(self, pod: Pod) -> None:
        """A pod without a node cannot be read as a whole."""

    def remove_pod(self, key: PodKey) -> None:
        """A pod is gone."""


@dataclass(frozen=True, slots=True)
class EventHandler:
    """A resource, what an object of it means that is new or has changed, and what its end means.

    `on_unreadable` is what one means that cannot be read; None: what was read last holds.
    """

    resource: Resource
    on_update: Callable[[ClusterListener, Object], None]
    on_delete: Callable[[ClusterListener, Object], None]
    on_unreadable: Callable[[ClusterListener, Object], None] | None = None


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _key(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])


def _pod_update(listener: ClusterListener, obj: Object) -> None:
    # Most of what is heard of pods is our own bindings.
    assumed = listener.assumed(_key(obj))
    view = None if assumed is None else bound_view(*assumed, obj)
    if view is None:
        listener.set_pod(read_pod(obj))
    else:
        listener.set_pod(view.pod, view)


def _pod_unreadable(listener: ClusterListener, obj: Object) -> None:
    found = readable_part(obj)
    if found.node_name or found.terminal:
        listener.set_pod(found)
    else:
        listener.hold_back(found)


def _reservation_update(listener: ClusterListener, obj: Object) -> None:
    """What a Reservation is, and the pod in whose shape it waits for a node, or has one."""
    found = read_reservation(obj)
    pod = found.pod

    def change(state: "ClusterState") -> bool:
        nonlocal pod
        pod = state.reservations.pod(found)
        return state.reservations.set(found)

    listener.set_state(change, Event.RESERVATION_CHANGED)
    if found.over:
        listener.remove_pod(pod.key)
    elif schedulable(found):
        listener.set_pod(pod)
    else:
        listener.hold_back(pod)


def _reservation_delete(listener: ClusterListener, obj: Object) -> None:
    key = reserve_pod_key(obj)
    uid = str(obj["metadata"].get("uid") or "")
    listener.set_state(lambda state: state.reservations.remove(uid), Event.RESERVATION_CHANGED)
    listener.remove_pod(key)


_Update: TypeAlias = "Callable[[ClusterState, Object], bool | None]"
_Delete: TypeAlias = "Callable[[ClusterState, str, str], bool | None]"


def _state(
    resource: Resource,
    update: _Update,
    delete: _Delete,
    event: Event | None,
    *,
    drop_unreadable: bool = False,
) -> EventHandler:
    """The handler of what stands beside nodes, reports and pods; `event` is what a change is for pods that wait."""

    def on_update(listener: ClusterListener, obj: Object) -> None:
        listener.set_state(lambda state: update(state, obj), event)

    def on_delete(listener: ClusterListener, obj: Object) -> None:
        listener.set_state(lambda state: delete(state, *_key(obj)), event)

    return EventHandler(resource, on_update, on_delete, on_delete if drop_unreadable else None)


def _controller(resource: Resource) -> EventHandler:
    kind = resource.kind
    return _state(
        resource,
        lambda state, obj: state.workloads.set_controller(kind, obj),
        lambda state, namespace, name: state.workloads.remove_controller(kind, namespace, name),
        # Which pods count for another one may be others now.
        Event.POD_CHANGED,
    )


EVENT_HANDLERS: Final[tuple[EventHandler, ...]] = (
    _state(
        resources.NAMESPACES,
        lambda state, obj: state.set_namespace(namespace_facts(obj)),
        lambda state, _, name: state.remove_namespace(name),
        Event.NAMESPACE_CHANGED,
    ),
    EventHandler(
        resources.NODES,
        lambda listener, obj: listener.set_node(read_node(obj)),
        lambda listener, obj: listener.remove_node(_name(obj)),
        lambda listener, obj: listener.remove_node(_name(obj)),
    ),
    EventHandler(
        resources.NODE_METRICS,
        lambda listener, obj: listener.set_metric(read_node_metric(obj)),
        lambda listener, obj: listener.remove_metric(_name(obj)),
    ),
    _state(
        resources.NODE_RESOURCE_TOPOLOGIES,
        lambda state, obj: state.set_zones(_name(obj), read_zones(obj), obj),
        lambda state, _, name: state.remove_zones(name),
        Event.CPUS_CHANGED,
        # What zones offer is written into the object: not into one that says something else by now.
        drop_unreadable=True,
    ),
    _state(
        resources.DEVICES,
        lambda state, obj: state.set_devices(_name(obj), read_devices(obj)),
        lambda state, _, name: state.remove_devices(name),
        Event.DEVICES_CHANGED,
    ),
    _state(
        resources.CLUSTER_NETWORK_TOPOLOGIES,
        lambda state, obj: state.network.set_topology(read_network_topology(obj)),
        lambda state, _, name: state.network.remove_topology(name),
        Event.NETWORK_CHANGED,
    ),
    _state(
        resources.POD_DISRUPTION_BUDGETS,
        lambda state, obj: state.budgets.set(read_budget(obj)),
        lambda state, namespace, name: state.budgets.remove(namespace, name),
        None,
    ),
    _state(
        resources.POD_GROUPS,
        lambda state, obj: state.pod_groups.set(read_pod_group(obj)),
        lambda state, namespace, name: state.pod_groups.remove(namespace, name),
        Event.POD_GROUP_CHANGED,
    ),
    _state(
        resources.KUBERNETES_POD_GROUPS,
        lambda state, obj: state.pod_groups.set(read_kubernetes_pod_group(obj)),
        lambda state, namespace, name: state.pod_groups.remove(namespace, name, of_kubernetes=True),
        Event.POD_GROUP_CHANGED,
    ),
    _state(
        resources.STORAGE_CLASSES,
        lambda state, obj: state.volumes.set_class(read_storage_class(obj)),
        lambda state, _, name: state.volumes.remove_class(name),
        Event.VOLUMES_CHANGED,
    ),
    _state(
        resources.CSI_DRIVERS,
        lambda state, obj: state.volumes.set_tracking(*read_capacity_tracking(obj)),
        lambda state, _, name: state.volumes.remove_tracking(name),
        Event.VOLUMES_CHANGED,
    ),
    _state(
        resources.CSI_NODES,
        lambda state, obj: state.volumes.set_limits(*read_attach_limits(obj)),
        lambda state, _, name: state.volumes.remove_limits(name),
        Event.VOLUMES_CHANGED,
    ),
    _state(
        resources.CSI_STORAGE_CAPACITIES,
        lambda state, obj: state.volumes.set_capacity(read_storage_capacity(obj)),
        lambda state, namespace, name: state.volumes.remove_capacity(namespace, name),
        Event.VOLUMES_CHANGED,
    ),
    _state(
        resources.PERSISTENT_VOLUMES,
        lambda state, obj: state.volumes.set_volume(read_volume(obj)),
        lambda state, _, name: state.volumes.remove_volume(name),
        Event.VOLUMES_CHANGED,
    ),
    _state(
        resources.PERSISTENT_VOLUME_CLAIMS,
        lambda state, obj: state.volumes.set_claim(read_claim(obj)),
        lambda state, namespace, name: state.volumes.remove_claim((namespace, name)),
        Event.VOLUMES_CHANGED,
    ),
    _state(
        resources.VOLUME_ATTACHMENTS,
        lambda state, obj: state.volumes.set_attachment(read_attachment(obj)),
        lambda state, _, name: state.volumes.remove_attachment(name),
        Event.VOLUMES_CHANGED,
    ),
    _state(
        resources.ELASTIC_QUOTAS,
        lambda state, obj: state.quotas.set(read_quota(obj)),
        lambda state, namespace, name: state.quotas.remove(namespace, name),
        Event.QUOTA_CHANGED,
    ),
    _state(
        resources.SERVICES,
        lambda state, obj: state.workloads.set_service(obj),
        lambda state, namespace, name: state.workloads.remove_service(namespace, name),
        Event.POD_CHANGED,
    ),
    _controller(resources.REPLICATION_CONTROLLERS),
    _controller(resources.REPLICA_SETS),
    _controller(resources.STATEFUL_SETS),
    EventHandler(resources.RESERVATIONS, _reservation_update, _reservation_delete),
    EventHandler(
        resources.PODS,
        _pod_update,
        lambda listener, obj: listener.remove_pod(_key(obj)),
        _pod_unreadable,
    ),
)
"""In the order in which they are to be known: what pods depend on comes before them."""


EVERY_RESOURCE: Final = tuple(handler.resource for handler in EVENT_HANDLERS)


def handle(handler: EventHandler, listener: ClusterListener, obj: Object) -> Unreadable | None:
    """Let a listener know an object as it is now; why it cannot be read, if so.

    A node that cannot be read is no candidate. A pod that is bound takes what can be read of it, and all of its node
    where that cannot be told; one that waits is not tried. A topology counts as gone. Of anything else, what was read
    last holds.
    """
    why = readable(lambda one: handler.on_update(listener, one), obj)
    if not isinstance(why, Unreadable):
        return None
    means = handler.on_unreadable
    if means is not None:
        readable(lambda one: means(listener, one), obj)
    return why


def replay(
    objects: Callable[[Resource], Iterable[Object]],
    listener: ClusterListener,
    wanted: Collection[Resource] = EVERY_RESOURCE,
) -> Iterator[tuple[Resource, Object, Unreadable]]:
    """Let a listener know a cluster that is at rest; gives what cannot be read of it. Has to be run through."""
    for handler in EVENT_HANDLERS:
        if handler.resource in wanted:
            for obj in objects(handler.resource):
                why = handle(handler, listener, obj)
                if why is not None:
                    yield handler.resource, obj, why


class EventHandlers:
    """A mirror for each resource that tells a listener of every change.

    `unreadable` is where objects are noted that cannot be read. `after` is called once the listener knows a change.
    """

    def __init__(
        self,
        listener: ClusterListener,
        *,
        unreadable: UnreadableObjects,
        wanted: Collection[Resource] = EVERY_RESOURCE,
        after: Callable[[Resource, ObjectChange], None] = lambda resource, change: None,
    ) -> None:
        self._listener = listener
        self._after = after
        self._unreadable = unreadable
        self.mirrors: Mapping[Resource, Mirror] = MappingProxyType(
            {
                handler.resource: self._mirror(handler)
                for handler in EVENT_HANDLERS
                if handler.resource in wanted
            }
        )

    def repeat(self, listener: ClusterListener) -> Work[None]:
        """Let another listener know all that was heard; what is heard meanwhile has to reach it, too."""
        for handler in EVENT_HANDLERS:
            mirror = self.mirrors.get(handler.resource)
            if mirror is None:
                continue
            for key, obj in tuple(mirror.objects.items()):
                yield
                if mirror.objects.get(key) is obj:
                    handle(handler, listener, obj)  # what cannot be read has been noted

    def _mirror(self, handler: EventHandler) -> Mirror:
        def without_name(obj: Object, why: Unreadable) -> None:
            self._unreadable.found(handler.resource, _NAMELESS, obj, why)

        return Mirror(handlers=(self._told(handler),), on_unreadable=without_name, in_steps=True)

    def _told(self, handler: EventHandler) -> Callable[[ObjectChange], None]:
        listener, noted, resource = self._listener, self._unreadable, handler.resource

        def tell(change: ObjectChange) -> None:
            if change.new is None:
                assert change.old is not None
                noted.gone(resource, change.key)
                handler.on_delete(listener, change.old)
            else:
                why = handle(handler, listener, change.new)
                if why is None:
                    noted.gone(resource, change.key)
                else:
                    noted.found(resource, change.key, change.new, why)
            self._after(resource, change)

        return tell


_NAMELESS: Final = ("", "")
"""Stands for all objects of a resource that have no name."""
