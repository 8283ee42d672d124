"""Names on the wire: labels, annotations, resources, API groups. Each stands once, here.

They are Koordinator's (and Kubernetes' own), so that workloads, dashboards and device plugins made
for Koordinator work unchanged. Only names and fixed words live here; classes, bands, defaults and
thresholds are policy.
"""

from collections.abc import Mapping
from types import MappingProxyType

# Domains

BASE_DOMAIN = "koordinator.sh/"
EXTENDED_RESOURCE_DOMAIN = "kubernetes.io/"
SCHEDULING_DOMAIN = "scheduling.koordinator.sh/"
INTERNAL_SCHEDULING_DOMAIN = "internal.scheduling.koordinator.sh/"
NODE_DOMAIN = "node.koordinator.sh/"
POD_DOMAIN = "pod.koordinator.sh/"
QUOTA_DOMAIN = "quota.scheduling.koordinator.sh/"
GANG_DOMAIN = "gang.scheduling.koordinator.sh/"
PROFILE_DOMAIN = "config.koordinator.sh/"
KUBELET_DOMAIN = "kubelet.koordinator.sh/"

# API groups

KOORDPOLICY_API = "koordpolicy.io/v1alpha1"
SLO_API = "slo.koordinator.sh/v1alpha1"
CONFIG_API = "config.koordinator.sh/v1alpha1"
QUOTA_API = "quota.koordinator.sh/v1alpha1"
SCHEDULING_API = "scheduling.koordinator.sh/v1alpha1"
SIGS_SCHEDULING_API = "scheduling.sigs.k8s.io/v1alpha1"
TOPOLOGY_API = "topology.node.k8s.io/v1alpha1"

# Resources. The unit of cpu is the millicore, of everything else the whole unit.

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGEPAGES_PREFIX = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"

BATCH_CPU = "kubernetes.io/batch-cpu"
BATCH_MEMORY = "kubernetes.io/batch-memory"
MID_CPU = "kubernetes.io/mid-cpu"
MID_MEMORY = "kubernetes.io/mid-memory"

GPU = "koordinator.sh/gpu"
GPU_CORE = "koordinator.sh/gpu-core"
GPU_MEMORY = "koordinator.sh/gpu-memory"
GPU_MEMORY_RATIO = "koordinator.sh/gpu-memory-ratio"
GPU_SHARED = "koordinator.sh/gpu.shared"
RDMA = "koordinator.sh/rdma"
FPGA = "koordinator.sh/fpga"
NVIDIA_GPU = "nvidia.com/gpu"
AMD_GPU = "amd.com/gpu"
DCU_GPU = "dcu.com/gpu"
HUAWEI_NPU_CORE = "huawei.com/npu-core"
HUAWEI_NPU_CPU = "huawei.com/npu-cpu"
HUAWEI_NPU_DVPP = "huawei.com/npu-dvpp"

DEPRECATED_RESOURCES: Mapping[str, str] = MappingProxyType(
    {
        "koordinator.sh/batch-cpu": BATCH_CPU,
        "koordinator.sh/batch-memory": BATCH_MEMORY,
        "kubernetes.io/rdma": RDMA,
        "kubernetes.io/fpga": FPGA,
        "kubernetes.io/gpu": GPU,
        "kubernetes.io/gpu-core": GPU_CORE,
        "kubernetes.io/gpu-memory": GPU_MEMORY,
        "kubernetes.io/gpu-memory-ratio": GPU_MEMORY_RATIO,
    }
)
"""Old resource name → the one it is read as, unless the new name is present too."""

# Pods: class, priority, eviction, isolation

