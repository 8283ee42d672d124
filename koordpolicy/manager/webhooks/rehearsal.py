"""What the webhooks would make of pods on a picture of a cluster: nothing is counted, nobody is told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from koordpolicy.algorithms.profile import ProfileEffect
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import AdmissionAnswer, AdmissionRequest, Operation
from koordpolicy.kube.mirror import Handler, ObjectChange, key_of
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import PODS, PRIORITY_CLASSES, Resource
from koordpolicy.language.cel.errors import CelError
from koordpolicy.manager.webhooks.cluster_profiles import BothProfiles, cluster_profiles
from koordpolicy.manager.webhooks.mutation import Mutation, PodContext, mutate, roots_of
from koordpolicy.manager.webhooks.pod_objects import check_size
from koordpolicy.manager.webhooks.pods import PodMutation, PodValidation, is_exempt, namespace_of
from koordpolicy.manager.webhooks.profiles import ColocationProfileError, Profiles
from koordpolicy.manager.webhooks.rules import Violation
from koordpolicy.manager.webhooks.tracing import MutationTrace, TracedChange
from koordpolicy.manager.webhooks.webhook import WebhookContext
from koordpolicy.model.reading import ObjectError, mapping, text
from koordpolicy.model.strategic_merge import PatchError


class PictureObjects:
    """Objects of a picture, found by name. PriorityClasses are those of priority bands where the picture has none."""

    def __init__(self, graph: RuleGraph, objects: Mapping[Resource, Iterable[Object]]) -> None:
        given = {**objects}
        self.has_priority_classes = bool(tuple(given.get(PRIORITY_CLASSES, ())))
        if not self.has_priority_classes:
            given[PRIORITY_CLASSES] = _classes_of_bands(graph)
        self._objects = {resource: {key_of(one): one for one in found} for resource, found in given.items()}

    def find(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object | None:
        """See `KnownObjects.find`."""
        return self._objects.get(resource, {}).get((namespace or "", name))

    def every(self, resource: Resource) -> Iterable[Object]:
        """See `KnownObjects.every`."""
        return self._objects.get(resource, {}).values()

    def follow(self, resource: Resource, handler: Handler) -> None:
        """See `KnownObjects.follow`: nothing changes later."""
        for key, one in self._objects.get(resource, {}).items():
            handler(ObjectChange(key, None, one))


@dataclass(frozen=True, slots=True)
class RehearsedAdmission:
    """What would become of a pod. `refused` says why it would not be admitted, empty where it would.

    `changes` are what policies did to it, decision by decision; empty where it was refused before.
    """

    before: Object
    mutation: Mutation
    changes: tuple[TracedChange, ...] = ()
    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: str = ""
    effects: tuple[ProfileEffect, ...] = ()
    """What profiles ask for, whether the pod had it before or not."""


class Rehearsal:
    """Asks policies about the creation of pods. Every profile that matches and is not at 0 % is taken to be drawn."""

    def __init__(self, graph: RuleGraph, objects: PictureObjects, now: int) -> None:
        self._graph = graph
        self._violations: tuple[Violation, ...] = ()
        self._context = WebhookContext(
            lambda: graph, objects, lambda: now, lambda: 0.0, observe=self._observed
        )
        self._mutation = PodMutation(self._context)
        self._validation = PodValidation(self._context)
        self._profiles = BothProfiles(Profiles(graph), cluster_profiles(self._context))

    def of(self, pod: Object, *, traced: bool = True) -> RehearsedAdmission:
        """What would become of a pod that is created as it stands there, without what a cluster adds later."""
        before = self._submitted(pod)
        trace = MutationTrace(self._graph) if traced else None
        try:
            mutation = self._mutated(before, trace)
        except (ObjectError, CelError, ColocationProfileError, PatchError) as error:
            return RehearsedAdmission(before, Mutation(before), refused=str(error))
        warnings = tuple(f"profile `{name}` is left out: {problem}" for name, problem in mutation.failed)
        self._violations = ()
        try:
            answer = self._validation.answer(_creation(mutation.pod)) or AdmissionAnswer()
        except (ObjectError, CelError) as error:
            answer = AdmissionAnswer(False, str(error))
        return RehearsedAdmission(
            before,
            mutation,
            () if trace is None else tuple(trace.found),
            self._violations,
            warnings + answer.warnings,
            "" if answer.allowed else answer.message,
            () if trace is None else tuple(trace.effects),
        )

    def _mutated(self, pod: Object, trace: MutationTrace | None) -> Mutation:
        namespace = namespace_of(self._context.objects, text(mapping(pod, "metadata"), "namespace"))
        if is_exempt(namespace):
            return Mutation(pod)
        check_size(pod, self._graph)
        mutation = self._mutation
        state = PodContext(namespace, mutation.priority_class, self._context.now(), mutation.trees(""))
        if trace is not None:
            trace.roots = roots_of(pod, self._graph, state)
        return mutate(pod, self._profiles, self._graph, state, self._context.draw, trace)

    def _observed(self, _request: AdmissionRequest, seen: object) -> None:
        if isinstance(seen, tuple):
            self._violations = tuple(one for one in seen if isinstance(one, Violation))

    def _submitted(self, pod: Object) -> Object:
        """The pod as API servers show it to webhooks at its creation: not placed, with the priority of its class."""
        metadata, spec = dict(mapping(pod, "metadata")), dict(mapping(pod, "spec"))
        metadata.setdefault("namespace", "default")
        for gone in ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields"):
            metadata.pop(gone, None)
        spec.pop("nodeName", None)
        name = spec.get("priorityClassName")
        found = self._mutation.priority_class(name) if isinstance(name, str) and name else None
        if found is not None:
            spec.setdefault("priority", found.value)
        kept = {key: value for key, value in pod.items() if key != "status"}
        return {**kept, "metadata": metadata, "spec": spec}


def _creation(pod: Object) -> AdmissionRequest:
    metadata = mapping(pod, "metadata")
    namespace, name = text(metadata, "namespace"), text(metadata, "name")
    return AdmissionRequest(Operation.CREATE, PODS, "", namespace, name, pod, None)


def _classes_of_bands(graph: RuleGraph) -> list[Object]:
    return [
        {
            "metadata": {"name": said.get("priorityClass.name", band)},
            "value": said.get("priorityClass.value", said.get("default", 0)),
            **(
                {"preemptionPolicy": policy} if (policy := said.get("priorityClass.preemptionPolicy")) else {}
            ),
        }
        for band, said in graph.classes.bands.items()
    ]
