"""Schema: documents become typed units; what does not fit its kind is reported and left out."""

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from koordpolicy.diagnostics import Diagnostics, Note
from koordpolicy.graph.state import State, Unit
from koordpolicy.language.documents import Document
from koordpolicy.language.kinds import KINDS, Spec
from koordpolicy.language.kinds.bundle import PolicyBundleSpec
from koordpolicy.language.validate import readable, validate


def schema(state: State) -> None:
    """Fill `units`, sorted so that nothing depends on the order of files."""
    declared = _parameters(state)
    for level, written in state.documents:
        names = declared.get((written.kind, level), ())
        key = ("schema", written, names)
        found, spec, document = state.cache.get(key, partial(_validated, written, names))
        state.found.extend(found)
        if spec is None:
            continue
        above = state.above
        layer = (above if above and written.file in above.files else state.layers[level]).name
        state.units.append(
            state.cache.get(("unit", document, level, layer), partial(_unit, document, spec, level, layer))
        )
    state.units.sort(key=lambda unit: (unit.layer, unit.id, unit.document.file, unit.document.index))
    _report_twins(state)


def _unit(document: Document, spec: Spec, level: int, layer: str) -> Unit:
    kind = KINDS[document.kind]
    return Unit(document, kind, spec, level, layer, kind.subject(spec, document.name))


def _parameters(state: State) -> Mapping[tuple[str, int], tuple[str, ...]]:
    """The parameters that documents below a level have, by kind and level."""
    found: dict[tuple[str, int], tuple[str, ...]] = {}
    below: dict[str, set[str]] = {}
    for level in range(1, len(state.layers)):
        for at, document in state.documents:
            spec = document.data.get("spec") if at == level - 1 else None
            own = spec.get("parameters") if isinstance(spec, dict) else None
            if isinstance(own, dict):
                below.setdefault(document.kind, set()).update(own)
        found.update(((kind, level), tuple(sorted(names))) for kind, names in below.items())
    return found


def _validated(document: Document, parameters: tuple[str, ...]) -> tuple[Diagnostics, Spec | None, Document]:
    """The document's spec; where something is wrong, what can be read of it, for the rest to be checked."""
    found = Diagnostics()
    spec = validate(document, found, parameters)
    return (found, spec, document) if spec else (found, readable(document), replace(document, mended=True))


def _report_twins(state: State) -> None:
    """The same kind and name twice in one layer: neither could be said to be the right one."""
    seen: dict[tuple[str, str], Unit] = {}
    kept: list[Unit] = []
    for unit in state.units:
        first = seen.setdefault((unit.layer_name, unit.id), unit)
        if first is unit:
            kept.append(unit)
            continue
        if isinstance(unit.spec, PolicyBundleSpec):
            continue  # that there are two of them is told already
        state.found.add(
            "KP109",
            unit.document.positions.value(("metadata", "name")),
            f"`{unit.id}` is defined twice",
            notes=(Note("the other one", first.document.positions.value(("metadata", "name"))),),
            help=_apart(unit.document.file, first.document.file),
        )
    state.units = kept


def _apart(file: str, other: str) -> str:
    """What to do about two documents of one name; those of two directories are mostly one policy for two environments."""
    if posixpath.dirname(file) == posixpath.dirname(other):
        return "give one of them another name, or merge them"
    return (
        "give one of them another name, or merge them; what differs from one environment to the next is a patch in an overlay"
        f" of kustomize, with a `kustomization.yaml` in `{posixpath.dirname(file) or '.'}` that names it"
    )