QOS_CLASS = "koordinator.sh/qosClass"
PRIORITY_CLASS = "koordinator.sh/priority-class"
SUB_PRIORITY = "koordinator.sh/priority"
MUTATING_UPDATE = "pod.koordinator.sh/mutating-update"
SKIP_ENHANCED_VALIDATION = "pod.koordinator.sh/skip-enhanced-validation"
BINDING_ADMISSION_BYPASS = "koordinator.sh/binding-admission-bypass"
EVICTION_ENABLED = "koordinator.sh/eviction-enabled"
EVICTION_POLICY = "koordinator.sh/eviction-policy"
EVICTION_PRIORITY = "koordinator.sh/eviction-priority"
NETWORK_QOS = "koordinator.sh/networkQOS"
CPU_BURST = "koordinator.sh/cpuBurst"
CPU_QOS = "koordinator.sh/cpuQOS"
MEMORY_QOS = "koordinator.sh/memoryQOS"
BLKIO_QOS = "koordinator.sh/blkioQOS"
OOM_SCORE_ADJ = "koordinator.sh/oom-score-adj"
SKIP_HOOK_SERVER = "runtimeproxy.koordinator.sh/skip-hookserver"
OOM_SCORE_ADJ_SPEC = "koordinator.sh/oom-score-adj-spec"
CORE_SCHED_GROUP_ID = "koordinator.sh/core-sched-group-id"
CORE_SCHED_POLICY = "koordinator.sh/core-sched-policy"
RESCTRL = "node.koordinator.sh/resctrl"
GPU_ISOLATION_PROVIDER = "koordinator.sh/gpu-isolation-provider"
EXTENDED_RESOURCE_SPEC = "node.koordinator.sh/extended-resource-spec"
REPLACE_RESOURCES = "pod.koordinator.sh/replace-resources"

# Pods: scheduling

SCHEDULER_NAME = "scheduling.koordinator.sh/scheduler-name"
ORIGINAL_SCHEDULER_NAME = "internal.scheduling.koordinator.sh/original-scheduler-name"
SCHEDULING_HINT = "internal.scheduling.koordinator.sh/scheduling-hint"
DEPRECATED_SCHEDULING_HINT = "scheduling.koordinator.sh/scheduling-hint"
RESOURCE_SPEC = "scheduling.koordinator.sh/resource-spec"
RESOURCE_STATUS = "scheduling.koordinator.sh/resource-status"
NETWORK_TOPOLOGY_SELECTOR = "scheduling.koordinator.sh/network-topology-selector"
NUMA_TOPOLOGY_SPEC = "scheduling.koordinator.sh/numa-topology-spec"
USAGE_THRESHOLDS = "scheduling.koordinator.sh/usage-thresholds"
ESTIMATED_SCALING_FACTORS = "scheduling.koordinator.sh/load-estimated-scaling-factors"
ESTIMATED_SECONDS_AFTER_SCHEDULED = "scheduling.koordinator.sh/load-estimated-seconds-after-pod-scheduled"
ESTIMATED_SECONDS_AFTER_INITIALIZED = "scheduling.koordinator.sh/load-estimated-seconds-after-initialized"
PREEMPTION_POLICY = "scheduling.koordinator.sh/preemption-policy"
DISABLE_PREEMPTIBLE = "scheduling.koordinator.sh/disable-preemptible"
EVICTION_COST = "scheduling.koordinator.sh/eviction-cost"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
EVICT_POLICY = "koordinator.sh/evict-policy"
EVICT_ANYWAY = "descheduler.alpha.kubernetes.io/evict"
EVICT_REASON = "koordinator.sh/evict-reason"
EVICT_TRIGGER = "koordinator.sh/evict-trigger"
JOB_CREATED_BY = "koordinator.sh/job-created-by"
PASSED_ARBITRATION = "descheduler.koordinator.sh/passed-arbitration"
DESCHEDULING_PROFILE = "koordpolicy.io/descheduling-profile"
"""Of a PodMigrationJob: the profile of Descheduling that made it."""
MIGRATED_WORKLOAD = "koordpolicy.io/migrated-workload"
"""Of a PodMigrationJob: UID and replicas of the workload, by which evictions are counted after the pod is gone."""
SOFT_EVICTION = "scheduling.koordinator.sh/soft-eviction"
RESERVE_POD = "scheduling.koordinator.sh/reserve-pod"
DEVICE_ALLOCATED = "scheduling.koordinator.sh/device-allocated"
DEVICE_ALLOCATE_HINT = "scheduling.koordinator.sh/device-allocate-hint"
DEVICE_JOINT_ALLOCATE = "scheduling.koordinator.sh/device-joint-allocate"
GPU_PARTITION_SPEC = "scheduling.koordinator.sh/gpu-partition-spec"
QUOTA_NAME = "quota.scheduling.koordinator.sh/name"
GANG_NAME = "gang.scheduling.koordinator.sh/name"
GANG_TOPOLOGY_SPEC = "gang.scheduling.koordinator.sh/network-topology-spec"
GANG_TOPOLOGY_INDEX = "gang.scheduling.koordinator.sh/network-topology-index"
GANG_MINIMUM = "gang.scheduling.koordinator.sh/min-available"
GANG_TOTAL = "gang.scheduling.koordinator.sh/total-number"
GANG_MODE = "gang.scheduling.koordinator.sh/mode"
GANG_MATCH_POLICY = "gang.scheduling.koordinator.sh/match-policy"
GANG_WAITING_TIME = "gang.scheduling.koordinator.sh/waiting-time"
GANG_GROUPS = "gang.scheduling.koordinator.sh/groups"
BOUND_GANG_GROUP = "internal.scheduling.koordinator.sh/bind-gang-group-id"
BOUND_GANG_MEMBERS = "internal.scheduling.koordinator.sh/bind-gang-member-count"
BOUND_GANG_GROUP_OLD = "scheduling.koordinator.sh/bind-gang-group-id"
BOUND_GANG_MEMBERS_OLD = "scheduling.koordinator.sh/bind-gang-member-count"
POD_GROUP = "pod-group.scheduling.sigs.k8s.io"
POD_GROUP_NAME = "pod-group.scheduling.sigs.k8s.io/name"
POD_GROUP_MINIMUM = "pod-group.scheduling.sigs.k8s.io/min-available"
POD_GROUP_MATCH_POLICY = "pod-group.scheduling.sigs.k8s.io/match-policy"
RESERVATION_AFFINITY = "scheduling.koordinator.sh/reservation-affinity"
RESERVATION_ALLOCATED = "scheduling.koordinator.sh/reservation-allocated"
RESERVATION_IGNORED = "scheduling.koordinator.sh/reservation-ignored"
EXACT_MATCH_RESERVATION = "scheduling.koordinator.sh/exact-match-reservation"
OPERATING_MODE = "scheduling.koordinator.sh/operating-mode"
OPERATING_AS_RESERVATION = "Reservation"
RESERVATION_OWNERS = "scheduling.koordinator.sh/reservation-owners"
PRE_ALLOCATION_REQUIRED = "scheduling.koordinator.sh/pre-allocation-required"
RESERVATION_CURRENT_OWNER = "scheduling.koordinator.sh/reservation-current-owner"

