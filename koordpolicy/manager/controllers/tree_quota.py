"""The root quota that follows from an ElasticQuotaProfile and the nodes that it selects."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.algorithms.quota_profile import TreeTotals, fnv64a, tree_totals
from koordpolicy.graph import RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.node import Node
from koordpolicy.model.protocol import QUOTA_RESOURCE_KEYS, QUOTA_TREE_ID
from koordpolicy.model.quota import embedded_names
from koordpolicy.model.reading import Amounts, Json, ObjectError, mapping, text, texts

KIND: Final = "QuotaProfile"


@dataclass(frozen=True, slots=True)
class TreeQuota:
    """The root quota of a tree, as policy wants it."""

    tree: str
    min: Amounts
    max: Amounts
    totals: TreeTotals


def tree_quota(graph: RuleGraph, profile: Json, nodes: Iterable[Node], now: int) -> TreeQuota | None:
    """The quota for the nodes of a profile; None where policy does not follow it. `now` in nanoseconds since 1970.

    Raises ObjectError for a malformed profile, `CelError`.
    """
    time = TIMES.timestamp(now)
    record = _record(profile)
    about = graph.about(KIND, "", {"quotaProfile": record, "now": time})
    if not about.value("enabled"):
        return None
    counted = [(node.allocatable, _is_excluded(graph, node, now)) for node in nodes]
    totals = tree_totals(counted, about.value("ratio"))
    roots: Mapping[str, Any] = {
        "quotaProfile": {**record, "total": totals.total, "unschedulable": totals.unschedulable},
        "now": time,
    }
    about = graph.about(KIND, "", roots)
    keys = about.value("keys") or ()
    return TreeQuota(
        str(about.value("tree") or record["hash"]),
        {key: about.value("min", resource=key) or 0 for key in keys},
        {key: about.value("max", resource=key) or 0 for key in keys},
        totals,
    )


def _is_excluded(graph: RuleGraph, node: Node, now: int) -> bool:
    roots = {"node": node_record(NodeSight(node), graph.catalogue, TIMES, now), "now": TIMES.timestamp(now)}
    return bool(graph.about(KIND, "", roots).value("unschedulable"))


def _record(profile: Json) -> Record:
    metadata = mapping(profile, "metadata")
    name, namespace = text(metadata, "name", "metadata"), text(metadata, "namespace", "metadata")
    labels = texts(metadata, "labels", "metadata")
    annotations = texts(metadata, "annotations", "metadata")
    record: Record = {
        "name": name,
        "namespace": namespace,
        "labels": labels,
        "annotations": annotations,
        "tree": labels.get(QUOTA_TREE_ID, ""),
        "hash": str(fnv64a(f"{namespace}/{name}")),
    }
    ratio = _number(text(mapping(profile, "spec"), "resourceRatio", "spec"))
    if ratio is not None:
        record["ratio"] = ratio
    try:
        keys = embedded_names(annotations, QUOTA_RESOURCE_KEYS)
    except ObjectError:
        keys = ()  # what cannot be read says nothing
    if keys:
        record["resourceKeys"] = list(dict.fromkeys(keys))
    return record


def _number(text: str) -> float | None:
    """The number that a text is, as Koordinator reads it; None where it is none."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) and "_" not in text else None
