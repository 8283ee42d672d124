"""The webhook of Reservations: profiles of policies that say so apply to them as they do to pods."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from koordpolicy.algorithms.profile import ProfileEffect, apply_profile
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import AdmissionAnswer, AdmissionRequest
from koordpolicy.language.cel.errors import CelError
from koordpolicy.manager.webhooks.mutation import Mutation, PodContext, roots_of
from koordpolicy.manager.webhooks.pod_objects import check_size
from koordpolicy.manager.webhooks.pods import PodMutation
from koordpolicy.manager.webhooks.profiles import KIND, ColocationProfileError, Profiles
from koordpolicy.manager.webhooks.scope import Scope, profile_scope
from koordpolicy.manager.webhooks.webhook import ByRevision, WebhookContext
from koordpolicy.model.reading import Json, mapping
from koordpolicy.model.shapes import TEMPLATED
from koordpolicy.model.strategic_merge import PatchError, strategic_merge

_NOWHERE: Final[Json] = {"metadata": {"name": ""}}
"""The namespace of what is in none."""


class ReservationMutation:
    """Makes of a new Reservation what policies want."""

    def __init__(self, context: WebhookContext) -> None:
        self._context = context
        self._pods = PodMutation(context)
        self._profiles = ByRevision(context.policies, Profiles)

    def answer(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """The Reservation as policies want it. Raises ObjectError for a malformed one, ColocationProfileError, `CelError`."""
        if request.object is None:
            return None
        context = self._context
        graph, profiles = self._profiles()
        if not applying(graph):
            return None
        state = PodContext(_NOWHERE, self._pods.priority_class, context.now())
        stand_in = _stand_in(request.object)
        check_size(stand_in, graph)
        roots = roots_of(stand_in, graph, state)
        changed = request.object
        applied: list[str] = []
        spared: list[str] = []
        failed: list[tuple[str, str]] = []
        for profile in profiles.candidates(roots):
            try:
                if not profile.reserves(roots) or not profile.matches(roots):
                    continue
                taken = profile.takes(context.draw(), roots)
                if taken:
                    changed = apply_to_reservation(changed, profile.effect(roots, state.priority_class))
            except (CelError, ColocationProfileError, PatchError) as error:
                if profile.holds_up:
                    raise ColocationProfileError(f"profile `{profile.name}`: {error}") from error
                failed.append((profile.name, str(error)))
                continue
            (applied if taken else spared).append(profile.name)
        context.observe(request, Mutation(changed, tuple(applied), tuple(spared), failed=tuple(failed)))
        warnings = tuple(f"profile `{name}` is left out: {problem}" for name, problem in failed)
        if changed is request.object and not warnings:
            return None
        return AdmissionAnswer(object=changed, warnings=warnings)


def apply_to_reservation(reservation: Json, effect: ProfileEffect) -> Json:
    """The Reservation with an effect: names and classes on itself, scheduler and priority on its template where it has one.

    Raises ObjectError for a malformed one, PatchError for a bad patch.
    """
    stand_in = apply_profile(_stand_in(reservation), replace(effect, patch=None))
    changed: dict[str, Any] = {**reservation, "metadata": stand_in["metadata"]}
    spec = mapping(reservation, "spec")
    template = mapping(spec, "template", "spec")
    if template:
        changed["spec"] = {**spec, "template": {**template, "spec": stand_in["spec"]}}
    return changed if effect.patch is None else strategic_merge(changed, effect.patch, TEMPLATED)


def applying(graph: RuleGraph) -> frozenset[str]:
    """The profiles that may apply to Reservations."""
    return graph.once(
        "profiles of reservations",
        lambda: frozenset(
            subject
            for subject in graph.subjects(KIND)
            if graph.about(KIND, subject).value_or("reservations", True)
        ),
    )


def mutated_reservations(graph: RuleGraph) -> Scope | None:
    """Reservations that a profile may select; None for none at all."""
    return profile_scope(graph, applying(graph))


def _stand_in(reservation: Json) -> Mapping[str, Any]:
    """The pod that a Reservation stands for: with its own name and labels, and the spec of its template."""
    template = mapping(mapping(reservation, "spec"), "template", "spec")
    return {
        "metadata": mapping(reservation, "metadata"),
        "spec": mapping(template, "spec", "spec.template"),
    }
