"""The metrics that dashboards made for koordlet know: its names and labels. Each gauge is shown under a name of ours as well.

What koordlet counts is a gauge here: its counters have no `_total`, which the format asks of counters.
"""

from typing import Final

from koordpolicy.runtime.metrics.metric import Metric, MetricKind

_NODE: Final = ("node",)
_POD: Final = ("pod_uid", "pod_name", "pod_namespace")
_CONTAINER: Final = ("container_id", "container_name", *_POD)
_AMOUNT: Final = ("resource", "unit")
_PRESSURE: Final = ("psi_resource_type", "psi_precision", "psi_degree", "cpu_full_supported")
_SCALED: Final = ("pod_namespace", "pod_name", "container_id", "container_name")


def _gauge(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.GAUGE, help, (*_NODE, *labels))


KOORDLET: Final = (
    _gauge("koordlet_start_time", "When the agent began, in seconds since 1970."),
    _gauge("koordlet_node_used_cpu_cores", "Cores of the node in use, as last measured."),
    _gauge("koordlet_node_used_memory_bytes", "Memory of the node in use, without page cache."),
    _gauge(
        "koordlet_node_resource_allocatable",
        "What the node offers of resources for best-effort work (batch and mid).",
        *_AMOUNT,
    ),
    _gauge(
        "koordlet_collect_node_cpu_info_status",
        "How often the CPUs of the node were looked at, by status (succeeded, failed).",
        "status",
    ),
    _gauge(
        "koordlet_collect_node_numa_info_status",
        "How often the NUMA zones of the node were looked at, by status (succeeded, failed).",
        "status",
    ),
    _gauge(
        "koordlet_collect_node_local_storage_info_status",
        "How often the disks of the node were looked at, by status (succeeded, failed).",
        "status",
    ),
    _gauge(
        "koordlet_be_suppress_cpu_cores",
        "Cores that suppression leaves to best-effort work, by mechanism (cpuset, cfsQuota).",
        "type",
    ),
    _gauge("koordlet_be_suppress_ls_used_cpu_cores", "Cores in use by pods that are no best-effort work."),
    _gauge("koordlet_be_suppress_be_used_cpu_cores", "Cores in use by best-effort pods."),
    _gauge("koordlet_pod_eviction", "Pods evicted so far, by reason.", "reason"),
    _gauge(
        "koordlet_pod_eviction_detail",
        "How often each of the pods evicted last was, by reason.",
        *("pod_namespace", "pod_name", "reason"),
    ),
    _gauge(
        "koordlet_container_scaled_cfs_burst_us",
        "Unused time that CPUBurst lets a container save up, in microseconds.",
        *_SCALED,
    ),
    _gauge(
        "koordlet_container_scaled_cfs_quota_us",
        "The quota that CPUBurst gives a container, in microseconds a period.",
        *_SCALED,
    ),
    _gauge(
        "koordlet_container_cpi",
        "Cycles and instructions of a container in its last window, by which of them (cycles, instructions).",
        *_CONTAINER,
        "cpi_field",
    ),
    _gauge(
        "koordlet_container_psi",
        "Percent of the last while in which tasks of a container waited, by resource (cpu, mem, io), while (avg10, avg60,"
        " avg300), and whether some did or all (some, full).",
        *_CONTAINER,
        *_PRESSURE,
    ),
    _gauge("koordlet_pod_psi", "The same of a pod.", *_POD, *_PRESSURE),
    _gauge(
        "koordlet_container_resource_requests",
        "What a container requests of batch and mid resources.",
        *_AMOUNT,
        *_POD,
        *_CONTAINER[:2],
    ),
    _gauge(
        "koordlet_container_resource_limits",
        "What a container may use of batch and mid resources.",
        *_AMOUNT,
        *_POD,
        *_CONTAINER[:2],
    ),
    _gauge(
        "koordlet_container_oom_score_adj",
        "The OOM score that policy gives a container's processes.",
        *("pod_name", "pod_namespace", "pod_uid", "container_name"),
    ),
    _gauge(
        "koordlet_container_core_sched_cookie",
        "Always 1; the labels name the cookie that a container has, and the group that shares it.",
        *("pod_name", "pod_namespace", "pod_uid", "container_name", "container_id"),
        *("core_sched_group", "core_sched_cookie"),
    ),
    _gauge(
        "koordlet_core_sched_cookie_manage_status",
        "How often the cookies of a group were given or taken, by status (succeeded, failed).",
        *("core_sched_group", "status"),
    ),
    _gauge(
        "koordlet_host_application_resource_usage",
        "What a program outside Kubernetes uses: cores, or bytes without page cache.",
        *("host_application_name", "resource", "priority_class", "qos"),
    ),
    _gauge(
        "koordlet_node_predicted_resource_reclaimable",
        "What will stay unused of requests, by predictor (by pods, by priorities, the least of both).",
        "predictor",
        *_AMOUNT,
    ),
    _gauge(
        "koordlet_node_predicted_resource_peak",
        "What will be used at most, by predictor.",
        "predictor",
        *_AMOUNT,
    ),
    _gauge(
        "koordlet_node_priority_resource_reclaimable",
        "What was reported last to stay unused of requests, by priority.",
        "priority",
        *_AMOUNT,
    ),
    _gauge(
        "koordlet_node_resource_priority_reclaimable_status",
        "0 while what stays unused is predicted, 1 while it cannot be, by priority.",
        "priority",
    ),
    _gauge("koordlet_node_metric_node_usage", "Use of the node, as reported last.", *_AMOUNT),
    _gauge("koordlet_node_metric_system_usage", "Use beside pods, as reported last.", *_AMOUNT),
    _gauge(
        "koordlet_node_metric_numa_node_usage",
        "Use of a NUMA zone, as reported last.",
        "numa_node_id",
        *_AMOUNT,
    ),
    _gauge(
        "koordlet_node_metric_numa_system_usage",
        "Use beside pods in a NUMA zone, as reported last.",
        "numa_node_id",
        *_AMOUNT,
    ),
    Metric(
        "koordlet_kubelet_request_duration_seconds",
        MetricKind.HISTOGRAM,
        "Time until the kubelet answered, by verb, path and status code (0: no answer came).",
        ("verb", "path", "code"),
        tuple(0.001 * 4**step for step in range(7)),
    ),
    Metric(
        "koordlet_resource_update_duration_milliseconds",
        MetricKind.HISTOGRAM,
        "Time that the kernel took for a write of a file, by who writes and status (success, failed).",
        ("type", "status"),
        tuple(0.01 * 4**step for step in range(8)),
    ),
    _gauge("koordlet_cpuset_share_pool_cpu_cores", "CPUs that pods share."),
    _gauge("koordlet_cpuset_be_share_pool_cpu_cores", "CPUs that best-effort pods share."),
    _gauge("koordlet_cpuset_share_pool_info", "Always 1; the label names a CPU that pods share.", "cpu_id"),
    _gauge(
        "koordlet_cpuset_be_share_pool_info",
        "Always 1; the label names a CPU that best-effort pods share.",
        "cpu_id",
    ),
    _gauge(
        "koordlet_resctrl_llc_occupancy",
        "Bytes of a last-level cache that a group of resctrl occupies.",
        *("cache_id", "qos"),
    ),
    _gauge(
        "koordlet_resctrl_memory_bandwidth",
        "Bytes that a group of resctrl has moved from and to memory, by sort (mbm_local, mbm_total).",
        *("cache_id", "qos", "mb_type"),
    ),
)
"""In the order of the manual."""

NOT_SHOWN: Final = frozenset(
    {
        "koordlet_runtime_hook_invoked_duration_milliseconds",
        "koordlet_runtime_hook_reconciler_invoked_duration_milliseconds",
    }
)
"""Names of koordlet's that this agent has nothing to tell under: it has no runtime hooks."""
