"""The table of both languages for the scheduler: which argument of a plugin is which parameter of a SchedulingProfile."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.graph.exchange.carriage import DURATION, SECONDS, Carriage, NotCarriedError

PROFILE: Final = "SchedulingProfile"
PACKED: Final = "koord-scheduler"
"""The profile of the built-in pack, whose parameters are the arguments of these plugins."""
LOAD_AWARE: Final = "LoadAwareScheduling"


def _checked(kind: type, words: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise NotCarriedError(f"`{value}` is no {words}")
        return value

    return check


_flag = _checked(bool, "true or false")
_count = _checked(int, "whole number")
_word = _checked(str, "text")
_entries = _checked(list, "list")
_mapping = _checked(dict, "mapping")


def _each(write: Callable[[Any], Any], show: Callable[[Any], Any]) -> Carriage:
    """A mapping by resource, value for value."""
    return Carriage(
        lambda value: {_word(key): write(one) for key, one in _mapping(value).items()},
        lambda value: {key: show(one) for key, one in value.items()},
    )


def _field(entry: Any, name: str, otherwise: Any = None) -> Any:
    value = _mapping(entry).get(name, otherwise)
    if value is None:
        raise NotCarriedError(f"an entry lacks `{name}`")
    return value


def _duration(text: Any) -> str:
    try:
        return str(DURATION.write(_word(text)))
    except ValueError as error:
        raise NotCarriedError(str(error)) from None


def _single(weight: Any) -> Any:
    if weight != 1:
        raise NotCarriedError("a weight that is not 1 is refused by kube-scheduler")
    return weight


FLAG: Final = Carriage(_flag, bool)
COUNT: Final = Carriage(_count, int)
WORD: Final = Carriage(_word, str)
SHARE: Final = Carriage(lambda value: f"{_count(value)}%", int)
SHARES: Final = _each(lambda value: f"{_count(value)}%", int)
COUNTS: Final = _each(_count, int)
TEXTS: Final = Carriage(lambda value: [_word(one) for one in _entries(value)], list)
TIME: Final = Carriage(lambda value: SECONDS.write(_count(value)), SECONDS.show)
WINDOW: Final = Carriage(_duration, DURATION.show)
AGGREGATION: Final = Carriage(
    lambda value: _word(value) or "last", lambda value: "" if value == "last" else value
)
WEIGHTS: Final = Carriage(
    lambda value: {
        _word(_field(one, "name")): _count(_field(one, "weight", 0)) or 1 for one in _entries(value)
    },
    lambda value: [{"name": name, "weight": weight} for name, weight in value.items()],
)
NAMES: Final = Carriage(
    lambda value: [
        _word(_field(one, "name")) for one in _entries(value) if _single(_field(one, "weight", 0) or 1)
    ],
    lambda value: [{"name": name, "weight": 1} for name in value],
)
SHAPE: Final = Carriage(
    lambda value: {
        f"{_count(_field(one, 'utilization', 0))}%": _count(_field(one, "score", 0))
        for one in _entries(value)
    },
    lambda value: [{"utilization": int(key.rstrip("%")), "score": score} for key, score in value.items()],
)
TYPES: Final = _each(lambda value: _word(_field(value, "type")), lambda value: {"type": value})
TYPE_WEIGHTS: Final = _each(lambda value: _count(_field(value, "weight", 0)), lambda value: {"weight": value})


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a plugin (its path in the arguments) and the parameter that says it.

    `otherwise` is what kube-scheduler takes where nothing is said, if that is not what the built-in pack says.
    """

    plugin: str
    path: tuple[str, ...]
    parameter: str
    carriage: Carriage
    otherwise: Any = None


def _arguments(plugin: str, *rows: tuple[str, str, Carriage] | tuple[str, Carriage]) -> Iterator[Argument]:
    for path, *rest in rows:
        steps = tuple(path.split("."))
        *named, carriage = rest
        assert isinstance(carriage, Carriage)
        yield Argument(plugin, steps, str(named[0]) if named else steps[-1], carriage)


