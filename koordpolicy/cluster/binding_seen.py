"""What the cluster says of a pod that was just bound: for the most part what is known, and so need not be read anew."""

from collections.abc import Iterable, Sequence
from typing import Final

from koordpolicy.cluster.pods import PodView
from koordpolicy.model.changing import changing
from koordpolicy.model.pod import Pod, read_condition
from koordpolicy.model.protocol import CONDITION_SCHEDULED, REGION, ZONE
from koordpolicy.model.reading import Json, mapping, objects, text, texts

_BOOKKEEPING: Final = ("resourceVersion", "generation", "managedFields")
"""What a server writes into the metadata with every change. Nothing here is read from it but the version."""

_PLACE: Final = (ZONE, REGION)
"""The labels of its node's place, which servers add with the node."""

_bound: Final = changing(Pod, "labels", "node_name", "conditions", "resource_version", "raw")


def bound_view(view: PodView, node: str, obj: Json) -> PodView | None:
    """A pod that was known without a node, as it is when the cluster shows it on that one.

    None when anything else is different, so that it has to be read as a whole. What was found out about the pod
    stays; of its facts only the node's name and the labels are others. Raises ObjectError when it is malformed.
    """
    pod, before = view.pod, view.pod.raw
    if pod.node_name or not before:
        return None
    spec = mapping(obj, "spec")
    if spec.get("nodeName") != node or not _same_but(mapping(before, "spec"), spec, ("nodeName",)):
        return None
    metadata, known = mapping(obj, "metadata"), mapping(before, "metadata")
    if not (
        _same_but(known, metadata, ("labels", *_BOOKKEEPING))
        and _same_but(mapping(known, "labels"), mapping(metadata, "labels"), _PLACE)
    ):
        return None
    status, known = mapping(obj, "status"), mapping(before, "status")
    if not _same_but(known, status, ("conditions",)):
        return None
    conditions = [*objects(status, "conditions", "status")]
    if _others(objects(known, "conditions", "status")) != _others(conditions):
        return None
    labels = texts(metadata, "labels", "metadata")
    now = _bound(
        pod,
        labels,
        node,
        tuple([read_condition(found) for found in conditions]),
        text(metadata, "resourceVersion", "metadata"),
        obj,
    )
    seen = PodView.__new__(PodView)
    seen.__dict__.update(view.__dict__, pod=now, facts={**view.facts, "nodeName": node, "labels": labels})
    if labels != pod.labels:
        seen.__dict__.pop("kind", None)
    return seen


def _same_but(known: Json, now: Json, left_out: Sequence[str]) -> bool:
    """Whether nothing else than what stands under some names is another."""
    if known == now:
        return True
    expected = {**known}
    for name in left_out:
        if name in now:
            expected[name] = now[name]
        else:
            expected.pop(name, None)
    return expected == now


def _others(conditions: Iterable[Json]) -> list[Json]:
    """All conditions but the one that says that the pod got its node."""
    return [one for one in conditions if one.get("type") != CONDITION_SCHEDULED]
