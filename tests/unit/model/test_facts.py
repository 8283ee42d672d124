"""The records that the builders make are those that the policy language declares."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from koordpolicy.agent.strategies.interference import PodSignals, signal_facts
from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.algorithms.node_overrides import FIELDS, override_facts
from koordpolicy.algorithms.pod_request import pod_demand
from koordpolicy.algorithms.records import submitted_pod_record
from koordpolicy.cluster.device_policy import allocation_facts
from koordpolicy.cluster.device_scores import DevicesState, devices_facts
from koordpolicy.language.cel.types import BOOL, DOUBLE, DURATION, INT, STRING, TIMESTAMP, Type
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.language.facts import FACTS
from koordpolicy.manager.recommender.policy import container_facts, workload_facts
from koordpolicy.model import protocol as wire
from koordpolicy.model.devices import Device, NodeDevices
from koordpolicy.model.facts import Record, Times
from koordpolicy.model.facts.load import (
    Loads,
    estimate_facts,
    estimation_facts,
    load_facts,
    threshold_facts,
)
from koordpolicy.model.facts.movable_pod import movable_pod_facts, on_node_facts
from koordpolicy.model.facts.node import (
    NodeDemand,
    amount_facts,
    card_facts,
    cluster_facts,
    cpu_facts,
    device_facts,
    host_application_facts,
    metric_facts,
    node_facts,
    zone_facts,
)
from koordpolicy.model.facts.pod import (
    class_facts,
    namespace_facts,
    placed_pod_facts,
    pod_facts,
    pod_usage_facts,
)
from koordpolicy.model.metric import AggregatedUsage, HostApplicationMetric, NodeMetric
from koordpolicy.model.node import Node
from koordpolicy.model.numa import CPUInfo
from koordpolicy.model.pod import Container, Owner, Pod, read_pod
from koordpolicy.model.pod_devices import DeviceShare
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.recommendation import RecommendationObject, Target
from koordpolicy.model.time import NANOSECONDS

TIMES = Times(Timestamp, Duration)
USED = {"cpu": 1500, "memory": 2**30}

NO_POLICY = Catalogue((), ())
USERS = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "runAsGroup": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}
RIGHTS = {**USERS, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}

POD = Pod(
    name="p",
    labels={"app": "web", wire.SUB_PRIORITY: "5"},
    annotations={
        wire.EVICTION_POLICY: '["evictCPU"]',
        wire.RESOURCE_STATUS: '{"numaNodeResources": [{"node": 1, "resources": {"cpu": 1}}]}',
        wire.ESTIMATED_SCALING_FACTORS: '{"cpu": 80}',
        wire.ESTIMATED_SECONDS_AFTER_SCHEDULED: "30",
        wire.ESTIMATED_SECONDS_AFTER_INITIALIZED: "40",
    },
    owners=(Owner("ReplicaSet", "web", controller=True),),
    priority=9000,
    created_at=7 * NANOSECONDS,
    started_at=8 * NANOSECONDS,
    overhead={"cpu": 50},
    init_containers=(Container("i", requests={"cpu": 900}), Container("s", sidecar=True)),
    containers=(Container("c", "web:1", {"cpu": 500, wire.BATCH_CPU: 300}, {"cpu": 1000, "memory": 5}),),
    raw={
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {**USERS, "fsGroup": 7},
            "tolerations": [{"key": "a", "tolerationSeconds": 5}],
            "volumes": [{"name": "v", "hostPath": {"path": "/var"}}, {"name": "w"}, {"name": "x", "new": {}}],
            "ephemeralContainers": [{"name": "e", "image": "i", "securityContext": {"privileged": True}}],
            "initContainers": [
                {"name": "i", "ports": [{"containerPort": 80}], "securityContext": RIGHTS},
                {"name": "s"},
            ],
            "containers": [{"name": "c", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}],
        }
    },
)
NODE = Node(
    "n",
    labels={"pool": "a"},
    annotations={
        wire.NODE_RESERVATION: '{"resources": {"memory": "2Gi"}}',
        wire.RAW_ALLOCATABLE: '{"cpu": "8"}',
        wire.CPU_NORMALIZATION_RATIO: "1.2",
        wire.NETWORK_BANDWIDTH: "10G",
        wire.RESOURCE_AMPLIFICATION_RATIO: '{"cpu": 1.5}',
        wire.USAGE_THRESHOLDS: (
            '{"usageThresholds": {"cpu": 60}, "prodUsageThresholds": {"cpu": 50}, "aggregatedUsage":'
            ' {"usageThresholds": {"cpu": 55}, "usageAggregationType": "p95", "usageAggregatedDuration": "5m"}}'
        ),
    },
    capacity={"cpu": 10000, "memory": 10 * 2**30, "pods": 110},
    allocatable={"cpu": 9000, "memory": 9 * 2**30, "pods": 110, wire.BATCH_CPU: 4000},
)
GPU = Device("gpu", healthy=True, resources={wire.GPU: 100}, labels={"a": "b"})
METRIC = NodeMetric(
    "n",
    updated_at=100 * NANOSECONDS,
    node_usage=USED,
    system_usage={"cpu": 200},
    prod_reclaimable=USED,
    aggregated=tuple(
        AggregatedUsage(300 * NANOSECONDS, {name: USED}) for name in ("avg", "p50", "p90", "p95", "p99")
    ),
)


STRATEGY: Mapping[str, object] = {
    "enable": True,
    **{
        field.path[0]: 50
        for field in FIELDS
        if field.path[0].endswith(("Percent", "Minutes", "Seconds")) and len(field.path) == 1
    },
    "cpuCalculatePolicy": "usage",
    "memoryCalculatePolicy": "usage",
    "midReclaimMode": "default",
    "resourceDiffThreshold": 0.1,
    "metricAggregatePolicy": {"durations": ["5m"]},
    "metricMemoryCollectPolicy": "usageWithoutPageCache",
}
"""Every field that a node can say of itself."""


def submitted_pod() -> Record:
    return submitted_pod_record(POD, NO_POLICY, TIMES)


def whole_pod() -> Record:
    pressed = {(resource, kind): 1.0 for resource in ("cpu", "memory", "io") for kind in ("some", "full")}
    return {
        **submitted_pod(),
        **placed_pod_facts(POD),
        **movable_pod_facts(POD),
        **on_node_facts(),
        **signal_facts(PodSignals(pressed, cpi=1.5, waiting=2.0)),
        **class_facts("LS", "", "prod", ""),
        **pod_usage_facts(USED, "prod"),
        **estimation_facts(POD, TIMES),
        **estimate_facts(USED),
        "queuedAt": Timestamp(1),
        "extendedContainers": [],
    }


def whole_node() -> Record:
    demand = NodeDemand({"cpu": 3000, wire.BATCH_CPU: 5000}, {"cpu": 3100}, 3)
    return {
        **node_facts(NODE, demand, [whole_pod()]),
        **metric_facts(METRIC, 130 * NANOSECONDS, TIMES),
        **amount_facts("usage.prod", USED),
        **amount_facts("usage.highPriority", USED),
        **load_facts(Loads(USED, USED, USED, USED)),
        **threshold_facts(NODE, TIMES),
        "metric.known": True,
        "ownedCPU": 2000,
        "conditions": {"Ready": "True"},
        **cpu_facts(CPUInfo("Xeon", hyper_threading=True, turbo=True)),
        **device_facts(NodeDevices((GPU,), {"a": "b"})),
        "hostApplications": [],
        "suppression.byQuota": True,
        **override_facts(Node("n", annotations={wire.COLOCATION_STRATEGY: json.dumps(STRATEGY)}), TIMES),
        "kubelet.cpuManager": "none",
        "system.hasCPUs": False,
    }


def whole_zone() -> Record:
    return zone_facts(0, 2, USED, USED, {})


RECORDS: Mapping[str, Record] = {
    "pod": whole_pod(),
    "container": whole_pod()["containers"][0],  # type: ignore[index]  # a list of records
    "containerPort": whole_pod()["containers"][0]["ports"][0],  # type: ignore[index]  # lists of records
    "toleration": whole_pod()["tolerations"][0],  # type: ignore[index]  # a list of records
    "volume": whole_pod()["volumes"][0],  # type: ignore[index]  # a list of records
    "node": whole_node(),
    "zone": whole_zone(),
    "device": card_facts(GPU, 100, used=False),
    "deviceSet": devices_facts(DevicesState((50, 100), (("shared", 1),)), 1, 50),
    "deviceAllocation": allocation_facts("n0", [DeviceShare(0, {"part": 50}, "gpu-0")], "part"),
    "hostApplication": host_application_facts(HostApplicationMetric("a", USED, "koord-prod", "LS"), "prod"),
    "namespace": namespace_facts({"metadata": {"name": "default", "labels": {"a": "b"}}}),
    "workload": container_facts(workload_facts(RecommendationObject("default", "web", Target())), "app", 7),
    "cluster": cluster_facts("east", 3, 5, USED, {}),
}

CLASSES: Mapping[Type, type] = {
    BOOL: bool,
    DOUBLE: float,
    INT: int,
    STRING: str,
    TIMESTAMP: Timestamp,
    DURATION: Duration,
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_has_exactly_the_declared_facts(name: str) -> None:
    declared = FACTS.record(name)
    assert declared is not None
    assert sorted(RECORDS[name]) == sorted(fact.path for fact in declared.facts)


@pytest.mark.parametrize("name", RECORDS)
def test_values_have_the_declared_types(name: str) -> None:
    declared = FACTS.record(name)
    assert declared is not None
    for fact in declared.facts:
        value = RECORDS[name][fact.path]
        plain = Type(fact.type.name) if fact.type.is_number else fact.type
        if plain in CLASSES:
            assert type(value) is CLASSES[plain], fact.path
        elif fact.type.name == "map":
            assert isinstance(value, Mapping), fact.path
        else:
            assert isinstance(value, list | tuple), fact.path


def test_pod_facts_speak_of_the_whole_pod() -> None:
    pod = RECORDS["pod"]
    assert (pod["request.cpu"], pod["request.batch.cpu"], pod["request.memory"]) == (950, 300, 0)
    assert (pod["limit.cpu"], pod["limit.memory"]) == (1050, 5)
    assert pod["nonzeroRequest.memory"] == 400 * 2**20  # container and sidecar
    assert (pod["numaNodes"], pod["ownerKind"], pod["phase"], pod["active"]) == (
        [1],
        "ReplicaSet",
        "Pending",
        True,
    )
    containers = pod["containers"]
    assert isinstance(containers, list)
    assert [(one["name"], one["init"], one["sidecar"]) for one in containers] == [
        ("i", True, False),
        ("s", False, True),
        ("c", False, False),
    ]


def test_facts_of_the_object_are_as_the_api_has_them() -> None:
    pod: Any = RECORDS["pod"]
    assert [one["source"] for one in pod["volumes"]] == ["hostPath", "emptyDir", ""]
    assert [(one["name"], one["securityContext.privileged"]) for one in pod["ephemeralContainers"]] == [
        ("e", True)
    ]
    init, sidecar, main = pod["containers"]
    assert main["securityContext.capabilities.add"] == ["NET_ADMIN"]
    assert (init["securityContext.runAsUser"], init["ports"][0]["protocol"]) == (1000, "TCP")
    assert {path.removeprefix("securityContext.") for path in {*init} - {*sidecar}} == {
        "runAsNonRoot", "runAsUser", "runAsGroup", "seccompProfile.type", "allowPrivilegeEscalation"
    }  # fmt: skip
    assert pod["tolerations"][0]["operator"] == "Equal"


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"hostNetwork": "yes"}, "spec.hostNetwork: expected true or false"),
        ({"tolerations": ["a"]}, "spec.tolerations[0]: expected a mapping"),
        ({"tolerations": [{"key": 5}]}, "spec.tolerations[0].key: expected text"),
        ({"securityContext": {"runAsUser": "1"}}, "spec.securityContext.runAsUser: expected a whole number"),
        (
            {"containers": [{"name": "c", "securityContext": {"capabilities": {"add": [1]}}}]},
            "spec.containers[0].securityContext.capabilities.add[0]: expected text",
        ),
        (
            {"ephemeralContainers": [{"name": "c", "ports": [{"hostPort": True}]}]},
            "spec.ephemeralContainers[0].ports[0].hostPort: expected a whole number",
        ),
    ],
)
def test_a_malformed_object_is_told_of_with_the_place(spec: Any, place: str) -> None:
    pod = read_pod({"metadata": {"name": "p"}, "spec": spec})
    with pytest.raises(ObjectError, match=re.escape(place)):
        submitted_pod_record(pod, NO_POLICY, TIMES)


def test_node_facts_speak_of_the_node_and_its_pods() -> None:
    node = RECORDS["node"]
    assert (node["physical.cpu"], node["allocatable.cpu"], node["free.cpu"]) == (8000, 9000, 6000)
    assert (node["free.batch.cpu"], node["requested.pods"], node["free.pods"]) == (-1000, 3, 107)
    assert (node["reserved.cpu"], node["reserved.memory"]) == (1000, 2 * 2**30)
    assert (node["usage.system.cpu"], node["usage.system.memory"]) == (200, 0)
    assert node["metric.age"] == Duration(30 * NANOSECONDS)


def test_what_is_unknown_is_missing_rather_than_zero() -> None:
    unset = pod_facts(Pod("p"), pod_demand(Pod("p")), TIMES)
    assert {"priority", "createdAt", "qos", "usage.cpu"}.isdisjoint(unset)
    assert metric_facts(NodeMetric("n"), 5, TIMES) == {}
    without_node = metric_facts(NodeMetric("n", updated_at=1), 5, TIMES)
    assert set(without_node) == {"metric.age", "metric.updatedAt"}
    partial = metric_facts(NodeMetric("n", node_usage={"cpu": 1}), 5, TIMES)
    assert {"usage.total.memory", "usage.p95.cpu"}.isdisjoint(partial)
    assert "reported.band" not in pod_usage_facts({}, None)


def test_limits_and_wishes_that_cannot_be_read_are_absent() -> None:
    assert threshold_facts(Node("n", annotations={wire.USAGE_THRESHOLDS: "{"}), TIMES) == {}
    assert threshold_facts(Node("n"), TIMES) == {}
    unreadable = {
        wire.ESTIMATED_SCALING_FACTORS: '{"cpu": "80"}',
        wire.ESTIMATED_SECONDS_AFTER_SCHEDULED: "-1",
        wire.ESTIMATED_SECONDS_AFTER_INITIALIZED: "9" * 18,
    }
    assert estimation_facts(Pod("p", annotations=unreadable), TIMES) == {}
    assert estimation_facts(Pod("p", annotations={wire.ESTIMATED_SCALING_FACTORS: "[]"}), TIMES) == {}


def test_an_unreadable_allocation_binds_to_no_zone() -> None:
    pod = Pod("p", annotations={wire.RESOURCE_STATUS: "{"})
    assert pod_facts(pod, pod_demand(pod), TIMES)["numaNodes"] == []


@pytest.mark.parametrize(
    ("phase", "active"), [("", True), ("Running", True), ("Succeeded", False), ("Unknown", False)]
)
def test_active_is_pending_or_running(phase: str, active: bool) -> None:
    pod = Pod("p", phase=phase)
    assert pod_facts(pod, pod_demand(pod), TIMES)["active"] is active


def test_any_daemon_set_among_the_owners_counts() -> None:
    pod = Pod("p", owners=(Owner("DaemonSet", "d"),))
    facts = pod_facts(pod, pod_demand(pod), TIMES)
    assert (facts["ownedByDaemonSet"], facts["ownerKind"]) == (True, "")
