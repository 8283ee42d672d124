"""The manager: classes, bands, profiles."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.algorithms.classify import Catalogue, PriorityBand, QoSClass
from koordpolicy.algorithms.profile import PriorityClass, ProfileEffect, applies, apply_profile
from koordpolicy.algorithms.translate import translate_pod, with_extended_spec
from koordpolicy.model.pod import read_pod
from koordpolicy.model.protocol import (
    BATCH_CPU,
    BATCH_MEMORY,
    MID_CPU,
    MID_MEMORY,
    PRIORITY_CLASS,
    QOS_CLASS,
    SKIP_UPDATE_RESOURCES,
)
from tests.vectors import inputs
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]

CATALOGUE = Catalogue(
    classes=(
        QoSClass("LSE", (), "prod"),
        QoSClass("LSR", ("Guaranteed",), "prod"),
        QoSClass("LS", ("Burstable",), "prod"),
        QoSClass("BE", ("BestEffort",), "batch"),
        QoSClass("SYSTEM", (), "prod"),
    ),
    bands=(
        PriorityBand("prod", "koord-prod", 9000, 9999, 9500),
        PriorityBand("mid", "koord-mid", 7000, 7999, 7500),
        PriorityBand("batch", "koord-batch", 5000, 5999, 5500),
        PriorityBand("free", "koord-free", 3000, 3999, 3500),
    ),
)


def qos_priority_resolution(given: Given) -> Given:
    found = CATALOGUE.resolve(
        given.get("qos_label"), given.get("priority_class_label"), given.get("priority"), given["kube_qos"]
    )
    return {
        "qos": found.qos,
        "raw_class": CATALOGUE.class_name(found.raw_band),
        "class": CATALOGUE.class_name(found.band),
        "value": found.priority,
    }


def profile_probability(given: Given) -> Given:
    return {"applies": applies(_percent(given["probability"]), given["draw"])}


def _percent(probability: Any) -> int:
    return int(probability.removesuffix("%")) if isinstance(probability, str) else int(probability)


TRANSLATION = {
    "batch": {"cpu": BATCH_CPU, "memory": BATCH_MEMORY},
    "mid": {"cpu": MID_CPU, "memory": MID_MEMORY},
}


def profile_mutation(given: Given) -> Given:
    pod = inputs.pod_object(given["pod"])
    labels = given["pod"].get("labels", {})
    matching = [
        profile
        for profile in sorted(given["profiles"], key=lambda profile: str(profile["name"]))
        if profile.get("namespaceSelector", {}).items() <= given["namespace_labels"].items()
        and profile.get("selector", {}).items() <= labels.items()
    ]
    changed: Mapping[str, object] = pod
    for profile in matching:
        if applies(_percent(profile.get("probability", 100)), 50):
            changed = apply_profile(changed, _effect(profile, given["priority_classes"]))
    if matching and not any(SKIP_UPDATE_RESOURCES in one.get("profile_annotations", {}) for one in matching):
        read = read_pod(changed)
        found = CATALOGUE.resolve(
            read.labels.get(QOS_CLASS), read.labels.get(PRIORITY_CLASS), read.priority, read.kubernetes_qos
        )
        changed = translate_pod(changed, TRANSLATION.get(found.band, {}))
    changed = with_extended_spec(changed, (BATCH_CPU, BATCH_MEMORY))
    assert pod == inputs.pod_object(given["pod"]), "what was passed in is not changed"
    return inputs.shown_pod(changed)


def _effect(profile: Given, classes: Given) -> ProfileEffect:
    name = profile.get("priorityClassName", "")
    found = classes.get(name)
    return ProfileEffect(
        labels=profile.get("labels", {}),
        annotations=profile.get("annotations", {}),
        label_copies=profile.get("labelKeysMapping", {}),
        annotation_copies=profile.get("annotationKeysMapping", {}),
        label_suffixes=profile.get("labelSuffixes", {}),
        scheduler_name=profile.get("schedulerName", ""),
        qos=profile.get("qosClass", ""),
        priority_class=PriorityClass(name, found["value"], found["preemptionPolicy"]) if found else None,
        sub_priority=profile.get("koordinatorPriority"),
        patch=profile.get("patch"),
    )


RUNNERS: Mapping[tuple[str, str], Runner] = {
    ("manager", "profile_probability"): Runner(profile_probability),
    ("manager", "profile_mutation"): Runner(profile_mutation),
    ("manager", "qos_priority_resolution"): Runner(qos_priority_resolution),
}
