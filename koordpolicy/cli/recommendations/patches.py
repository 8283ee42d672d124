"""Patches of requests for manifests in Git, as Components of kustomize: one a namespace."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from koordpolicy.cli.output_files import put_below
from koordpolicy.cli.recommendations.found import TEMPLATES, FoundRecommendation, RecommendationRow
from koordpolicy.cli.recommendations.text import shown
from koordpolicy.language.documents.writing import yaml_text

_ROOT: Final = "kustomization.yaml"
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?", re.ASCII)
"""What Kubernetes calls things, and a file may safely be called."""


@dataclass(slots=True)
class WrittenPatches:
    """The texts by path below the directory, and what was left out or cut, as phrases."""

    texts: dict[Path, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def patches_of(found: Iterable[FoundRecommendation], *, low_confidence: bool) -> WrittenPatches:
    """The files to write. What would add a container, or request more than a limit, is not written so."""
    made = WrittenPatches()
    by_namespace: dict[str, list[tuple[str, FoundRecommendation]]] = {}
    for one in found:
        why = _reason(one, low_confidence)
        if why:
            made.left_out.append(f"{one.label}: {why}")
            continue
        patch = _patch(one, made)
        if patch is not None:
            file = f"{one.target.kind.lower()}-{one.target.name}.yaml"
            listed = by_namespace.setdefault(one.namespace, [])
            if file in (name for name, _ in listed):
                made.left_out.append(f"{one.label}: another Recommendation speaks of {one.workload}")
                continue
            listed.append((file, one))
            made.texts[Path(one.namespace, file)] = yaml_text([patch])
    for namespace, files in by_namespace.items():
        made.texts[Path(namespace, _ROOT)] = yaml_text([_component(files)])
    return made


def _reason(one: FoundRecommendation, low_confidence: bool) -> str:
    """Why there can be no patch; empty where there can."""
    if not one.target.kind:
        return "it selects pods by labels, so that no manifest is known"
    if one.target.kind not in TEMPLATES:
        return f"no template of pods is known of {one.target.kind}"
    if not all(_NAME.fullmatch(name) for name in (one.namespace, one.target.name)):
        return "neither a namespace nor a workload can be called so"
    if not one.rows:
        return "nothing is recommended yet"
    if not one.workload_known:
        return f"{one.workload} is not there, so that its containers are not known"
    if one.caution and not low_confidence:
        return f"{one.caution} (`--low-confidence` writes it all the same)"
    return ""


def _patch(one: FoundRecommendation, made: WrittenPatches) -> dict[str, Any] | None:
    api, path = TEMPLATES[one.target.kind]
    sections: dict[str, dict[str, dict[str, str]]] = {}
    for row in one.rows:
        if row.declared is None:
            note = f"{one.label}: {one.workload} declares no container `{row.container}`; something adds it"
            if note not in made.notes:
                made.notes.append(note)
            continue
        requests = sections.setdefault(row.declared.section, {}).setdefault(row.container, {})
        requests[row.resource] = shown(row.resource, _request(one, row, row.declared.limits, made))
    if not sections:
        made.left_out.append(f"{one.label}: {one.workload} declares none of its containers")
        return None
    body: dict[str, Any] = {
        section: [
            {"name": name, "resources": {"requests": requests}} for name, requests in containers.items()
        ]
        for section, containers in sections.items()
    }
    inner: dict[str, Any] = {"spec": body}
    for step in reversed(path):
        inner = {step: inner}
    return {"apiVersion": api, "kind": one.target.kind, "metadata": {"name": one.target.name}, **inner}


def _request(
    one: FoundRecommendation, row: RecommendationRow, limits: Mapping[str, int], made: WrittenPatches
) -> int:
    """The target, or the limit where that is less: the API server takes no request above it."""
    limit, target = limits.get(row.resource), row.recommended.target
    if limit is None or target <= limit:
        return target
    made.notes.append(
        f"{one.label}: container `{row.container}` should request {shown(row.resource, target)} of {row.resource}, "
        f"above its limit {shown(row.resource, limit)}, which is requested instead"
    )
    return limit


def _component(files: Sequence[tuple[str, FoundRecommendation]]) -> dict[str, Any]:
    return {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [
            # The name alone: manifests often leave their namespace to kustomize.
            {"path": file, "target": {"kind": one.target.kind, "name": f"^{_literal(one.target.name)}$"}}
            for file, one in sorted(files, key=lambda entry: entry[0])
        ],
    }


def _literal(name: str) -> str:
    """A name as a regular expression: of what it may hold, only the dot means anything."""
    return name.replace(".", "\\.")


def write(directory: Path, made: WrittenPatches) -> Iterator[Path]:
    """Write the files; gives each that was. Raises `CannotRunError`."""
    for path, text in sorted(made.texts.items()):
        yield put_below(directory, path, text)
