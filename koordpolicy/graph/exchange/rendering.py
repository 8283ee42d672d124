"""What policies say of a node, as the strategies of Koordinator's configuration: what koordlets read in NodeSLO objects."""

from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.graph.exchange.fields import FIELDS, GROUPS, RENDERED, SECTIONS, SETTLED, WHOLE, Carried
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.keys import mapping_keys
from koordpolicy.language.cel.types import Type
from koordpolicy.language.kinds.isolation import BlockDeviceLimits
from koordpolicy.model.slo_config import HOST_APPLICATIONS, QOS, THRESHOLD

Roots = Mapping[str, Any]

_SWITCHED: Final = ("CPUSuppress", "MemoryEviction", "CPUEviction")
"""What koordlets have one switch for."""


def strategy_of(graph: RuleGraph, document: str, roots: Roots, *, configured: bool = False) -> dict[str, Any]:
    """A strategy as it holds for the node of these records, by root. What no policy says is absent.

    `configured` gives what is configured where the node itself has a say too.
    Raises `CelError` where that cannot be told.
    """
    if document == HOST_APPLICATIONS:
        return {"applications": _applications(graph, roots)}
    found: dict[str, Any] = {}
    for carried in FIELDS[document]:
        _put(found, carried, _value(graph, carried, roots, configured=configured))
    if document == QOS:
        for name, group in GROUPS.items():
            _put_sections(found, name, graph, group, roots)
            _put_blocks(found, name, graph.setting("Isolation", group, "blocks", roots))
    if document == THRESHOLD:
        switches = [graph.about(kind, "", roots).value("enabled") for kind in _SWITCHED]
        found = (
            {**found, "enable": any(switches)} if "enable" in found else {"enable": any(switches), **found}
        )
    return found


def _value(graph: RuleGraph, carried: Carried, roots: Roots, *, configured: bool) -> Any:
    if carried.many:
        keys = graph.once(("mapping keys", carried.kind), lambda: mapping_keys(graph, carried.kind))
        said = {
            key: _plain(graph, f"{carried.target}.{carried.field}[{key}]", roots)
            for key in keys.get((carried.subject, carried.field), ())
        }
        return {key: value for key, value in said.items() if value is not None} or None
    place = (carried.target, carried.field)
    read = SETTLED.get(place) or (None if configured else RENDERED.get(place))
    name = f"{carried.target}.{carried.field if read is None else read}"
    value = _plain(graph, name, roots) if name in graph else None
    return None if value is None else carried.carriage.show(value)


def _plain(graph: RuleGraph, name: str, roots: Roots) -> Any:
    value = graph.value(name, **roots)
    if _is_optional(graph.decision(name).type):
        return value.value
    return value


def _is_optional(type: Type) -> bool:
    return type.name == "optional_type"


def _put(found: dict[str, Any], carried: Carried, value: Any) -> None:
    """The first decision that says a field is the one that is shown; of whole mappings each says its part."""
    last = carried.path[-1]
    if value is None or (last in WHOLE and not value):
        return
    place = found
    for step in carried.path[:-1]:
        place = place.setdefault(step, {})
    if last in WHOLE and last in place:
        for key, part in value.items():
            place[last].setdefault(key, {}).update(part)
        return
    place.setdefault(last, value)


def _put_sections(found: dict[str, Any], name: str, graph: RuleGraph, group: str, roots: Roots) -> None:
    """Sections that are there, though nothing stands in them: koordlets make nothing of them, and keep them."""
    if graph.setting("Isolation", group, "group", roots) is None:
        return
    place = found.setdefault(name, {})
    for block, section in SECTIONS.items():
        if graph.setting("Isolation", group, section, roots) is not None:
            place.setdefault(block, {})


def _put_blocks(found: dict[str, Any], name: str, blocks: list[BlockDeviceLimits] | None) -> None:
    if blocks:
        shown = [
            {
                key: part
                for key, part in (
                    ("name", block.name),
                    ("type", block.type),
                    (
                        "ioCfg",
                        block.model_dump(by_alias=True, exclude_none=True, exclude={"name", "type"}),
                    ),
                )
                if part
            }
            for block in blocks
        ]
        found.setdefault(name, {}).setdefault("blkioQOS", {})["blocks"] = shown


def _applications(graph: RuleGraph, roots: Roots) -> list[dict[str, Any]]:
    found = graph.setting("HostApplicationSet", "", "applications", roots) or []
    return [
        {**one.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True), "strategy": {}}
        for one in found
    ]
