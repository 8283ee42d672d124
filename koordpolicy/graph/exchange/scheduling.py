"""A KubeSchedulerConfiguration as SchedulingProfile policies.

The built-in pack's profile has the plugins of koord-scheduler as filters and scores, called as they are there, and their
arguments as parameters. What a configuration says otherwise is laid over it; a profile of another name is a copy of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.graph.exchange.arguments import (
    ARGUMENTS,
    PACKED,
    PROFILE,
    SAYS_NOTHING,
    SPREAD,
    Argument,
    write_spread,
)
from koordpolicy.graph.exchange.carriage import NotCarriedError
from koordpolicy.graph.exchange.documents import API_VERSION, SOURCE, Imported, Taken
from koordpolicy.graph.exchange.kind_arguments import (
    FIELDS_ALONE,
    KIND_ARGUMENTS,
    KIND_OF,
    KindDocuments,
)
from koordpolicy.graph.graph import Item, RuleGraph
from koordpolicy.model.scheduler_config import (
    KIND,
    SchedulerConfig,
    SchedulerConfigError,
    SchedulerProfile,
    read_scheduler_config,
)

_HINT: Final = "SchedulingHint"
_HINT_TEXT: Final = (
    "hints are followed anyhow; preferredNodes says how many of the nodes that one prefers are tried"
)
WHOLE: Final = frozenset({"Coscheduling", "ElasticQuota", "Reservation", "NodeNUMAResource", "DeviceShare"})
"""Plugins that are one filter here with all that they do elsewhere: they are on where any extension point names them."""
_EVERYWHERE: Final = frozenset({"SchedulingGates", "PrioritySort", "DefaultBinder", "DefaultPreBind"})
"""Plugins whose part every profile of koordpolicy has."""
PART_OF: Final = {"AmplifiedCPU": "NodeNUMAResource", "NetworkTopology": "Coscheduling"}
"""Filters and scores of the pack that are a part of a plugin of another name."""
PREEMPTION: Final = "DefaultPreemption"
QUEUE_SORT: Final = "PrioritySort"
ORDER: Final = ({"cel": "-pod.?priority.orValue(0)"}, {"cel": "pod.queuedAt"})
"""The order of `PrioritySort`: higher priority first, then who came first."""
_PROCESS: Final = "it is about the process, which has flags for that"
ELSEWHERE: Final = {
    "parallelism": _PROCESS,
    "leaderElection": _PROCESS,
    "clientConnection": _PROCESS,
    "healthzBindAddress": _PROCESS,
    "metricsBindAddress": _PROCESS,
    "enableProfiling": _PROCESS,
    "enableContentionProfiling": _PROCESS,
    "extenders": "koordpolicy's scheduler asks no extenders",
    "delayCacheUntilActive": _PROCESS,
}
QUEUE: Final = {
    "podInitialBackoffSeconds": "initialBackoff",
    "podMaxBackoffSeconds": "maximumBackoff",
}


@dataclass(slots=True)
class _Draft:
    """A profile that is being written: its spec, and the table."""

    profile: SchedulerProfile
    target: str
    spec: dict[str, Any]
    kinds: KindDocuments
    table: list[Taken] = field(default_factory=list)

    @property
    def source(self) -> str:
        return f"{KIND}/{self.profile.name}"

    def took(self, place: str, decision: str) -> None:
        self.table.append(Taken(f"{self.source}.{place}", f"{self.target}.{decision}"))

    def left(self, place: str, reason: str) -> None:
        self.table.append(Taken(f"{self.source}.{place}", reason=reason))

    def parameter(self, place: str, name: str, value: Any) -> None:
        said = self.spec.setdefault("parameters", {})
        if isinstance(said.get(name), dict) and "type" in said[name]:
            said[name]["value"] = value
        else:
            said[name] = {"value": value}
        self.took(place, f"parameters.{name}")

    def item(self, name: str, things: str, place: str, **fields: Any) -> None:
        entries = self.spec.setdefault(things, [])
        found = next((one for one in entries if one["name"] == name), None)
        if found is None:
            found = {"name": name}
            entries.append(found)
        found.update(fields)
        for key in fields:
            self.took(place, f"{things}[{name}].{key}")


def import_scheduler(obj: Mapping[str, Any], graph: RuleGraph) -> Imported:
    """The policies that place pods as a KubeSchedulerConfiguration makes koord-scheduler do, as far as plugins are the same."""
    try:
        config = read_scheduler_config(obj)
    except SchedulerConfigError as error:
        return Imported(table=[Taken(KIND, reason=str(error))])
    result = Imported()
    for key in config.fields:
        if key in ELSEWHERE:
            result.table.append(Taken(f"{KIND}.{key}", reason=ELSEWHERE[key]))
        elif key not in QUEUE and key != "percentageOfNodesToScore":
            result.table.append(Taken(f"{KIND}.{key}", reason="nothing in policies says that"))
    profiles = [unit for unit in graph.units if unit.target == f"{PROFILE}/{PACKED}"]
    base = min(profiles, key=lambda unit: unit.layer, default=None)
    if base is None:
        return Imported(table=[Taken(KIND, reason=f"there is no profile `{PACKED}` to begin with")])
    kinds = KindDocuments(KIND)
    for profile in config.profiles:
        _import_profile(result, config, profile, graph, base.document.data["spec"], kinds)
    result.documents.extend(kinds.documents())
    return result


def _import_profile(
    result: Imported, config: SchedulerConfig, profile: SchedulerProfile, graph: RuleGraph, base: Any,
    kinds: KindDocuments,
) -> None:  # fmt: skip
    draft = _Draft(profile, f"{PROFILE}/{profile.name}", _begun(profile.name, base), kinds)
    _waits(draft, config)
    _sort(draft)
    _filters(draft, graph.items(PROFILE, PACKED, "filters"))
    _scores(draft, graph.items(PROFILE, PACKED, "scores"))
    _preempts(draft)
    _parameters(draft)
    _others(draft, graph)
    result.documents.append(
        {
            "apiVersion": API_VERSION,
            "kind": PROFILE,
            "metadata": {"name": profile.name, "annotations": {SOURCE: draft.source}},
            "spec": draft.spec,
        }
    )
    if profile.name != PACKED:
        draft.table.insert(0, Taken(draft.source, f"{draft.target}, a copy of {PROFILE}/{PACKED}"))
    result.table.extend(draft.table)


def _begun(name: str, base: Mapping[str, Any]) -> dict[str, Any]:
    """What is laid over the pack's profile, or a profile of another name that is like it."""
    if name == PACKED:
        return {"schedulerName": name}
    spec = deepcopy(dict(base))
    spec["schedulerName"] = name
    spec["parameters"]["ownSchedulers"]["value"] = [name]
    return spec


