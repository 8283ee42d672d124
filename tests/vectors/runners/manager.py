"""Runners of the manager: webhooks and overcommitted resources, asked of the compiled policies."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.manager.webhooks.mutation import Surroundings, mutate
from koordpolicy.manager.webhooks.profiles import Profiles
from koordpolicy.manager.webhooks.rules import Rules
from koordpolicy.mechanism.profile import PriorityClass
from koordpolicy.model.protocol import (
    BATCH_CPU,
    BATCH_MEMORY,
    MID_CPU,
    PRIORITY_CLASS,
    QOS_CLASS,
    SKIP_UPDATE_RESOURCES,
    SUB_PRIORITY,
)
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
    (profile,) = [one for one in Profiles(compiled).matching(_NOBODY) if one.name == "p"]
    return {"applies": profile.takes(given["draw"], _NOBODY)}


_NOBODY: Given = {
    "pod": {"labels": {}},
    "namespaceObject": {"labels": {}},
    "operation": "CREATE",
    "now": None,
}


def profile_mutation(given: Given) -> Given:
    compiled = graph(*map(_profile, given["profiles"]))
    pod = inputs.pod_object(given["pod"])
    around = Surroundings(
        namespace={"metadata": {"name": "default", "labels": given["namespace_labels"]}},
        priority_classes={
            name: PriorityClass(name, one["value"], one["preemptionPolicy"])
            for name, one in given["priority_classes"].items()
        },
        now=0,
    )
    # Probabilities in these cases are 0 and 100, so that the draw does not matter.
    changed = mutate(pod, Profiles(compiled), compiled, around, lambda: 50.0)
    assert pod == inputs.pod_object(given["pod"]), "what was passed in is not changed"
    return inputs.shown_pod(changed.pod)


def _profile(given: Given) -> dict[str, Any]:
    """A ClusterColocationProfile as the policy that says the same."""
    selectors = {"pods": given.get("selector"), "namespaces": given.get("namespaceSelector")}
    match = {key: {"matchLabels": labels} for key, labels in selectors.items() if labels is not None}
    probability = str(given.get("probability", 100)).removesuffix("%")
    skips = SKIP_UPDATE_RESOURCES in given.get("profile_annotations", {})
    return document(
        "ColocationProfile",
        given["name"],
        {
            "match": match or None,
            "probability": {"cel": f"percent({probability})"},
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


RUNNERS: Mapping[str, Runner] = {
    "qos_priority_resolution": Runner(qos_priority_resolution),
    "pod_validation": Runner(pod_validation),
    "profile_probability": Runner(profile_probability),
    "profile_mutation": Runner(profile_mutation),
}