# Reservations

RESERVATION_ORDER = "scheduling.koordinator.sh/reservation-order"
RESERVATION_RESTRICTED_OPTIONS = "scheduling.koordinator.sh/reservation-restricted-options"
RESERVATION_RESIZE = "scheduling.koordinator.sh/reservation-resize-allocatable"
RESERVE_POD_RESERVATION = "scheduling.koordinator.sh/reservation-name"
RESERVE_POD_NODE = "scheduling.koordinator.sh/reservation-node"
RESERVATION_PENDING, RESERVATION_AVAILABLE = "Pending", "Available"
RESERVATION_SUCCEEDED, RESERVATION_FAILED = "Succeeded", "Failed"
ALLOCATE_ALIGNED, ALLOCATE_RESTRICTED = "Aligned", "Restricted"
CONDITION_RESERVATION_SCHEDULED, CONDITION_RESERVATION_READY = "Scheduled", "Ready"
REASON_SCHEDULED, REASON_UNSCHEDULABLE = "Scheduled", "Unschedulable"
REASON_AVAILABLE, REASON_SUCCEEDED, REASON_EXPIRED = "Available", "Succeeded", "Expired"

# ConfigMaps

CONFIG_MAP_TYPE = "koordinator.sh/configmap-type"

# Nodes

