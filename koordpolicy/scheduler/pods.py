"""Pods as the scheduler sees them: the object, its facts, what it takes from a node."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from koordpolicy.language.facts import TIMES
from koordpolicy.mechanism.classify import Catalogue
from koordpolicy.mechanism.pod_request import (
    effective_requests,
    nonzero_requests,
    occupied_nonzero_requests,
    occupied_requests,
)
from koordpolicy.mechanism.records import pod_record
from koordpolicy.model.facts import Record
from koordpolicy.model.facts_load import estimate_facts, estimation_facts
from koordpolicy.model.placement import ANYWHERE, Placement, read_placement
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import SCHEDULER_NAME
from koordpolicy.model.reading import Amounts


@dataclass(frozen=True)
class PodView:
    """A pod with what follows from it and policy alone.

    `facts` are those of the fact `pod` without `queuedAt`; `estimate` is what policy estimates it to use,
    None where it does not. Raises ObjectError, when `placement` is first asked for, for a spec that
    cannot be read.
    """

    pod: Pod
    facts: Record
    estimate: Amounts | None = None

    @cached_property
    def placement(self) -> Placement:
        """Selector, affinity, tolerations and gates."""
        return read_placement(self.pod.raw) if self.pod.raw else ANYWHERE

    @cached_property
    def plain_request(self) -> Amounts:
        """The request without pod-level resources, which the score by fit leaves out."""
        return effective_requests(self.pod, pod_level=False)

    @cached_property
    def plain_nonzero_request(self) -> Amounts:
        """The same with the scheduler's defaults for what containers don't ask for."""
        return nonzero_requests(self.pod, pod_level=False)

    @cached_property
    def occupied(self) -> Amounts:
        """What it takes from its node."""
        return occupied_requests(self.pod)

    @cached_property
    def occupied_nonzero(self) -> Amounts:
        """The same with the scheduler's defaults."""
        return occupied_nonzero_requests(self.pod)


Estimator = Callable[[Record], Amounts | None]
"""What policy estimates a pod with these facts to use."""


def view_of(pod: Pod, catalogue: Catalogue, estimator: Estimator) -> PodView:
    """A pod with its facts, class and band as the catalogue says."""
    facts = {**pod_record(pod, catalogue, TIMES), **estimation_facts(pod, TIMES)}
    estimate = estimator(facts)
    if estimate is not None:
        facts.update(estimate_facts(estimate))
    return PodView(pod, facts, estimate)


def scheduler_of(pod: Pod) -> str:
    """The scheduler that a pod asks for: its label's, even when that is empty, before its spec's."""
    return pod.labels.get(SCHEDULER_NAME, pod.scheduler_name)
