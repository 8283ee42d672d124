"""KubeSchedulerConfiguration, as kube-scheduler and koord-scheduler read it: which plugins a profile has at work, and their arguments.

Source: kube-scheduler's API `kubescheduler.config.k8s.io/v1` and how its framework expands `multiPoint`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

KIND: Final = "KubeSchedulerConfiguration"
API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
EVERY: Final = "*"
"""Stands, among disabled plugins, for all that are there by default."""
DEFAULT_SCHEDULER: Final = "default-scheduler"

POINTS: Final = (
    *("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score"),
    *("reserve", "permit", "preBind", "bind", "postBind"),
)
"""Extension points that a profile may speak of beside `multiPoint`."""

STOCK: Final[Mapping[str, int]] = MappingProxyType(
    {
        "SchedulingGates": 0,
        "PrioritySort": 0,
        "NodeUnschedulable": 0,
        "NodeName": 0,
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodePorts": 0,
        "NodeResourcesFit": 1,
        "VolumeRestrictions": 0,
        "NodeVolumeLimits": 0,
        "VolumeBinding": 0,
        "VolumeZone": 0,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DefaultPreemption": 0,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "DefaultBinder": 0,
    }
)
"""What kube-scheduler has at work everywhere unless a profile says otherwise, with weights; 0 where none is said."""


class SchedulerConfigError(ValueError):
    """A configuration that kube-scheduler would not read. The message says where and why."""


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What a profile says of one extension point: plugins by name with their weights, and those that it takes away."""

    enabled: Mapping[str, int]
    disabled: frozenset[str]


SILENT: Final = PluginSet(MappingProxyType({}), frozenset())
"""Of a point that a profile does not speak of."""


@dataclass(frozen=True, slots=True)
class SchedulerProfile:
    """One profile. `share` is its percentageOfNodesToScore, None where it does not say one."""

    name: str
    everywhere: PluginSet
    points: Mapping[str, PluginSet]
    arguments: Mapping[str, Mapping[str, Any]]
    share: int | None

    def at(self, point: str) -> dict[str, int]:
        """The plugins that may be at work at an extension point, with their weights.

        Those of `multiPoint` count for every point: which of them have a part there, the caller knows.
        """
        here = self.points.get(point, SILENT)
        found = dict(here.enabled)
        if EVERY in here.disabled:
            return found
        for name, weight in _merged(STOCK, self.everywhere).items():
            if name not in here.disabled:
                found.setdefault(name, weight)
        return found

    def named(self) -> Iterator[tuple[str, str]]:
        """Each plugin that the profile itself switches on, once, and the first point where it does."""
        seen: set[str] = set()
        for point, plugins in (("multiPoint", self.everywhere), *self.points.items()):
            for name in plugins.enabled:
                if name not in seen:
                    seen.add(name)
                    yield name, point


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """The profiles, and what holds for all of them, as written, by field."""

    profiles: tuple[SchedulerProfile, ...]
    fields: Mapping[str, Any]


def read_scheduler_config(obj: Mapping[str, Any]) -> SchedulerConfig:
    """A configuration. Raises `SchedulerConfigError`."""
    fields = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "profiles")}
    given = _list(obj.get("profiles"), "profiles") or [{}]
    profiles = tuple(_profile(one, f"profiles[{number}]") for number, one in enumerate(given))
    names = [one.name for one in profiles]
    for name in names:
        if names.count(name) > 1:
            raise SchedulerConfigError(f"profiles: two are called `{name}`")
    return SchedulerConfig(profiles, fields)


def _profile(given: Any, place: str) -> SchedulerProfile:
    data = _map(given, place)
    plugins = _map(data.get("plugins"), f"{place}.plugins")
    arguments: dict[str, Mapping[str, Any]] = {}
    for number, one in enumerate(_list(data.get("pluginConfig"), f"{place}.pluginConfig")):
        at = f"{place}.pluginConfig[{number}]"
        entry = _map(one, at)
        name = _text(entry.get("name"), f"{at}.name")
        if name in arguments:
            raise SchedulerConfigError(f"{at}: `{name}` has arguments already")
        arguments[name] = {
            key: value
            for key, value in _map(entry.get("args"), f"{at}.args").items()
            if key not in ("apiVersion", "kind")
        }
    share = data.get("percentageOfNodesToScore")
    if share is not None and not _is_share(share):
        raise SchedulerConfigError(f"{place}.percentageOfNodesToScore: `{share}` is no number from 0 to 100")
    return SchedulerProfile(
        name=_text(data.get("schedulerName", DEFAULT_SCHEDULER), f"{place}.schedulerName"),
        everywhere=_plugins(plugins.get("multiPoint"), f"{place}.plugins.multiPoint"),
        points={
            point: _plugins(plugins[point], f"{place}.plugins.{point}")
            for point in POINTS
            if point in plugins
        },
        arguments=arguments,
        share=share,
    )


def _plugins(given: Any, place: str) -> PluginSet:
    data = _map(given, place)
    enabled: dict[str, int] = {}
    for number, one in enumerate(_list(data.get("enabled"), f"{place}.enabled")):
        entry = _map(one, f"{place}.enabled[{number}]")
        weight = entry.get("weight", 0)
        if isinstance(weight, bool) or not isinstance(weight, int):
            raise SchedulerConfigError(f"{place}.enabled[{number}].weight: `{weight}` is no whole number")
        enabled[_text(entry.get("name"), f"{place}.enabled[{number}].name")] = weight
    disabled = frozenset(
        _text(_map(one, f"{place}.disabled").get("name"), f"{place}.disabled")
        for one in _list(data.get("disabled"), f"{place}.disabled")
    )
    return PluginSet(enabled, disabled)


def _merged(defaults: Mapping[str, int], said: PluginSet) -> dict[str, int]:
    """What is there by default without what is taken away, and what is added, in whose words it is said last."""
    kept = (
        {}
        if EVERY in said.disabled
        else {name: weight for name, weight in defaults.items() if name not in said.disabled}
    )
    return {**kept, **said.enabled}


def _is_share(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 100


def _map(value: Any, place: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise SchedulerConfigError(f"{place}: this is no mapping")
    return value


def _list(value: Any, place: str) -> Sequence[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise SchedulerConfigError(f"{place}: this is no list")
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise SchedulerConfigError(f"{place}: a name is missing")
    return value
