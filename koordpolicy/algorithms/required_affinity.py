"""Further demands on the nodes of a pod, beside those that it makes itself."""

from collections.abc import Sequence
from typing import Any, Final

from koordpolicy.model.labels import LabelSelector
from koordpolicy.model.reading import Json, mapping, objects, sequence


def as_expressions(selector: LabelSelector) -> tuple[Json, ...]:
    """A selector of nodes as the expressions of a node selector term."""
    return tuple(
        {
            "key": one.key,
            "operator": str(one.operator),
            **({"values": sorted(one.values)} if one.values else {}),
        }
        for one in selector.requirements
    )


def with_node_requirements(pod: Json, expressions: Sequence[Json]) -> Json:
    """The pod, on nodes for which these expressions hold too; the same object where it says so already.

    Terms are alternatives, so each gets them all; without any there is one of these alone. A term that is empty selects no
    node, and stays so. Raises ObjectError for a malformed pod.
    """
    if not expressions:
        return pod
    spec = mapping(pod, "spec")
    affinity = mapping(spec, "affinity", "spec")
    nodes = mapping(affinity, "nodeAffinity", "spec.affinity")
    required = mapping(nodes, _REQUIRED, "spec.affinity.nodeAffinity")
    before = list(objects(required, "nodeSelectorTerms", f"spec.affinity.nodeAffinity.{_REQUIRED}"))
    after = [_with(term, expressions) for term in before] or [{"matchExpressions": list(expressions)}]
    if after == before:
        return pod
    nodes = {**nodes, _REQUIRED: {**required, "nodeSelectorTerms": after}}
    return {**pod, "spec": {**spec, "affinity": {**affinity, "nodeAffinity": nodes}}}


def _with(term: Json, expressions: Sequence[Json]) -> Json:
    known: list[Any] = list(sequence(term, "matchExpressions", _TERM))
    if not known and not sequence(term, "matchFields", _TERM):
        return term
    missing = [one for one in expressions if one not in known]
    return {**term, "matchExpressions": [*known, *missing]} if missing else term


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TERM: Final = "nodeSelectorTerms"
