"""Policies that say what documents of `slo-controller-config` say, with a table of what was taken from where."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import ValidationError

from koordpolicy.algorithms.colocation import is_valid
from koordpolicy.algorithms.first_match import first_matches
from koordpolicy.algorithms.strategies import merge
from koordpolicy.graph.exchange.carriage import NotCarriedError
from koordpolicy.graph.exchange.fields import FIELDS, GROUPS, MEASURED, SECTIONS, WHOLE, Carried
from koordpolicy.language.kinds.isolation import BlockDeviceLimits
from koordpolicy.language.kinds.system import HostApplication
from koordpolicy.model.labels import LabelRequirement, LabelSelector, Operator
from koordpolicy.model.protocol import KOORDPOLICY_API
from koordpolicy.model.slo_config import (
    BANDWIDTH,
    COLOCATION,
    HOST_APPLICATIONS,
    LAYOUTS,
    QOS,
    SWITCHED_OFF,
    SYSTEM,
    ConfigDocument,
    Entries,
    Fields,
    Strategy,
)

API_VERSION: Final = KOORDPOLICY_API
DESCRIPTION: Final = "koordpolicy.io/description"
SOURCE: Final = "koordpolicy.io/imported-from"


@dataclass(frozen=True, slots=True)
class Taken:
    """One thing of the configuration: where it stands, and the decision that it became, or why it became none.

    Where `reason` is empty it was taken, and `decision` says as what. `keeps` tells that nothing is lost where it was not,
    `layer` whose it is where that matters: what a pack says that cannot be written is not the user's.
    """

    source: str
    decision: str = ""
    reason: str = ""
    keeps: bool = False
    layer: str = ""


@dataclass(slots=True)
class Imported:
    """Policy documents as data, and the table."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    table: list[Taken] = field(default_factory=list)

    def add(self, other: "Imported") -> None:
        self.documents.extend(other.documents)
        self.table.extend(other.table)


@dataclass(frozen=True, slots=True)
class Part:
    """A strategy as written, and the nodes it is for (`selector` None for all, `before` those of earlier entries)."""

    name: str
    source: str
    strategy: Strategy
    precedence: int
    selector: LabelSelector | None = None
    raw_selector: Any = None
    before: tuple[LabelSelector, ...] = ()
    implied: frozenset[str] = frozenset()
    """Fields that are not written, and mean what stands here."""


def import_document(key: str, document: ConfigDocument, defaults: Strategy, precedence: int = 0) -> Imported:
    """The policies that say what a document says, from `precedence` upwards.

    `defaults` are what the policies below say for the cluster: what elements of lists are merged over.
    """
    result = Imported()
    for placed in _reached(_placed(key, document, defaults, precedence, result), result):
        if key == HOST_APPLICATIONS:
            _add_applications(result, placed)
        else:
            _add_strategy(result, key, placed)
    return result


def _reached(placed: Iterable[Part], result: Imported) -> Iterator[Part]:
    """What can decide: no entry whose nodes all belong to earlier ones, nothing of the cluster that entries say for all."""
    cluster, *entries = placed
    firsts = first_matches([one.selector for one in entries if one.selector is not None])
    deciding = [one for number, one in enumerate(entries) if number in firsts]
    if None not in firsts and deciding:
        everywhere = set.intersection(*(set(_leaves(one.strategy)) for one in deciding))
        for path in sorted(everywhere & set(_leaves(cluster.strategy))):
            place = f"{cluster.source}.{'.'.join(path)}"
            result.table.append(Taken(place, reason="entries for all nodes say it"))
        cluster = replace(cluster, strategy=_without(cluster.strategy, everywhere))
    yield cluster
    for one in entries:
        if one in deciding:
            yield replace(
                one, before=tuple(other.selector for other in _until(deciding, one) if other.selector)
            )
        else:
            result.table.append(Taken(one.source, reason="earlier entries select all its nodes"))


def _until(entries: Sequence[Part], end: Part) -> Iterator[Part]:
    for one in entries:
        if one is end:
            return
        yield one


