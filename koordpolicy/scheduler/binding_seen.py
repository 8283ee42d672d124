"""What the cluster says of a pod that was just bound: for the most part what is known, and so need not be read anew."""

from dataclasses import replace
from typing import Final

from koordpolicy.model.pod import read_condition
from koordpolicy.model.protocol import CONDITION_SCHEDULED, REGION, ZONE
from koordpolicy.model.reading import Json, mapping, objects, text, texts
from koordpolicy.scheduler.pods import PodView

_BOOKKEEPING: Final = ("resourceVersion", "generation", "managedFields")
"""What a server writes into the metadata with every change. Nothing here is read from it but the version."""


def bound_view(view: PodView, node: str, obj: Json) -> PodView | None:
    """A pod that was known without a node, as it is when the cluster shows it on that one.

    None when anything else is different, so that it has to be read as a whole. What was found out about the pod
    stays; of its facts only the node's name and the labels are others. Raises ObjectError when it is malformed.
    """
    pod, before = view.pod, view.pod.raw
    if pod.node_name or not before or mapping(obj, "spec").get("nodeName") != node:
        return None
    if not (
        _same_but(before, obj, "spec", "nodeName")
        and _same_but(before, obj, "metadata", "labels", *_BOOKKEEPING)
        and _own_labels(before) == _own_labels(obj)
        and _same_but(before, obj, "status", "conditions")
        and _other_conditions(before) == _other_conditions(obj)
    ):
        return None
    metadata = mapping(obj, "metadata")
    conditions = objects(mapping(obj, "status"), "conditions", "status")
    labels = texts(metadata, "labels", "metadata")
    now = replace(
        pod,
        labels=labels,
        node_name=node,
        conditions=tuple(read_condition(found) for found in conditions),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        raw=obj,
    )
    seen = PodView(now, {**view.facts, "nodeName": node, "labels": labels}, view.estimate)
    seen.__dict__.update({**view.__dict__, **seen.__dict__})
    if labels != pod.labels:
        seen.__dict__.pop("kind", None)
    return seen


def _same_but(known: Json, now: Json, part: str, *left_out: str) -> bool:
    return _without(known, part, left_out) == _without(now, part, left_out)


def _own_labels(obj: Json) -> dict[str, object]:
    """The labels but those of its node's place, which servers add with the node."""
    return _without(mapping(obj, "metadata"), "labels", (ZONE, REGION))


def _without(obj: Json, part: str, left_out: tuple[str, ...]) -> dict[str, object]:
    found = dict(mapping(obj, part))
    for name in left_out:
        found.pop(name, None)
    return found


def _other_conditions(obj: Json) -> list[Json]:
    """All conditions but the one that says that the pod got its node."""
    conditions = objects(mapping(obj, "status"), "conditions", "status")
    return [one for one in conditions if one.get("type") != CONDITION_SCHEDULED]
