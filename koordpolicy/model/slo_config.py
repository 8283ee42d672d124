"""The documents of Koordinator's ConfigMap `slo-controller-config`: what may stand in them, and how it is read.

Each document says a strategy for the cluster and others for some nodes. Reading is as strict as the reference's: a value
of the wrong type makes the whole document unreadable, an unknown key is passed over, `null` is as absent.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NoReturn

from koordpolicy.model.labels import LabelSelector, read_selector
from koordpolicy.model.quantity import QuantityError, parse_quantity
from koordpolicy.model.reading import ObjectError, parse_json
from koordpolicy.model.time import parse_duration

CONFIG_MAP: Final = "slo-controller-config"

COLOCATION: Final = "colocation-config"
THRESHOLD: Final = "resource-threshold-config"
QOS: Final = "resource-qos-config"
BURST: Final = "cpu-burst-config"
SYSTEM: Final = "system-config"
HOST_APPLICATIONS: Final = "host-application-config"
NORMALIZATION: Final = "cpu-normalization-config"
AMPLIFICATION: Final = "resource-amplification-config"

BANDWIDTH: Final = "totalNetworkBandwidth"
"""The one field that is always written: where an entry does not say it, it says 0."""


class FieldForm(StrEnum):
    """What a plain field holds."""

    FLAG = "true or false"
    WHOLE = "a whole number of 64 bits"
    SMALL = "a whole number of 32 bits"
    NUMBER = "a number"
    WORD = "a text, of which the empty one is as absent"
    TEXT = "a text"
    DURATION = "a duration"
    QUANTITY = "a quantity"
    SHARE = "a whole number of percent, or a quantity"
    ANYTHING = "anything"


@dataclass(frozen=True, slots=True)
class Plain:
    """A plain field. `low` and `high` bound it; it must be above and below the fields so named beside it.

    `low_fits` tells whether the lower bound itself will do.
    """

    form: FieldForm
    low: float | None = None
    high: float | None = None
    above: str = ""
    below: str = ""
    low_fits: bool = True


@dataclass(frozen=True, slots=True)
class Fields:
    """An object with these fields."""

    fields: Mapping[str, "Shape"]


@dataclass(frozen=True, slots=True)
class Items:
    """A list of such elements."""

    element: "Shape"


@dataclass(frozen=True, slots=True)
class Entries:
    """An object with any keys and such values."""

    value: "Shape"


Shape = Plain | Fields | Items | Entries
Strategy = Mapping[str, Any]
"""A strategy as read: fields that are absent do not stand in it."""


class ConfigError(ValueError):
    """A document that cannot be read. The message names the place."""


def _percent(**more: Any) -> Plain:
    return Plain(FieldForm.WHOLE, 0, 100, **more)


def _whole(low: float | None = None, high: float | None = None, **more: Any) -> Plain:
    return Plain(FieldForm.WHOLE, low, high, **more)


def _pair(low: str, high: str, bound: float | None) -> dict[str, Shape]:
    """Two fields of which the first must be below the second."""
    return {low: _whole(0, bound, below=high), high: _whole(0, bound, above=low)}


_FLAG: Final = Plain(FieldForm.FLAG)
_WORD: Final = Plain(FieldForm.WORD)
_TEXT: Final = Plain(FieldForm.TEXT)

_COLOCATION: Final = Fields(
    {
        "enable": _FLAG,
        "metricAggregateDurationSeconds": _whole(1),
        "metricReportIntervalSeconds": _whole(1),
        "metricAggregatePolicy": Fields({"durations": Items(Plain(FieldForm.DURATION))}),
        "metricMemoryCollectPolicy": _TEXT,
        "cpuReclaimThresholdPercent": _whole(0),
        "cpuCalculatePolicy": _TEXT,
        "memoryReclaimThresholdPercent": _whole(0),
        "memoryCalculatePolicy": _TEXT,
        "degradeTimeMinutes": _whole(1),
        "updateTimeThresholdSeconds": _whole(1),
        "resourceDiffThreshold": Plain(FieldForm.NUMBER, 0, 1, low_fits=False),
        "midReclaimMode": _TEXT,
        "midCPUThresholdPercent": _percent(),
        "midMemoryThresholdPercent": _percent(),
        "midUnallocatedPercent": _percent(),
        "midStaticCPUReservedPercent": _percent(),
        "midStaticMemoryReservedPercent": _percent(),
        "batchCPUThresholdPercent": _whole(0),
        "batchMemoryThresholdPercent": _whole(0),
        "extensions": Entries(Plain(FieldForm.ANYTHING)),
    }
)
_THRESHOLD: Final = Fields(
    {
        "enable": _FLAG,
        "cpuSuppressThresholdPercent": _percent(),
        "cpuSuppressMinPercent": _percent(),
        "cpuSuppressPolicy": _WORD,
        **_pair("memoryEvictLowerPercent", "memoryEvictThresholdPercent", 100),
        **_pair("memoryAllocatableEvictLowerPercent", "memoryAllocatableEvictThresholdPercent", None),
        **_pair("cpuEvictBESatisfactionLowerPercent", "cpuEvictBESatisfactionUpperPercent", 100),
        "cpuEvictBEUsageThresholdPercent": _percent(),
        "cpuEvictTimeWindowSeconds": _whole(0, low_fits=False),
        **_pair("cpuEvictLowerPercent", "cpuEvictThresholdPercent", 100),
        **_pair("cpuAllocatableEvictLowerPercent", "cpuAllocatableEvictThresholdPercent", None),
        "cpuEvictPolicy": _WORD,
        "evictEnabledPriorityThreshold": Plain(FieldForm.SMALL),
        "allocatableEvictPriorityThreshold": Plain(FieldForm.SMALL, 0, 7999),
    }
)
_BLOCK: Final = Fields(
    {
        "name": _WORD,
        "type": _WORD,
        "ioCfg": Fields(
            {
                **{
                    name: _whole()
                    for name in [
                        "readIOPS",
                        "writeIOPS",
                        "readBPS",
                        "writeBPS",
                        "ioWeightPercent",
                        "readLatency",
                        "writeLatency",
                        "readLatencyPercent",
                        "writeLatencyPercent",
                        "modelReadBPS",
                        "modelWriteBPS",
                        "modelReadSeqIOPS",
                        "modelWriteSeqIOPS",
                        "modelReadRandIOPS",
                        "modelWriteRandIOPS",
                    ]
                },
                "enableUserModel": _FLAG,
            }
        ),
    }
)
_CLASS: Final = Fields(
    {
        "cpuQOS": Fields(
            {
                "enable": _FLAG,
                "groupIdentity": _whole(-1, 2),
                "schedIdle": _whole(0, 1),
                "coreExpeller": _FLAG,
            }
        ),
        "memoryQOS": Fields(
            {
                "enable": _FLAG,
                "minLimitPercent": _percent(),
                "lowLimitPercent": _percent(),
                "throttlingPercent": _percent(),
                "wmarkRatio": _percent(),
                "wmarkScalePermill": _whole(1, 1000),
                "wmarkMinAdj": _whole(-25, 50),
                "priorityEnable": _whole(0, 1),
                "priority": _whole(0, 12),
                "oomKillGroup": _whole(0, 1),
                "pageCacheEnable": _FLAG,
                "pageCacheLimitPercent": _percent(),
                "pageCacheLimitSize": _whole(),
                "pageCacheReclaimSync": _FLAG,
            }
        ),
        "blkioQOS": Fields({"enable": _FLAG, "blocks": Items(_BLOCK)}),
        "resctrlQOS": Fields(
            {
                "enable": _FLAG,
                **_pair("catRangeStartPercent", "catRangeEndPercent", 100),
                "mbaPercent": _percent(),
            }
        ),
        "networkQOS": Fields(
            {
                "enable": _FLAG,
                **{
                    name: Plain(FieldForm.SHARE)
                    for name in ("ingressRequest", "ingressLimit", "egressRequest", "egressLimit")
                },
            }
        ),
    }
)
_QOS: Final = Fields(
    {
        "policies": Fields({"cpuPolicy": _TEXT, "netQOSPolicy": _TEXT}),
        **dict.fromkeys(("lsrClass", "lsClass", "beClass", "systemClass", "cgroupRoot"), _CLASS),
    }
)
_BURST: Final = Fields(
    {
        "policy": _WORD,
        "cpuBurstPercent": _whole(1, 10_000),
        "cfsQuotaBurstPercent": _whole(100),
        "cfsQuotaBurstPeriodSeconds": _whole(-1),
        "sharePoolThresholdPercent": _percent(),
    }
)
_SYSTEM: Final = Fields(
    {
        "minFreeKbytesFactor": _whole(0, low_fits=False),
        "watermarkScaleFactor": _whole(1, 400),
        "memcgReapBackGround": _whole(0, 1),
        "schedGroupIdentityEnabled": _whole(),
        "schedIdleSaverWmark": _whole(),
        "schedFeatures": Entries(_FLAG),
        "pageCacheLimitEnabled": _whole(0, 1),
        BANDWIDTH: Plain(FieldForm.QUANTITY),
    }
)
_APPLICATION: Final = Fields(
    {
        "name": _WORD,
        "priority": _WORD,
        "qos": _WORD,
        "cgroupPath": Fields({"base": _WORD, "parentDir": _WORD, "relativePath": _WORD}),
        "strategy": Fields({}),
    }
)
_RATIO: Final = Plain(FieldForm.NUMBER)
_NORMALIZATION: Final = Fields(
    {
        "enable": _FLAG,
        "defaultRatio": _RATIO,
        "ratioModel": Entries(
            Fields(
                {
                    "baseRatio": _RATIO,
                    "turboEnabledRatio": _RATIO,
                    "hyperThreadEnabledRatio": _RATIO,
                    "hyperThreadTurboEnabledRatio": _RATIO,
                }
            )
        ),
    }
)
_AMPLIFICATION: Final = Fields({"enable": _FLAG, "resourceAmplificationRatio": Entries(_RATIO)})


@dataclass(frozen=True, slots=True)
class Layout:
    """How a document is laid out: the shape of its strategies, where that of the cluster and those of nodes stand.

    Where `cluster` is empty, its fields stand beside the entries.
    """

    strategy: Fields
    cluster: str
    entries: str


LAYOUTS: Final[Mapping[str, Layout]] = MappingProxyType(
    {
        COLOCATION: Layout(_COLOCATION, "", "nodeConfigs"),
        THRESHOLD: Layout(_THRESHOLD, "clusterStrategy", "nodeStrategies"),
        QOS: Layout(_QOS, "clusterStrategy", "nodeStrategies"),
        SYSTEM: Layout(_SYSTEM, "clusterStrategy", "nodeStrategies"),
        BURST: Layout(_BURST, "clusterStrategy", "nodeStrategies"),
        HOST_APPLICATIONS: Layout(Fields({"applications": Items(_APPLICATION)}), "", "nodeConfigs"),
        NORMALIZATION: Layout(_NORMALIZATION, "", "nodeConfigs"),
        AMPLIFICATION: Layout(_AMPLIFICATION, "", "nodeConfigs"),
    }
)
"""The documents that are understood, by their key in the ConfigMap, in the order in which they are checked."""

SWITCHED_OFF: Final = (COLOCATION, THRESHOLD, NORMALIZATION, AMPLIFICATION)
"""The documents whose `enable` is false where it does not stand."""
NEVER_NULL: Final = (COLOCATION, NORMALIZATION, AMPLIFICATION)
"""The documents that cannot be `null`: Koordinator's manager ends over one that is."""


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """What a document says for some nodes. `selector` is None where there is none, or none that can be read.

    `raw_selector` is the selector as written. `empty` tells an entry that says nothing but its name and selector.
    """

    name: str
    selector: LabelSelector | None
    strategy: Strategy
    raw_selector: Any = None
    empty: bool = False


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """A document as written: nothing is merged yet. `cluster` is None where there is no such part."""

    cluster: Strategy | None = None
    entries: tuple[NodeEntry, ...] = field(default=())


