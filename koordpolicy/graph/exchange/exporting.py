"""Policies as documents of `slo-controller-config` and ClusterColocationProfiles, as far as those can say them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any, Final

from koordpolicy.algorithms.strategies import expand, merge
from koordpolicy.graph.exchange.documents import SOURCE, Taken
from koordpolicy.graph.exchange.fields import FIELDS, SETTLED
from koordpolicy.graph.exchange.profiles import export_profile
from koordpolicy.graph.exchange.rendering import strategy_of
from koordpolicy.graph.exchange.unsaid import unsaid
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.keys import mapping_keys
from koordpolicy.graph.state import Unit
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.model.protocol import CONFIG_MAP_TYPE
from koordpolicy.model.slo_config import (
    BANDWIDTH,
    CONFIG_MAP,
    HOST_APPLICATIONS,
    LAYOUTS,
    Entries,
    Fields,
    Items,
    Layout,
    Strategy,
    read_document,
)

_MOST: Final = 4096
"""Combinations of labels of nodes that are told apart."""
_MOST_ORDERS: Final = 3
"""Labels of which every order is tried, for the one with the fewest entries."""
_ABSENT: Final = None
_OTHER: Final = "\0"
_OWN: Final = "node.overrides."
"""What nodes say themselves, which Koordinator hears, too."""
"""Stands for a value that no policy names."""

_ENTRY: Final = re.compile(r"\d+\] \((?P<name>.*)\)$")
"""The end of the source of a policy that was imported from an entry with a name."""

Labels = Mapping[str, str | None]
"""Labels of some nodes: a value, none, or any other than those that policies name."""


@dataclass(slots=True)
class Exported:
    """Objects, and the table of what was written where and what could not be."""

    objects: list[dict[str, Any]] = field(default_factory=list)
    table: list[Taken] = field(default_factory=list)


def export(graph: RuleGraph, namespace: str) -> Exported:
    """The ConfigMap and the profiles that say what the policies of a graph say."""
    result = Exported()
    data = {}
    for key in LAYOUTS:
        document = _document(graph, key, result.table)
        if document is not None:
            data[key] = json.dumps(document, indent=2)
    metadata = {
        "name": CONFIG_MAP,
        "namespace": namespace,
        "labels": {CONFIG_MAP_TYPE: CONFIG_MAP},
    }
    result.objects.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    for unit in graph.units:
        if unit.kind.name == "ColocationProfile":
            profile, told = export_profile(unit)
            result.table.extend(replace(row, layer=unit.layer_name) for row in told)
            if profile is not None:
                result.objects.append(profile)
    result.table.extend(unsaid(graph))
    return result


def _document(graph: RuleGraph, key: str, table: list[Taken]) -> dict[str, Any] | None:
    """One document; None where it cannot be written at all."""
    kinds = {row.kind for row in FIELDS[key]} if key in FIELDS else {"HostApplicationSet"}
    units = [unit for unit in graph.units if unit.kind.name in kinds]
    reads = sorted(_beyond_labels(graph, key, units))
    if reads:
        table.append(
            Taken(key, reason=f"its policies read {', '.join(reads)}; a ConfigMap knows labels alone")
        )
        return None
    named = _named_labels(units)
    choices = {name: [_ABSENT, _OTHER, *sorted(values)] for name, values in sorted(named.items())}
    if prod(map(len, choices.values())) > _MOST:
        table.append(
            Taken(key, reason="its policies tell more labels of nodes apart than can be written down")
        )
        return None
    try:
        known = {
            combination: _strategy(graph, key, dict(zip(choices, combination, strict=True)))
            for combination in product(*choices.values())
        }
    except CelError as error:
        table.append(Taken(key, reason=f"a policy fails: {error}"))
        return None
    layout = LAYOUTS[key]
    cluster = known[(_ABSENT,) * len(choices)]
    if key != HOST_APPLICATIONS:
        cluster = _common(layout.strategy, cluster, [one for one in known.values() if one != cluster])
    regions = list(_regions(list(choices.items()), known, {}, cluster))
    names = _names(graph, f"{key}.{layout.entries}[", units, [labels for labels, _ in regions])
    entries = [
        _entry(layout, name, labels, choices, cluster, strategy)
        for name, (labels, strategy) in zip(names, regions, strict=True)
    ]
    document = {**({layout.cluster: cluster} if layout.cluster else cluster)}
    if entries:
        document[layout.entries] = entries
    _verify(key, document, regions, table)
    table.append(Taken(", ".join(sorted(kinds)), f"{CONFIG_MAP}/{key}"))
    return document


def _strategy(graph: RuleGraph, key: str, labels: Labels) -> Strategy:
    return strategy_of(graph, key, _roots(labels), configured=True)


def _roots(labels: Labels) -> dict[str, Any]:
    said = {name: value for name, value in labels.items() if value is not None}
    return {"node": {"labels": said, "annotations": {}, "name": ""}}


def _names(graph: RuleGraph, entry: str, units: Sequence[Unit], regions: Sequence[Labels]) -> list[str]:
    """The names of entries, no two the same: of the entry that policies were imported from, else of the labels."""
    imported = {unit: found["name"] for unit in units if (found := _ENTRY.match(_below(entry, unit)))}
    names: list[str] = []
    for labels in regions:
        named = {
            name
            for unit, name in imported.items()
            if unit in graph.matches and graph.selection(unit).holds(_roots(labels))
        }
        words = [value for value in labels.values() if value is not None and value != _OTHER]
        stem = named.pop() if len(named) == 1 else "-".join(words) or "others"
        free = (f"{stem}-{number}" for number in range(1, len(regions) + 1))
        names.append(stem if stem not in names else next(name for name in free if name not in names))
    return names


def _below(entry: str, unit: Unit) -> str:
    """What follows the place of entries in the source of a policy; empty where it was not imported from one."""
    metadata = unit.document.data["metadata"]
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    source = str(annotations.get(SOURCE, "")) if isinstance(annotations, Mapping) else ""
    return source.removeprefix(entry) if source.startswith(entry) else ""


def _common(shape: Fields, cluster: Strategy, others: Sequence[Strategy]) -> dict[str, Any]:
    """What can stand for the cluster: an entry says other values, and cannot take anything back."""
    found: dict[str, Any] = {}
    for name, value in cluster.items():
        below = [one[name] for one in others if name in one]
        if len(below) < len(others):
            continue
        match shape.fields[name]:
            case Fields() as inner:
                found[name] = _common(inner, value, below)
            case Entries():
                found[name] = {key: one for key, one in value.items() if all(key in other for other in below)}
            case Items() as inner_list:
                whole = Fields({name: inner_list})
                if all(merge(whole, {name: value}, {name: one}) == {name: one} for one in below):
                    found[name] = value
            case _:
                found[name] = value
    return found


def _regions(
    choices: Sequence[tuple[str, list[str | None]]],
    known: Mapping[tuple[str | None, ...], Strategy],
    fixed: Mapping[str, str | None],
    cluster: Strategy,
) -> Iterator[tuple[Labels, Strategy]]:
    """Labels, as few as tell apart what differs from the cluster, and what holds there."""
    names = [name for name, _ in choices]
    within = [
        strategy
        for combination, strategy in known.items()
        if all(combination[names.index(name)] == value for name, value in fixed.items())
    ]
    if all(one == within[0] for one in within):
        if within[0] != cluster:
            yield fixed, within[0]
        return
    free = [(name, values) for name, values in choices if name not in fixed]
    ways = [
        [region for value in values for region in _regions(choices, known, {**fixed, name: value}, cluster)]
        for name, values in (free if len(free) <= _MOST_ORDERS else free[:1])
    ]
    yield from min(ways, key=len)


def _entry(
    layout: Layout,
    entry: str,
    labels: Labels,
    choices: Mapping[str, list[str | None]],
    cluster: Strategy,
    strategy: Strategy,
) -> dict[str, Any]:
    plain = {name: value for name, value in labels.items() if value not in (_ABSENT, _OTHER)}
    expressions: list[dict[str, Any]] = []
    for name, value in labels.items():
        if value is _ABSENT:
            expressions.append({"key": name, "operator": "DoesNotExist"})
        elif value == _OTHER:
            named = [one for one in choices[name] if one not in (_ABSENT, _OTHER)]
            expressions.append({"key": name, "operator": "Exists"})
            if named:
                expressions.append({"key": name, "operator": "NotIn", "values": named})
    selector: dict[str, Any] = {}
    if plain:
        selector["matchLabels"] = plain
    if expressions:
        selector["matchExpressions"] = expressions
    overrides = _overrides(layout.strategy, cluster, strategy)
    if BANDWIDTH in layout.strategy.fields and BANDWIDTH in strategy:
        overrides[BANDWIDTH] = strategy[BANDWIDTH]
    return {"name": entry, "nodeSelector": selector, **overrides}


def _overrides(shape: Fields, base: Strategy, over: Strategy) -> dict[str, Any]:
    """What an entry has to say; of mappings with any keys each value as a whole, as it is merged."""
    found: dict[str, Any] = {}
    for name, value in over.items():
        before, one = base.get(name), shape.fields[name]
        if isinstance(one, Fields) and isinstance(before, Mapping):
            inner = _overrides(one, before, value)
            if inner:
                found[name] = inner
        elif isinstance(one, Entries) and isinstance(before, Mapping):
            changed = {key: part for key, part in value.items() if before.get(key) != part}
            if changed:
                found[name] = changed
        elif value != before:
            found[name] = value
    return found


def _verify(
    key: str, document: Mapping[str, Any], regions: Sequence[tuple[Labels, Strategy]], table: list[Taken]
) -> None:
    """Say where the document, merged as Koordinator does, is not what policies say: it cannot take anything back."""
    layout = LAYOUTS[key]
    if key == HOST_APPLICATIONS:
        return
    merged = expand(layout, read_document(key, json.dumps(document)), {})
    for labels, strategy in regions:
        named = {name: value for name, value in labels.items() if value is not None}
        if merged.of(named) != strategy:
            words = ", ".join(f"{name}={value}" for name, value in named.items()) or "others"
            table.append(
                Taken(key, reason=f"nodes with {words}: a ConfigMap cannot take back what holds for all")
            )


def _beyond_labels(graph: RuleGraph, key: str, units: Sequence[Unit]) -> set[str]:
    """What the decisions of a document read beside labels of nodes, and what Koordinator reads of them itself."""
    tests = [graph.matches[unit].test for unit in units if unit in graph.matches]
    keys = mapping_keys(graph, "SystemTuning")
    names = [
        f"{row.target}.{SETTLED.get((row.target, row.field), row.field)}{step}"
        for row in FIELDS.get(key, ())
        for step in ([f"[{one}]" for one in keys.get((row.subject, row.field), ())] if row.many else ("",))
    ]
    nodes = [test for test in tests if test is not None] + [
        graph.expression(name) for name in names if name in graph
    ]
    read = {f"{root}.{path}" if path else root for node in nodes for root, path in facts_of(node)}
    return {one for one in read if not one.startswith(_OWN)} - {"node.labels"}


def _named_labels(units: Sequence[Unit]) -> dict[str, set[str]]:
    """Labels of nodes that policies tell apart, with the values that they name."""
    named: dict[str, set[str]] = {}
    for unit in units:
        match = unit.spec.match if isinstance(unit.spec, PolicySpec) else None
        if match is None:
            continue
        if match.nodes is not None:
            for name, value in match.nodes.match_labels.items():
                named.setdefault(name, set()).add(value)
            for line in match.nodes.match_expressions:
                named.setdefault(line.key, set()).update(line.values)
        if match.condition is not None:
            _name_in(match.condition, named)
    return named


_TEXT: Final = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")
_LABEL: Final = re.compile(
    r"""['"](?P<key>[^'"]+)['"]\s+in\s+node\.labels|node\.labels\[\??['"](?P<of>[^'"]+)['"]\](?P<rest>[^&|]*)"""
)


def _name_in(condition: str, named: dict[str, set[str]]) -> None:
    """The labels that a condition speaks of, each with the texts beside it."""
    for found in _LABEL.finditer(condition):
        values = named.setdefault(found["key"] or found["of"], set())
        values.update(one or other for one, other in _TEXT.findall(found["rest"] or ""))
