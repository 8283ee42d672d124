"""Pods, nodes and metrics from the JSON that the API sends."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from koordpolicy.model import protocol as wire
from koordpolicy.model.metric import read_node_metric
from koordpolicy.model.node import (
    amplification_ratios,
    annotation_reserved,
    node_reservation,
    normalization_ratio,
    physical_allocatable,
    raw_allocatable,
    read_node,
    usage_thresholds,
)
from koordpolicy.model.pod import Container, Owner, PodCondition, read_pod
from koordpolicy.model.reading import ObjectError, read_amounts
from koordpolicy.model.time import NANOSECONDS

POD: dict[str, Any] = {
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "u1",
        "labels": {"app": "web", wire.SUB_PRIORITY: "0x10"},
        "ownerReferences": [
            {"kind": "Note", "name": "n", "uid": "u3"},
            {"kind": "ReplicaSet", "name": "web", "uid": "u2", "controller": True},
        ],
        "creationTimestamp": "1970-01-01T00:00:07Z",
        "resourceVersion": "12",
    },
    "spec": {
        "nodeName": "n1",
        "schedulerName": "koord-scheduler",
        "priority": 9000,
        "priorityClassName": "koord-prod",
        "initContainers": [
            {"name": "log", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
            {"name": "prepare"},
        ],
        "containers": [
            {
                "name": "main",
                "image": "web:1",
                "resources": {
                    "requests": {"cpu": "1.5", "memory": "1Gi", "koordinator.sh/batch-cpu": "1k"},
                    "limits": {"cpu": 2, "memory": "1Gi"},
                },
            }
        ],
        "overhead": {"cpu": "50m"},
    },
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:00:08Z"}
        ],
        "containerStatuses": [
            {
                "name": "main",
                "resources": {"requests": {"cpu": "1", "memory": "2Gi"}},
                "allocatedResources": {"cpu": "3"},
            }
        ],
    },
}


def test_a_pod() -> None:
    pod = read_pod(POD)
    assert pod.key == ("shop", "web-0")
    assert (pod.node_name, pod.scheduler_name, pod.priority, pod.phase) == (
        "n1",
        "koord-scheduler",
        9000,
        "Running",
    )
    assert pod.sub_priority == 16
    assert pod.controller == Owner("ReplicaSet", "web", "u2", controller=True)
    assert pod.init_containers == (
        Container("log", requests={"cpu": 100}, sidecar=True),
        Container("prepare"),
    )
    assert pod.containers == (
        Container(
            "main",
            "web:1",
            {"cpu": 1500, "memory": 2**30, wire.BATCH_CPU: 1000},
            {"cpu": 2000, "memory": 2**30},
            running={"cpu": 3000, "memory": 2**31},
        ),
    )
    assert pod.condition("PodScheduled") == PodCondition("PodScheduled", "True", since=8 * NANOSECONDS)
    assert pod.condition("Ready") is None
    assert (pod.created_at, pod.deleted_at) == (7 * NANOSECONDS, None)
    assert (pod.terminal, pod.terminating, pod.pod_requests) == (False, False, None)
    assert pod.kubernetes_qos == "Burstable"


def test_the_smallest_pod() -> None:
    pod = read_pod({"metadata": {"name": "p"}})
    assert (pod.namespace, pod.priority, pod.kubernetes_qos, pod.sub_priority) == (
        "default",
        None,
        "BestEffort",
        0,
    )
    assert pod.controller is None


@pytest.mark.parametrize("text", ["", "high", "99999999999"])
def test_an_unreadable_sub_priority_is_zero(text: str) -> None:
    assert read_pod({"metadata": {"labels": {wire.SUB_PRIORITY: text}}}).sub_priority == 0


def _resources(
    requests: Mapping[str, object] | None = None, limits: Mapping[str, object] | None = None
) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests, "limits": limits}}


FULL = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [_resources()]}, "BestEffort"),
        ({"containers": [_resources({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1})]}, "BestEffort"),
        ({"containers": [_resources({"cpu": 0})]}, "BestEffort"),
        ({"containers": [_resources({"cpu": "1"})]}, "Burstable"),
        ({"containers": [_resources(FULL, FULL)]}, "Guaranteed"),
        ({"containers": [_resources(FULL, {**FULL, "cpu": "2"})]}, "Burstable"),
        ({"containers": [_resources(FULL, FULL), _resources()]}, "Burstable"),
        ({"containers": [_resources(FULL, FULL)], "initContainers": [_resources({"cpu": 1})]}, "Burstable"),
        ({"containers": [_resources(None, FULL)]}, "Burstable"),
        ({"containers": [_resources({"cpu": "1"}, FULL)]}, "Burstable"),
        ({"containers": [_resources()], "resources": {"requests": FULL, "limits": FULL}}, "Guaranteed"),
        ({"containers": [_resources(FULL, FULL)], "resources": {"limits": {"cpu": "1"}}}, "Burstable"),
    ],
)
def test_kubernetes_qos_follows_from_the_spec(spec: dict[str, Any], expected: str) -> None:
    assert read_pod({"spec": spec}).kubernetes_qos == expected


def test_the_status_knows_the_kubernetes_qos_better() -> None:
    assert read_pod({"status": {"qosClass": "Guaranteed"}}).kubernetes_qos == "Guaranteed"


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({"spec": []}, "spec: expected a mapping, found a list"),
        ({"spec": {"containers": {}}}, r"spec\.containers: expected a list"),
        ({"spec": {"containers": ["a"]}}, r"spec\.containers\[0\]: expected a mapping, found text"),
        ({"spec": {"priority": "high"}}, r"spec\.priority: expected a whole number"),
        ({"spec": {"priority": True}}, r"spec\.priority: expected a whole number, found true or false"),
        ({"metadata": {"labels": {"a": None}}}, r"metadata\.labels\[a\]: expected text"),
        ({"metadata": {"creationTimestamp": "today"}}, r"metadata\.creationTimestamp: `today` is not a time"),
        (
            {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1x"}}}]}},
            r"spec\.containers\[0\]\.limits\.cpu: `1x` is not a quantity",
        ),
    ],
)
def test_malformed_objects_name_the_place(obj: dict[str, object], message: str) -> None:
    with pytest.raises(ObjectError, match=message):
        read_pod(obj)


def test_deprecated_resource_names_move_unless_the_current_one_is_there() -> None:
    assert read_amounts({"koordinator.sh/batch-cpu": 5, "kubernetes.io/gpu-core": 7}) == {
        wire.BATCH_CPU: 5,
        wire.GPU_CORE: 7,
    }
    assert read_amounts({"koordinator.sh/batch-cpu": 5, wire.BATCH_CPU: 6})[wire.BATCH_CPU] == 6


def test_a_node() -> None:
    node = read_node(
        {
            "metadata": {"name": "n1", "labels": {"pool": "a"}},
            "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule", "value": "v"}]},
            "status": {
                "capacity": {"cpu": "10", "memory": "10Gi", "pods": "110"},
                "allocatable": {"cpu": "9500m", "memory": "11Gi", "pods": "110"},
            },
        }
    )
    assert node.capacity == {"cpu": 10000, "memory": 10 * 2**30, "pods": 110}
    assert node.kubelet_reserved == {"cpu": 500, "memory": 0}
    assert (node.unschedulable, node.taints[0].effect, node.labels) == (True, "NoSchedule", {"pool": "a"})


def test_a_reservation_names_cpus_or_amounts() -> None:
    by_amount = node_reservation({wire.NODE_RESERVATION: '{"resources": {"cpu": "500m", "memory": "1Gi"}}'})
    assert by_amount is not None
    assert (by_amount.resources, by_amount.trims) == ({"cpu": 500, "memory": 2**30}, True)
    by_list = node_reservation(
        {
            wire.NODE_RESERVATION: '{"resources": {"cpu": 9}, "reservedCPUs": "0-2", "applyPolicy": "ReservedCPUsOnly"}'
        }
    )
    assert by_list is not None
    assert (by_list.resources, by_list.reserved_cpus) == ({"cpu": 3000}, frozenset({0, 1, 2}))
    assert not by_list.trims
    assert node_reservation({}) is None


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"resources": 1}', '{"reservedCPUs": "3-1"}', '{"resources": {"cpu": "x"}}']
)
def test_a_malformed_reservation_is_an_error_and_counts_as_none(text: str) -> None:
    annotations = {wire.NODE_RESERVATION: text}
    with pytest.raises(ObjectError, match="reservation"):
        node_reservation(annotations)
    node = read_node({"metadata": {"annotations": annotations}, "status": {"capacity": {"cpu": 4}}})
    assert annotation_reserved(node) == {"cpu": 0, "memory": 0}


def test_raw_allocatable_overrides_what_is_published() -> None:
    node = read_node(
        {
            "metadata": {"annotations": {wire.RAW_ALLOCATABLE: '{"cpu": "28"}'}},
            "status": {"allocatable": {"cpu": "32", "memory": "1Gi"}},
        }
    )
    assert raw_allocatable(node.annotations) == {"cpu": 28000}
    assert physical_allocatable(node) == {"cpu": 28000, "memory": 2**30}
    broken = read_node(
        {"metadata": {"annotations": {wire.RAW_ALLOCATABLE: "["}}, "status": {"allocatable": {"cpu": 1}}}
    )
    assert physical_allocatable(broken) == {"cpu": 1000}


def test_ratios() -> None:
    assert amplification_ratios({wire.RESOURCE_AMPLIFICATION_RATIO: '{"cpu": 1.25, "memory": 1}'}) == {
        "cpu": 1.25,
        "memory": 1.0,
    }
    assert amplification_ratios({}) == {}
    assert normalization_ratio({wire.CPU_NORMALIZATION_RATIO: "1.20"}) == 1.2
    assert normalization_ratio({}) is None


@pytest.mark.parametrize("text", ["", "abc", "-1", "0", "NaN", "inf"])
def test_no_normalization_ratio(text: str) -> None:
    with pytest.raises(ObjectError, match="ratio above zero"):
        normalization_ratio({wire.CPU_NORMALIZATION_RATIO: text})


@pytest.mark.parametrize("text", ['{"cpu": "1.2"}', '{"cpu": true}', '{"cpu": NaN}'])
def test_no_amplification_ratio(text: str) -> None:
    with pytest.raises(ObjectError, match="amplification"):
        amplification_ratios({wire.RESOURCE_AMPLIFICATION_RATIO: text})


def test_usage_thresholds_of_a_node() -> None:
    found = usage_thresholds(
        {
            wire.USAGE_THRESHOLDS: '{"usageThresholds": {"cpu": 60}, "aggregatedUsage": {"usageThresholds": {"cpu": 70},'
            ' "usageAggregationType": "p95", "usageAggregatedDuration": "5m"}}'
        }
    )
    assert found is not None
    assert (found.usage, found.prod_usage, found.aggregated) == ({"cpu": 60}, {}, {"cpu": 70})
    assert (found.aggregation, found.duration) == ("p95", 300 * NANOSECONDS)


def test_aggregated_thresholds_count_only_with_a_type() -> None:
    found = usage_thresholds({wire.USAGE_THRESHOLDS: '{"aggregatedUsage": {"usageThresholds": {"cpu": 70}}}'})
    assert found is not None
    assert (found.aggregated, found.aggregation) == ({}, "")


@pytest.mark.parametrize(
    "text",
    ['{"usageThresholds": {"cpu": "60"}}', '{"aggregatedUsage": {"usageAggregatedDuration": "5"}}', "null"],
)
def test_malformed_usage_thresholds(text: str) -> None:
    with pytest.raises(ObjectError, match="usage-thresholds"):
        usage_thresholds({wire.USAGE_THRESHOLDS: text})


def test_a_node_metric() -> None:
    metric = read_node_metric(
        {
            "metadata": {"name": "n1"},
            "spec": {"metricCollectPolicy": {"reportIntervalSeconds": 30}},
            "status": {
                "updateTime": "1970-01-01T00:01:00Z",
                "nodeMetric": {
                    "nodeUsage": {"resources": {"cpu": "2500m", "memory": "1Gi"}},
                    "systemUsage": {"resources": {"cpu": "200m"}},
                    "aggregatedNodeUsages": [
                        {"duration": "5m", "usage": {"p95": {"resources": {"cpu": "3"}}}},
                        {
                            "duration": "30m",
                            "usage": {"p95": {"resources": {}}, "avg": {"resources": {"cpu": "1"}}},
                        },
                    ],
                },
                "podsMetric": [
                    {
                        "namespace": "a",
                        "name": "p",
                        "priority": "koord-prod",
                        "qos": "LS",
                        "podUsage": {"resources": {"cpu": "1"}},
                    }
                ],
                "hostApplicationMetric": [
                    {"name": "nginx", "usage": {"resources": {"cpu": "1"}}, "qos": "LS"}
                ],
                "prodReclaimableMetric": {"resource": {"resources": {"cpu": "4"}}},
            },
        }
    )
    assert (metric.updated_at, metric.report_interval) == (60 * NANOSECONDS, 30 * NANOSECONDS)
    assert (metric.node_usage, metric.system_usage) == ({"cpu": 2500, "memory": 2**30}, {"cpu": 200})
    assert metric.longest("p95") == {"cpu": 3000}
    assert metric.longest("avg") == {"cpu": 1000}
    assert metric.longest("p50") is None
    assert (metric.pods[0].key, metric.pods[0].priority, metric.host_applications[0].name) == (
        ("a", "p"),
        "koord-prod",
        "nginx",
    )
    assert (metric.prod_reclaimable, metric.prod_peak) == ({"cpu": 4000}, None)


@pytest.mark.parametrize("amount", ["1e18", "8E", str(2**62)])
@pytest.mark.parametrize(
    ("place", "status"),
    [
        ("nodeUsage", lambda used: {"nodeMetric": {"nodeUsage": used}}),
        ("systemUsage", lambda used: {"nodeMetric": {"systemUsage": used}}),
        (
            "p95",
            lambda used: {
                "nodeMetric": {"aggregatedNodeUsages": [{"duration": "1m", "usage": {"p95": used}}]}
            },
        ),
        ("podUsage", lambda used: {"podsMetric": [{"name": "a", "namespace": "b", "podUsage": used}]}),
        ("usage", lambda used: {"hostApplicationMetric": [{"name": "a", "usage": used}]}),
    ],
)
def test_a_report_of_more_than_any_node_has_is_no_report(
    place: str, status: Callable[[object], object], amount: str
) -> None:
    """Formulas would overflow over it, and what an older report gave would stay for ever."""
    with pytest.raises(ObjectError, match=rf"{place}.resources.cpu: no node and no pod uses as much"):
        read_node_metric({"status": status({"resources": {"cpu": amount}})})


def test_a_metric_without_a_node_part_is_not_a_metric_of_zero() -> None:
    metric = read_node_metric({"status": {"updateTime": "1970-01-01T00:01:00Z"}})
    assert (metric.node_usage, metric.report_interval) == (None, 60 * NANOSECONDS)


def test_a_metric_window_with_a_bad_duration_names_the_place() -> None:
    with pytest.raises(ObjectError, match=r"aggregatedNodeUsages\[0\]\.duration"):
        read_node_metric({"status": {"nodeMetric": {"aggregatedNodeUsages": [{"duration": "soon"}]}}})
