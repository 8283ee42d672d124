"""The resources we speak of: where each lives in the API, and how its server treats it.

One table. A cluster serves what its table lists; a new kind is a line here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.model import protocol


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of the API.

    `group` is "" for the core group. `custom` marks what a CustomResourceDefinition defines: the server
    knows no strategic merge for it and wants a resource version in every update. `strict_update` says
    that of a built-in resource, `gated` that servers serve it only where a feature is switched on. `counts_generations` is False where the server leaves
    `metadata.generation` out.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    subresources: tuple[str, ...] = ()
    custom: bool = field(default=False, compare=False)
    strict_update: bool = field(default=False, compare=False)
    counts_generations: bool = field(default=True, compare=False)
    gated: bool = field(default=False, compare=False)

    @property
    def api_version(self) -> str:
        """`v1` for the core group, `group/version` for the others."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """How messages call it: `pods`, `nodemetrics.slo.koordinator.sh`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def has_status(self) -> bool:
        """Whether `status` is written only through its own subresource."""
        return "status" in self.subresources

    def __str__(self) -> str:
        return self.name


class ResourcesByObject:
    """Finds the resource of an object by what it says of itself. A kind that several groups have is told apart by the group."""

    def __init__(self, known: Iterable[Resource]) -> None:
        self._by_kind: dict[str, list[Resource]] = {}
        for one in known:
            self._by_kind.setdefault(one.kind, []).append(one)

    def of(self, obj: Mapping[str, Any]) -> Resource | None:
        """The first of its kind where the group is none of these: whoever reads the object says what is wrong."""
        kind, group = obj.get("kind"), str(obj.get("apiVersion", "")).rpartition("/")[0]
        found = self._by_kind.get(kind, ()) if isinstance(kind, str) else ()
        return next((one for one in found if one.group == group), found[0] if found else None)


def custom(
    api_version: str, kind: str, *, plural: str = "", namespaced: bool = False, status: bool = False
) -> Resource:
    """A resource defined by a CustomResourceDefinition. The plural defaults to the lower-case kind + `s`."""
    group, _, version = api_version.rpartition("/")
    subresources = ("status",) if status else ()
    return Resource(
        group,
        version,
        plural or f"{kind.lower()}s",
        kind,
        namespaced,
        subresources,
        custom=True,
        strict_update=True,
    )


def _core(
    plural: str, kind: str, *subresources: str, namespaced: bool = True, generations: bool = False
) -> Resource:
    return Resource("", "v1", plural, kind, namespaced, subresources, counts_generations=generations)


def _storage(plural: str, kind: str, *subresources: str, namespaced: bool = False) -> Resource:
    return Resource("storage.k8s.io", "v1", plural, kind, namespaced, subresources, counts_generations=False)


def _admission(plural: str, kind: str) -> Resource:
    return Resource("admissionregistration.k8s.io", "v1", plural, kind, False, strict_update=True)


PODS: Final = _core("pods", "Pod", "status", "binding", "eviction", generations=True)
NODES: Final = _core("nodes", "Node", "status", namespaced=False)
NAMESPACES: Final = _core("namespaces", "Namespace", "status", namespaced=False)
EVENTS: Final = _core("events", "Event")
CONFIG_MAPS: Final = _core("configmaps", "ConfigMap")
SECRETS: Final = _core("secrets", "Secret")
SERVICES: Final = _core("services", "Service", "status")
PERSISTENT_VOLUMES: Final = _core("persistentvolumes", "PersistentVolume", "status", namespaced=False)
PERSISTENT_VOLUME_CLAIMS: Final = _core("persistentvolumeclaims", "PersistentVolumeClaim", "status")
REPLICATION_CONTROLLERS: Final = _core(
    "replicationcontrollers", "ReplicationController", "status", "scale", generations=True
)

DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment", True, ("status", "scale"))
REPLICA_SETS: Final = Resource("apps", "v1", "replicasets", "ReplicaSet", True, ("status", "scale"))
STATEFUL_SETS: Final = Resource("apps", "v1", "statefulsets", "StatefulSet", True, ("status", "scale"))
DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet", True, ("status",))
JOBS: Final = Resource("batch", "v1", "jobs", "Job", True, ("status",))

STORAGE_CLASSES: Final = _storage("storageclasses", "StorageClass")
CSI_NODES: Final = _storage("csinodes", "CSINode")
CSI_DRIVERS: Final = _storage("csidrivers", "CSIDriver")
CSI_STORAGE_CAPACITIES: Final = _storage("csistoragecapacities", "CSIStorageCapacity", namespaced=True)
VOLUME_ATTACHMENTS: Final = _storage("volumeattachments", "VolumeAttachment", "status")

POD_DISRUPTION_BUDGETS: Final = Resource(
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, ("status",), strict_update=True
)
KUBERNETES_POD_GROUPS: Final = Resource(
    "scheduling.k8s.io",
    "v1alpha2",
    "podgroups",
    "PodGroup",
    True,
    ("status",),
    counts_generations=False,
    gated=True,
)
"""Kubernetes' own, which a server serves only where it is told to."""
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False)
LEASES: Final = Resource(
    "coordination.k8s.io", "v1", "leases", "Lease", True, strict_update=True, counts_generations=False
)
MUTATING_WEBHOOKS: Final = _admission("mutatingwebhookconfigurations", "MutatingWebhookConfiguration")
VALIDATING_WEBHOOKS: Final = _admission("validatingwebhookconfigurations", "ValidatingWebhookConfiguration")
VALIDATING_POLICIES: Final = _admission("validatingadmissionpolicies", "ValidatingAdmissionPolicy")
VALIDATING_POLICY_BINDINGS: Final = _admission(
    "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"
)
MUTATING_POLICIES: Final = _admission("mutatingadmissionpolicies", "MutatingAdmissionPolicy")
MUTATING_POLICY_BINDINGS: Final = _admission(
    "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"
)
TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False)
SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False
)
SELF_SUBJECT_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False
)
"""These three are questions to the server in the shape of objects: they can be created, and are never kept."""
CUSTOM_RESOURCE_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    False,
    ("status",),
    strict_update=True,
)

