"""What agents are told of the resources that containers have by the names of bands, as CEL: see `algorithms.translate`."""

from collections.abc import Sequence
from typing import Final

from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph.bands import announced_resources
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.language.cel.escapes import quote_string
from koordpolicy.model.protocol import EXTENDED_RESOURCE_SPEC

_LISTS: Final = ("requests", "limits")


def is_unannounced(graph: RuleGraph) -> str:
    """Whether the annotation of a pod says something else than `announced`, to the letter."""
    there = f"object.metadata.?annotations[?{quote_string(EXTENDED_RESOURCE_SPEC)}].orValue('{{}}')"
    return f"{there} != {announced(graph)}"


def announced(graph: RuleGraph) -> str:
    """The text of the annotation, as `translate.with_extended_spec` writes it."""
    names = announced_resources(graph)
    stated = " || ".join(f"{_amount('c', part, name)}.hasValue()" for part in _LISTS for name in names)
    parts = ", ".join(_announced_part(part, names) for part in _LISTS)
    containers = (
        f"object.spec.containers.filter(c, {stated}).sortBy(c, string(c.name)).map(c,"
        f" '\"' + c.name + '\":{{' + [{parts}].filter(p, p != '').join(',') + '}}')"
    )
    return f"[{containers}].map(l, l.size() == 0 ? '{{}}' : '{{\"containers\":{{' + l.join(',') + '}}}}')[0]"


def _announced_part(part: str, names: Sequence[str]) -> str:
    entries = ", ".join(
        f"{_amount('c', part, name)}.hasValue() ? {quote_string(json_text(name) + ':')} + '\"' +"
        f" {_amount('c', part, name)}.value() + '\"' : ''"
        for name in names
    )
    front = quote_string(json_text(part) + ":{")
    return f"[[{entries}].filter(e, e != '')].map(l, l.size() == 0 ? '' : {front} + l.join(',') + '}}')[0]"


def _amount(container: str, part: str, name: str) -> str:
    return f"{container}.?resources.?{part}[?{quote_string(name)}]"