def read_document(key: str, text: str) -> ConfigDocument | None:
    """A document of the ConfigMap by its key; None for the text `null`. Raises ConfigError."""
    try:
        raw = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{key}: not JSON: {error}") from None
    if raw is None:
        return None
    layout = LAYOUTS[key]
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{key}: expected an object")
    cluster: Strategy | None
    if layout.cluster:
        given = _found(raw, layout.cluster)
        cluster = None if given is None else read(layout.strategy, given, f"{key}.{layout.cluster}")
    else:
        cluster = read(layout.strategy, raw, key)
    return ConfigDocument(cluster, tuple(_entries(layout, raw, key)))


def _entries(layout: Layout, raw: Mapping[str, Any], key: str) -> Iterator[NodeEntry]:
    given = _found(raw, layout.entries)
    if given is None:
        return
    if not isinstance(given, list):
        raise ConfigError(f"{key}.{layout.entries}: expected a list")
    for number, raw_entry in enumerate(given):
        at = f"{key}.{layout.entries}[{number}]"
        one = {} if raw_entry is None else raw_entry
        if not isinstance(one, Mapping):
            raise ConfigError(f"{at}: expected an object")
        name = _found(one, "name")
        if not isinstance(name, str | None):
            raise ConfigError(f"{at}.name: expected a text")
        raw_selector = _found(one, "nodeSelector")
        said = any(_known(layout.strategy.fields, key) for key in one)
        yield NodeEntry(
            name or "",
            _selector(raw_selector, at),
            read(layout.strategy, one, at),
            raw_selector,
            empty=not said,
        )


