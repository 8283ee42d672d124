"""Real objects of every kind that components read, and strategies that spoil them anywhere below `metadata.name`.

    obj = data.draw(spoiled("pods"))      # one to three places of a pod hold something else, or nothing

What is put there are values that JSON can carry and no reader expects: other types at every path, numbers beyond any
range, deep and long ones, halves of characters, and real values of other fields.
"""

import copy
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hypothesis import strategies as st

from koordpolicy.model.protocol import (
    ESTIMATED_SCALING_FACTORS,
    ESTIMATED_SECONDS_AFTER_SCHEDULED,
    NODE_RESERVATION,
    QUOTA_RESOURCE_KEYS,
    QUOTA_TOTAL,
    RESOURCE_AMPLIFICATION_RATIO,
    RESOURCE_STATUS,
    THIRD_PARTY_ALLOCATIONS,
    USAGE_THRESHOLDS,
)

Json = dict[str, Any]

NODE: Final = "n1"
NAMESPACE: Final = "team"
_TIME: Final = "2023-11-14T22:00:00Z"
_SELECTOR: Final[Json] = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
}
_TERM: Final[Json] = {
    "labelSelector": _SELECTOR,
    "namespaceSelector": _SELECTOR,
    "namespaces": ["team"],
    "topologyKey": "zone",
}
_ON_NODES: Final[Json] = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
        }
    ]
}


def _meta(name: str, namespace: str = "", **more: Any) -> Json:
    where = {"namespace": namespace} if namespace else {}
    return {
        "name": name,
        **where,
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "creationTimestamp": _TIME,
        "labels": {"app": "web"},
        "annotations": {"note": "none"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "uid-rs", "controller": True}],
        **more,
    }


def _container(name: str) -> Json:
    amounts = {"cpu": "1", "memory": "1Gi", "example.com/gpu": 1}
    return {
        "name": name,
        "image": "registry/web:1",
        "restartPolicy": "Always",
        "resources": {"requests": amounts, "limits": {**amounts}},
        "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP", "hostIP": "10.0.0.1"}],
    }


def pod(name: str = "p1", node: str = NODE) -> Json:
    """A pod with something in all fields that anybody reads."""
    return {
        "metadata": _meta(
            name,
            NAMESPACE,
            annotations={
                ESTIMATED_SCALING_FACTORS: '{"cpu": 85}',
                ESTIMATED_SECONDS_AFTER_SCHEDULED: "60",
                RESOURCE_STATUS: '{"cpuset": "0-1", "numaNodeResources": [{"node": 0, "resources": {"cpu": "2"}}]}',
            },
        ),
        "spec": {
            "schedulerName": "koord-scheduler",
            **({"nodeName": node} if node else {}),
            "priority": 9500,
            "priorityClassName": "koord-prod",
            "preemptionPolicy": "PreemptLowerPriority",
            "containers": [_container("main"), _container("side")],
            "initContainers": [_container("first")],
            "overhead": {"cpu": "10m"},
            "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}},
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": _ON_NODES,
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 10, "preference": _ON_NODES["nodeSelectorTerms"][0]}
                    ],
                },
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 5, "podAffinityTerm": _TERM}
                    ]
                },
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]},
            },
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": _SELECTOR,
                    "minDomains": 1,
                }
            ],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}},
                {"name": "own", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "disk", "gcePersistentDisk": {"pdName": "disk", "readOnly": True}},
                {
                    "name": "rbd",
                    "rbd": {"pool": "rbd", "image": "i", "monitors": ["m1", "m2"], "readOnly": True},
                },
            ],
            "schedulingGates": [],
        },
        "status": {
            "phase": "Running" if node else "Pending",
            "qosClass": "Burstable",
            "startTime": _TIME,
            "nominatedNodeName": "",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": _TIME}],
            "containerStatuses": [
                {
                    "name": "main",
                    "allocatedResources": {"cpu": "1"},
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                }
            ],
        },
    }


