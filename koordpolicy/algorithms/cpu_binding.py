"""What a pod wants of CPUs and zones, and what that means on one node: whether it is bound, by which policy.

The words are Koordinator's. Nothing is decided here that a policy can decide: what pods want and what nodes say arrive as values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from koordpolicy.algorithms.cpu_accumulator import BindPolicy, CPUAllocateStrategy, CPUExclusive
from koordpolicy.algorithms.numa_merge import Exclusive, NUMAPolicy
from koordpolicy.model.reading import NOTHING, Amounts

BINDABLE: Final = frozenset({BindPolicy.FULL_PCPUS, BindPolicy.SPREAD_BY_PCPUS})

NOT_WHOLE: Final = "the requested CPUs must be integer"
POLICY_DIFFERS: Final = "node(s) NUMA Topology policy not match"
NO_TOPOLOGY: Final = "node(s) invalid CPU Topology"
BIND_DIFFERS: Final = "node(s) cpu bind policy conflicts with pod's required cpu bind policy"
NOT_MULTIPLE: Final = "node(s) requested cpus not multiple cpus per core"
NO_ZONES: Final = "node(s) missing NUMA resources"


class PodNeeds(NamedTuple):
    """What a pod wants. `milli` is its CPU in millicores, `request` all that it requests, by name.

    `binds` says that it gets CPUs of its own by its own request, whatever nodes say.
    """

    milli: int
    request: tuple[tuple[str, int], ...] = ()
    binds: bool = False
    bind: BindPolicy = BindPolicy.NONE
    required: bool = False
    exclusive: CPUExclusive = CPUExclusive.NONE
    numa: NUMAPolicy = NUMAPolicy.NONE
    apart: Exclusive = Exclusive.UNSET
    guarded: bool = True
    """Whether a node whose CPUs are not known refuses it, if it `binds`; otherwise it gets none of its own there."""

    @property
    def cpus(self) -> int:
        """The CPUs that it gets where it is bound."""
        return self.milli // 1000


@dataclass(frozen=True, slots=True)
class NodeRules:
    """What holds on a node: how all pods there are bound (`NONE`: those that ask for it), which affinities are admitted,
    which zones are filled first, by how much its CPU is sold, how many pods may share a CPU, and whether what a pod asks for is
    split evenly over its zones, or fills one after the other.
    """

    bind: BindPolicy = BindPolicy.NONE
    numa: NUMAPolicy = NUMAPolicy.NONE
    strategy: CPUAllocateStrategy = CPUAllocateStrategy.LEAST_ALLOCATED
    ratio: float = 1.0
    sharers: int = 1
    evenly: bool = True


class Terms(NamedTuple):
    """On what terms a pod is on a node: with CPUs of its own or not, on which cores, in which zones."""

    bound: bool
    bind: BindPolicy
    required: bool
    numa: NUMAPolicy


def terms_of(needs: PodNeeds, rules: NodeRules, per_core: int = 1) -> Terms:
    """The terms of a pod on a node with so many CPUs a core, 0 where that is not known. Whether they can be met is another question: see
    `conflict`.
    """
    bound = needs.milli > 0 and (
        (needs.binds and (per_core > 0 or needs.guarded)) or rules.bind is not BindPolicy.NONE
    )
    numa = needs.numa or rules.numa
    if needs.required:
        return Terms(bound, needs.bind, True, numa)
    if rules.bind is not BindPolicy.NONE:
        return Terms(bound, rules.bind, True, numa)
    return Terms(bound, needs.bind, False, numa)


def conflict(needs: PodNeeds, rules: NodeRules, per_core: int, terms: Terms | None = None) -> str | None:
    """Why a pod can never be on a node, as far as what both say goes; `per_core` are CPUs a core, 0 where that is not known, `terms`
    the pod's where somebody has them.
    """
    terms = terms or terms_of(needs, rules, per_core)
    if needs.numa and rules.numa and needs.numa is not rules.numa:
        return POLICY_DIFFERS
    if not terms.bound:
        return None
    if needs.milli % 1000:
        return NOT_WHOLE
    if not per_core:
        return NO_TOPOLOGY
    if needs.required and rules.bind is not BindPolicy.NONE and needs.bind is not rules.bind:
        return BIND_DIFFERS
    if terms.required and terms.bind is BindPolicy.FULL_PCPUS and needs.cpus % per_core:
        return NOT_MULTIPLE
    return None


def amounts_of(needs: PodNeeds) -> Amounts:
    """What a pod requests, by name."""
    return dict(needs.request) if needs.request else NOTHING


def positive(amounts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Amounts above 0, in a form that can be compared and kept."""
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount > 0))
