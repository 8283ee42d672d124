"""What admission made of a pod that is there already, as far as that can be told afterwards.

No API server keeps what webhooks changed. What its owner submitted is asked of policies as they are now, and each line of the answer is
looked for on the pod. Where nobody has what was submitted, what policies set is taken from the pod first.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from koordpolicy.algorithms.json_patch import json_patch
from koordpolicy.algorithms.profile import ProfileEffect
from koordpolicy.cli.explain_admission import plain_admission
from koordpolicy.cli.pod_policies import Policies
from koordpolicy.kube.port import Object
from koordpolicy.manager.webhooks.rehearsal import Rehearsal, RehearsedAdmission
from koordpolicy.manager.webhooks.tracing import path_text, steps_of
from koordpolicy.model.protocol import (
    DEVICE_ALLOCATED,
    QOS_CLASS,
    RESERVATION_ALLOCATED,
    RESOURCE_STATUS,
    SUB_PRIORITY,
)
from koordpolicy.model.quantity import QuantityError, parse_quantity
from koordpolicy.model.reading import Json, mapping, objects, text, texts

_OURS: Final = ("koordinator.sh", "koordpolicy.io", "sigs.k8s.io")
"""Domains of labels and annotations that say something to koordpolicy, and their subdomains."""
_WRITERS: Final[Mapping[str, str]] = dict.fromkeys(
    (DEVICE_ALLOCATED, RESERVATION_ALLOCATED, RESOURCE_STATUS), "the scheduler, as it chose the node"
)
_LIMITS_AS_REQUESTS: Final = ("containers", "initContainers")
_MISSING: Final = object()
_PLAIN: Final = ("schedulerName", "priorityClassName")


def plain_admitted(
    rehearsal: Rehearsal, policies: Policies, pod: Object, submitted: Object | None, source: str
) -> dict[str, Any]:
    """What policies make of the pod as it was submitted, beside what is on it, as JSON values.

    `source` says where `submitted` is from. Without it the pod itself is asked about. Each line of `changes` is `there`, has become
    `other` than policies would make it now, or is `missing`; `beside` is what of the pod policies do not make. `same` says that admission would
    make it as it is.
    """
    found = (
        _undone(rehearsal, pod)
        if submitted is None
        else rehearsal.of(_as_created({**submitted, "metadata": _named(submitted, pod)}))
    )
    told = plain_admission(found, policies)
    pod, strange = _aligned(pod, found.mutation.pod)
    seen: set[str] = set()
    for step, traced in zip(told["changes"], found.changes, strict=True):
        for line, change in zip(step["lines"], traced.changes, strict=True):
            path = str(change["path"])
            seen.add(path)
            wanted, actual = (_at(one, steps_of(change)) for one in (found.mutation.pod, pod))
            amounts = "resources" in path
            line["state"] = (
                "there" if _alike(wanted, actual, amounts) else "missing" if actual is _MISSING else "other"
            )
            if line["state"] == "other":
                line["actual"] = actual
    beside = [] if found.refused else [*_beside(found.mutation.pod, pod, seen), *strange]
    lines = [line for step in told["changes"] for line in step["lines"]]
    return {
        **{name: value for name, value in told.items() if name != "patch"},
        "source": source or None,
        "beside": beside,
        "same": not found.refused
        and all(line["state"] == "there" for line in lines)
        and all(one["by"] is not None for one in beside),
    }


def _named(submitted: Object, pod: Object) -> Json:
    """The metadata of what was submitted, in the pod's namespace and by its name."""
    own = mapping(pod, "metadata")
    kept = {
        name: own[name] for name in ("namespace", "name", "generateName", "ownerReferences") if name in own
    }
    return {**mapping(submitted, "metadata"), **kept}


def _as_created(pod: Object) -> Object:
    """The pod as API servers show it to webhooks: what is limited and not requested is requested as it is limited."""
    spec = dict(mapping(pod, "spec"))
    for name in _LIMITS_AS_REQUESTS:
        if name in spec:
            spec[name] = [_requesting(one) for one in objects(spec, name, "spec")]
    return {**pod, "spec": spec}


def _requesting(container: Json) -> Json:
    resources = mapping(container, "resources")
    limits, requests = mapping(resources, "limits"), mapping(resources, "requests")
    if not limits:
        return container
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}


# --- where nobody has what was submitted ----------------------------------------------------------


