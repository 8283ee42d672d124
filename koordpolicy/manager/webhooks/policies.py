"""The webhook of policy objects: one that would not compile together with what is live is refused, as `check` would say it.

Objects that belong together come one by one. So what somebody has proposed a moment ago counts as well where an object
compiles with it and does not without: it was refused itself for want of another, or was tried with `--dry-run=server`.
Findings in other objects than the one that is asked about are told as warnings. They may be what the next one mends, and
a revision that does not compile as a whole changes nothing.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

from koordpolicy.diagnostics import Diagnostic, Severity
from koordpolicy.diagnostics.render import render
from koordpolicy.kube.admission import AdmissionAnswer, AdmissionRequest
from koordpolicy.manager.webhooks.webhook import WebhookContext
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.runtime.policies.manifest import manifest, manifest_path
from koordpolicy.runtime.policies.proposal import Proposal
from koordpolicy.runtime.policies.revisions import Reason

_REMEMBERED: Final = 600 * NANOSECONDS
_MOST: Final = 2_000
_WIDTH: Final = 80
_SHOWN: Final = 20
_COMPILED: Final = frozenset({None, Reason.COMPILE_FAILED})
"""Ends of a trial that say something of each document."""


class PolicyValidation:
    """Refuses policy objects that do not compile."""

    def __init__(self, context: WebhookContext) -> None:
        self._objects = context.policy_objects
        self._now = context.now
        self._proposed: OrderedDict[tuple[str, str], tuple[int, str]] = OrderedDict()

    async def answer(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """Refusal with the findings in the object, None where there are none. Raises ObjectError."""
        objects = self._objects
        if objects is None or request.object is None:
            return None
        resource = request.resource
        said = {**request.object, "apiVersion": resource.api_version, "kind": resource.kind}
        path, text = manifest_path(resource.kind, request.name), manifest(said)
        live = objects.texts()
        if live.get(path) == text:
            return None  # only what tools put on it has changed
        proposed = self._of(request.user, path, live)
        self._remember(request.user, path, text)
        outcome = await objects.propose({**live, path: text})
        wrong = _errors(outcome, path)
        if not wrong and outcome.reason in _COMPILED:
            return _warned(outcome, path)
        if proposed:
            together = await objects.propose({**live, **proposed, path: text})
            if together.reason in _COMPILED and not _errors(together, path):
                names = ", ".join(sorted(proposed))
                return AdmissionAnswer(
                    warnings=(f"compiles together with what is proposed and not there yet: {names}",)
                )
        return AdmissionAnswer(False, _told(outcome, wrong), code=422)

    def _of(self, user: str, path: str, live: Mapping[str, str]) -> dict[str, str]:
        """What a user has proposed lately, and what is not there yet."""
        oldest = self._now() - _REMEMBERED
        while self._proposed and next(iter(self._proposed.values()))[0] < oldest:
            self._proposed.popitem(last=False)
        return {
            other: text
            for (whose, other), (_, text) in self._proposed.items()
            if whose == user and other != path and live.get(other) != text
        }

    def _remember(self, user: str, path: str, text: str) -> None:
        self._proposed.pop((user, path), None)
        self._proposed[user, path] = (self._now(), text)
        while len(self._proposed) > _MOST:
            self._proposed.popitem(last=False)


def _errors(outcome: Proposal, path: str) -> tuple[Diagnostic, ...]:
    return tuple(one for one in outcome.found if one.severity is Severity.ERROR and one.span.file == path)


def _warned(outcome: Proposal, path: str) -> AdmissionAnswer | None:
    """Findings that refuse nothing, in the object and elsewhere, each in a line."""
    found = [
        one
        for one in outcome.found
        if one.severity is Severity.ERROR or (one.severity is Severity.WARNING and one.span.file == path)
    ]
    if not found:
        return None
    return AdmissionAnswer(warnings=tuple(_line(one) for one in found))


def _line(one: Diagnostic) -> str:
    place = f"{one.span.file}:{one.span.start.line}:{one.span.start.column}"
    return f"{place}: {one.severity.value}[{one.code}]: {one.message}"


def _told(outcome: Proposal, wrong: Sequence[Diagnostic]) -> str:
    if not wrong:
        return outcome.message
    return "\n" + render("text", wrong, outcome.sources, width=_WIDTH, limit=_SHOWN).rstrip()