GPU_VENDOR = "node.koordinator.sh/gpu-vendor"
GPU_MODEL = "node.koordinator.sh/gpu-model"
GPU_DRIVER = "node.koordinator.sh/gpu-driver-version"
GPU_PARTITION_POLICY = "node.koordinator.sh/gpu-partition-policy"
SECONDARY_DEVICES_PLANNED = "node.koordinator.sh/secondary-device-well-planned"
"""On a Device object, by whoever plans how devices are wired: `false` where those beside GPUs do not go with them evenly."""
GPU_PARTITIONS = "scheduling.koordinator.sh/gpu-partitions"
COLOCATION_STRATEGY = "node.koordinator.sh/colocation-strategy"
CPU_RECLAIM_RATIO = "node.koordinator.sh/cpu-reclaim-ratio"
MEMORY_RECLAIM_RATIO = "node.koordinator.sh/memory-reclaim-ratio"
MID_STATIC_CPU_RESERVED_RATIO = "node.koordinator.sh/mid-static-cpu-reserved-ratio"
MID_STATIC_MEMORY_RESERVED_RATIO = "node.koordinator.sh/mid-static-memory-reserved-ratio"
NODE_RESERVATION = "node.koordinator.sh/reservation"
RUNS_ANNOTATION = "koordpolicy.io/runs"
"""On the NodeMetric of a node: which policies its agent runs, as JSON."""
DRY_RUN_ANNOTATION = "koordpolicy.io/dry-run"
"""The same of an agent in a dry run, which may be there beside one that acts, of ours or koordlet."""
ABNORMAL = "koordpolicy.io/abnormal"
"""The overcommitted resources for which a node counts as abnormal, by name, with commas between them."""
RESERVATION_BY_POLICY = "koordpolicy.io/reservation"
"""What policies last wrote as a node's reservation: so it is known whether it is theirs to take away."""
NETWORK_BANDWIDTH = "node.koordinator.sh/network-bandwidth"
SYSTEM_QOS_RESOURCE = "node.koordinator.sh/system-qos-resource"
CPU_NORMALIZATION_RATIO = "node.koordinator.sh/cpu-normalization-ratio"
CPU_NORMALIZATION_ENABLED = "node.koordinator.sh/cpu-normalization-enabled"
RESOURCE_AMPLIFICATION_RATIO = "node.koordinator.sh/resource-amplification-ratio"
RAW_ALLOCATABLE = "node.koordinator.sh/raw-allocatable"
ORIGIN_EXTENDED_ALLOCATABLE = "node.koordinator.sh/originExtendedAllocatable"
THIRD_PARTY_ALLOCATIONS = "node.koordinator.sh/thirdPartyAllocations"
CPU_BIND_POLICY = "node.koordinator.sh/cpu-bind-policy"
NUMA_ALLOCATE_STRATEGY = "node.koordinator.sh/numa-allocate-strategy"
NUMA_TOPOLOGY_POLICY = "node.koordinator.sh/numa-topology-policy"
CPU_TOPOLOGY = "node.koordinator.sh/cpu-topology"
CPU_BASIC_INFO = "node.koordinator.sh/cpu-basic-info"
CPU_SHARED_POOLS = "node.koordinator.sh/cpu-shared-pools"
BE_CPU_SHARED_POOLS = "node.koordinator.sh/be-cpu-shared-pools"
POD_CPU_ALLOCS = "node.koordinator.sh/pod-cpu-allocs"
KUBELET_CPU_MANAGER_POLICY = "kubelet.koordinator.sh/cpu-manager-policy"

# Profiles

SKIP_UPDATE_RESOURCES = "config.koordinator.sh/skip-update-resources"
CONTROLLER_MANAGED = "config.koordinator.sh/controller-managed"

# Namespaces

CONTROL_PLANE = "control-plane"
"""Label of the namespaces whose pods no webhook is asked about, so that the cluster can always start itself."""

# Quotas