def node(name: str = NODE) -> Json:
    """A node with the annotations of the protocol."""
    room = {
        "cpu": "16",
        "memory": "64Gi",
        "pods": "110",
        "example.com/gpu": 8,
        "kubernetes.io/batch-cpu": 4000,
    }
    return {
        "metadata": _meta(
            name,
            labels={"zone": "a", "kubernetes.io/hostname": name},
            annotations={
                NODE_RESERVATION: '{"resources": {"cpu": "1"}, "reservedCPUs": "0-1"}',
                RESOURCE_AMPLIFICATION_RATIO: '{"cpu": 1.5}',
                USAGE_THRESHOLDS: '{"usageThresholds": {"cpu": 65}}',
                THIRD_PARTY_ALLOCATIONS: '{"allocations": [{"name": "yarn", "priority": "koord-batch", "resources": {}}]}',
            },
        ),
        "spec": {
            "taints": [{"key": "k", "effect": "PreferNoSchedule", "value": "v"}],
            "unschedulable": False,
        },
        "status": {
            "capacity": dict(room),
            "allocatable": dict(room),
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": _TIME}],
            "images": [{"names": ["registry/web:1"], "sizeBytes": 500_000_000}],
        },
    }


def _usage(**amounts: str) -> Json:
    return {"resources": amounts}


def _metric() -> Json:
    return {
        "metadata": _meta(NODE),
        "spec": {"metricCollectPolicy": {"reportIntervalSeconds": 60}},
        "status": {
            "updateTime": _TIME,
            "nodeMetric": {
                "nodeUsage": _usage(cpu="2", memory="4Gi"),
                "systemUsage": _usage(cpu="1", memory="1Gi"),
                "aggregatedNodeUsages": [{"duration": "5m", "usage": {"p95": _usage(cpu="3", memory="5Gi")}}],
                "aggregatedSystemUsages": [{"duration": "5m", "usage": {"p95": _usage(cpu="1")}}],
            },
            "podsMetric": [
                {
                    "namespace": NAMESPACE,
                    "name": "p1",
                    "podUsage": _usage(cpu="1"),
                    "priority": "koord-prod",
                    "qos": "LS",
                }
            ],
            "hostApplicationMetric": [
                {"name": "h", "usage": _usage(cpu="1"), "priority": "koord-batch", "qos": "BE"}
            ],
            "prodReclaimableMetric": {"resource": _usage(cpu="1", memory="1Gi")},
        },
    }


def _topology() -> Json:
    entry = {"name": "cpu", "capacity": "8", "allocatable": "8", "available": "8"}
    zones = [
        {"name": f"node-{at}", "type": "Node", "resources": [dict(entry), {**entry, "name": "memory"}]}
        for at in (0, 1)
    ]
    return {"metadata": _meta(NODE), "topologyPolicies": ["None"], "zones": zones}


def _volume() -> Json:
    return {
        "metadata": _meta("pv"),
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "volumeMode": "Filesystem",
            "claimRef": {"namespace": NAMESPACE, "name": "claim", "uid": "uid-claim"},
            "csi": {"driver": "disk.example.com", "volumeHandle": "h1"},
            "nodeAffinity": {"required": _ON_NODES},
        },
        "status": {"phase": "Bound"},
    }


def _claim() -> Json:
    return {
        "metadata": _meta("claim", NAMESPACE),
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            "storageClassName": "fast",
            "volumeName": "pv",
            "volumeMode": "Filesystem",
            "selector": _SELECTOR,
        },
        "status": {"phase": "Bound"},
    }