def _selector(raw: Any, at: str) -> LabelSelector | None:
    """The selector, None without one; one that has the right types and makes no sense selects nothing."""
    if raw is None:
        return None
    _read_selector_types(raw, f"{at}.nodeSelector")
    try:
        return read_selector(raw, f"{at}.nodeSelector")
    except ObjectError:
        return None


def _read_selector_types(raw: Any, at: str) -> None:
    shape = Fields(
        {
            "matchLabels": Entries(_TEXT),
            "matchExpressions": Items(Fields({"key": _TEXT, "operator": _TEXT, "values": Items(_TEXT)})),
        }
    )
    read(shape, raw, at)


def read(shape: Fields, raw: Any, at: str = "") -> dict[str, Any]:
    """The known fields of an object. Raises ConfigError."""
    if not isinstance(raw, Mapping):
        _wrong(at, "an object")
    found: dict[str, Any] = {}
    for key, value in raw.items():
        name = _known(shape.fields, key)
        if name is not None and value is not None:
            found[name] = _value(shape.fields[name], value, f"{at}.{name}")
    return found


def _known(names: Iterable[str], key: str) -> str | None:
    """The field that a key means: the one of that name, else one that differs in capitals alone, as in Go."""
    names = list(names)
    if key in names:
        return key
    return next((name for name in names if name.lower() == key.lower()), None)


