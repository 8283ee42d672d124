"""Selectors of labels and of nodes."""

from typing import Any

from tests.oracle.cluster import Obj, labels, name


def selects(selector: Obj | None, found: dict[str, str]) -> bool:
    """Whether a label selector matches: none matches nothing, the empty one everything."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if found.get(key) != value:
            return False
    return all(_holds(one, found.get(one["key"])) for one in selector.get("matchExpressions") or [])


def _holds(one: Obj, value: str | None) -> bool:
    operator, values = one["operator"], one.get("values") or []
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator in ("Gt", "Lt"):
        if value is None or len(values) != 1:
            return False
        try:
            left, right = int(value), int(values[0])
        except ValueError:
            return False
        return left > right if operator == "Gt" else left < right
    return False


def term_matches(term: Obj, node: Obj) -> bool:
    """Whether a term of a node selector holds; an empty one does not."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    if not all(_holds(one, labels(node).get(one["key"])) for one in expressions):
        return False
    return all(one["key"] == "metadata.name" and _holds(one, name(node)) for one in fields)


def affinity_matches(spec: Obj, node: Obj) -> bool:
    """Whether a node is where a pod's selector and required node affinity send it."""
    for key, value in (spec.get("nodeSelector") or {}).items():
        if labels(node).get(key) != value:
            return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if required is None:
        return True
    return any(term_matches(term, node) for term in required.get("nodeSelectorTerms") or [])


def tolerates(tolerations: list[Any], taint: Obj) -> bool:
    """Whether one of the tolerations is for a taint."""
    for one in tolerations:
        if one.get("effect") and one["effect"] != taint["effect"]:
            continue
        if one.get("operator", "Equal") == "Exists":
            if not one.get("key") or one["key"] == taint["key"]:
                return True
        elif one.get("key") == taint["key"] and (one.get("value") or "") == (taint.get("value") or ""):
            return True
    return False


def untolerated(spec: Obj, node: Obj) -> bool:
    """Whether a node has a taint that keeps a pod away."""
    return any(
        taint["effect"] in ("NoSchedule", "NoExecute") and not tolerates(spec.get("tolerations") or [], taint)
        for taint in node.get("spec", {}).get("taints") or []
    )
