"""What follows from a pod's band, as patches of an API server: resources by other names, and what agents are told of them.

The same as `algorithms.translate`, of objects whose containers request whatever they have a limit for.
"""

from collections.abc import Sequence
from typing import Final

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import announced_resources, band_resources
from koordpolicy.graph.native import NativeObjects, Variables
from koordpolicy.graph.native.amounts import amount_of
from koordpolicy.graph.native.announced import announced
from koordpolicy.language.cel.escapes import quote_string
from koordpolicy.manager.native.patches import NOTHING, found, made, pointer, put
from koordpolicy.model.protocol import CPU, EXTENDED_RESOURCE_SPEC

_LISTS: Final = ("requests", "limits")
_PLACES: Final = ("containers", "initContainers")
_ANNOTATION: Final = ("metadata", "annotations", EXTENDED_RESOURCE_SPEC)


def translation(graph: RuleGraph, objects: NativeObjects, variables: Variables) -> str:
    """The patch that gives resources the names that the pod's band has for them; one that changes nothing where no band has any."""
    names = {band: band_resources(graph, band) for band in graph.classes.bands}
    natives = sorted({native for one in names.values() for native in one})
    if not natives:
        return NOTHING
    table = ", ".join(
        f"{quote_string(band)}: {{{_entries(sorted(one.items()))}}}" for band, one in names.items() if one
    )
    band = objects.fact("pod", "band")
    known = variables.use("band_resources", lambda: f"{{{table}}}[?{band}].orValue({{}})")
    patches = [
        patch
        for place in _PLACES
        for part in _LISTS
        for native in natives
        for patch in _renamed(known, place, part, native)
    ]
    patches += [patch for native in natives for patch in _renamed_overhead(known, native)]
    return " + ".join(patches)


def announcement(graph: RuleGraph) -> str:
    """The patch that tells agents what containers have of the resources of bands, where the pod does not say anything yet."""
    if not announced_resources(graph):
        return NOTHING
    written = f"{made(_ANNOTATION[:2])} + {put(_ANNOTATION, 't')}"
    return (
        f"{found(_ANNOTATION)}.hasValue() ? {NOTHING} : [{announced(graph)}].map(t, t == '{{}}' ? {NOTHING}"
        f" : ({written}))[0]"
    )


def retraction(graph: RuleGraph) -> str:
    """The patch that takes the annotation away which `announcement` has made of containers as they are, before they change."""
    if not announced_resources(graph):
        return NOTHING
    path = quote_string(pointer(_ANNOTATION))
    return (
        f"({found(_ANNOTATION)}.orValue('') == {announced(graph)} ? [JSONPatch{{op: 'remove', path: {path}}}]"
        f" : {NOTHING})"
    )


def _renamed(known: str, place: str, part: str, native: str) -> tuple[str, str]:
    amount, key = f"c.?resources.?{part}[?{quote_string(native)}]", quote_string(native)
    each = f"object.spec.?{place}.orValue([]).transformList(i, c, {key} in {known} && {amount}.hasValue(),"
    front = f"{quote_string(f'/spec/{place}/')} + string(i) + {quote_string(f'/resources/{part}/')}"
    named, given = _steps(front, known, native, f"{amount}.value()")
    return f"{each} {named})", f"{each} {given})"


def _renamed_overhead(known: str, native: str) -> tuple[str, str]:
    key = quote_string(native)
    amount = f"object.spec.?overhead[?{key}]"
    there = f"{key} in {known} && {amount}.hasValue()"
    named, given = _steps(quote_string("/spec/overhead/"), known, native, f"{amount}.value()")
    return f"({there} ? [{named}] : {NOTHING})", f"({there} ? [{given}] : {NOTHING})"


def _steps(front: str, known: str, native: str, amount: str) -> tuple[str, str]:
    """One resource by its new name, and no more by the old one."""
    key, value = quote_string(native), _renamed_amount(amount, native)
    new, old = (f"{front} + jsonpatch.escapeKey({one})" for one in (f"{known}[{key}]", key))
    return f"JSONPatch{{op: 'add', path: {new}, value: {value}}}", f"JSONPatch{{op: 'remove', path: {old}}}"


def _renamed_amount(amount: str, native: str) -> str:
    """An amount of cpu becomes a whole number of millicores."""
    return f"string({amount_of(amount, CPU)})" if native == CPU else amount


def _entries(names: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{quote_string(native)}: {quote_string(name)}" for native, name in names)