REAL: Final[Mapping[str, Json]] = {
    "namespaces": {"metadata": _meta(NAMESPACE)},
    "nodes": node(),
    "nodemetrics.slo.koordinator.sh": _metric(),
    "noderesourcetopologies.topology.node.k8s.io": _topology(),
    "devices.scheduling.koordinator.sh": {
        "metadata": _meta(
            "n1",
            labels={"node.koordinator.sh/gpu-vendor": "nvidia"},
            annotations={
                "scheduling.koordinator.sh/gpu-partitions": '{"1": [{"minors": [0], "allocationScore": 1}]}'
            },
        ),
        "spec": {
            "devices": [
                {
                    "type": "gpu",
                    "id": "GPU-1",
                    "minor": 0,
                    "health": True,
                    "resources": {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"},
                    "topology": {"socketID": 0, "nodeID": 0, "pcieID": "0000:3b", "busID": "0000:3b:00.0"},
                }
            ]
        },
    },
    "clusternetworktopologies.scheduling.koordinator.sh": {
        "metadata": _meta("default"),
        "spec": {
            "networkTopologySpec": [
                {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "BlockLayer"},
                {"topologyLayer": "BlockLayer", "parentTopologyLayer": "SpineLayer", "labelKey": ["block"]},
                {"topologyLayer": "SpineLayer", "labelKey": ["spine", "net/spine"]},
            ]
        },
        "status": {
            "detailStatus": [
                {"topologyInfo": {"topologyLayer": "ClusterTopologyLayer", "topologyName": ""}, "nodeNum": 1}
            ]
        },
    },
    "poddisruptionbudgets.policy": {
        "metadata": _meta("budget", NAMESPACE),
        "spec": {"selector": _SELECTOR, "minAvailable": 1},
        "status": {"disruptionsAllowed": 1, "disruptedPods": {"p9": _TIME}},
    },
    "podgroups.scheduling.sigs.k8s.io": {
        "metadata": _meta(
            "job",
            NAMESPACE,
            annotations={
                "gang.scheduling.koordinator.sh/groups": '["team/job","team/other"]',
                "gang.scheduling.koordinator.sh/total-number": "4",
            },
        ),
        "spec": {"minMember": 2, "scheduleTimeoutSeconds": 30},
        "status": {"phase": "Pending"},
    },
    "podgroups.scheduling.k8s.io": {
        "metadata": _meta("workers", NAMESPACE),
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]},
            "resourceClaims": [{"name": "shared", "resourceClaimName": "shared"}],
            "disruptionMode": "Pod",
        },
        "status": {
            "conditions": [{"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable"}]
        },
    },
    "reservations.scheduling.koordinator.sh": {
        "metadata": _meta(
            "night",
            annotations={
                "scheduling.koordinator.sh/reservation-restricted-options": '{"resources":["cpu"]}',
                "scheduling.koordinator.sh/reservation-resize-allocatable": '{"resources":{"cpu":"3"}}',
                NODE_RESERVATION: '{"resources":{"cpu":"1"}}',
            },
        ),
        "spec": {
            "template": {
                "metadata": {"namespace": NAMESPACE, "labels": {"app": "night"}},
                "spec": {
                    "schedulerName": "koord-scheduler",
                    "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
                },
            },
            "owners": [
                {"object": {"namespace": NAMESPACE, "name": "p1"}, "labelSelector": _SELECTOR},
                {"controller": {"kind": "ReplicaSet", "name": "web", "controller": True}},
            ],
            "ttl": "24h",
            "expires": _TIME,
            "allocateOnce": False,
            "allocatePolicy": "Restricted",
            "preAllocationPolicy": {"mode": "Default", "enableMultiple": False},
            "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
        },
        "status": {
            "phase": "Available",
            "nodeName": "n9",
            "allocatable": {"cpu": "2"},
            "allocated": {"cpu": "1"},
            "currentOwners": [{"namespace": NAMESPACE, "name": "p1", "uid": "uid-p1"}],
            "conditions": [{"type": "Scheduled", "status": "True", "lastTransitionTime": _TIME}],
        },
    },
    "elasticquotaprofiles.quota.koordinator.sh": {
        "metadata": _meta("pool", NAMESPACE, annotations={QUOTA_RESOURCE_KEYS: '["cpu"]'}),
        "spec": {
            "quotaName": "root",
            "quotaLabels": {"a": "b"},
            "resourceRatio": "0.9",
            "nodeSelector": _SELECTOR,
        },
    },
    "elasticquotas.scheduling.sigs.k8s.io": {
        "metadata": _meta("root", NAMESPACE, annotations={QUOTA_TOTAL: '{"cpu":"4"}'}),
        "spec": {"min": {"cpu": "4"}, "max": {"cpu": "8"}},
        "status": {"used": {"cpu": "1"}},
    },
    "storageclasses.storage.k8s.io": {
        "metadata": _meta("fast"),
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    },
    "csidrivers.storage.k8s.io": {"metadata": _meta("disk.example.com"), "spec": {"storageCapacity": True}},
    "csinodes.storage.k8s.io": {
        "metadata": _meta(NODE),
        "spec": {"drivers": [{"name": "disk.example.com", "nodeID": "x", "allocatable": {"count": 4}}]},
    },
    "csistoragecapacities.storage.k8s.io": {
        "metadata": _meta("capacity", NAMESPACE),
        "storageClassName": "fast",
        "nodeTopology": _SELECTOR,
        "capacity": "100Gi",
        "maximumVolumeSize": "50Gi",
    },
    "persistentvolumes": _volume(),
    "persistentvolumeclaims": _claim(),
    "volumeattachments.storage.k8s.io": {
        "metadata": _meta("attachment"),
        "spec": {"nodeName": NODE, "attacher": "disk.example.com", "source": {"persistentVolumeName": "pv"}},
    },
    "services": {"metadata": _meta("svc", NAMESPACE), "spec": {"selector": {"app": "web"}}},
    "replicationcontrollers": {"metadata": _meta("rc", NAMESPACE), "spec": {"selector": {"app": "web"}}},
    "replicasets.apps": {"metadata": _meta("rs", NAMESPACE), "spec": {"selector": _SELECTOR}},
    "statefulsets.apps": {"metadata": _meta("sts", NAMESPACE), "spec": {"selector": _SELECTOR}},
    "pods": pod(),
}
"""An object of each resource, by the resource's name, as a cluster has it."""

