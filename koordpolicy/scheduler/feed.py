"""What the scheduler hears of the cluster: one ordered table of resources and what their changes mean.

    feed = Feed(scheduler, on_trouble=log)
    for resource, mirror in feed.mirrors.items(): ...an informer of its own keeps each up to date

An object that cannot be read is noted and told of: it must not stop the others. `hear` says what holds of it then.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from koordpolicy.kube import Object, Resource, resources
from koordpolicy.kube.mirror import Change, Mirror
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.model.disruption import read_budget
from koordpolicy.model.metric import read_node_metric
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import read_pod
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.model.unreadable_pod import readable_part
from koordpolicy.scheduler.binding_seen import bound_view
from koordpolicy.scheduler.feed_around import AROUND, HeardAround
from koordpolicy.scheduler.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Heard:
    """A resource, what an object of it means for the scheduler, and what its end means.

    `is_unreadable` is what one means that cannot be read; None: what was read last holds.
    """

    resource: Resource
    is_now: Callable[[Scheduler, Object], None]
    is_gone: Callable[[Scheduler, Object], None]
    is_unreadable: Callable[[Scheduler, Object], None] | None = None


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _key(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])


def _pod_is_now(scheduler: Scheduler, obj: Object) -> None:
    # Most of what is heard of pods is our own bindings.
    assumed = scheduler.assumed(_key(obj))
    view = None if assumed is None else bound_view(*assumed, obj)
    if view is None:
        scheduler.set_pod(read_pod(obj))
    else:
        scheduler.set_pod(view.pod, view)


def _pod_is_unreadable(scheduler: Scheduler, obj: Object) -> None:
    found = readable_part(obj)
    if found.node_name or found.terminal:
        scheduler.set_pod(found)
    else:
        scheduler.hold_back(found)


def _around(one: HeardAround) -> Heard:
    return Heard(
        one.resource,
        lambda scheduler, obj: scheduler.set_state(lambda state: one.is_now(state, obj), one.event),
        lambda scheduler, obj: scheduler.set_state(lambda state: one.is_gone(state, *_key(obj)), one.event),
    )


HEARD: Final[tuple[Heard, ...]] = (
    Heard(
        resources.NAMESPACES,
        lambda scheduler, obj: scheduler.set_namespace(obj),
        lambda scheduler, obj: scheduler.remove_namespace(_name(obj)),
    ),
    Heard(
        resources.NODES,
        lambda scheduler, obj: scheduler.set_node(read_node(obj)),
        lambda scheduler, obj: scheduler.remove_node(_name(obj)),
        lambda scheduler, obj: scheduler.remove_node(_name(obj)),
    ),
    Heard(
        resources.NODE_METRICS,
        lambda scheduler, obj: scheduler.set_metric(read_node_metric(obj)),
        lambda scheduler, obj: scheduler.remove_metric(_name(obj)),
    ),
    Heard(
        resources.POD_DISRUPTION_BUDGETS,
        lambda scheduler, obj: scheduler.set_budget(read_budget(obj)),
        lambda scheduler, obj: scheduler.remove_budget(*_key(obj)),
    ),
    *(_around(one) for one in AROUND),
    Heard(
        resources.PODS,
        _pod_is_now,
        lambda scheduler, obj: scheduler.remove_pod(_key(obj)),
        _pod_is_unreadable,
    ),
)
"""In the order in which they are to be known: what pods depend on comes before them."""


def hear(heard: Heard, scheduler: Scheduler, obj: Object) -> Unreadable | None:
    """Let a scheduler know an object as it is now; why it cannot be read, if so.

    A node that cannot be read is no candidate. A pod that is bound takes what can be read of it, and all of its node
    where that cannot be told; one that waits is not tried. Of anything else, what was read last holds.
    """
    why = readable(lambda one: heard.is_now(scheduler, one), obj)
    if not isinstance(why, Unreadable):
        return None
    means = heard.is_unreadable
    if means is not None:
        readable(lambda one: means(scheduler, one), obj)
    return why


class Feed:
    """A mirror for each resource that tells the scheduler of every change, and then `wake`.

    `unreadable` is where objects are noted that cannot be read.
    """

    def __init__(
        self, scheduler: Scheduler, *, wake: Callable[[], None], unreadable: UnreadableObjects
    ) -> None:
        self._scheduler = scheduler
        self._wake = wake
        self._unreadable = unreadable
        self.mirrors: Mapping[Resource, Mirror] = MappingProxyType(
            {heard.resource: self._mirror(heard) for heard in HEARD}
        )

    def _mirror(self, heard: Heard) -> Mirror:
        def without_name(obj: Object, why: Unreadable) -> None:
            self._unreadable.found(heard.resource, _NAMELESS, obj, why)

        return Mirror(handlers=(self._handler(heard),), on_unreadable=without_name)

    def _handler(self, heard: Heard) -> Callable[[Change], None]:
        scheduler, noted, resource = self._scheduler, self._unreadable, heard.resource

        def tell(change: Change) -> None:
            if change.new is None:
                assert change.old is not None
                noted.gone(resource, change.key)
                heard.is_gone(scheduler, change.old)
            else:
                why = hear(heard, scheduler, change.new)
                if why is None:
                    noted.gone(resource, change.key)
                else:
                    noted.found(resource, change.key, change.new, why)
            self._wake()

        return tell


_NAMELESS: Final = ("", "")
"""Stands for all objects of a resource that have no name."""
