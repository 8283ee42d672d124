"""The webhook that holds pods to their quota, before any scheduler sees them."""

import math
from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.algorithms.records import submitted_pod_record
from koordpolicy.cluster.quota_of_pod import KIND, quota_of_pod, says_anything
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import AdmissionAnswer, AdmissionRequest, Operation
from koordpolicy.kube.port import Object
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.webhooks.pod_objects import check_size
from koordpolicy.manager.webhooks.pods import PodValidation, is_exempt, is_going, namespace_of
from koordpolicy.manager.webhooks.quota_admission import QuotaDemand, demand_of
from koordpolicy.manager.webhooks.quota_batch import QuotaBatches, QuotaVerdict, settings_of
from koordpolicy.manager.webhooks.quota_line import QuotaLine
from koordpolicy.manager.webhooks.quota_objects import QuotaObjects
from koordpolicy.manager.webhooks.quota_view import QuotaView, view_of
from koordpolicy.manager.webhooks.scope import Scope
from koordpolicy.manager.webhooks.webhook import ByRevision, WebhookContext
from koordpolicy.model.facts.pod import namespace_facts
from koordpolicy.model.pod import read_pod
from koordpolicy.model.quota import Quota

_WAY: Final = 1.25
"""How much longer than for a quota an API server waits for the answer."""


class PodQuotaAdmission:
    """Refuses pods that exceed their quota, and counts the others there. Nothing is taken back here: whoever keeps the
    tree of quotas in the cluster does that.
    """

    def __init__(self, context: WebhookContext) -> None:
        self._context = context
        self._validation = PodValidation(context)
        self._settings = ByRevision(
            context.policies, lambda graph: settings_of(graph) if says_anything(graph) else None
        )
        self._view: QuotaView | None = None
        self._batches: QuotaBatches | None = None
        self._line: QuotaLine | None = None
        writes = context.quota_writes
        if writes is not None:
            self._view = view_of(context)
            objects = QuotaObjects(context.objects, self._view)
            self._batches = QuotaBatches(objects, writes.cluster, context.draw)
            self._line = QuotaLine(self._batches.admit) if writes.together else None

    async def answer(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """Refusal, or None. Raises ObjectError, `CelError`, KubeError."""
        context = self._context
        if self._batches is None or self._view is None or request.object is None or is_going(request.object):
            return None
        namespace = namespace_of(context.objects, request.namespace)
        if is_exempt(namespace):
            return None
        graph, settings = self._settings()
        if settings is None:
            return None
        check_size(request.object, graph)
        roots = _roots(graph, request, request.object, namespace, context.now())
        about = graph.about(KIND, "", roots)
        if str(request.operation) not in about.value("admission.operations"):
            return None
        if not about.value("admission.enabled"):
            return None
        tree = self._view.tree(context.now())
        name, quota = quota_of_pod(graph, tree, roots, request.namespace)
        if quota is None:
            return None
        if request.operation is Operation.UPDATE and request.old_object is not None:
            before = _roots(graph, request, request.old_object, namespace, context.now())
            if quota_of_pod(graph, tree, before, request.namespace)[0] == name:
                return None

        def demand(found: Quota) -> QuotaDemand | None:
            return demand_of(graph, found, roots)

        first = demand(quota)
        if first is None or not first.request:
            return None
        if self._validation.refuses(request):
            return None  # what another webhook refuses counts for nothing
        if request.dry_run:
            return _answer(self._batches.look(name, demand))
        if self._line is None:
            return _answer((await self._batches.admit(name, [demand], settings))[0])
        try:
            return _answer(await self._line.admit(name, demand, settings))
        except TimeoutError:
            return AdmissionAnswer(False, f"the quota {name} could not be written to in time", code=500)


def counted_pods(graph: RuleGraph) -> Scope | None:
    """All pods, where policy holds any to their quota; else none."""
    about = graph.about(KIND, "")
    if not says_anything(graph) or not about.value_or("admission.enabled", True):
        return None
    operations = frozenset(Operation(one) for one in about.value("admission.operations"))
    return Scope(operations, timeout=math.ceil(settings_of(graph).timeout * _WAY))


def _roots(
    graph: RuleGraph, request: AdmissionRequest, pod: Object, namespace: Object, now: int
) -> Mapping[str, Any]:
    return {
        "pod": submitted_pod_record(read_pod(pod), graph.catalogue, TIMES),
        "namespaceObject": namespace_facts(namespace),
        "operation": str(request.operation),
        "user": request.user,
        "now": TIMES.timestamp(now),
    }


def _answer(verdict: QuotaVerdict) -> AdmissionAnswer | None:
    if verdict.failed is not None:
        raise verdict.failed
    return AdmissionAnswer(False, verdict.refused) if verdict.refused else None
