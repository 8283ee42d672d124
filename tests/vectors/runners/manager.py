"""Runners of the manager: webhooks and overcommitted resources, asked of the compiled policies."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.algorithms.profile import PriorityClass
from koordpolicy.kube.known import FixedObjects
from koordpolicy.kube.resources import CLUSTER_COLOCATION_PROFILES
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.controllers.node_plan import NodePlan, plan_node
from koordpolicy.manager.controllers.overcommit import Calculation, Offer, PublishAction, calculate
from koordpolicy.manager.webhooks.cluster_profiles import BothProfiles, ClusterProfiles
from koordpolicy.manager.webhooks.mutation import PodContext, mutate
from koordpolicy.manager.webhooks.profiles import Profiles
from koordpolicy.manager.webhooks.rules import Rules
from koordpolicy.model.metric import read_node_metric
from koordpolicy.model.node import read_node
from koordpolicy.model.numa import read_zones
from koordpolicy.model.pod import read_pod
from koordpolicy.model.protocol import (
    BATCH_CPU,
    BATCH_MEMORY,
    CPU_NORMALIZATION_RATIO,
    MID_CPU,
    NODE_RESERVATION,
    ORIGIN_EXTENDED_ALLOCATABLE,
    PRIORITY_CLASS,
    QOS_CLASS,
    RESOURCE_STATUS,
    SKIP_UPDATE_RESOURCES,
    SUB_PRIORITY,
    THIRD_PARTY_ALLOCATIONS,
)
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reading import read_amounts
from koordpolicy.model.time import NANOSECONDS, time_text
from tests.vectors import inputs
from tests.vectors.policies import document, graph
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]


def qos_priority_resolution(given: Given) -> Given:
    catalogue = graph().catalogue
    found = catalogue.resolve(
        given.get("qos_label"), given.get("priority_class_label"), given.get("priority"), given["kube_qos"]
    )
    return {
        "qos": found.qos,
        "raw_class": catalogue.class_name(found.raw_band),
        "class": catalogue.class_name(found.band),
        "value": found.priority,
    }


def pod_validation(given: Given) -> Given:
    overlay = []
    if given.get("skip_validating_priority"):
        overlay.append(document("AdmissionRule", "immutable-sub-priority", {"enabled": False}))
    old = _validated_pod(given["old_pod"]) if "old_pod" in given else None
    operation = "CREATE" if old is None else "UPDATE"
    broken = Rules(graph(*overlay)).violations(operation, _validated_pod(given["pod"]), old, {}, 0)
    return {"allowed": not broken, "violations": [one.reason for one in broken]}


def _validated_pod(given: Given) -> Given:
    labels = {
        label: given[key]
        for key, label in (
            ("qos_label", QOS_CLASS),
            ("priority_class_label", PRIORITY_CLASS),
            ("sub_priority_label", SUB_PRIORITY),
        )
        if key in given
    }
    requests = {
        resource: f"{given[key]}m" if key == "cpu_milli" else given[key]
        for key, resource in (
            ("cpu_milli", "cpu"),
            ("batch_cpu", BATCH_CPU),
            ("batch_memory", BATCH_MEMORY),
            ("mid_cpu", MID_CPU),
        )
        if key in given
    }
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    if "priority" in given:
        spec["priority"] = given["priority"]
    return {"metadata": {"name": "pod", "labels": labels}, "spec": spec}


def profile_probability(given: Given) -> Given:
    compiled = graph(_profile({"name": "p", "probability": given["probability"]}))
    (profile,) = [one for one in Profiles(compiled).candidates(_NOBODY) if one.name == "p"]
    return {"applies": profile.takes(given["draw"], _NOBODY)}


_NOBODY: Given = {
    "pod": {"labels": {}},
    "namespaceObject": {"labels": {}},
    "operation": "CREATE",
    "now": None,
}


def profile_mutation(given: Given) -> Given:
    """Profiles are asked as policies, as objects of the cluster, and half of them as either: all do the same."""
    every = given["profiles"]
    first, *others = [_mutated(given, every[:at], every[at:]) for at in (len(every), 0, len(every) // 2)]
    assert all(one == first for one in others), "policies and objects of the cluster do the same"
    return first


def _mutated(given: Given, policies: Sequence[Given], objects: Sequence[Given]) -> Given:
    compiled = graph(*map(_profile, policies))
    profiles = BothProfiles(
        Profiles(compiled),
        ClusterProfiles(FixedObjects({CLUSTER_COLOCATION_PROFILES: list(map(_profile_object, objects))})),
    )
    pod = inputs.pod_object(given["pod"])
    state = PodContext(
        namespace={"metadata": {"name": "default", "labels": given["namespace_labels"]}},
        priority_class={
            name: PriorityClass(name, one["value"], one["preemptionPolicy"])
            for name, one in given["priority_classes"].items()
        }.get,
        now=0,
    )
    # Probabilities in these cases are 0 and 100, so that the draw does not matter.
    changed = mutate(pod, profiles, compiled, state, lambda: 50.0)
    assert pod == inputs.pod_object(given["pod"]), "what was passed in is not changed"
    return inputs.shown_pod(changed.pod)


def _profile_object(given: Given) -> dict[str, Any]:
    spec: dict[str, Any] = {
        key: value for key, value in given.items() if key not in ("name", "profile_annotations")
    }
    for key in ("selector", "namespaceSelector"):
        if spec.get(key) is not None:
            spec[key] = {"matchLabels": spec[key]}
    return {
        "metadata": {"name": given["name"], "annotations": given.get("profile_annotations", {})},
        "spec": spec,
    }


def _profile(given: Given) -> dict[str, Any]:
    """A ClusterColocationProfile as the policy that says the same."""
    selectors = {"pods": given.get("selector"), "namespaces": given.get("namespaceSelector")}
    match = {key: {"matchLabels": labels} for key, labels in selectors.items() if labels is not None}
    # Koordinator reads less than 0 as never and more than 100 as always; policies say it plainly.
    probability = min(max(int(str(given.get("probability", 100)).removesuffix("%")), 0), 100)
    skips = SKIP_UPDATE_RESOURCES in given.get("profile_annotations", {})
    return document(
        "ColocationProfile",
        given["name"],
        {
            "match": match or None,
            "probability": f"{probability}%",
            "sampling": "AtMost",
            "labels": given.get("labels"),
            "annotations": given.get("annotations"),
            "copyLabels": given.get("labelKeysMapping"),
            "copyAnnotations": given.get("annotationKeysMapping"),
            "labelSuffixes": given.get("labelSuffixes"),
            "schedulerName": given.get("schedulerName"),
            "qosClass": given.get("qosClass"),
            "priorityClassName": given.get("priorityClassName"),
            "subPriority": given.get("koordinatorPriority"),
            "patch": given.get("patch"),
            "resourceTranslation": "Never" if skips else None,
        },
    )


def batch_resource(given: Given) -> Given:
    return _overcommitted("batch", _batch_policy(given["strategy"]), given)


def mid_resource(given: Given) -> Given:
    return _overcommitted("mid", _mid_policy(given["strategy"]), given)


def _overcommitted(resource: str, policy: dict[str, Any], given: Given) -> Given:
    compiled = graph(policy)
    record = node_record(_sight(given), compiled.catalogue, TIMES, NOW)
    found = calculate(compiled, resource, record, NOW)
    answer: dict[str, Any] = {"degraded": found.outcome is PublishAction.RESET}
    if found.outcome is PublishAction.PUBLISH:
        answer.update(_offer(resource, found.whole))
    if found.zones:
        names = [zone["name"] for zone in given.get("zones", ())]
        answer["zones"] = {
            name: _offer(resource, zone) for name, zone in zip(names, found.zones, strict=True)
        }
    return answer


NOW = 1_800_000_000 * NANOSECONDS


def batch_publish(given: Given) -> Given:
    annotations = {
        THIRD_PARTY_ALLOCATIONS: json.dumps(
            {
                "allocations": [
                    {"name": one["name"], "priority": one["priority"], "resources": _batch_names(one)}
                    for one in given["third_party_allocations"]
                ]
            }
        )
    }
    if given["cpu_normalization_ratio"] is not None:
        annotations[CPU_NORMALIZATION_RATIO] = f"{given['cpu_normalization_ratio']:.2f}"
    calculated = given["calculated"]
    found = _plan(_calculation(calculated["batch_cpu"], calculated["batch_memory"]), {}, annotations)
    origin = read_amounts(json.loads(found.annotations[ORIGIN_EXTENDED_ALLOCATABLE])["resources"])
    return {
        "batch_cpu": found.resources.get(BATCH_CPU),
        "batch_memory": found.resources.get(BATCH_MEMORY),
        "origin": {"batch_cpu": origin[BATCH_CPU], "batch_memory": origin[BATCH_MEMORY]},
    }


def resource_diff(given: Given) -> Given:
    """The amount is that of batch memory, which is written as it is calculated; batch CPU does not change."""
    old, new = given["old"], given["new"]
    before = {} if old is None else {BATCH_MEMORY: old}
    if new is not None:
        before[BATCH_CPU] = 0
    changed_by = {"publish": {"whenChangedBy": f"{given['threshold'] * 100}%"}}
    found = _plan(_calculation(None if new is None else 0, new), before, {}, changed_by, settled=NOW)
    return {"need_sync": found.settles}


def _calculation(cpu: int | None, memory: int | None) -> Calculation:
    if cpu is None or memory is None:
        return Calculation("batch", PublishAction.RESET)
    return Calculation("batch", PublishAction.PUBLISH, Offer(cpu, memory))


def _plan(
    calculation: Calculation,
    offered: Mapping[str, int],
    annotations: Mapping[str, str],
    spec: Given | None = None,
    settled: int | None = None,
) -> NodePlan:
    """What is written to a node that offers these amounts."""
    compiled = graph(document("Overcommit", "publishing", {"resource": "batch", **(spec or {})}))
    amounts = {name: str(amount) for name, amount in offered.items()}
    status = {"capacity": amounts, "allocatable": amounts}
    node = read_node({"metadata": {"name": "node", "annotations": annotations}, "status": status})
    record = node_record(NodeSight(node), compiled.catalogue, TIMES, NOW)
    return plan_node(compiled, node, record, [calculation], None, settled, NOW)


def _batch_names(amounts: Given) -> Given:
    return {BATCH_CPU: amounts["batch_cpu"], BATCH_MEMORY: amounts["batch_memory"]}


def _offer(resource: str, found: Offer) -> Given:
    return {f"{resource}_cpu": found.cpu, f"{resource}_memory": found.memory}


_BATCH_PARAMETERS = {
    "cpuReclaimThresholdPercent": "cpuReclaim",
    "memoryReclaimThresholdPercent": "memoryReclaim",
    "cpuCalculatePolicy": "cpuPolicy",
    "memoryCalculatePolicy": "memoryPolicy",
    "batchCPUThresholdPercent": "cpuLimit",
    "batchMemoryThresholdPercent": "memoryLimit",
}
_MID_PARAMETERS = {
    "midReclaimMode": "mode",
    "midCPUThresholdPercent": "cpuLimit",
    "midMemoryThresholdPercent": "memoryLimit",
    "midUnallocatedPercent": "unallocated",
    "midStaticCPUReservedPercent": "staticCPU",
    "midStaticMemoryReservedPercent": "staticMemory",
}


def _batch_policy(strategy: Given) -> dict[str, Any]:
    """A colocation strategy's part on batch resources, as a policy."""
    return _strategy("batch", _BATCH_PARAMETERS, strategy)


