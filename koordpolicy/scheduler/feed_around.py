"""What the scheduler hears of volumes, services and controllers: one ordered table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from koordpolicy.cluster import ClusterState
from koordpolicy.cluster.events import Event
from koordpolicy.kube import Object, Resource, resources
from koordpolicy.model.volumes import (
    read_attach_limits,
    read_attachment,
    read_capacity_tracking,
    read_claim,
    read_storage_capacity,
    read_storage_class,
    read_volume,
)


@dataclass(frozen=True, slots=True)
class HeardAround:
    """A resource, what an object of it means for the surroundings, and what its end means.

    Those say whether anything is another now (None: it may be); `event` is what that is for waiting pods.
    """

    resource: Resource
    is_now: Callable[[ClusterState, Object], bool | None]
    is_gone: Callable[[ClusterState, str, str], bool | None]
    event: Event = Event.VOLUMES_CHANGED


def _controller(resource: Resource) -> HeardAround:
    kind = resource.kind
    return HeardAround(
        resource,
        lambda state, obj: state.workloads.set_controller(kind, obj),
        lambda state, namespace, name: state.workloads.remove_controller(kind, namespace, name),
        # Which pods count for another one may be others now.
        Event.POD_CHANGED,
    )


AROUND: Final[tuple[HeardAround, ...]] = (
    HeardAround(
        resources.STORAGE_CLASSES,
        lambda state, obj: state.volumes.set_class(read_storage_class(obj)),
        lambda state, _, name: state.volumes.remove_class(name),
    ),
    HeardAround(
        resources.CSI_DRIVERS,
        lambda state, obj: state.volumes.set_tracking(*read_capacity_tracking(obj)),
        lambda state, _, name: state.volumes.remove_tracking(name),
    ),
    HeardAround(
        resources.CSI_NODES,
        lambda state, obj: state.volumes.set_limits(*read_attach_limits(obj)),
        lambda state, _, name: state.volumes.remove_limits(name),
    ),
    HeardAround(
        resources.CSI_STORAGE_CAPACITIES,
        lambda state, obj: state.volumes.set_capacity(read_storage_capacity(obj)),
        lambda state, namespace, name: state.volumes.remove_capacity(namespace, name),
    ),
    HeardAround(
        resources.PERSISTENT_VOLUMES,
        lambda state, obj: state.volumes.set_volume(read_volume(obj)),
        lambda state, _, name: state.volumes.remove_volume(name),
    ),
    HeardAround(
        resources.PERSISTENT_VOLUME_CLAIMS,
        lambda state, obj: state.volumes.set_claim(read_claim(obj)),
        lambda state, namespace, name: state.volumes.remove_claim((namespace, name)),
    ),
    HeardAround(
        resources.VOLUME_ATTACHMENTS,
        lambda state, obj: state.volumes.set_attachment(read_attachment(obj)),
        lambda state, _, name: state.volumes.remove_attachment(name),
    ),
    HeardAround(
        resources.SERVICES,
        lambda state, obj: state.workloads.set_service(obj),
        lambda state, namespace, name: state.workloads.remove_service(namespace, name),
        Event.POD_CHANGED,
    ),
    _controller(resources.REPLICATION_CONTROLLERS),
    _controller(resources.REPLICA_SETS),
    _controller(resources.STATEFUL_SETS),
)
"""In the order in which they are to be known."""
