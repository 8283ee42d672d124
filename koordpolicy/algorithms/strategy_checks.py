"""What is wrong with the documents of `slo-controller-config`, as written: bounds, selectors, entries that meet."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.selector_overlap import (
    ComparisonLimitError,
    Comparisons,
    SelectorIndex,
    label_sets,
)
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
_MOST_NAMES: Final = 10
"""Entries that one message names."""


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
    system_needed: bool = False,
) -> ConfigProblem | None:
    """The first thing that is wrong with what changed from `old`; None for nothing.

    `named` asks for names of entries that are unique; `system_needed` asks, as Koordinator does, for a document
    `system-config` beside a changed `resource-qos-config`: without one, shares of the network are otherwise compared with no
    bandwidth. `nodes` are those of the cluster. What would take too long to compare is a problem as well.
    """
    comparisons = Comparisons()
    try:
        return _first(data, old, nodes, comparisons, named=named, system_needed=system_needed)
    except ComparisonLimitError:
        return ConfigProblem(
            INVALID,
            "the selectors stand for more sets of labels than can be compared with each other:"
            " write fewer entries, or fewer values in their expressions",
        )


def meeting_on(data: Mapping[str, str], node: CheckedNode) -> ConfigProblem | None:
    """A document of which more than one entry selects a node. What cannot be read is passed over, and so is what would
    take too long to compare: the ConfigMap is to blame for it, not the node.
    """
    for key in CHECKED:
        try:
            document = read_document(key, data.get(key, "") or "null") or ConfigDocument()
            problem = _meeting({key: document}, (node,), Comparisons())
        except (ConfigError, ComparisonLimitError):
            continue
        if problem is not None:
            return problem
    return None


def _first(
    data: Mapping[str, str],
    old: Mapping[str, str],
    nodes: Iterable[CheckedNode],
    comparisons: Comparisons,
    *,
    named: bool,
    system_needed: bool,
) -> ConfigProblem | None:
    several: dict[str, ConfigDocument] = {}
    for key in CHECKED:
        text = data.get(key, "")
        if not text or text == old.get(key):
            continue
        try:
            document = read_document(key, text) or ConfigDocument()
            system = _system(data, needed=system_needed) if key == QOS else None
        except ConfigError as error:
            return ConfigProblem(PARSE, str(error))
        problem = _check(key, document, system, comparisons, named=named)
        if problem is not None:
            return problem
        if len(document.entries) > 1:
            several[key] = document
    return _meeting(several, nodes, comparisons)


def _system(data: Mapping[str, str], *, needed: bool) -> ConfigDocument | None:
    text = data.get(SYSTEM, "")
    return read_document(SYSTEM, text) or ConfigDocument() if text or needed else None


def _meeting(
    documents: Mapping[str, ConfigDocument], nodes: Iterable[CheckedNode], comparisons: Comparisons
) -> ConfigProblem | None:
    """A node that more than one entry of a document selects."""
    if not documents:
        return None
    indexes = {key: SelectorIndex([one.selector for one in documents[key].entries]) for key in documents}
    keys = frozenset(label for index in indexes.values() for label in index.keys)
    seen: set[frozenset[tuple[str, str]]] = set()
    for node in nodes:
        labels = {key: node.labels[key] for key in keys & node.labels.keys()}
        alike = frozenset(labels.items())
        if alike in seen:
            continue
        seen.add(alike)
        for key, index in indexes.items():
            found = index.matching(labels, comparisons)
            if len(found) > 1:
                names = _names(documents[key].entries, found)
                return ConfigProblem(CONFLICT, f"{key}: the entries {names} all select the node {node.name}")
    return None


def _check(
    key: str,
    document: ConfigDocument,
    system: ConfigDocument | None,
    comparisons: Comparisons,
    *,
    named: bool,
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
    if key == QOS:
        for words in _network(document, system):
            return ConfigProblem("", f"{key}: {words}")
    if named:
        names = Counter(entry.name for entry in document.entries)
        for name, count in names.items():
            if not name or count > 1:
                words = f"`{name}` names {count} entries" if name else "an entry has no name"
                return ConfigProblem(INVALID, f"{key}: {words}")
    return _overlap(key, document.entries, comparisons)


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


def _network(document: ConfigDocument, system: ConfigDocument | None) -> Iterator[str]:
    cluster = None if system is None or system.cluster is None else system.cluster.get(BANDWIDTH, "0")
    if document.cluster is not None:
        yield from _shares(document.cluster, cluster)
    said: dict[LabelSelector | None, str] = {}
    for one in () if system is None else system.entries:
        said.setdefault(one.selector, str(one.strategy.get(BANDWIDTH, "0")))
    for entry in document.entries:
        if system is None:
            yield from _shares(entry.strategy, None)
        else:
            yield from _shares(entry.strategy, said.get(entry.selector, "0") if said else cluster or "0")


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


def _overlap(key: str, entries: Sequence[NodeEntry], comparisons: Comparisons) -> ConfigProblem | None:
    index = SelectorIndex([one.selector for one in entries])
    for entry in entries:
        for labels in label_sets(entry.raw_selector):
            found = index.matching(labels, comparisons)
            if len(found) > 1:
                return ConfigProblem(
                    OVERLAP, f"{key}: the entries {_names(entries, found)} select the same nodes"
                )
    return None


def _names(entries: Sequence[NodeEntry], found: Sequence[int]) -> str:
    said = ", ".join(entries[at].name for at in found[:_MOST_NAMES])
    return said if len(found) <= _MOST_NAMES else f"{said} and {len(found) - _MOST_NAMES} more"
