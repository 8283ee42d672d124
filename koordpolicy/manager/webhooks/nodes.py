"""The webhook of nodes: what kubelets report is multiplied by the node's ratios."""

from typing import Any, Final

from koordpolicy.algorithms.amplification import amplify
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import AdmissionAnswer, AdmissionRequest
from koordpolicy.manager.webhooks.scope import Scope
from koordpolicy.manager.webhooks.webhook import WebhookContext
from koordpolicy.model.node import amplification_ratios, raw_allocatable
from koordpolicy.model.protocol import RAW_ALLOCATABLE, RESOURCE_AMPLIFICATION_RATIO
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reading import Json, amounts, mapping, texts

_KIND: Final = "Amplification"


class NodeAmplification:
    """Multiplies allocatable amounts by the ratios in the node's annotation, and keeps the amounts before that in another."""

    def __init__(self, context: WebhookContext) -> None:
        self._context = context

    def answer(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """The node with its amounts, None where they are as they should be. Raises ObjectError for malformed annotations."""
        if request.object is None or request.old_object is None:
            return None
        graph = self._context.policies()
        about = graph.about(_KIND, "", {})
        if not graph.subjects(_KIND) or not about.value("admission.enabled"):
            return None
        node = with_amplification(request.object, request.old_object, about.value("admission.resources"))
        return None if node is request.object else AdmissionAnswer(object=node)


def amplified_nodes(graph: RuleGraph) -> Scope | None:
    """Nodes that have ratios, or had; none while amounts are left as they are."""
    if not graph.subjects(_KIND) or not graph.about(_KIND, "", {}).value_or("admission.enabled", True):
        return None
    there = " || ".join(
        f"{json_text(name)} in object.metadata.annotations"
        for name in (RESOURCE_AMPLIFICATION_RATIO, RAW_ALLOCATABLE)
    )
    return Scope(condition=f"has(object.metadata.annotations) && ({there})")


def with_amplification(node: Json, old: Json, resources: list[str]) -> Json:
    """The node that is to be stored in place of `old`; the same object where nothing changes.

    Raises ObjectError for amounts or annotations that cannot be read.
    """
    metadata, status = mapping(node, "metadata"), mapping(node, "status")
    annotations = texts(metadata, "annotations", "metadata")
    ratios = amplification_ratios(annotations)
    if not ratios:
        if RAW_ALLOCATABLE not in annotations:
            return node
        left = {name: text for name, text in annotations.items() if name != RAW_ALLOCATABLE}
        return {**node, "metadata": {**metadata, "annotations": left}}
    found = amplify(
        ratios,
        raw_allocatable(annotations),
        amounts(mapping(old, "status"), "allocatable", "status"),
        amounts(status, "allocatable", "status"),
        resources,
    )
    written: dict[str, Any] = {
        **mapping(status, "allocatable"),
        **{name: amount_text(name, number) for name, number in found.allocatable.items()},
    }
    kept = json_text({name: amount_text(name, number) for name, number in found.raw.items()})
    if written == status.get("allocatable") and annotations.get(RAW_ALLOCATABLE) == kept:
        return node
    return {
        **node,
        "metadata": {**metadata, "annotations": {**annotations, RAW_ALLOCATABLE: kept}},
        "status": {**status, "allocatable": written},
    }