def _leaves(strategy: Strategy, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in strategy.items():
        if isinstance(value, Mapping) and name not in WHOLE:
            yield from _leaves(value, (*at, name))
        else:
            yield (*at, name)


def _without(
    strategy: Strategy, paths: AbstractSet[tuple[str, ...]], at: tuple[str, ...] = ()
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in strategy.items():
        if isinstance(value, Mapping) and name not in WHOLE:
            result[name] = _without(value, paths, (*at, name))
        elif (*at, name) not in paths:
            result[name] = value
    return result


def _placed(
    key: str, document: ConfigDocument, defaults: Strategy, precedence: int, result: Imported
) -> Iterator[Part]:
    layout = LAYOUTS[key]
    cluster = dict(document.cluster or {})
    absent: dict[str, Any] = {"enable": False} if key in SWITCHED_OFF else {}
    if key == SYSTEM:
        absent[BANDWIDTH] = "0"
    implied = frozenset(absent) - frozenset(cluster)
    cluster = {**cluster, **{name: absent[name] for name in sorted(implied)}}
    source = f"{key}.{layout.cluster}" if layout.cluster else key
    stem = key.removesuffix("-config")
    merged = merge(layout.strategy, defaults, cluster)
    said = cluster
    if key == COLOCATION and not cluster["enable"]:
        said = _measured_as_usual(cluster, source, result)
    yield Part(stem, source, _with_lists(layout.strategy, defaults, said), precedence, implied=implied)
    for number, entry in enumerate(document.entries):
        place = f"{key}.{layout.entries}[{number}]"
        if entry.name:
            place += f" ({entry.name})"
        if entry.selector is None:
            result.table.append(
                Taken(place, reason="it has no selector that makes sense, and selects no node")
            )
            continue
        strategy = dict(entry.strategy)
        if key == COLOCATION:
            if not is_valid(merge(layout.strategy, merged, strategy)):
                result.table.append(Taken(place, reason="it is invalid, and its nodes are as the cluster"))
                strategy = {}
            if not cluster["enable"] and strategy.pop("enable", False):
                result.table.append(Taken(f"{place}.enable", reason="it is off for the whole cluster"))
            if not (cluster["enable"] and strategy.get("enable", True)):
                usual = {name: defaults[name] for name in MEASURED if name in said and name in defaults}
                strategy = {**_measured_as_usual(strategy, place, result), **usual}
        unsaid = key == SYSTEM and not entry.empty and BANDWIDTH not in strategy
        if unsaid:
            strategy[BANDWIDTH] = "0"
        yield Part(
            _name(stem, entry.name, number),
            place,
            _with_lists(layout.strategy, merged, strategy),
            precedence + 1,
            entry.selector,
            entry.raw_selector,
            implied=frozenset({BANDWIDTH}) if unsaid else frozenset(),
        )


def _measured_as_usual(strategy: Strategy, place: str, result: Imported) -> dict[str, Any]:
    """What a strategy says where nothing is offered: Koordinator then passes over what it says of measuring."""
    passed_over = [name for name in MEASURED if name in strategy]
    result.table += [
        Taken(f"{place}.{name}", reason="nothing is offered there, and nodes are measured as usual")
        for name in passed_over
    ]
    return {name: value for name, value in strategy.items() if name not in passed_over}


def _with_lists(shape: Fields, base: Strategy, over: Strategy) -> dict[str, Any]:
    """What `over` says, its lists and whole mappings merged over those of `base`, without what says nothing."""
    merged = over if "applications" in shape.fields else merge(shape, base, over)
    result: dict[str, Any] = {}
    for name, value in over.items():
        one = shape.fields[name]
        if isinstance(one, Fields):
            result[name] = _with_lists(one, base.get(name, {}), value)
        elif isinstance(value, list) or name in WHOLE:
            if value:
                result[name] = merged[name]
        elif value != "" or name not in _WORDS:
            result[name] = value
    return result


_WORDS: Final = frozenset({"cpuSuppressPolicy", "cpuEvictPolicy", "policy"})
"""Texts of which the empty one says nothing."""


def _name(stem: str, name: str, number: int) -> str:
    """A name for a document; the number keeps those of two entries apart."""
    word = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")
    return f"{stem}-{number}-{word}" if word else f"{stem}-{number}"


# --- strategies -----------------------------------------------------------------------------------


def _add_strategy(result: Imported, key: str, placed: Part) -> None:
    specs: dict[str, dict[str, Any]] = {}
    carried = {row.path for row in FIELDS[key]}
    for row in FIELDS[key]:
        value = _at(placed.strategy, row.path)
        if value is not None:
            _carry(result, specs, placed, row, value)
    if key == QOS:
        for name, group in GROUPS.items():
            if name in placed.strategy:
                spec = specs.setdefault(f"Isolation/{group}", {})
                for block, section in SECTIONS.items():
                    if block in placed.strategy[name]:
                        spec.setdefault(section, {})
            _add_blocks(result, specs, placed, name, f"Isolation/{group}")
    for path in _paths(LAYOUTS[key].strategy, placed.strategy):
        if path not in carried and path[-1] != "blocks":
            result.table.append(
                Taken(f"{placed.source}.{'.'.join(path)}", reason="nothing in policies says that")
            )
    for target, spec in specs.items():
        result.documents.append(_document(target, placed, spec))


def _carry(
    result: Imported, specs: dict[str, dict[str, Any]], placed: Part, row: Carried, value: Any
) -> None:
    source = f"{placed.source}.{'.'.join(row.path)}"
    for key, one in value.items() if row.many else (("", value),):
        name = f"{row.field}[{key}]" if row.many else row.field
        try:
            literal = _literal(row, key, one)
        except NotCarriedError as error:
            result.table.append(Taken(f"{source}.{key}" if key else source, reason=str(error)))
            continue
        place = specs.setdefault(row.target, {})
        *steps, last = (*row.field.split("."), key) if row.many else row.field.split(".")
        for step in steps:
            place = place.setdefault(step, {})
        place[last] = literal
        words = f"{source} (absent: {json.dumps(value)})" if row.path[0] in placed.implied else source
        result.table.append(Taken(words, f"{row.target}.{name}"))


def _literal(row: Carried, key: str, value: Any) -> Any:
    if row.many and not re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,62}", key):
        raise NotCarriedError(f"`{key}` is no name")
    return row.carriage.write(value)


def _add_blocks(
    result: Imported, specs: dict[str, dict[str, Any]], placed: Part, name: str, target: str
) -> None:
    blocks = placed.strategy.get(name, {}).get("blkioQOS", {}).get("blocks")
    if not blocks:
        return
    source = f"{placed.source}.{name}.blkioQOS.blocks"
    flat = [{**{k: v for k, v in one.items() if k != "ioCfg"}, **one.get("ioCfg", {})} for one in blocks]
    flat = [{key: value for key, value in one.items() if value != ""} for one in flat]
    try:
        for one in flat:
            BlockDeviceLimits.model_validate(one)
    except ValidationError as error:
        result.table.append(Taken(source, reason=_words(error)))
        return
    specs.setdefault(target, {})["blocks"] = flat
    result.table.append(Taken(source, f"{target}.blocks"))


def _add_applications(result: Imported, placed: Part) -> None:
    kept: list[dict[str, Any]] = []
    for number, one in enumerate(placed.strategy.get("applications", ())):
        source = f"{placed.source}.applications[{number}]"
        said = {key: value for key, value in one.items() if key != "strategy" and value not in ("", {})}
        if "cgroupPath" in said:
            said["cgroupPath"] = {key: value for key, value in said["cgroupPath"].items() if value != ""}
        try:
            HostApplication.model_validate(said)
        except ValidationError as error:
            result.table.append(Taken(source, reason=_words(error)))
            continue
        kept.append(said)
        result.table.append(Taken(source, "HostApplicationSet.applications"))
    result.documents.append(_document("HostApplicationSet", placed, {"applications": kept}))


def _words(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _at(strategy: Strategy, path: Sequence[str]) -> Any:
    value: Any = strategy
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _paths(shape: Fields, strategy: Strategy, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in strategy.items():
        one = shape.fields[name]
        if isinstance(one, Fields):
            yield from _paths(one, value, (*at, name))
        elif not (isinstance(one, Entries) and not value):
            yield (*at, name)


# --- documents ------------------------------------------------------------------------------------


def _document(target: str, placed: Part, spec: Mapping[str, Any]) -> dict[str, Any]:
    kind, _, subject = target.partition("/")
    whole: dict[str, Any] = {}
    if kind == "Overcommit":
        whole["resource"] = subject
    if kind == "Isolation":
        whole["group"] = subject
    if placed.selector is not None:
        match = _match(placed)
        if match:
            whole["match"] = match
    if placed.precedence:
        whole["precedence"] = placed.precedence
    name = f"{placed.name}-{subject}" if subject else placed.name
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name.lower(), "annotations": {SOURCE: placed.source}},
        "spec": {**whole, **spec},
    }


def _match(placed: Part) -> dict[str, Any]:
    assert placed.selector is not None
    raw = placed.raw_selector or {}
    nodes = {key: raw[key] for key in ("matchLabels", "matchExpressions") if raw.get(key)}
    match: dict[str, Any] = {"nodes": nodes} if nodes else {}
    others = [one for one in placed.before if not _disjoint(one, placed.selector)]
    if others:
        match["condition"] = " && ".join(f"!({_condition(one)})" for one in others)
    return match


def _disjoint(one: LabelSelector, other: LabelSelector) -> bool:
    """Whether it is plain that no labels meet both."""
    return any(
        left.key == right.key
        and left.operator is right.operator is Operator.IN
        and not left.values & right.values
        for left in one.requirements
        for right in other.requirements
    )


def _condition(selector: LabelSelector) -> str:
    return " && ".join(map(_requirement, selector.requirements)) or "true"


def _requirement(one: LabelRequirement) -> str:
    key = _quoted(one.key)
    values = f"[{', '.join(map(_quoted, sorted(one.values)))}]"
    match one.operator:
        case Operator.EXISTS:
            return f"{key} in node.labels"
        case Operator.DOES_NOT_EXIST:
            return f"!({key} in node.labels)"
        case Operator.IN:
            return f"{key} in node.labels && node.labels[{key}] in {values}"
        case Operator.NOT_IN:
            return f"!({key} in node.labels && node.labels[{key}] in {values})"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
