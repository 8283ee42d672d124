"""What is wrong with the documents of `slo-controller-config`, as written: bounds, selectors, entries that meet."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from koordpolicy.model.labels import LabelSelector
from koordpolicy.model.quantity import QuantityError, parse_quantity
from koordpolicy.model.slo_config import (
    BANDWIDTH,
    BURST,
    COLOCATION,
    LAYOUTS,
    QOS,
    SYSTEM,
    THRESHOLD,
    ConfigDocument,
    ConfigError,
    Entries,
    Fields,
    Items,
    NodeEntry,
    Plain,
    Shape,
    Strategy,
    is_percent,
    read_document,
)

CHECKED: Final = (COLOCATION, THRESHOLD, QOS, SYSTEM, BURST)
"""The documents that are checked, in this order."""

PARSE: Final = "ParseConfigFail"
INVALID: Final = "ConfigParamInvalid"
OVERLAP: Final = "NodeStrategiesOverlap"
CONFLICT: Final = "ExistNodeConfict"  # as the reference spells it

_CLASSES: Final = ("lsrClass", "lsClass", "beClass")
_DIRECTIONS: Final = ("ingressRequest", "egressRequest")
_NETWORK: Final = ("ingressRequest", "ingressLimit", "egressRequest", "egressLimit")
_MOST_LABEL_SETS: Final = 10_000
"""Label sets that the selector of one entry may stand for."""


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """Why a ConfigMap is refused. `reason` is empty where the reference gives none."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckedNode:
    """A node as far as selectors look at it."""

    name: str
    labels: Mapping[str, str]


def check_config(
    data: Mapping[str, str],
    old: Mapping[str, str],
    nodes: Iterable[CheckedNode] = (),
    *,
    named: bool = False,
) -> ConfigProblem | None:
    """The first thing that is wrong with what changed from `old`; None for nothing.

    `named` asks for names of entries that are unique. `nodes` are those of the cluster.
    """
    several: dict[str, ConfigDocument] = {}
    for key in CHECKED:
        text = data.get(key, "")
        if not text or text == old.get(key):
            continue
        try:
            document = read_document(key, text) or ConfigDocument()
            system = read_document(SYSTEM, data.get(SYSTEM, "")) or ConfigDocument() if key == QOS else None
        except ConfigError as error:
            return ConfigProblem(PARSE, str(error))
        problem = _check(key, document, system, named=named)
        if problem is not None:
            return problem
        if len(document.entries) > 1:
            several[key] = document
    return meeting(several, nodes)


def meeting(documents: Mapping[str, ConfigDocument], nodes: Iterable[CheckedNode]) -> ConfigProblem | None:
    """A node that more than one entry of a document selects."""
    for node in nodes:
        for key, document in documents.items():
            names = _selecting(document.entries, node.labels)
            if len(names) > 1:
                return ConfigProblem(
                    CONFLICT, f"{key}: the entries {', '.join(names)} all select the node {node.name}"
                )
    return None


def _check(
    key: str, document: ConfigDocument, system: ConfigDocument | None, *, named: bool
) -> ConfigProblem | None:
    shape = LAYOUTS[key].strategy
    for entry in document.entries:
        if not entry.raw_selector or entry.selector is None or not entry.selector.requirements:
            return ConfigProblem(
                INVALID, f"{key}: the entry `{entry.name}` needs a selector that makes sense"
            )
    for strategy in _strategies(document):
        for words in outside(shape, strategy):
            return ConfigProblem(INVALID, f"{key}: {words}")
    if system is not None:
        for words in _network(document, system):
            return ConfigProblem("", f"{key}: {words}")
    if named:
        names = Counter(entry.name for entry in document.entries)
        for name, count in names.items():
            if not name or count > 1:
                words = f"`{name}` names {count} entries" if name else "an entry has no name"
                return ConfigProblem(INVALID, f"{key}: {words}")
    return _overlap(key, document.entries)


def _strategies(document: ConfigDocument) -> Iterator[Strategy]:
    if document.cluster is not None:
        yield document.cluster
    yield from (entry.strategy for entry in document.entries)