ARGUMENTS: Final[tuple[Argument, ...]] = (
    *_arguments(
        LOAD_AWARE,
        ("filterExpiredNodeMetrics", FLAG),
        ("nodeMetricExpirationSeconds", "nodeMetricExpiration", TIME),
        ("enableScheduleWhenNodeMetricsExpired", FLAG),
        ("resourceWeights", COUNTS),
        ("dominantResourceWeight", COUNT),
        ("usageThresholds", SHARES),
        ("prodUsageThresholds", SHARES),
        ("prodUsageIncludeSys", FLAG),
        ("scoreAccordingProdUsage", FLAG),
        ("estimatedScalingFactors", SHARES),
        ("estimatedSecondsAfterPodScheduled", "estimatedAfterPodScheduled", TIME),
        ("estimatedSecondsAfterInitialized", "estimatedAfterInitialized", TIME),
        ("allowCustomizeEstimation", FLAG),
        ("aggregated.usageThresholds", "aggregatedUsageThresholds", SHARES),
        ("aggregated.usageAggregationType", AGGREGATION),
        ("aggregated.usageAggregatedDuration", WINDOW),
        ("aggregated.scoreAggregationType", AGGREGATION),
        ("aggregated.scoreAggregatedDuration", WINDOW),
        ("supportedResources", TEXTS),
    ),
    *_arguments(
        "NodeResourcesFit",
        ("ignoredResources", TEXTS),
        ("ignoredResourceGroups", TEXTS),
        ("scoringStrategy.type", "fitStrategy", WORD),
    ),
    Argument(
        "NodeResourcesFit",
        ("scoringStrategy", "resources"),
        "fitWeights",
        WEIGHTS,
        [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    ),
    *_arguments("NodeResourcesFit", ("scoringStrategy.requestedToCapacityRatio.shape", "fitShape", SHAPE)),
    *_arguments("NodeNUMAResource", ("scoringStrategy.type", "zoneStrategy", WORD)),
    Argument(
        "NodeNUMAResource",
        ("scoringStrategy", "resources"),
        "zoneWeights",
        WEIGHTS,
        [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    ),
    *_arguments("NodeResourcesBalancedAllocation", ("resources", "balancedResources", NAMES)),
    *_arguments(
        "InterPodAffinity",
        ("hardPodAffinityWeight", COUNT),
        ("ignorePreferredTermsOfExistingPods", FLAG),
    ),
    *_arguments("VolumeBinding", ("bindTimeoutSeconds", "bindTimeout", TIME)),
    *_arguments(
        "DefaultPreemption", ("minCandidateNodesPercentage", SHARE), ("minCandidateNodesAbsolute", COUNT)
    ),
    *_arguments(
        "NodeResourcesFitPlus",
        ("resources", "fitPlusStrategies", TYPES),
        ("resources", "fitPlusWeights", TYPE_WEIGHTS),
    ),
    *_arguments("ScarceResourceAvoidance", ("resources", "scarceResources", TEXTS)),
)

SAYS_NOTHING: Final[Mapping[tuple[str, str], tuple[Any, ...]]] = {
    (LOAD_AWARE, "estimator"): ("", "defaultEstimator"),
    ("PodTopologySpread", "defaultingType"): ("System", "List"),
}
"""Values of further arguments that need no parameter of their own."""


# --- default constraints of even spread -----------------------------------------------------------

SPREAD: Final = "PodTopologySpread"
SPREAD_PARAMETERS: Final = ("preferredSpread", "requiredSpread", "spreadOverUnlabelled")
_MODES: Final = {"ScheduleAnyway": "preferredSpread", "DoNotSchedule": "requiredSpread"}


def write_spread(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of default constraints; none where those of the system are meant. Raises `NotCarriedError`."""
    if arguments.get("defaultingType", "System") != "List":
        return {}
    found: dict[str, Any] = {"preferredSpread": {}, "requiredSpread": {}, "spreadOverUnlabelled": False}
    for one in _entries(arguments.get("defaultConstraints") or []):
        mode = _field(one, "whenUnsatisfiable")
        if mode not in _MODES:
            raise NotCarriedError(f"`{mode}` is none of {', '.join(f'`{known}`' for known in _MODES)}")
        others = sorted(set(one) - {"whenUnsatisfiable", "topologyKey", "maxSkew"})
        if others:
            raise NotCarriedError(f"default constraints have no `{others[0]}` in policies")
        place = found[_MODES[mode]]
        key = _word(_field(one, "topologyKey"))
        if key in place:
            raise NotCarriedError(f"`{key}` stands there twice")
        place[key] = _count(_field(one, "maxSkew"))
    return found


def show_spread(preferred: Mapping[str, int], required: Mapping[str, int]) -> dict[str, Any]:
    """The arguments that say these constraints, for nodes that have the labels."""
    return {
        "defaultingType": "List",
        "defaultConstraints": [
            {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": mode}
            for mode, constraints in zip(_MODES, (preferred, required), strict=True)
            for key, skew in constraints.items()
        ],
    }