def _undone(rehearsal: Rehearsal, pod: Object) -> RehearsedAdmission:
    """What becomes of the pod without what profiles set, where the same profiles select it then; else of the pod as it is."""
    pod = _as_submitted(pod)
    found = rehearsal.of(pod)
    if found.refused or not found.effects:
        return found
    without = rehearsal.of(_without(pod, found.effects))
    same = without.mutation.applied == found.mutation.applied and not without.refused
    return without if same else found


def _as_submitted(pod: Object) -> Object:
    """The pod without what is known to be written later, and by others."""
    metadata = dict(mapping(pod, "metadata"))
    annotations = texts(metadata, "annotations", "metadata")
    metadata["annotations"] = {key: value for key, value in annotations.items() if key not in _WRITERS}
    return {**pod, "metadata": metadata}


def _without(pod: Object, effects: Sequence[ProfileEffect]) -> Object:
    metadata, spec = dict(mapping(pod, "metadata")), dict(mapping(pod, "spec"))
    labels, annotations = (dict(texts(metadata, name, "metadata")) for name in ("labels", "annotations"))
    for effect in reversed(effects):
        for gone in (*effect.labels, *effect.label_copies.values()):
            labels.pop(gone, None)
        for gone in (*effect.annotations, *effect.annotation_copies.values()):
            annotations.pop(gone, None)
        for key, suffix in effect.label_suffixes.items():
            if key in labels:
                labels[key] = labels[key].removesuffix(suffix)
        if effect.qos:
            labels.pop(QOS_CLASS, None)
        if effect.sub_priority is not None:
            labels.pop(SUB_PRIORITY, None)
        if effect.scheduler_name:
            spec.pop("schedulerName", None)
        if effect.priority_class is not None:
            for gone in ("priorityClassName", "priority", "preemptionPolicy"):
                spec.pop(gone, None)
    return {**pod, "metadata": {**metadata, "labels": labels, "annotations": annotations}, "spec": spec}


# --- what is on the pod beside --------------------------------------------------------------------


def _aligned(pod: Object, made: Object) -> tuple[Object, list[dict[str, Any]]]:
    """The pod with the containers that policies know in their places, and those that somebody else has put in."""
    spec = mapping(pod, "spec")
    own = {text(one, "name"): one for one in objects(spec, "containers", "spec")}
    known = [text(one, "name") for one in objects(mapping(made, "spec"), "containers", "spec")]
    strange = [{"path": "spec.containers", "actual": name, "by": None} for name in own if name not in known]
    containers = [own.get(name, {"name": name}) for name in known]
    return {**pod, "spec": {**spec, "containers": containers}}, strange


def _beside(made: Object, pod: Object, told: set[str]) -> Iterator[dict[str, Any]]:
    """What of the pod is otherwise than policies make it now, and who is known to write it."""
    for change in json_patch(_looked_at(made), _looked_at(pod)):
        path = str(change["path"])
        if path in told:
            continue
        steps = steps_of(change)
        wanted, actual = _at(made, steps), _at(pod, steps)
        if not _alike(wanted, actual, "resources" in path):
            yield {
                "path": path_text(change),
                **({} if actual is _MISSING else {"actual": actual}),
                **({} if wanted is _MISSING else {"value": wanted}),
                "by": _WRITERS.get(steps[-1]),
            }


def _looked_at(pod: Object) -> dict[str, Any]:
    """What of a pod policies are about. Elements stay in their places, so that paths do."""
    metadata, spec = mapping(pod, "metadata"), mapping(pod, "spec")
    return {
        "metadata": {
            name: {key: value for key, value in texts(metadata, name, "metadata").items() if _is_ours(key)}
            for name in ("labels", "annotations")
        },
        "spec": {
            **{name: spec[name] for name in _PLAIN if spec.get(name)},
            "containers": [
                {
                    "resources": {
                        key: dict(mapping(mapping(one, "resources"), key)) for key in ("requests", "limits")
                    }
                }
                for one in objects(spec, "containers", "spec")
            ],
        },
    }


def _is_ours(key: str) -> bool:
    domain = key.partition("/")[0]
    return any(domain == one or domain.endswith(f".{one}") for one in _OURS)


def _at(value: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list | tuple) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _MISSING
    return value


def _alike(one: Any, other: Any, amounts: bool) -> bool:
    """Whether two values are the same; amounts of resources are written in many ways."""
    if one == other:
        return isinstance(one, bool) == isinstance(other, bool)
    if amounts and isinstance(one, str | int) and isinstance(other, str | int):
        try:
            return parse_quantity(one).nanos == parse_quantity(other).nanos
        except QuantityError:
            return False
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            _alike(value, other[key], amounts) for key, value in one.items()
        )
    return False