def outside(shape: Shape, value: Any, at: str = "") -> Iterator[str]:
    """What of a strategy as written lies outside its bounds, in phrases."""
    match shape:
        case Fields(fields):
            for name, one in fields.items():
                if name in value:
                    place = f"{at}.{name}" if at else name
                    if isinstance(one, Plain):
                        yield from _outside(one, value, name, place)
                    else:
                        yield from outside(one, value[name], place)
        case Items(element):
            for number, one in enumerate(value):
                yield from outside(element, one, f"{at}[{number}]")
        case Entries():
            return


def _outside(shape: Plain, beside: Strategy, name: str, at: str) -> Iterator[str]:
    value = beside[name]
    if shape.low is not None and (value < shape.low or (value == shape.low and not shape.low_fits)):
        yield f"{at} is {value}: {'at least' if shape.low_fits else 'more than'} {shape.low}"
    if shape.high is not None and value > shape.high:
        yield f"{at} is {value}: at most {shape.high}"
    if shape.below and not (shape.below in beside and value < beside[shape.below]):
        yield f"{at} must be less than {shape.below}, which has to be written beside it"
    if shape.above and not (shape.above in beside and value > beside[shape.above]):
        yield f"{at} must be more than {shape.above}, which has to be written beside it"


# --- shares of the network ------------------------------------------------------------------------


def _network(document: ConfigDocument, system: ConfigDocument) -> Iterator[str]:
    cluster = None if system.cluster is None else system.cluster.get(BANDWIDTH, "0")
    if document.cluster is not None:
        yield from _shares(document.cluster, cluster)
    for entry in document.entries:
        yield from _shares(entry.strategy, _bandwidth(entry, system, cluster or "0"))


def _bandwidth(entry: NodeEntry, system: ConfigDocument, cluster: str) -> str:
    if not system.entries:
        return cluster
    for one in system.entries:
        if one.selector == entry.selector:
            return str(one.strategy.get(BANDWIDTH, "0"))
    return "0"


def _shares(strategy: Strategy, bandwidth: str | None) -> Iterator[str]:
    """`bandwidth` is None where there is none to compare with."""
    said = [(name, strategy.get(name, {}).get("networkQOS", {})) for name in _CLASSES]
    for name, one in said:
        for field in _NETWORK:
            if field in one and not _is_share(one[field]):
                yield f"{name}.networkQOS.{field}: a whole number from 0 to 100, or a quantity"
                return
    kinds = {is_percent(one[field]) for _, one in said for field in _DIRECTIONS if field in one}
    if len(kinds) > 1:
        yield "requests of the network are percentages, or quantities, not both"
    for field in _DIRECTIONS:
        values = [one[field] for _, one in said if field in one]
        total = sum(_nanos(value) for value in values)
        if total > 100 * 10**9:
            yield f"{field}: the requests of all classes are more than 100"
        if bandwidth is not None and total > _nanos(bandwidth):
            yield f"{field}: the requests of all classes are more than {BANDWIDTH}"


def _is_share(value: Any) -> bool:
    if is_percent(value):
        return bool(0 <= value <= 100)
    try:
        parse_quantity(value)
    except QuantityError:
        return False
    return True


def _nanos(value: Any) -> int:
    return parse_quantity(value).nanos


# --- entries that meet ----------------------------------------------------------------------------


def _overlap(key: str, entries: Sequence[NodeEntry]) -> ConfigProblem | None:
    for entry in entries:
        for labels in _label_sets(entry.raw_selector):
            names = _selecting(entries, labels)
            if len(names) > 1:
                return ConfigProblem(OVERLAP, f"{key}: the entries {', '.join(names)} select the same nodes")
    return None


def _label_sets(selector: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Labels that a selector speaks of, whatever it says of them: one value of each expression at a time."""
    base = dict(selector.get("matchLabels") or {})
    expressions = [one for one in selector.get("matchExpressions") or () if one.get("values")]
    named = [one["key"] for one in selector.get("matchExpressions") or () if one.get("operator") == "Exists"]
    count = prod(len(one["values"]) for one in expressions)
    for number in range(min(count, _MOST_LABEL_SETS)):
        chosen = {one["key"]: one["values"][number % len(one["values"])] for one in expressions}
        yield {**base, **dict.fromkeys(named, ""), **chosen}


def _selecting(entries: Iterable[NodeEntry], labels: Mapping[str, str]) -> list[str]:
    return [one.name for one in entries if _selects(one.selector, labels)]


def _selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    return selector is not None and selector.matches(labels)
