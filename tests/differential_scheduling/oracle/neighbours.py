"""What other pods mean for a pod: topology spread, affinity and anti-affinity between pods."""

from collections.abc import Mapping
from typing import Any

from tests.differential_scheduling.case import Object, name_of
from tests.differential_scheduling.oracle.cluster import Cluster, labels_of, selects
from tests.differential_scheduling.oracle.node import Reasons, affine, taints_tolerated

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

Term = Mapping[str, Any]


def namespace_of(pod: Object) -> str:
    return str(pod["metadata"].get("namespace") or "default")


def _with_keys(one: Term, owner: Object) -> Mapping[str, Any] | None:
    """The selector with what the label keys of the pod that says it add."""
    selector: Mapping[str, Any] | None = one.get("labelSelector")
    if selector is None:
        return None
    more = []
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        more += [
            {"key": key, "operator": operator, "values": [labels_of(owner)[key]]}
            for key in one.get(field) or ()
            if key in labels_of(owner)
        ]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *more]}


def spread(pod: Object, node: Object, cluster: Cluster) -> Reasons:
    constraints = [
        one
        for one in pod["spec"].get("topologySpreadConstraints") or ()
        if one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
    ]
    keys = {one["topologyKey"] for one in constraints}
    for one in constraints:
        key = one["topologyKey"]
        if key not in labels_of(node):
            text = "node(s) didn't match pod topology spread constraints (missing required label)"
            return [(text, False)]
        selector = _with_keys(one, pod)
        empty = selector is not None and not selector.get("matchLabels") and not selector["matchExpressions"]
        counts: dict[str, int] = {}
        for other in cluster.nodes.values():
            if not keys <= labels_of(other).keys() or not _counts(one, pod, other):
                continue
            domain = labels_of(other)[key]
            counts.setdefault(domain, 0)
            if empty:
                continue
            for neighbour in cluster.pods_on(name_of(other)):
                counts[domain] += (
                    namespace_of(neighbour) == namespace_of(pod)
                    and not neighbour["metadata"].get("deletionTimestamp")
                    and selects(selector, labels_of(neighbour))
                )
        for left in cluster.gone if cluster.as_built and not empty else ():
            place = cluster.nodes[left["spec"]["nodeName"]]
            if (
                left["metadata"].get("deletionTimestamp")
                and namespace_of(left) == namespace_of(pod)
                and selects(selector, labels_of(left))
                and keys <= labels_of(place).keys()
                and _counts(one, pod, place)
            ):
                counts[labels_of(place)[key]] -= 1
        least = min(counts.values(), default=0)
        if len(counts) < one.get("minDomains", 1) or not counts:
            least = 0
        itself = selects(selector, labels_of(pod))
        if counts.get(labels_of(node)[key], 0) + itself - least > one["maxSkew"]:
            return [("node(s) didn't match pod topology spread constraints", True)]
    return []


def _counts(one: Term, pod: Object, node: Object) -> bool:
    if one.get("nodeAffinityPolicy", "Honor") == "Honor" and not affine(pod, node):
        return False
    return one.get("nodeTaintsPolicy", "Ignore") != "Honor" or taints_tolerated(pod, node)


def _terms(pod: Object, field: str) -> list[Term]:
    return list(((pod["spec"].get("affinity") or {}).get(field) or {}).get(_REQUIRED) or ())


def _term_matches(term: Term, owner: Object, other: Object, cluster: Cluster, *, own: bool = True) -> bool:
    """Whether a term that `owner` says is about `other`; `own` ones are those of the pod that waits."""
    named, by_labels = term.get("namespaces") or [], term.get("namespaceSelector")
    theirs = namespace_of(other)
    if not named and by_labels is None:
        near = theirs == namespace_of(owner)
    else:
        labels = cluster.namespace_labels(theirs)
        near = theirs in named or selects(by_labels, labels or {})
        if own and cluster.as_built:
            near = near or selects(by_labels, {})
    return near and selects(_with_keys(term, owner), labels_of(other))


def together(pod: Object, node: Object, cluster: Cluster) -> Reasons:
    refused: Reasons = []
    wanted, avoided = _terms(pod, "podAffinity"), _terms(pod, "podAntiAffinity")
    if wanted and not _near(pod, wanted, node, cluster):
        return [("node(s) didn't match pod affinity rules", False)]
    for term in avoided:
        for other, place in cluster.placed():
            if _same_domain(term, node, place) and _term_matches(term, pod, other, cluster):
                return [("node(s) didn't match pod anti-affinity rules", True)]
    for other, place in cluster.placed():
        for term in _terms(other, "podAntiAffinity"):
            if _same_domain(term, node, place) and _term_matches(term, other, pod, cluster, own=False):
                return [("node(s) didn't satisfy existing pods anti-affinity rules", True)]
    return refused


def _near(pod: Object, wanted: list[Term], node: Object, cluster: Cluster) -> bool:
    if any(term["topologyKey"] not in labels_of(node) for term in wanted):
        return False
    matching = [
        place
        for other, place in cluster.placed()
        if all(_term_matches(term, pod, other, cluster) for term in wanted)
    ]
    if all(any(_same_domain(term, node, place) for place in matching) for term in wanted):
        return True
    somewhere = any(term["topologyKey"] in labels_of(place) for place in matching for term in wanted)
    return not somewhere and all(_term_matches(term, pod, pod, cluster) for term in wanted)


def _same_domain(term: Term, one: Object, other: Object) -> bool:
    key = term["topologyKey"]
    return key in labels_of(one) and labels_of(one)[key] == labels_of(other).get(key)
