"""Pods as the scheduler sees them: the object, its facts, what it takes from a node."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar, overload

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.algorithms.pod_request import (
    effective_requests,
    nonzero_requests,
    occupied_nonzero_requests,
    occupied_requests,
)
from koordpolicy.algorithms.records import pod_record
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.load import estimate_facts, estimation_facts
from koordpolicy.model.images import pod_images
from koordpolicy.model.neighbours import ALONE, Neighbours, read_neighbours
from koordpolicy.model.placement import ANYWHERE, Placement, read_placement
from koordpolicy.model.pod import Pod, owned_cpus
from koordpolicy.model.pod_ports import HostPort, host_ports
from koordpolicy.model.pod_reservations import (
    NO_RESERVATIONS,
    PodReservations,
    operates_as_reservation,
    read_pod_reservations,
)
from koordpolicy.model.pod_volumes import NO_VOLUMES, PodVolumes, read_pod_volumes
from koordpolicy.model.protocol import (
    CPU,
    DEVICE_ALLOCATED,
    NETWORK_TOPOLOGY_SELECTOR,
    RESOURCE_STATUS,
    SCHEDULER_NAME,
)
from koordpolicy.model.reading import Amounts, ObjectError
from koordpolicy.model.scheduling_hint import hinted_nodes, preferred_nodes

T = TypeVar("T")

_DEALT: Final = frozenset({RESOURCE_STATUS, DEVICE_ALLOCATED})
"""Annotations that say which CPUs and devices a pod has."""


KindKey = tuple[str, frozenset[tuple[str, str]], bool]
"""What pods of one kind have in common: namespace, labels, and whether they are being deleted."""


class _Once(Generic[T]):
    """A property that is computed when it is first asked for. Unlike the library's it takes no lock, which
    costs more than most of these; and it remembers an ObjectError as well, since pods that wait are asked again and again.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self._unreadable = f"{name} is unreadable"

    @overload
    def __get__(self, view: None, owner: type) -> "_Once[T]": ...
    @overload
    def __get__(self, view: object, owner: type) -> T: ...
    def __get__(self, view: object | None, owner: type) -> "_Once[T] | T":
        if view is None:
            return self
        known = view.__dict__
        if self._unreadable in known:
            raise ObjectError(known[self._unreadable])
        try:
            # From then on the value hides this property.
            found = known[self._name] = self._compute(view)
        except ObjectError as error:
            known[self._unreadable] = str(error)
            raise
        return found


@dataclass(frozen=True)
class PodView:
    """A pod with what follows from it and policy alone.

    `facts` are those of the fact `pod` without `queuedAt`; `estimate` is what policy estimates it to use,
    None where it does not. `placement`, `neighbours`, `ports`, `images` and `volumes` are read when they
    are first asked for, and raise ObjectError for a spec that cannot be read.
    """

    pod: Pod
    facts: Record
    estimate: Amounts | None = None
    owns_cpus: bool = False
    """Whether policy gives it CPUs of its own, and may keep it from nodes of whose CPUs nobody tells."""

    @_Once
    def placement(self) -> Placement:
        """Selector, affinity, tolerations and gates, and the nodes that its hint leaves."""
        placement = read_placement(self.pod.raw) if self.pod.raw else ANYWHERE
        among = hinted_nodes(self.pod.annotations)
        return replace(placement, among=among) if among else placement

    @_Once
    def preferred_nodes(self) -> tuple[str, ...]:
        """The nodes that its hint prefers, the first most. Raises ObjectError."""
        return preferred_nodes(self.pod.annotations)

    @_Once
    def neighbours(self) -> Neighbours:
        """What it says of other pods."""
        return read_neighbours(self.pod.raw, self.pod.namespace) if self.pod.raw else ALONE

    @property
    def network_group(self) -> str:
        """What groups it with pods that it is to be near in the network; empty for nothing."""
        return self.pod.annotations.get(NETWORK_TOPOLOGY_SELECTOR, "")

    @_Once
    def ports(self) -> tuple[HostPort, ...]:
        """The ports of its node that it takes."""
        return host_ports(self.pod.raw) if self.pod.raw else ()

    @_Once
    def reservations(self) -> PodReservations:
        """What it says of reservations."""
        pod = self.pod
        return read_pod_reservations(pod.labels, pod.annotations) if pod.raw else NO_RESERVATIONS

    @_Once
    def says_nothing_of_reservations(self) -> bool:
        """Whether it neither takes from any, nor is one, nor keeps its room as one does."""
        pod = self.pod
        return (
            not pod.reservation
            and not operates_as_reservation(pod.labels)
            and self.reservations is NO_RESERVATIONS
        )

    @_Once
    def images(self) -> tuple[str, ...]:
        """The images of its containers."""
        return pod_images(self.pod.raw)

    @_Once
    def volumes(self) -> PodVolumes:
        """Its volumes, as far as they matter to where it may go."""
        return read_pod_volumes(self.pod.raw, self.pod.name) if self.pod.raw else NO_VOLUMES

    @_Once
    def plain_request(self) -> Amounts:
        """The request without pod-level resources, which the score by fit leaves out."""
        return effective_requests(self.pod, pod_level=False) if self.pod.pod_requests else self._request

    @_Once
    def plain_nonzero_request(self) -> Amounts:
        """The same with the scheduler's defaults for what containers don't ask for."""
        if self.pod.pod_requests:
            return nonzero_requests(self.pod, pod_level=False)
        return self._nonzero_request

    @_Once
    def occupied(self) -> Amounts:
        """What it takes from its node."""
        return occupied_requests(self.pod) if self._runs else self._request

    @_Once
    def owned_cpu(self) -> int:
        """Millicores of the CPUs that it has for itself, as its annotation says: no more than it takes of CPU, as anything may stand
        there. 0 where that is unreadable.
        """
        own = own_millicores(self.pod)
        return min(own, self.occupied.get(CPU, 0)) if own else 0

    @_Once
    def kind(self) -> KindKey:
        """Which kind of pod it is to others."""
        return kind_of(self.pod.namespace, self.pod.labels, self.pod.terminating)

    @_Once
    def plain(self) -> bool:
        """Whether it has neither ports nor volumes that matter nor anything about other pods; false if unreadable."""
        try:
            return (
                not self.ports
                and self.volumes is NO_VOLUMES
                and self.neighbours is ALONE
                and not self.network_group
            )
        except ObjectError:
            return False

    @_Once
    def ordinary(self) -> bool:
        """Whether it is `plain` and says nothing of reservations, CPUs or devices, nor has any: plugins that look beyond nodes have
        something to say of it only for the sake of others.
        """
        annotations = self.pod.annotations
        try:
            return self.plain and (
                not annotations or (_DEALT.isdisjoint(annotations) and self.says_nothing_of_reservations)
            )
        except ObjectError:
            return False

    @property
    def priority(self) -> int:
        """Its priority, 0 without one."""
        return self.pod.priority or 0

    @_Once
    def occupied_nonzero(self) -> Amounts:
        """The same with the scheduler's defaults."""
        if self._runs or self.pod.pod_requests:
            return occupied_nonzero_requests(self.pod)
        return self._nonzero_request

    @property
    def _request(self) -> Amounts:
        request: Amounts = self.facts["resources.request"]  # type: ignore[assignment]  # the fact's type says so
        return request

    @property
    def _nonzero_request(self) -> Amounts:
        request: Amounts = self.facts["resources.nonzeroRequest"]  # type: ignore[assignment]  # as above
        return request

    @_Once
    def _runs(self) -> bool:
        """Whether a node has told what containers have: then a resize may be on its way."""
        pod = self.pod
        return any(one.running is not None for one in (*pod.containers, *pod.init_containers))


