"""What people learn of admissions: counts, troubles of policies, and Events of what was only recorded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import AdmissionRequest
from koordpolicy.kube.event_correlator import EventRecorder
from koordpolicy.manager.webhooks.mutation import Mutation
from koordpolicy.manager.webhooks.profiles import KIND as PROFILE
from koordpolicy.manager.webhooks.rules import ENFORCE, Violation
from koordpolicy.manager.webhooks.rules import KIND as RULE
from koordpolicy.manager.webhooks.webhook import Webhook
from koordpolicy.runtime.decisions import DecisionCounts
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.reports.troubles import Troubles

VIOLATED = "AdmissionRuleViolated"
"""The reason of Events."""


@dataclass(frozen=True, slots=True)
class AdmissionReporter:
    """Counts and tells what webhooks decide. `graph` is what decides now, `revision` what people call it."""

    graph: Callable[[], RuleGraph]
    revision: Callable[[str], str]
    counts: DecisionCounts
    metrics: Metrics
    troubles: Troubles
    recorder: EventRecorder

    def observe(self, request: AdmissionRequest, seen: object) -> None:
        """See `webhook.Observer`."""
        if isinstance(seen, Mutation):
            revision = self.revision(self.graph().digest)
            for profile in seen.applied:
                self.counts.add(_decision(profile), revision)
            for profile, problem in seen.failed:
                self._trouble(_decision(profile), request, problem)
        elif isinstance(seen, Sequence):
            for violation in seen:
                if isinstance(violation, Violation):
                    self._violated(request, violation)

    def failed(self, webhook: Webhook, request: AdmissionRequest, error: Exception) -> None:
        """See `server.ReviewObserver`."""
        self._trouble(webhook.name, request, str(error))

    def _violated(self, request: AdmissionRequest, violation: Violation) -> None:
        self.metrics.add(
            "koordpolicy_admission_violations_total",
            rule=violation.rule,
            enforcement=violation.enforcement,
        )
        if violation.problem:
            self._trouble(f"{RULE}/{violation.rule}", request, violation.problem)
        if violation.enforcement != ENFORCE and not request.dry_run:
            text = f"{_name(request)}: {violation.reason}: {violation.message}"
            self.recorder.record(_regarding(request), VIOLATED, text, type="Warning", action="Admit")

    def _trouble(self, decision: str, request: AdmissionRequest, problem: str) -> None:
        digest = self.graph().digest
        self.counts.add(decision, self.revision(digest), failed=True)
        self.troubles.add(decision, digest, problem, example=_name(request))


def _decision(profile: str) -> str:
    """What a profile is counted as: objects of the cluster say their kind themselves."""
    return profile if "/" in profile else f"{PROFILE}/{profile}"


def _name(request: AdmissionRequest) -> str:
    name = request.name or _metadata(request).get("generateName") or "without a name"
    place = f"{request.namespace}/{name}" if request.namespace else str(name)
    return f"{request.resource.kind.lower()} {place}"


def _metadata(request: AdmissionRequest) -> dict[str, Any]:
    found = (request.object or request.old_object or {}).get("metadata")
    return dict(found) if isinstance(found, dict) else {}


def _regarding(request: AdmissionRequest) -> dict[str, Any]:
    """Whom the Event is about: an object that has no name yet is looked for at the one that makes it."""
    metadata = _metadata(request)
    owners = metadata.get("ownerReferences")
    owner = owners[0] if isinstance(owners, list) and owners and isinstance(owners[0], dict) else None
    if not request.name and owner is not None:
        about = {key: owner.get(key) for key in ("name", "uid")}
        return {
            "apiVersion": owner.get("apiVersion"),
            "kind": owner.get("kind"),
            "metadata": {**about, "namespace": request.namespace},
        }
    about = {"name": request.name or metadata.get("generateName"), "uid": metadata.get("uid")}
    return {
        "apiVersion": request.resource.api_version,
        "kind": request.resource.kind,
        "metadata": {**about, "namespace": request.namespace},
    }