def _mid_policy(strategy: Given) -> dict[str, Any]:
    """Its part on mid resources."""
    return _strategy("mid", _MID_PARAMETERS, strategy)


def _strategy(resource: str, names: Mapping[str, str], strategy: Given) -> dict[str, Any]:
    parameters = {
        name: f"{strategy[key]}%" if isinstance(strategy[key], int) else strategy[key]
        for key, name in names.items()
        if key in strategy
    }
    minutes = strategy.get("degradeTimeMinutes")
    spec = {
        "resource": resource,
        "parameters": parameters,
        "onMissing": None if minutes is None else {"after": f"{minutes}m"},
    }
    return document("Overcommit", "colocation-strategy", spec)


def _sight(given: Given) -> NodeSight:
    """The node with its pods, report and zones, from the objects that the API would send."""
    return NodeSight(
        read_node(_node_object(given["node"])),
        [read_pod(_pod_object(pod)) for pod in given["pods"]],
        read_node_metric(_metric_object(given["metric"])),
        read_zones({"zones": [_zone_object(zone) for zone in given.get("zones", ())]}),
    )


def _node_object(node: Given) -> Given:
    annotations = {}
    if "reservation" in node:
        reservation = dict(node["reservation"])
        if "resources" in reservation:
            reservation["resources"] = _quantities(reservation["resources"])
        annotations[NODE_RESERVATION] = json.dumps(reservation)
    status = {key: _quantities(node[key]) for key in ("capacity", "allocatable")}
    return {"metadata": {"name": "node", "annotations": annotations}, "status": status}