def _waits(draft: _Draft, config: SchedulerConfig) -> None:
    share = draft.profile.share
    if share is None:
        share = config.fields.get("percentageOfNodesToScore") or 0
    draft.spec["sampling"] = f"{share}%"
    draft.took("percentageOfNodesToScore", "sampling")
    for key, name in QUEUE.items():
        value = config.fields.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            draft.left(key, f"`{value}` is no number of seconds above 0")
            continue
        draft.spec.setdefault("queue", {})[name] = f"{value}s"
        draft.took(key, f"queue.{name}")


def _sort(draft: _Draft) -> None:
    if QUEUE_SORT in draft.profile.at("queueSort"):
        draft.spec.setdefault("queue", {})["order"] = [dict(one) for one in ORDER]
        draft.took(f"plugins.queueSort.{QUEUE_SORT}", "queue.order")
    else:
        draft.left("plugins.queueSort", f"without {QUEUE_SORT}, pods are ordered as the built-in pack says")


def _filters(draft: _Draft, known: Sequence[Item]) -> None:
    here = set(draft.profile.at("filter"))
    for name, point in draft.profile.named():
        if name in WHOLE:
            here.add(name)
            draft.took(f"plugins.{point}.{name}", f"filters[{name}]")
    for item in known:
        if PART_OF.get(item.name, item.name) not in here:
            draft.item(item.name, "filters", "plugins.filter", enabled=False)


def _scores(draft: _Draft, known: Sequence[Item]) -> None:
    here = draft.profile.at("score")
    for item in known:
        place = f"plugins.score.{item.name}"
        if PART_OF.get(item.name, item.name) not in here:
            # One with a switch of its own is off until its parameters say otherwise.
            if "enabled" not in item.fields:
                draft.item(item.name, "scores", "plugins.score", enabled=False)
        elif item.name in here and (here[item.name] or 1) != item.fields.get("weight", 1):
            draft.item(item.name, "scores", place, weight=here[item.name] or 1)


