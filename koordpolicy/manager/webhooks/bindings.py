"""The webhook of bindings: who may place pods on nodes."""

from typing import Any

from koordpolicy.algorithms.records import submitted_pod_record
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import AdmissionAnswer, AdmissionRequest
from koordpolicy.kube.resources import PODS
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.webhooks.answers import answered
from koordpolicy.manager.webhooks.pods import namespace_of
from koordpolicy.manager.webhooks.rules import KIND, Rules, rules_on
from koordpolicy.manager.webhooks.scope import Scope
from koordpolicy.manager.webhooks.webhook import ByRevision, WebhookContext
from koordpolicy.model.facts.pod import namespace_facts
from koordpolicy.model.pod import read_pod
from koordpolicy.model.reading import Json, mapping, text


class BindingValidation:
    """Refuses bindings that break rules."""

    def __init__(self, context: WebhookContext) -> None:
        self._context = context
        self._rules = ByRevision(context.policies, Rules)

    def answer(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """Refusal with all that is wrong, or what is to be told, or None. Raises ObjectError."""
        if request.object is None:
            return None
        context = self._context
        graph, rules = self._rules()
        metadata = mapping(request.object, "metadata")
        name = request.name or text(metadata, "name", "metadata")
        roots = binding_roots(
            graph,
            context.objects.find(PODS, name, namespace=request.namespace),
            text(mapping(request.object, "target"), "name", "target"),
            namespace_of(context.objects, request.namespace),
            request.user,
            context.now(),
        )
        violations = rules.broken("pods/binding", str(request.operation), roots)
        if violations:
            context.observe(request, violations)
        return answered(violations)


def bound_pods(graph: RuleGraph) -> Scope | None:
    """All bindings, where any rule on them is in use; else none."""
    about = [graph.about(KIND, name) for name in rules_on(graph, "pods/binding")]
    return Scope() if any(one.value_or("enabled", True) for one in about) else None


def binding_roots(
    graph: RuleGraph, pod: Json | None, node: str, namespace: Json, user: str, now: int
) -> dict[str, Any]:
    """The records of a binding by root. `pod` is None where it could not be read; `now` in nanoseconds since 1970.

    Raises ObjectError for a malformed pod.
    """
    return {
        "pod": submitted_pod_record(read_pod(pod or {}), graph.catalogue, TIMES),
        "binding": {"node": node, "podKnown": pod is not None},
        "namespaceObject": namespace_facts(namespace),
        "operation": "CREATE",
        "user": user,
        "now": TIMES.timestamp(now),
    }
