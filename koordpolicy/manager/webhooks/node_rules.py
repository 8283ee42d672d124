"""The webhook of nodes that refuses: the rules of policies on what they are and say of themselves."""

from dataclasses import replace
from typing import Any, Final

from koordpolicy.algorithms.node_overrides import PREFIX, RATIO_LABELS
from koordpolicy.algorithms.node_record import object_record
from koordpolicy.algorithms.strategy_checks import CheckedNode, meeting_on
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import AdmissionAnswer, AdmissionRequest, Operation
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.webhooks.answers import answered
from koordpolicy.manager.webhooks.pods import is_going
from koordpolicy.manager.webhooks.rules import KIND, Rules, rules_on
from koordpolicy.manager.webhooks.scope import Scope, failing
from koordpolicy.manager.webhooks.slo_config import BAD_REQUEST, told
from koordpolicy.manager.webhooks.webhook import ByRevision, WebhookContext
from koordpolicy.model.node import read_node
from koordpolicy.model.protocol import COLOCATION_STRATEGY
from koordpolicy.model.reading import mapping, texts

RESOURCE: Final = "nodes"
_ASKED: Final = ("enabled", "require", "enforcement")
_PARTS: Final = ("spec", "metadata.?labels", "metadata.?annotations")
"""What of a node rules can read that is not its status."""
_SAID: Final = (
    f"metadata.?annotations[?{json_text(COLOCATION_STRATEGY)}]",
    *(f"metadata.?labels[?{json_text(label)}]" for label in RATIO_LABELS),
)
"""What nodes say themselves stands here alone."""
_RELABELLED: Final = "object.metadata.?labels != oldObject.metadata.?labels"


class NodeValidation:
    """Refuses nodes that break rules."""

    def __init__(self, context: WebhookContext) -> None:
        self._context = context
        self._rules = ByRevision(context.policies, Rules)

    def answer(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """Refusal with all that is wrong, or what is to be told nevertheless, or None. Raises ObjectError for a malformed node."""
        context = self._context
        refused = self._meets(request)
        if refused is not None:
            return refused
        graph, rules = self._rules()
        if not rules_on(graph, RESOURCE) or (
            request.operation is Operation.UPDATE and is_going(request.object)
        ):
            return None
        roots: dict[str, Any] = {
            "operation": request.operation,
            "user": request.user,
            "now": TIMES.timestamp(context.now()),
        }
        going = request.operation is Operation.DELETE
        node = request.old_object if going else request.object
        for name, obj in (("node", node), ("oldNode", request.old_object)):
            if obj is not None:
                roots[name] = object_record(read_node(obj), TIMES)
        violations = rules.broken(RESOURCE, request.operation, roots)
        if violations:
            context.observe(request, violations)
        return answered(violations)

    def _meets(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """A refusal of labels by which several entries of a document of the followed ConfigMap would select the node."""
        documents, node, old = self._context.slo_config, request.object, request.old_object
        if documents is None or node is None or old is None or is_going(node):
            return None
        labels = texts(mapping(node, "metadata"), "labels", "metadata")
        if labels == texts(mapping(old, "metadata"), "labels", "metadata"):
            return None
        problem = meeting_on(documents(), CheckedNode(request.name, labels))
        return None if problem is None else AdmissionAnswer(False, told(problem), code=BAD_REQUEST)


def checked_nodes(context: WebhookContext, graph: RuleGraph) -> Scope | None:
    """The same in a process, where a ConfigMap that is followed has a say about labels."""
    scope = validated_nodes(graph)
    if context.slo_config is None:
        return scope
    if scope is None:
        return Scope(frozenset({Operation.UPDATE}), condition=_RELABELLED)
    return replace(
        scope,
        operations=scope.operations | {Operation.UPDATE},
        condition=f"{scope.condition} || {_RELABELLED}",
    )


def validated_nodes(graph: RuleGraph) -> Scope | None:
    """Nodes that a rule may concern; None where there is no rule. Of updates, those that change what rules can read."""
    subjects = rules_on(graph, RESOURCE)
    if not subjects:
        return None
    operations = frozenset(
        Operation(one) for name in subjects for one in graph.about(KIND, name).value("operations")
    )
    fail_open, timeout = failing(graph, KIND, subjects)
    changed = [
        f"object.{one} != oldObject.{one}" for one in (_SAID if _read_overrides_alone(graph) else _PARTS)
    ]
    condition = " || ".join(['request.operation != "UPDATE"', *changed])
    return Scope(operations, condition=condition, fail_open=fail_open, timeout=timeout)


def _read_overrides_alone(graph: RuleGraph) -> bool:
    """Whether all that rules read of nodes is what these say of how they are overcommitted."""
    read = {
        (root, path)
        for name in rules_on(graph, RESOURCE)
        for field in _ASKED
        for root, path in facts_of(graph.expression(f"{KIND}/{name}.{field}"))
    }
    return all(
        root not in ("node", "oldNode") or path == "name" or path.startswith(f"{PREFIX}.")
        for root, path in read
    )
