"""The one table of kinds. To add a kind: its model in a file here, and one line below."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from koordpolicy.language.facts.table import Component, Components
from koordpolicy.language.kinds.admission import ADMITTED, AdmissionRuleSpec, ColocationProfileSpec
from koordpolicy.language.kinds.amplification import AmplificationSpec
from koordpolicy.language.kinds.arbitration import ArbitrationSpec
from koordpolicy.language.kinds.base import PolicySpec, Spec
from koordpolicy.language.kinds.bundle import LibrarySpec, PolicyBundleSpec, PolicyTestSpec
from koordpolicy.language.kinds.burst import CPUBurstSpec
from koordpolicy.language.kinds.classes import PriorityBandSpec, QoSClassSpec
from koordpolicy.language.kinds.collection import MetricCollectionSpec
from koordpolicy.language.kinds.cpus import CPUTopologySpec
from koordpolicy.language.kinds.descheduling import DeschedulingSpec
from koordpolicy.language.kinds.device_resources import DeviceResourceSpec
from koordpolicy.language.kinds.devices import DeviceSharingSpec
from koordpolicy.language.kinds.eviction import CPUEvictionSpec, MemoryEvictionSpec
from koordpolicy.language.kinds.exceptions import PolicyExceptionSpec
from koordpolicy.language.kinds.gangs import GangSchedulingSpec
from koordpolicy.language.kinds.hooks import ContainerHookSpec, RuntimeHooksSpec
from koordpolicy.language.kinds.interference import InterferenceSpec
from koordpolicy.language.kinds.invariants import InvariantSpec
from koordpolicy.language.kinds.isolation import IsolationSpec
from koordpolicy.language.kinds.migration import MigrationSpec
from koordpolicy.language.kinds.overcommit import OvercommitSpec
from koordpolicy.language.kinds.prediction import PredictionSpec
from koordpolicy.language.kinds.quotas import QuotaProfileSpec, QuotaTreeSpec
from koordpolicy.language.kinds.recommendation import RecommendationSpec
from koordpolicy.language.kinds.reconciliation import ProfileReconciliationSpec
from koordpolicy.language.kinds.reservation import NodeReservationSpec
from koordpolicy.language.kinds.reservations import ReservationPolicySpec
from koordpolicy.language.kinds.rollout import RolloutSpec
from koordpolicy.language.kinds.scheduling import SchedulingProfileSpec
from koordpolicy.language.kinds.suppression import CPUSuppressSpec
from koordpolicy.language.kinds.system import HostApplicationSetSpec, SystemTuningSpec
from koordpolicy.language.kinds.yarn import YARNNodeSpec

API_VERSION = "koordpolicy.io/v1alpha1"
"""The `apiVersion` of every policy document."""

_PROCESSES: Components = frozenset(Component)
_COMPILER: Components = frozenset()
_ON_NODES: Components = frozenset({Component.AGENT, Component.MANAGER})
"""The agent carries it out; the manager writes it for agents that are not ours."""


def _by_name(_spec: Any, name: str) -> str:
    return name


def _nothing(_spec: Any, _name: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of policy document.

    `components` ask its decisions (none: only the compiler reads it), `roots` are the facts that
    its expressions may name where a slot says nothing else. `subject` gives what a document's
    decisions are about, from its spec and name; it is empty where there is just one such subject.
    """

    name: str
    spec: type[Spec]
    summary: str
    components: Components
    roots: frozenset[str]
    subject: Callable[[Any, str], str] = _nothing

    def __reduce__(self) -> tuple[Callable[[str], "Kind"], tuple[str]]:
        """By its name: there is one of each."""
        return kind_named, (self.name,)

    @property
    def has_rules(self) -> bool:
        """Whether documents have `match`, `parameters` and `variables`."""
        return issubclass(self.spec, PolicySpec)

    @property
    def selectors(self) -> frozenset[str]:
        """Which selectors of `match` can say something here: of `nodes`, `namespaces`, `pods`."""
        if not self.has_rules:
            return frozenset()
        by_root = {"node": "nodes", "namespaceObject": "namespaces", "pod": "pods"}
        return frozenset(selector for root, selector in by_root.items() if root in self.roots)


