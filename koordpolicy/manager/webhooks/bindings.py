"""The records that rules on bindings read."""

from typing import Any

from koordpolicy.algorithms.records import pod_record
from koordpolicy.graph import RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts.pod import namespace_facts
from koordpolicy.model.pod import read_pod
from koordpolicy.model.reading import Json


def binding_roots(
    graph: RuleGraph, pod: Json | None, node: str, namespace: Json, user: str, now: int
) -> dict[str, Any]:
    """The records of a binding by root. `pod` is None where it could not be read; `now` in nanoseconds since 1970.

    Raises ObjectError for a malformed pod.
    """
    return {
        "pod": pod_record(read_pod(pod or {}), graph.catalogue, TIMES),
        "binding": {"node": node, "podKnown": pod is not None},
        "namespaceObject": namespace_facts(namespace),
        "operation": "CREATE",
        "user": user,
        "now": TIMES.timestamp(now),
    }