def _preempts(draft: _Draft) -> None:
    if PREEMPTION not in draft.profile.at("postFilter"):
        draft.spec.setdefault("preemption", {})["policy"] = "Never"
        # In a copy, nothing else reads it.
        draft.spec.get("parameters", {}).pop("preemptionPolicyByLabel", None)
        draft.took("plugins.postFilter", "preemption.policy")


# --- arguments ------------------------------------------------------------------------------------


def _parameters(draft: _Draft) -> None:
    working = {*draft.profile.at("filter"), *draft.profile.at("score"), *draft.profile.at("postFilter")}
    working |= WHOLE & {name for name, _ in draft.profile.named()}
    for row in ARGUMENTS:
        if row.plugin in working:
            _parameter(draft, row)
    for plugin, arguments in draft.profile.arguments.items():
        rows = {row.path for row in ARGUMENTS if row.plugin == plugin and plugin in working}
        said = {tuple(name.split(".")) for of, name in KIND_ARGUMENTS if of == plugin}
        for path in _leaves(arguments, rows, said):
            place = f"pluginConfig.{plugin}.{'.'.join(path)}"
            if plugin not in working:
                draft.left(place, "the plugin is not at work in the profile")
            elif plugin == _HINT:
                draft.left(place, _HINT_TEXT)
            elif plugin in FIELDS_ALONE and (plugin, ".".join(path)) not in KIND_ARGUMENTS:
                draft.left(place, f"the kind {KIND_OF[plugin]} has a field for what it says of that")
            elif plugin in KIND_OF:
                _said_by_kind(draft, plugin, path, place)
            elif plugin == SPREAD and path[0] == "defaultConstraints":
                continue
            elif _at(arguments, path) not in SAYS_NOTHING.get((plugin, path[0]), ()):
                draft.left(place, "nothing in policies says that")
    if SPREAD in working:
        _spread(draft)


def _said_by_kind(draft: _Draft, plugin: str, path: tuple[str, ...], place: str) -> None:
    """An argument that a kind of its own says."""
    value, name = _at(draft.profile.arguments[plugin], path), ".".join(path)
    if value is None:
        return
    known = KIND_ARGUMENTS.get((plugin, name))
    if known is not None and known.needless:
        draft.table.append(Taken(f"{draft.source}.{place}", reason=known.needless, keeps=True))
        return
    try:
        decisions = draft.kinds.take(plugin, name, value, draft.profile.name)
    except NotCarriedError as error:
        draft.left(place, str(error))
    else:
        draft.table += [Taken(f"{draft.source}.{place}", decision) for decision in decisions]


def _parameter(draft: _Draft, row: Argument) -> None:
    value = _at(draft.profile.arguments.get(row.plugin, {}), row.path)
    if value in (None, "", {}, []):
        value = row.otherwise
    if value is None:
        return
    place = f"pluginConfig.{row.plugin}.{'.'.join(row.path)}"
    try:
        draft.parameter(place, row.parameter, row.carriage.write(value))
    except NotCarriedError as error:
        draft.left(place, str(error))


def _spread(draft: _Draft) -> None:
    place = f"pluginConfig.{SPREAD}.defaultConstraints"
    try:
        said = write_spread(draft.profile.arguments.get(SPREAD, {}))
    except NotCarriedError as error:
        draft.left(place, str(error))
        return
    for name, value in said.items():
        draft.parameter(place, name, value)


def _others(draft: _Draft, graph: RuleGraph) -> None:
    """Plugins that the profile switches on and the pack does not have."""
    names = (item.name for things in ("filters", "scores") for item in graph.items(PROFILE, PACKED, things))
    known = {*names, PREEMPTION, *_EVERYWHERE}
    for name, point in draft.profile.named():
        if name == _HINT:
            draft.left(f"plugins.{point}.{name}", _HINT_TEXT)
        elif name not in known:
            draft.left(f"plugins.{point}.{name}", "koordpolicy's scheduler has no such plugin")


def _leaves(
    value: Mapping[str, Any],
    known: set[tuple[str, ...]],
    said: set[tuple[str, ...]],
    at: tuple[str, ...] = (),
) -> Iterator[tuple[str, ...]]:
    """Paths of what is said beside `known`; a mapping is entered where a part of it is known, or in `said`."""
    for name, one in value.items():
        path = (*at, name)
        if path in known:
            continue
        inside = any(row[: len(path)] == path and len(row) > len(path) for row in (*known, *said))
        if isinstance(one, Mapping) and inside:
            yield from _leaves(one, known, said, path)
        else:
            yield path


def _at(value: Any, path: Sequence[str]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value