def _pod_object(pod: Given) -> Given:
    annotations = {}
    if "numa_nodes" in pod:
        allocated = [{"node": number, "resources": {}} for number in pod["numa_nodes"]]
        annotations[RESOURCE_STATUS] = json.dumps({"numaNodeResources": allocated})
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "resources": {"requests": _quantities(pod["request"])}}]
    }
    if "priority" in pod:
        spec["priority"] = pod["priority"]
    return {
        "metadata": {
            "name": pod["name"],
            "namespace": "default",
            "labels": {QOS_CLASS: pod["qos_label"]} if "qos_label" in pod else {},
            "annotations": annotations,
        },
        "spec": spec,
        "status": {"phase": pod["phase"], "qosClass": pod["kube_qos"]},
    }


def _metric_object(metric: Given) -> Given:
    status: dict[str, Any] = {
        "nodeMetric": {
            "nodeUsage": _usage(metric["node_usage"]),
            "systemUsage": _usage(metric["system_usage"]),
        },
        "podsMetric": [
            {
                "name": pod["name"],
                "namespace": "default",
                "priority": pod.get("priority", ""),
                "podUsage": _usage(pod["usage"]),
            }
            for pod in metric["pods"]
        ],
        "hostApplicationMetric": [
            {"name": f"app-{number}", "priority": app["priority"], "usage": _usage(app["usage"])}
            for number, app in enumerate(metric.get("host_apps", ()))
        ],
    }
    if metric.get("prod_reclaimable") is not None:
        status["prodReclaimableMetric"] = {"resource": _usage(metric["prod_reclaimable"])}
    if metric["age_seconds"] is not None:
        status["updateTime"] = time_text(NOW - metric["age_seconds"] * NANOSECONDS)
    return {"metadata": {"name": "node"}, "status": status}


