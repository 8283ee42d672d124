"""Pods and other pods: affinity, anti-affinity, even spread."""

from collections import Counter

from tests.oracle.cluster import Cluster, Obj, labels, namespace
from tests.oracle.selecting import affinity_matches, selects, untolerated

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _terms(pod: Obj, kind: str) -> list[Obj]:
    return ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(_REQUIRED) or []


def _with_keys(selector: Obj | None, owner: Obj, match: list[str], mismatch: list[str]) -> Obj | None:
    """A selector with the owner's values of some labels: those it must have, those it must not."""
    if selector is None:
        return None
    more = [
        {"key": key, "operator": operator, "values": [labels(owner)[key]]}
        for operator, keys in (("In", match), ("NotIn", mismatch))
        for key in keys
        if key in labels(owner)
    ]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or []), *more]}


def _wants(cluster: Cluster, term: Obj, owner: Obj, pod: Obj) -> bool:
    """Whether a term of one pod speaks of another."""
    named, by_labels = term.get("namespaces") or [], term.get("namespaceSelector")
    where = namespace(pod)
    if not named and by_labels is None:
        there = where == namespace(owner)
    else:
        there = where in named or (
            by_labels is not None and selects(by_labels, cluster.namespace_labels(where))
        )
    selector = _with_keys(
        term.get("labelSelector"),
        owner,
        term.get("matchLabelKeys") or [],
        term.get("mismatchLabelKeys") or [],
    )
    return there and selects(selector, labels(pod))


def _near(cluster: Cluster, node: Obj, pod: Obj, key: str) -> bool:
    """Whether a pod is in a node's domain."""
    value = labels(node).get(key)
    return value is not None and labels(cluster.node(pod["spec"]["nodeName"])).get(key) == value


def affinity_refuses(cluster: Cluster, pod: Obj, node: Obj) -> tuple[str, bool] | None:
    """Why a node is not for a pod by affinity between pods, and whether fewer pods would not help."""
    near, apart = _terms(pod, "podAffinity"), _terms(pod, "podAntiAffinity")
    placed = list(cluster.placed())
    if near:
        wanted = [other for other in placed if all(_wants(cluster, term, pod, other) for term in near)]
        satisfied = all(
            any(_near(cluster, node, other, term["topologyKey"]) for other in wanted) for term in near
        )
        if not satisfied:
            keys = [term["topologyKey"] for term in near]
            counted = any(
                key in labels(cluster.node(other["spec"]["nodeName"])) for other in wanted for key in keys
            )
            first = not counted and all(_wants(cluster, term, pod, pod) for term in near)
            if not first or any(key not in labels(node) for key in keys):
                return "node(s) didn't match pod affinity rules", True
    for term in apart:
        if any(
            _wants(cluster, term, pod, other) and _near(cluster, node, other, term["topologyKey"])
            for other in placed
        ):
            return "node(s) didn't match pod anti-affinity rules", False
    for other in placed:
        for term in _terms(other, "podAntiAffinity"):
            if _wants(cluster, term, other, pod) and _near(cluster, node, other, term["topologyKey"]):
                return "node(s) didn't satisfy existing pods anti-affinity rules", False
    return None


def spread_refuses(cluster: Cluster, pod: Obj, node: Obj) -> tuple[str, bool] | None:
    """Why a node is not for a pod by its spread constraints."""
    hard = [
        one
        for one in pod["spec"].get("topologySpreadConstraints") or []
        if one["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    keys = {one["topologyKey"] for one in hard}
    text = "node(s) didn't match pod topology spread constraints"
    for one in hard:
        key = one["topologyKey"]
        if key not in labels(node):
            return f"{text} (missing required label)", True
        selector = _with_keys(one.get("labelSelector"), pod, one.get("matchLabelKeys") or [], [])
        counts: Counter[str] = Counter()
        domains = set()
        for other in cluster.nodes:
            if not keys <= labels(other).keys() or not _counts(one, pod, other):
                continue
            domains.add(labels(other)[key])
            counts[labels(other)[key]] += sum(
                1 for there in cluster.pods_on(other["metadata"]["name"]) if _is_counted(selector, pod, there)
            )
        least = min((counts[domain] for domain in domains), default=0)
        if len(domains) < (one.get("minDomains") or 1):
            least = 0
        own = 1 if selects(selector, labels(pod)) else 0
        if counts[labels(node)[key]] + own - least > one["maxSkew"]:
            return text, False
    return None


def _counts(constraint: Obj, pod: Obj, node: Obj) -> bool:
    """Whether a node counts for a constraint."""
    spec = pod["spec"]
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not affinity_matches(spec, node):
        return False
    return constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore" or not untolerated(spec, node)


def _is_counted(selector: Obj | None, pod: Obj, other: Obj) -> bool:
    """Whether a pod counts for a constraint of another. The empty selector counts none."""
    if not selector or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return False
    return (
        namespace(other) == namespace(pod)
        and not other["metadata"].get("deletionTimestamp")
        and selects(selector, labels(other))
    )