_DEEP: Final[Any] = [[[[[[[[{"a": [[[[[[[[1]]]]]]]]}]]]]]]]]


def _chain(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"matchLabels": value}
    return value


LEAVES: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 10**400, 1.5, -0.0, 1e300, 5e-324,
    float("inf"), float("-inf"), float("nan"), "", " ", "0", "-1", "8Ei", "9e999", "1e-70", "NaN", "5E", "1" * 70,
    "\ud800", "a\udfffb", "\x00", "\u202e", "x" * 100_000, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
    "2999-12-31T00:00:00Z", "2016-12-31T23:59:60Z", "2026-07-01T08:00:00." + "1" * 30 + "Z", "0000-00-00T00:00:00Z",
    [], {}, [None], [[]], [{}], {"": None}, {"a": {}}, {"\ud800": "x"}, ["8Ei"], [1, "a", None], _DEEP, _chain(200),
    "n1", "Succeeded", "Exists", "In", "Guaranteed", '{"cpu": ' + "9" * 400 + "}", "[" * 2000,
)  # fmt: skip
"""What is put where something else is expected."""


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value within a value, its own left out."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        yield (*path, key)
        yield from places(inner, (*path, key))


def _spoil(obj: Json, path: tuple[str | int, ...], value: Any, how: str) -> None:
    parent: Any = obj
    for key in path[:-1]:
        parent = parent[key]
    last: Any = path[-1]
    if how == "remove":
        del parent[last]
    elif how == "wrap":
        parent[last] = [parent[last]]
    elif how == "double" and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[last]))
    else:
        parent[last] = copy.deepcopy(value)


_KEPT: Final = (("metadata",), ("metadata", "name"), ("metadata", "namespace"))


@st.composite
def spoiled_object(draw: st.DrawFn, real: Json) -> Json:
    """A copy of an object with one to three places spoiled; it keeps its name and namespace."""
    obj = copy.deepcopy(real)
    for _ in range(draw(st.integers(1, 3))):
        there = [path for path in places(obj) if path not in _KEPT]
        path = draw(st.sampled_from(there))
        how = draw(st.sampled_from(("replace", "replace", "replace", "remove", "wrap", "double")))
        _spoil(obj, path, draw(st.sampled_from(LEAVES)), how)
    return obj


def spoiled(resource: str) -> st.SearchStrategy[Json]:
    """A spoiled object of a resource."""
    return spoiled_object(REAL[resource])


SHARE: Final = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 3
"""One of how many values is tried in a place; which ones changes from place to place."""


def each_spoiled(real: Json) -> Iterator[tuple[str, Json]]:
    """An object with one place after the other spoiled by some of the values (see `SHARE`), with a word on what was done."""
    for number, path in enumerate(places(real)):
        if path in _KEPT:
            continue
        for value in LEAVES[number % SHARE :: SHARE]:
            obj = copy.deepcopy(real)
            _spoil(obj, path, value, "replace")
            yield f"{'.'.join(map(str, path))} = {repr(value)[:40]}", obj


NAMELESS: Final[tuple[Any, ...]] = (
    {}, [], "pod", None, 5, {"metadata": None}, {"metadata": {}}, {"metadata": []}, {"metadata": {"name": 5}},
    {"metadata": {"name": ""}}, {"metadata": {"name": None}}, {"metadata": {"name": "a", "namespace": ["b"]}},
    {"metadata": {"name": {"a": "b"}}},
)  # fmt: skip
"""What does not even say which object it is."""