def _found(raw: Mapping[str, Any], name: str) -> Any:
    return next((value for key, value in raw.items() if _known((name,), key)), None)


def _value(shape: Shape, raw: Any, at: str) -> Any:
    match shape:
        case Fields():
            return read(shape, raw, at)
        case Items(element):
            if not isinstance(raw, list):
                _wrong(at, "a list")
            return [
                {} if one is None else _value(element, one, f"{at}[{number}]")
                for number, one in enumerate(raw)
            ]
        case Entries(value):
            if not isinstance(raw, Mapping):
                _wrong(at, "an object")
            return {key: _value(value, one, f"{at}.{key}") for key, one in raw.items() if one is not None}
        case Plain():
            return _plain(shape.form, raw, at)


_WHOLES: Final = MappingProxyType({FieldForm.WHOLE: 63, FieldForm.SMALL: 31})


def _plain(form: FieldForm, raw: Any, at: str) -> Any:
    whole = isinstance(raw, int) and not isinstance(raw, bool)
    match form:
        case FieldForm.ANYTHING:
            return raw
        case FieldForm.FLAG if isinstance(raw, bool):
            return raw
        case FieldForm.WHOLE | FieldForm.SMALL if whole and -(2 ** _WHOLES[form]) <= raw < 2 ** _WHOLES[form]:
            return raw
        case FieldForm.NUMBER if whole or isinstance(raw, float):
            return float(raw)
        case FieldForm.WORD | FieldForm.TEXT if isinstance(raw, str):
            return raw
        case FieldForm.DURATION if isinstance(raw, str):
            try:
                return duration_text(parse_duration(raw))
            except ValueError as error:
                raise ConfigError(f"{at}: {error}") from None
        case FieldForm.QUANTITY if not isinstance(raw, bool):
            try:
                return str(parse_quantity(raw))
            except QuantityError as error:
                raise ConfigError(f"{at}: {error}") from None
        case FieldForm.SHARE if isinstance(raw, str) or (whole and -(2**31) <= raw < 2**31):
            return raw
    raise ConfigError(f"{_place(at)}: expected {form.value}")


def duration_text(nanoseconds: int) -> str:
    """A duration as Go writes it: `5m0s`, `1h0m0s`, `1.5s`, `0s`."""
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if rest == 0:
        return "0s"
    for unit, size in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
        if rest < size * 1000:
            return f"{sign}{_decimal(rest, size)}{unit}"
    minutes, part = divmod(rest, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(part, 10**9)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _decimal(number: int, size: int) -> str:
    whole, rest = divmod(number, size)
    digits = str(rest).rjust(len(str(size)) - 1, "0").rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)


def is_percent(share: Any) -> bool:
    """Whether a share of the network is written in percent; else it is a quantity."""
    return isinstance(share, int)


def _wrong(at: str, words: str) -> NoReturn:
    raise ConfigError(f"{_place(at)}: expected {words}")


def _place(at: str) -> str:
    return at.removeprefix(".")
