"""The webhooks of pods: profiles change them, rules refuse them."""

from collections.abc import Sequence

from koordpolicy.algorithms.profile import PriorityClass
from koordpolicy.kube.admission import AdmissionAnswer, AdmissionRequest, Operation
from koordpolicy.kube.known import KnownObjects
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import NAMESPACES, PRIORITY_CLASSES
from koordpolicy.manager.webhooks.answers import answered
from koordpolicy.manager.webhooks.cluster_profiles import BothProfiles, cluster_profiles
from koordpolicy.manager.webhooks.elastic_quotas import quota_of
from koordpolicy.manager.webhooks.mutation import PodContext, mutate
from koordpolicy.manager.webhooks.pod_objects import check_size, is_unchanged
from koordpolicy.manager.webhooks.profiles import Profiles
from koordpolicy.manager.webhooks.rules import Rules, Violation
from koordpolicy.manager.webhooks.tree_affinity import tree_nodes
from koordpolicy.manager.webhooks.webhook import ByRevision, WebhookContext
from koordpolicy.model.protocol import CONTROL_PLANE
from koordpolicy.model.reading import integer, mapping, text


class PodMutation:
    """Makes of a pod what policies want."""

    def __init__(self, context: WebhookContext) -> None:
        self._context = context
        objects = cluster_profiles(context)
        self.trees = tree_nodes(context)
        self._profiles = ByRevision(context.policies, lambda graph: BothProfiles(Profiles(graph), objects))

    def answer(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """The pod as policies want it. Raises what `mutation.mutate` raises: the request fails with it."""
        context = self._context
        namespace = namespace_of(context.objects, request.namespace)
        if request.object is None or is_exempt(namespace):
            return None
        graph, profiles = self._profiles()
        check_size(request.object, graph)
        began = context.now()
        state = PodContext(namespace, self.priority_class, began, self.trees(request.user))
        mutation = mutate(request.object, profiles, graph, state, context.draw)
        context.observe(request, mutation)
        warnings = tuple(f"profile `{name}` is left out: {problem}" for name, problem in mutation.failed)
        pod = mutation.pod
        if context.spans is not None:
            pod = context.spans.traced(request, pod, mutation.applied, mutation.failed, began)
        if pod is request.object and not warnings:
            return None
        return AdmissionAnswer(object=pod, warnings=warnings)

    def priority_class(self, name: str) -> PriorityClass | None:
        """The PriorityClass of a name, None where the cluster has none. Raises ObjectError."""
        found = self._context.objects.find(PRIORITY_CLASSES, name)
        if found is None:
            return None
        return PriorityClass(name, integer(found, "value") or 0, text(found, "preemptionPolicy"))


class PodValidation:
    """Refuses pods that break rules."""

    def __init__(self, context: WebhookContext) -> None:
        self._context = context
        self._rules = ByRevision(context.policies, Rules)

    def answer(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """Refusal with all that is wrong, or what is to be told nevertheless, or None. Raises ObjectError for a malformed pod."""
        violations = self._violations(request)
        if violations:
            self._context.observe(request, violations)
        return answered(violations, self._context.warned_elsewhere(self._context.policies()))

    def refuses(self, request: AdmissionRequest) -> bool:
        """Whether a rule refuses the pod; nobody is told. Raises ObjectError for a malformed pod."""
        answer = answered(self._violations(request))
        return answer is not None and not answer.allowed

    def _violations(self, request: AdmissionRequest) -> Sequence[Violation]:
        context = self._context
        if request.operation is Operation.UPDATE and is_going(request.object):
            return ()  # what holds it, such as a finalizer, must come off whatever is wrong with the pod
        namespace = namespace_of(context.objects, request.namespace)
        if is_exempt(namespace):
            return ()
        graph, rules = self._rules()
        if request.operation is Operation.UPDATE and rules.judge_changes_alone and is_unchanged(request):
            return ()
        if request.object is not None:
            check_size(request.object, graph)
        return rules.violations(
            request.operation,
            request.object,
            request.old_object,
            namespace,
            context.now(),
            request.user,
            lambda roots: quota_of(context, request, roots),
        )


def namespace_of(objects: KnownObjects, name: str) -> Object:
    """A namespace's object; one that says nothing where it is not known."""
    return objects.find(NAMESPACES, name) or {"metadata": {"name": name}}


def is_going(obj: Object | None) -> bool:
    """Whether an object is being deleted and waits for its finalizers. Raises ObjectError."""
    return obj is not None and mapping(obj, "metadata").get("deletionTimestamp") is not None


def is_exempt(namespace: Object) -> bool:
    """Whether a namespace is of the control plane, whose pods nothing here may hold up. Raises ObjectError."""
    return CONTROL_PLANE in mapping(mapping(namespace, "metadata"), "labels", "metadata")