def _roots(*names: str) -> frozenset[str]:
    return frozenset(names)


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind(
                "PolicyBundle",
                PolicyBundleSpec,
                "The root of a policy repository: the packs it extends and the files it reads.",
                _COMPILER,
                _roots(),
            ),
            Kind(
                "Library",
                LibrarySpec,
                "Constants and functions shared by all documents of a bundle.",
                _COMPILER,
                _roots(),
            ),
            Kind(
                "QoSClass",
                QoSClassSpec,
                "A class of service: how it is derived, which bands it permits, what it may do.",
                _PROCESSES,
                _roots(),
                _by_name,
            ),
            Kind(
                "PriorityBand",
                PriorityBandSpec,
                "A band of priorities: its range, its PriorityClass, the resources its pods use.",
                _PROCESSES,
                _roots(),
                _by_name,
            ),
            Kind(
                "ColocationProfile",
                ColocationProfileSpec,
                "Which pods are drawn into co-location, and what is put into them.",
                frozenset({Component.WEBHOOK}),
                _roots("pod", "namespaceObject", "operation", "now"),
                _by_name,
            ),
            Kind(
                "ProfileReconciliation",
                ProfileReconciliationSpec,
                "Which pods that wait for a node are kept as ClusterColocationProfile objects say.",
                frozenset({Component.MANAGER}),
                _roots("pod", "namespaceObject", "now"),
            ),
            Kind(
                "AdmissionRule",
                AdmissionRuleSpec,
                "What an object must satisfy to be admitted.",
                frozenset({Component.WEBHOOK}),
                frozenset().union(*ADMITTED.values()),
                _by_name,
            ),
            Kind(
                "QuotaTree",
                QuotaTreeSpec,
                "How elastic quotas stand together, which pods belong to them, and how the scheduler keeps them.",
                frozenset({Component.WEBHOOK, Component.SCHEDULER}),
                _roots("operation", "user", "now"),
            ),
            Kind(
                "QuotaProfile",
                QuotaProfileSpec,
                "What the root quota is that follows from a set of nodes.",
                frozenset({Component.MANAGER}),
                _roots("quotaProfile", "now"),
            ),
            Kind(
                "CPUTopology",
                CPUTopologySpec,
                "Which pods get CPUs of their own and how these lie, and over which NUMA zones pods may be spread.",
                frozenset({Component.SCHEDULER}),
                _roots("pod", "node"),
            ),
            Kind(
                "ReservationPolicy",
                ReservationPolicySpec,
                "How Reservations are scheduled, who takes from which, and how they end.",
                frozenset({Component.SCHEDULER}),
                _roots("reservation"),
            ),
            Kind(
                "DeviceSharing",
                DeviceSharingSpec,
                "What pods may have of a sort of devices, and how they ask for it.",
                frozenset({Component.WEBHOOK, Component.SCHEDULER}),
                _roots("pod", "namespaceObject", "operation", "now"),
                _by_name,
            ),
            Kind(
                "Overcommit",
                OvercommitSpec,
                "Formulas of the resources that are sold a second time: batch and mid.",
                frozenset({Component.MANAGER}),
                _roots("node", "zone", "cluster", "now"),
                lambda spec, _name: str(spec.resource),
            ),
            Kind(
                "Recommendation",
                RecommendationSpec,
                "What containers should request, by what they used.",
                frozenset({Component.MANAGER}),
                _roots("workload", "now"),
            ),
            Kind(
                "MetricCollection",
                MetricCollectionSpec,
                "What a node's agent measures, and how often it reports.",
                _ON_NODES,
                _roots("node", "now"),
            ),
            Kind(
                "DeviceResource",
                DeviceResourceSpec,
                "What a node offers of a sort of devices, by its Device object.",
                frozenset({Component.MANAGER}),
                _roots("node", "resource", "now"),
                _by_name,
            ),
            Kind(
                "Amplification",
                AmplificationSpec,
                "How fast a node's CPUs are by their model, and how many times over its resources are sold.",
                frozenset({Component.MANAGER}),
                _roots("node", "resource", "now"),
            ),
            Kind(
                "NodeReservation",
                NodeReservationSpec,
                "What a node keeps for programs outside Kubernetes.",
                frozenset({Component.MANAGER}),
                _roots("node", "now"),
            ),
            Kind(
                "YARNNode",
                YARNNodeSpec,
                "What the YARN NodeManager of a node may use of its batch resources, and how it is taken back.",
                frozenset({Component.YARN_OPERATOR}),
                _roots("node", "now"),
            ),
            Kind(
                "CPUSuppress",
                CPUSuppressSpec,
                "How much CPU best-effort work may use, and by which mechanism it is held there.",
                frozenset({Component.AGENT}),
                _roots("node", "now"),
            ),
            Kind(
                "CPUEviction",
                CPUEvictionSpec,
                "When a node runs short of CPU, and which pods give it back.",
                _ON_NODES,
                _roots("pod", "node", "now"),
            ),
            Kind(
                "MemoryEviction",
                MemoryEvictionSpec,
                "When a node runs short of memory, and which pods give it back.",
                _ON_NODES,
                _roots("pod", "node", "now"),
            ),
            Kind(
                "Prediction",
                PredictionSpec,
                "What pods of a node are predicted to use at most, and what of their requests may be sold again.",
                frozenset({Component.AGENT}),
                _roots("node", "now"),
            ),
            Kind(
                "CPUBurst",
                CPUBurstSpec,
                "How containers may use CPU beyond their limits for a while.",
                _ON_NODES,
                _roots("pod", "node", "now"),
            ),
            Kind(
                "Isolation",
                IsolationSpec,
                "What the kernel, caches, disks and networks give to pods of each class.",
                _ON_NODES,
                _roots("node", "now"),
                lambda spec, _name: str(spec.group),
            ),
            Kind(
                "SystemTuning",
                SystemTuningSpec,
                "Kernel parameters and mechanisms of a node as a whole.",
                _ON_NODES,
                _roots("node", "now"),
            ),
            Kind(
                "HostApplicationSet",
                HostApplicationSetSpec,
                "The programs on a node that run outside Kubernetes and are measured and isolated.",
                _ON_NODES,
                _roots("node", "now"),
            ),
            Kind(
                "ContainerHook",
                ContainerHookSpec,
                "What is changed in pods and containers where they are started, and of their resources while they run.",
                frozenset({Component.AGENT}),
                _roots("pod", "container", "node", "now"),
                _by_name,
            ),
            Kind(
                "RuntimeHooks",
                RuntimeHooksSpec,
                "How the agent takes part where container runtimes start pods.",
                frozenset({Component.AGENT}),
                _roots("node", "now"),
            ),
            Kind(
                "Interference",
                InterferenceSpec,
                "When a pod suffers from others on its node, and what is done then.",
                frozenset({Component.AGENT}),
                _roots("pod", "node", "now"),
                _by_name,
            ),
            Kind(
                "Arbitration",
                ArbitrationSpec,
                "Who decides about a kernel file that several strategies of the agent want.",
                frozenset({Component.AGENT}),
                _roots("node", "now"),
                lambda spec, _name: str(spec.file),
            ),
            Kind(
                "SchedulingProfile",
                SchedulingProfileSpec,
                "How pods are ordered and nodes are chosen: queue, filters, scores, ties, preemption.",
                frozenset({Component.SCHEDULER}),
                _roots("pod", "node", "namespaceObject", "cluster", "now"),
                lambda spec, _name: str(spec.scheduler_name),
            ),
            Kind(
                "GangScheduling",
                GangSchedulingSpec,
                "Which pods run together or not at all, and how they are placed.",
                frozenset({Component.SCHEDULER}),
                _roots("namespaceObject", "now"),
            ),
            Kind(
                "Descheduling",
                DeschedulingSpec,
                "Which nodes give pods away, which pods these are, and how many go.",
                frozenset({Component.DESCHEDULER}),
                _roots("pod", "node", "now"),
                _by_name,
            ),
            Kind(
                "Migration",
                MigrationSpec,
                "How a pod that is to leave its node gets to another one, and how many do at once.",
                frozenset({Component.DESCHEDULER}),
                _roots("pod", "now"),
            ),
            Kind(
                "Rollout",
                RolloutSpec,
                "How a new revision goes live: in the shadow of the old one, on some nodes, on all.",
                _PROCESSES,
                _roots("rollout", "now"),
            ),
            Kind(
                "PolicyException",
                PolicyExceptionSpec,
                "A narrow, owned override of decisions, with a reason and an end date.",
                _COMPILER,
                _roots(),
                _by_name,
            ),
            Kind(
                "Invariant",
                InvariantSpec,
                "What must hold of decisions whatever a cluster does; `koordpolicy check` proves it.",
                _COMPILER,
                _roots(),
                _by_name,
            ),
            Kind(
                "PolicyTest",
                PolicyTestSpec,
                "Inputs and the decisions expected on them, run by `koordpolicy test`.",
                _COMPILER,
                _roots(),
            ),
        )
    }
)
"""Every kind, in the order of the manual."""


def kind_named(name: str) -> Kind:
    """The kind of that name; raises KeyError."""
    return KINDS[name]