def _zone_object(zone: Given) -> Given:
    allocatable = _quantities(zone["allocatable"])
    resources = [{"name": name, "allocatable": amount} for name, amount in allocatable.items()]
    return {"name": zone["name"], "type": "Node", "resources": resources}


def _usage(amounts: Given) -> Given:
    return {"resources": _quantities(amounts)}


def _quantities(amounts: Given) -> Given:
    return {name: amount_text(name, amount) for name, amount in amounts.items()}


_OF_MID = frozenset(
    f"strategy.mid{key}"
    for key in (
        "ReclaimMode",
        "CPUThresholdPercent",
        "MemoryThresholdPercent",
        "UnallocatedPercent",
        "StaticCPUReservedPercent",
        "StaticMemoryReservedPercent",
    )
)
_OF_BATCH = frozenset(
    f"strategy.{key}"
    for key in (
        "cpuReclaimThresholdPercent",
        "memoryReclaimThresholdPercent",
        "cpuCalculatePolicy",
        "memoryCalculatePolicy",
        "batchCPUThresholdPercent",
        "batchMemoryThresholdPercent",
    )
)
"""One strategy speaks of both resources."""


RUNNERS: Mapping[str, Runner] = {
    "batch_resource": Runner(batch_resource, irrelevant=_OF_MID),
    "mid_resource": Runner(mid_resource, irrelevant=_OF_BATCH),
    "batch_publish": Runner(batch_publish),
    "resource_diff": Runner(resource_diff),
    "qos_priority_resolution": Runner(qos_priority_resolution),
    "pod_validation": Runner(pod_validation),
    "profile_probability": Runner(profile_probability),
    "profile_mutation": Runner(profile_mutation),
}
