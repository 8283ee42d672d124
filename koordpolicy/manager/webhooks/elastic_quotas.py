"""The webhooks of elastic quotas, and what those of pods ask about quotas."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.cluster.quota_of_pod import quota_of_pod, quota_record
from koordpolicy.kube.admission import AdmissionAnswer, AdmissionRequest, Operation
from koordpolicy.manager.webhooks.answers import answered
from koordpolicy.manager.webhooks.quota_pods import PodsOfQuotas
from koordpolicy.manager.webhooks.quota_view import view_of
from koordpolicy.manager.webhooks.quotas import (
    QuotaRequest,
    QuotaRules,
    with_defaults,
)
from koordpolicy.manager.webhooks.rules import Rules
from koordpolicy.manager.webhooks.webhook import ByRevision, WebhookContext
from koordpolicy.model.facts import Record
from koordpolicy.model.quota import read_quota


class QuotaMutation:
    """Gives new quotas what policy has for them."""

    def __init__(self, context: WebhookContext) -> None:
        self._context = context

    def answer(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """The quota with its defaults. Raises ObjectError for a malformed one, `CelError`."""
        if request.object is None:
            return None
        context = self._context
        asked = _asked(context, request)
        tree = view_of(context).tree(asked.now)
        quota = with_defaults(request.object, tree, context.policies(), asked)
        return None if quota is request.object else AdmissionAnswer(object=quota)


class QuotaValidation:
    """Refuses quotas that break rules. What it lets through counts at once, before the cluster tells of it."""

    def __init__(self, context: WebhookContext) -> None:
        self._context = context
        self._rules = ByRevision(context.policies, lambda graph: QuotaRules(graph, Rules(graph)))

    def answer(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """Refusal with all that is wrong, or what is to be told, or None. Raises ObjectError, `CelError`."""
        context = self._context
        going = request.operation is Operation.DELETE
        obj = request.old_object if going else request.object
        if obj is None:
            return None
        asked = _asked(context, request)
        view = view_of(context)
        tree = view.tree(asked.now)
        quota = read_quota(obj)
        old = None if request.old_object is None else read_quota(request.old_object)
        _, rules = self._rules()
        pods = context.once(PodsOfQuotas, lambda one: PodsOfQuotas(one.objects)).known
        violations = rules.violations(quota, old, tree, pods, asked)
        if violations is None:
            return None
        if violations:
            context.observe(request, violations)
        answer = answered(violations)
        if (answer is None or answer.allowed) and not request.dry_run:
            view.admitted(quota.name, None if going else quota, asked.now)
        return answer


def quota_of(context: WebhookContext, request: AdmissionRequest, roots: Mapping[str, Any]) -> Record:
    """The facts of the quota that a pod belongs to, whose other records are `roots`. Raises `CelError`."""
    tree = view_of(context).tree(context.now())
    return quota_record(*quota_of_pod(context.policies(), tree, roots, request.namespace))


def _asked(context: WebhookContext, request: AdmissionRequest) -> QuotaRequest:
    return QuotaRequest(
        str(request.operation), context.now(), request.user, {"metadata": {"name": request.namespace}}
    )