QUOTA_PARENT = "quota.scheduling.koordinator.sh/parent"
QUOTA_IS_PARENT = "quota.scheduling.koordinator.sh/is-parent"
QUOTA_IS_ROOT = "quota.scheduling.koordinator.sh/is-root"
QUOTA_TREE_ID = "quota.scheduling.koordinator.sh/tree-id"
QUOTA_LENDS = "quota.scheduling.koordinator.sh/allow-lent-resource"
QUOTA_IGNORES_DEFAULT_TREE = "quota.scheduling.koordinator.sh/ignore-default-tree"
QUOTA_FORCE_UPDATE = "quota.scheduling.koordinator.sh/allow-force-update"
QUOTA_PROFILE = "quota.scheduling.koordinator.sh/profile"
QUOTA_SHARED_WEIGHT = "quota.scheduling.koordinator.sh/shared-weight"
QUOTA_GUARANTEED = "quota.scheduling.koordinator.sh/guaranteed"
QUOTA_RUNTIME = "quota.scheduling.koordinator.sh/runtime"
QUOTA_REQUEST = "quota.scheduling.koordinator.sh/request"
QUOTA_ALLOCATED = "quota.scheduling.koordinator.sh/allocated"
QUOTA_RESERVED_REQUEST = "quota.scheduling.koordinator.sh/non-preemptible-request"
QUOTA_RESERVED_USED = "quota.scheduling.koordinator.sh/non-preemptible-used"
QUOTA_CHILD_REQUEST = "quota.scheduling.koordinator.sh/child-request"
QUOTA_ADMISSION = "quota.scheduling.koordinator.sh/admission"
QUOTA_NAMESPACES = "quota.scheduling.koordinator.sh/namespaces"
QUOTA_STRICT_KEYS = "quota.scheduling.koordinator.sh/max-strict-check-resource-keys"
QUOTA_RESOURCE_KEYS = "quota.scheduling.koordinator.sh/resource-keys"
QUOTA_TOTAL = "quota.scheduling.koordinator.sh/total-resource"
QUOTA_UNSCHEDULABLE = "quota.scheduling.koordinator.sh/unschedulable-resource"
SYSTEM_QUOTA = "koordinator-system-quota"
DEFAULT_QUOTA = "koordinator-default-quota"
ROOT_QUOTA = "koordinator-root-quota"
"""What stands above every quota that names no other; there is no object of that name."""

# Kubernetes' own words

QOS_GUARANTEED = "Guaranteed"
QOS_BURSTABLE = "Burstable"
QOS_BEST_EFFORT = "BestEffort"
PHASE_PENDING = "Pending"
PHASE_RUNNING = "Running"
PHASE_SUCCEEDED = "Succeeded"
PHASE_FAILED = "Failed"
CONDITION_SCHEDULED = "PodScheduled"
CONDITION_INITIALIZED = "Initialized"
CONDITION_READY = "Ready"
TAINT_UNREACHABLE = "node.kubernetes.io/unreachable"
CONDITION_RESIZE_PENDING = "PodResizePending"
CONDITION_DISRUPTION_TARGET = "DisruptionTarget"
REASON_PREEMPTION = "PreemptionByScheduler"
RESIZE_INFEASIBLE = "Infeasible"
RESTART_ALWAYS = "Always"
DAEMON_SET = "DaemonSet"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
LEGACY_ZONE = "failure-domain.beta.kubernetes.io/zone"
LEGACY_REGION = "failure-domain.beta.kubernetes.io/region"

# Volumes

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
LEGACY_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"

# Several schedulers at work at once

SHARD = "koordpolicy.io/shard"
"""On a node, as a label: the scheduler's shard that places pods there. On a pod, as an annotation: the shards that have
had it, such as `0>2`; it is in the hands of the last."""

# Recommendations

RECOMMENDED_BOUNDS = "koordpolicy.io/recommended-bounds"
"""On a Recommendation, as JSON: by container, what a request should not be below (`lower`) and above (`upper`)."""
USAGE_HISTORY = "koordpolicy.io/usage-history"
"""On a Recommendation, as JSON: checkpoints of what its containers used, by container, for the next leader."""

# Traces

TRACEPARENT = "koordpolicy.io/traceparent"
"""On a pod: the trace that it belongs to, as W3C's trace context writes it."""

# Commands to a rollout, as annotations of its PolicyRevision

ROLLOUT = "koordpolicy.io/rollout"
"""`pause`, `resume` or `abort`; the process that leads the rollout takes it away once it has obeyed."""
ROLLOUT_BY = "koordpolicy.io/rollout-by"
ROLLOUT_ID = "koordpolicy.io/rollout-id"
"""Tells a command from an equal one before."""


def is_scalar(resource: str) -> bool:
    """Whether the scheduler treats a resource as a scalar: extended, huge pages, volume counts.

    A scalar that a pod does not request never takes part in that pod's scores. Everything with a
    domain counts, Koordinator's `kubernetes.io/batch-cpu` included.
    """
    return "/" in resource or resource.startswith((HUGEPAGES_PREFIX, ATTACHABLE_VOLUMES_PREFIX))


def is_extended(resource: str) -> bool:
    """Whether a resource is extended in Kubernetes' strict sense: a domain other than its own.

    `kubernetes.io/batch-cpu` is not; `nvidia.com/gpu` is.
    """
    return (
        "/" in resource and EXTENDED_RESOURCE_DOMAIN not in resource and not resource.startswith("requests.")
    )
