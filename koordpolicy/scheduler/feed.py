"""What the scheduler hears of the cluster: one ordered table of resources and what their changes mean.

    feed = Feed(scheduler, on_trouble=log)
    for resource, mirror in feed.mirrors.items(): ...an informer of its own keeps each up to date

A malformed object is reported and passed over: it must not stop the others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from koordpolicy.kube import Object, Resource, resources
from koordpolicy.kube.mirror import Change, Mirror
from koordpolicy.model.disruption import read_budget
from koordpolicy.model.metric import read_node_metric
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import read_pod
from koordpolicy.model.reading import ObjectError
from koordpolicy.scheduler.binding_seen import bound_view
from koordpolicy.scheduler.feed_around import AROUND, HeardAround
from koordpolicy.scheduler.scheduler import Scheduler

Trouble: TypeAlias = Callable[[Resource, Object, ObjectError], None]


@dataclass(frozen=True, slots=True)
class Heard:
    """A resource, what an object of it means for the scheduler, and what its end means."""

    resource: Resource
    is_now: Callable[[Scheduler, Object], None]
    is_gone: Callable[[Scheduler, Object], None]


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


def _around(one: HeardAround) -> Heard:
    return Heard(
        one.resource,
        lambda scheduler, obj: scheduler.set_around(lambda around: one.is_now(around, obj), one.event),
        lambda scheduler, obj: scheduler.set_around(
            lambda around: one.is_gone(around, *_key(obj)), one.event
        ),
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
    ),
)
"""In the order in which they are to be known: what pods depend on comes before them."""


class Feed:
    """A mirror for each resource that tells the scheduler of every change, and then `wake`."""

    def __init__(self, scheduler: Scheduler, *, wake: Callable[[], None], on_trouble: Trouble) -> None:
        self._scheduler = scheduler
        self._wake = wake
        self._on_trouble = on_trouble
        self.mirrors: Mapping[Resource, Mirror] = MappingProxyType(
            {heard.resource: Mirror(handlers=(self._handler(heard),)) for heard in HEARD}
        )

    def _handler(self, heard: Heard) -> Callable[[Change], None]:
        scheduler = self._scheduler

        def tell(change: Change) -> None:
            if change.new is None:
                assert change.old is not None
                heard.is_gone(scheduler, change.old)
            else:
                try:
                    heard.is_now(scheduler, change.new)
                except ObjectError as problem:
                    self._on_trouble(heard.resource, change.new, problem)
            self._wake()

        return tell
