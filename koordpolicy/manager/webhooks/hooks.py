"""The pod webhooks as admission hooks: in front of the in-memory cluster, or behind an HTTPS server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from koordpolicy.algorithms.profile import PriorityClass
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import (
    AdmissionAnswer,
    AdmissionChain,
    AdmissionRequest,
    Hook,
    Operation,
)
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import PODS
from koordpolicy.manager.webhooks.mutation import Mutation, PodContext, mutate
from koordpolicy.manager.webhooks.profiles import Profiles
from koordpolicy.manager.webhooks.rules import ENFORCE, Rules, Violation
from koordpolicy.model.protocol import CONTROL_PLANE
from koordpolicy.model.reading import integer, mapping, text


@dataclass(frozen=True, slots=True)
class Compiled:
    """What one revision says to webhooks."""

    graph: RuleGraph
    profiles: Profiles
    rules: Rules


Observer = Callable[[AdmissionRequest, Mutation | Sequence[Violation]], None]
"""Told of every mutation and of all violations of a request, those included that refuse nothing."""


def _unobserved(_request: AdmissionRequest, _seen: Mutation | Sequence[Violation]) -> None:
    pass


@dataclass(slots=True)
class PodWebhooks:
    """Mutation and validation of pods by the graph that `policies` gives.

    `lookup` finds an object by kind (`Namespace`, `PriorityClass`) and name, None where there is none. `now`
    is nanoseconds since 1970, `draw` gives random numbers from 0 to below 100.
    """

    policies: Callable[[], RuleGraph]
    lookup: Callable[[str, str], Object | None]
    now: Callable[[], int]
    draw: Callable[[], float]
    observe: Observer = _unobserved
    _compiled: Compiled | None = field(default=None)

    def chain(self) -> AdmissionChain:
        """Both hooks, for a cluster without others."""
        create, update = Operation.CREATE, Operation.UPDATE
        return AdmissionChain(
            mutating=(Hook("mutate-pod", self.mutate, (PODS,), (create,)),),
            validating=(Hook("validate-pod", self.validate, (PODS,), (create, update)),),
        )

    def mutate(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """The pod as policies want it. Raises what `mutation.mutate` raises: the request fails with it."""
        if request.object is None or self._exempt(request):
            return None
        compiled = self.compiled()
        state = PodContext(self._namespace(request.namespace), self._priority_class, self.now())
        mutation = mutate(request.object, compiled.profiles, compiled.graph, state, self.draw)
        self.observe(request, mutation)
        return None if mutation.pod is request.object else AdmissionAnswer(object=mutation.pod)

    def validate(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """Refusal with all that is wrong, or None. Raises ObjectError for a malformed pod."""
        if self._exempt(request):
            return None
        violations = self.compiled().rules.violations(
            request.operation,
            request.object,
            request.old_object,
            self._namespace(request.namespace),
            self.now(),
        )
        if violations:
            self.observe(request, violations)
        refusing = [one for one in violations if one.enforcement == ENFORCE]
        if not refusing:
            return None
        return AdmissionAnswer(False, "; ".join(f"{one.reason}: {one.message}" for one in refusing))

    def compiled(self) -> Compiled:
        """What the present revision says; prepared anew only when the revision changed."""
        graph = self.policies()
        known = self._compiled
        if known is None or known.graph is not graph:
            known = self._compiled = Compiled(graph, Profiles(graph), Rules(graph))
        return known

    def _exempt(self, request: AdmissionRequest) -> bool:
        labels = mapping(mapping(self._namespace(request.namespace), "metadata"), "labels", "metadata")
        return CONTROL_PLANE in labels

    def _namespace(self, name: str) -> Object:
        return self.lookup("Namespace", name) or {"metadata": {"name": name}}

    def _priority_class(self, name: str) -> PriorityClass | None:
        found = self.lookup("PriorityClass", name)
        if found is None:
            return None
        return PriorityClass(name, integer(found, "value") or 0, text(found, "preemptionPolicy"))