NODE_METRICS: Final = custom(protocol.SLO_API, "NodeMetric", status=True)
NODE_SLOS: Final = custom(protocol.SLO_API, "NodeSLO", status=True)
CLUSTER_COLOCATION_PROFILES: Final = custom(protocol.CONFIG_API, "ClusterColocationProfile", status=True)
ELASTIC_QUOTA_PROFILES: Final = custom(protocol.QUOTA_API, "ElasticQuotaProfile", namespaced=True)
ELASTIC_QUOTAS: Final = custom(protocol.SIGS_SCHEDULING_API, "ElasticQuota", namespaced=True)
POD_GROUPS: Final = custom(protocol.SIGS_SCHEDULING_API, "PodGroup", namespaced=True)
DEVICES: Final = custom(protocol.SCHEDULING_API, "Device")
RESERVATIONS: Final = custom(protocol.SCHEDULING_API, "Reservation", status=True)
POD_MIGRATION_JOBS: Final = custom(protocol.SCHEDULING_API, "PodMigrationJob", status=True)
CLUSTER_NETWORK_TOPOLOGIES: Final = custom(
    protocol.SCHEDULING_API, "ClusterNetworkTopology", plural="clusternetworktopologies", status=True
)
SCHEDULE_EXPLANATIONS: Final = custom(
    protocol.SCHEDULING_API, "ScheduleExplanation", namespaced=True, status=True
)
RECOMMENDATIONS: Final = custom(
    "analysis.koordinator.sh/v1alpha1", "Recommendation", namespaced=True, status=True
)
NODE_RESOURCE_TOPOLOGIES: Final = custom(
    protocol.TOPOLOGY_API, "NodeResourceTopology", plural="noderesourcetopologies"
)

POLICY_REVISIONS: Final = custom(protocol.KOORDPOLICY_API, "PolicyRevision", status=True)

_POLICY_PLURALS: Final = {
    "PolicyBundle": "policybundles",
    "Library": "libraries",
    "QoSClass": "qosclasses",
    "PriorityBand": "prioritybands",
    "ColocationProfile": "colocationprofiles",
    "AdmissionRule": "admissionrules",
    "Overcommit": "overcommits",
    "Amplification": "amplifications",
    "MetricCollection": "metriccollections",
    "Prediction": "predictions",
    "CPUSuppress": "cpusuppresses",
    "CPUEviction": "cpuevictions",
    "MemoryEviction": "memoryevictions",
    "CPUBurst": "cpubursts",
    "Isolation": "isolations",
    "SystemTuning": "systemtunings",
    "HostApplicationSet": "hostapplicationsets",
    "Interference": "interferences",
    "ContainerHook": "containerhooks",
    "RuntimeHooks": "runtimehookses",
    "YARNNode": "yarnnodes",
    "Arbitration": "arbitrations",
    "SchedulingProfile": "schedulingprofiles",
    "CPUTopology": "cputopologies",
    "DeviceSharing": "devicesharings",
    "DeviceResource": "deviceresources",
    "GangScheduling": "gangschedulings",
    "QuotaTree": "quotatrees",
    "ProfileReconciliation": "profilereconciliations",
    "QuotaProfile": "quotaprofiles",
    "ReservationPolicy": "reservationpolicies",
    "NodeReservation": "nodereservations",
    "Descheduling": "deschedulings",
    "Migration": "migrations",
    "Recommendation": "recommendations",
    "Rollout": "rollouts",
    "PolicyException": "policyexceptions",
    "Invariant": "invariants",
    "PolicyTest": "policytests",
}

POLICIES: Final = tuple(
    custom(protocol.KOORDPOLICY_API, kind, plural=plural, status=True)
    for kind, plural in _POLICY_PLURALS.items()
)
"""The policy kinds as cluster objects: cluster-scoped, since a policy speaks of the whole cluster."""

RESOURCES: Final = (
    PODS,
    NODES,
    NAMESPACES,
    EVENTS,
    CONFIG_MAPS,
    SECRETS,
    SERVICES,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    REPLICATION_CONTROLLERS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    JOBS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    LEASES,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    NODE_METRICS,
    NODE_SLOS,
    CLUSTER_COLOCATION_PROFILES,
    ELASTIC_QUOTA_PROFILES,
    ELASTIC_QUOTAS,
    POD_GROUPS,
    KUBERNETES_POD_GROUPS,
    DEVICES,
    RESERVATIONS,
    POD_MIGRATION_JOBS,
    CLUSTER_NETWORK_TOPOLOGIES,
    SCHEDULE_EXPLANATIONS,
    RECOMMENDATIONS,
    NODE_RESOURCE_TOPOLOGIES,
    POLICY_REVISIONS,
    *POLICIES,
)
"""Every resource a cluster serves unless told otherwise."""


def resource_of(api_version: str, kind: str, table: tuple[Resource, ...] = RESOURCES) -> Resource | None:
    """The resource of an object's `apiVersion` and `kind`, None when the table has none."""
    return next((entry for entry in table if entry.kind == kind and entry.api_version == api_version), None)
