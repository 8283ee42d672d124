"""`koordpolicy explain pod -f pod.yaml`: what admission makes of a pod, line by line, with the rules behind each."""

import argparse
from collections.abc import Iterator
from typing import Any, Final

from koordpolicy.algorithms.json_patch import Change, json_patch
from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.picture import of_manifests, picture_of
from koordpolicy.cli.pod_policies import Policies, policies_of
from koordpolicy.cli.simulation.words import DIM, GREEN, YELLOW, Page
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics import Span
from koordpolicy.diagnostics.escaping import json_text, one_line
from koordpolicy.graph.describe.layout import place
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import CLUSTER_COLOCATION_PROFILES, NAMESPACES, PRIORITY_CLASSES
from koordpolicy.manager.webhooks.rehearsal import PictureObjects, Rehearsal, RehearsedAdmission
from koordpolicy.manager.webhooks.rules import ENFORCE, KIND, Violation
from koordpolicy.manager.webhooks.tracing import TracedChange, path_text

_RED = "31"
READ: Final = (NAMESPACES, PRIORITY_CLASSES, CLUSTER_COLOCATION_PROFILES)
"""What admission reads of a picture beside the pod."""
_SHOWN = 120
"""Characters of a value that are shown."""


def explain_admission(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Say what becomes of each pod of the manifests at its creation. Raises `CannotRunError`."""
    if arguments.policies and arguments.policies_from_cluster:
        raise CannotRunError("policies come from `-p` or from the cluster: give one of the two")
    given = of_manifests(arguments.filename)
    if not given.pods:
        raise CannotRunError(
            "the manifests have no pod: `explain pod -f` is about those of pods, not of what makes them"
        )
    beside = given
    heard = None
    if arguments.snapshot:
        beside, heard = picture_of(argparse.Namespace(**{**vars(arguments), "filename": None}), terminal)
    elif arguments.policies_from_cluster:
        _, heard = picture_of(arguments, terminal)
    policies = policies_of(arguments, heard)
    objects = PictureObjects(
        policies.graph,
        {
            resource: (*beside.of(resource), *(given.of(resource) if beside is not given else ()))
            for resource in READ
        },
    )
    rehearsal = Rehearsal(policies.graph, objects, beside.taken)
    found = [rehearsal.of(pod) for pod in given.pods]
    if arguments.output == "json":
        plain = [plain_admission(one, policies) for one in found]
        terminal.print(json_text(plain[0] if len(plain) == 1 else plain, indent=2))
        return OK
    page = Page(terminal.width, terminal.colour())
    sections = ["\n".join(_lines(one, policies, page)) for one in found]
    if not objects.has_priority_classes:
        sections.append(
            "\n".join(
                page.wrapped("PriorityClasses are taken to be those that the priority bands describe.", 0)
            )
        )
    terminal.print("\n\n".join(sections))
    return OK


# --- for people -----------------------------------------------------------------------------------


def _lines(found: RehearsedAdmission, policies: Policies, page: Page) -> Iterator[str]:
    lines = sum(len(one.changes) for one in found.changes)
    changed = (
        f"would be changed in {lines} place{'s' if lines != 1 else ''}" if lines else "would not be changed"
    )
    yield page.heading(f"{_name(found.before)} {changed}, and {'refused' if found.refused else 'admitted'}")
    yield from page.wrapped(policies.told, 4, "  ")
    for step in found.changes:
        yield ""
        yield page.heading(step.decision, _where(step.places, page.width // 2))
        for change in step.changes:
            yield from _change(change, page)
    for name in found.mutation.spared:
        yield ""
        yield f"profile `{name}` selects it, and is not drawn"
    if found.warnings or found.violations or found.refused:
        yield ""
    yield from verdict(found, policies, page)


def verdict(found: RehearsedAdmission, policies: Policies, page: Page) -> Iterator[str]:
    """Why a pod would be refused, and what its creator would be warned of."""
    refusing = [one for one in found.violations if one.enforcement == ENFORCE]
    if found.refused and not refusing:
        yield from page.wrapped(f"Refused: {found.refused}", 4)
    for violation in found.violations:
        word = "Refused" if violation.enforcement == ENFORCE else violation.enforcement.capitalize()
        yield from (
            page.paint(line, _RED if word == "Refused" else YELLOW)
            for line in page.wrapped(f"{word}: {violation}", 4, "  ")
        )
        yield page.paint(
            f"    {KIND}/{violation.rule}  {_where(_of_rule(policies, violation), page.width)}", DIM
        )
    for warning in found.warnings:
        if not any(warning == str(one) for one in found.violations):
            yield from (page.paint(line, YELLOW) for line in page.wrapped(f"Warning: {warning}", 4, "  "))


def _change(change: Change, page: Page) -> Iterator[str]:
    path = path_text(change)
    if "old" in change:
        yield page.paint(f"  - {path}: {_value(change['old'])}", _RED)
    if "value" in change:
        yield page.paint(f"  + {path}: {_value(change['value'])}", GREEN)


def _value(value: Any) -> str:
    said = one_line(value if isinstance(value, str) and value else json_text(value))
    return said if len(said) <= _SHOWN else f"{said[: _SHOWN - 1]}…"


def _where(places: tuple[Span, ...], width: int) -> str:
    said = ", ".join(place(one) for one in places) or "an object of the cluster"
    return said if len(said) <= width else f"…{said[-width + 1 :]}"


def _name(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"{metadata['namespace']}/{metadata.get('name') or metadata.get('generateName') or 'a pod without a name'}"


def _of_rule(policies: Policies, violation: Violation) -> tuple[Span, ...]:
    decision = f"{KIND}/{violation.rule}.require"
    if decision not in policies.graph:
        return ()
    return tuple(rule.span for rule in policies.graph.decision(decision).rules[:1])


# --- for programs ---------------------------------------------------------------------------------


def plain_admission(found: RehearsedAdmission, policies: Policies) -> dict[str, Any]:
    """What becomes of a pod at its creation, as JSON values."""
    return {
        "pod": _name(found.before),
        "allowed": not found.refused,
        "message": found.refused or None,
        "warnings": list(found.warnings),
        "changes": [_plain_step(one) for one in found.changes],
        "violations": [_plain_violation(one, policies) for one in found.violations],
        "profiles": {"applied": list(found.mutation.applied), "spared": list(found.mutation.spared)},
        "patch": json_patch(found.before, found.mutation.pod),
        "policies": policies.plain(),
    }


def plain_verdict(found: RehearsedAdmission, policies: Policies) -> dict[str, Any]:
    """Whether a pod would be admitted, and by which rules not, for programs."""
    return {
        "allowed": not found.refused,
        "message": found.refused or None,
        "violations": [_plain_violation(one, policies) for one in found.violations],
    }


def _plain_violation(violation: Violation, policies: Policies) -> dict[str, Any]:
    return {
        "rule": f"{KIND}/{violation.rule}",
        "enforcement": violation.enforcement,
        "reason": violation.reason,
        "message": violation.message,
        "places": [_plain_place(span) for span in _of_rule(policies, violation)],
    }


def _plain_step(step: TracedChange) -> dict[str, Any]:
    return {
        "decision": step.decision,
        "places": [_plain_place(span) for span in step.places],
        "lines": [
            {"path": path_text(one), **{key: one[key] for key in ("old", "value") if key in one}}
            for one in step.changes
        ],
    }


def _plain_place(span: Span) -> dict[str, Any]:
    return {"file": span.file, "line": span.start.line, "column": span.start.column}