def own_millicores(pod: Pod) -> int:
    """Millicores of the CPUs that a pod has for itself, as its annotation says; 0 where that is unreadable."""
    if not pod.annotations:
        return 0
    try:
        return 1000 * len(owned_cpus(pod.annotations))
    except ObjectError:
        return 0


def with_amounts(view: PodView, amounts: Amounts, owned_cpu: int) -> PodView:
    """The pod, which takes these amounts from its node, and has so many millicores of it for itself."""
    seen = PodView.__new__(PodView)
    seen.__dict__.update(view.__dict__, occupied=amounts, occupied_nonzero=amounts, owned_cpu=owned_cpu)
    return seen


def owning(view: PodView, owned_cpu: int) -> PodView:
    """The pod, which has so many millicores of its node for itself, whatever is written on it yet."""
    seen = PodView.__new__(PodView)
    seen.__dict__.update(view.__dict__, owned_cpu=owned_cpu)
    return seen


def takes_less(now: PodView, before: PodView) -> bool:
    """Whether a pod takes less of something from its node than it did."""
    amounts = now.occupied
    return amounts != before.occupied and any(
        amounts.get(name, 0) < amount for name, amount in before.occupied.items()
    )


def kind_of(namespace: str, labels: Mapping[str, str], terminating: bool) -> KindKey:
    """The kind of a pod."""
    return namespace, frozenset(labels.items()), terminating


Estimator = Callable[[Record], Amounts | None]
"""What policy estimates a pod with these facts to use."""


Owner = Callable[[Pod, Record], bool]
"""Whether policy gives a pod with these facts CPUs of its own."""


def view_of(pod: Pod, catalogue: Catalogue, estimator: Estimator, owns: Owner | None = None) -> PodView:
    """A pod with its facts, class and band as the catalogue says. Nobody `owns` CPUs where that is of no consequence."""
    facts = pod_record(pod, catalogue, TIMES)
    facts.update(estimation_facts(pod, TIMES))
    estimate = estimator(facts)
    if estimate is not None:
        facts.update(estimate_facts(estimate))
    view = PodView.__new__(PodView)  # a frozen class sets each field by a call of its own
    view.__dict__.update(
        pod=pod, facts=facts, estimate=estimate, owns_cpus=owns is not None and owns(pod, facts)
    )
    return view


def scheduler_of(pod: Pod) -> str:
    """The scheduler that a pod asks for: its label's, even when that is empty, before its spec's."""
    return pod.labels.get(SCHEDULER_NAME, pod.scheduler_name)


def same_to_others(one: PodView, other: PodView) -> bool:
    """Whether two states of a pod mean the same to all that looks beyond a node's row."""
    return one.pod is other.pod or (one.plain and other.plain and one.kind == other.kind)


def holds_the_same(one: PodView, other: PodView) -> bool:
    """Whether two states of a pod have the same ports and volumes. Their node's row changes with these, though
    they show in none of its facts: whoever remembers an answer about the node sees that it changed.
    """
    if one.plain and other.plain:
        return True
    try:
        return one.ports == other.ports and one.volumes == other.volumes
    except ObjectError:
        return False
