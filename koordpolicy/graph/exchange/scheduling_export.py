"""SchedulingProfile policies as a KubeSchedulerConfiguration for koord-scheduler, as far as it can say them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from koordpolicy.graph.exchange.arguments import (
    ARGUMENTS,
    LOAD_AWARE,
    PACKED,
    PROFILE,
    SPREAD,
    SPREAD_PARAMETERS,
    show_spread,
)
from koordpolicy.graph.exchange.documents import Taken
from koordpolicy.graph.exchange.scheduling import PART_OF, PREEMPTION, QUEUE, QUEUE_SORT
from koordpolicy.graph.graph import Item, RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.model.scheduler_config import API_VERSION, EVERY, KIND
from koordpolicy.model.time import NANOSECONDS

_BY_TIME: Final = frozenset({"pod.priority", "pod.queuedAt"})
_SYSTEM_SPREAD: Final = {"kubernetes.io/hostname": 3, "topology.kubernetes.io/zone": 5}
"""Default constraints of `defaultingType: System`."""
_NO_LIMITS: Final = {"cpu": 0, "memory": 0}
"""No limit of load: where a configuration says none at all, those of koord-scheduler's code hold."""
_WRITTEN: Final = frozenset({"enabled", "weight"})
"""What of a filter or score has a place of its own in the configuration."""
_PLACED: Final = frozenset(
    {
        *("sampling", "queue.order", "preemption.policy", "preemption.plugin"),
        *(f"queue.{field}" for field in QUEUE.values()),
        *(f"parameters.{row.parameter}" for row in ARGUMENTS),
        *(f"parameters.{name}" for name in SPREAD_PARAMETERS),
    }
)
"""Decisions that have a place in the configuration."""


def export_scheduler(graph: RuleGraph) -> tuple[dict[str, Any] | None, list[Taken]]:
    """The configuration with a profile for each SchedulingProfile, and the table; None where there is no profile."""
    table: list[Taken] = []
    names = sorted({unit.subject for unit in graph.units if unit.kind.name == PROFILE})
    written = [_Writer(graph, name, table).profile() for name in names]
    if not written:
        return None, table
    found: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    for key, field in QUEUE.items():
        seconds = {_seconds(graph, name, field) for name in names}
        if len(seconds) == 1 and None not in seconds:
            found[key] = seconds.pop()
        else:
            table.append(
                Taken(
                    f"{PROFILE}.queue.{field}",
                    reason="koord-scheduler has one value for all profiles, in whole seconds",
                )
            )
    return {**found, "profiles": written}, table


def _seconds(graph: RuleGraph, name: str, field: str) -> int | None:
    try:
        value = graph.value(f"{PROFILE}/{name}.queue.{field}")
    except CelError:
        return None
    whole, rest = divmod(value.ns, NANOSECONDS)
    return None if rest or whole < 1 else int(whole)


class _Writer:
    """One profile on its way into the configuration."""

    def __init__(self, graph: RuleGraph, name: str, table: list[Taken]) -> None:
        self.graph, self.name, self.table = graph, name, table
        self.target = f"{PROFILE}/{name}"
        own = max(unit.layer for unit in graph.units)
        self._packs = {unit.layer_name for unit in graph.units if unit.layer < own or own == 0}
        self._decisions = [key for key in graph.decisions if (key.kind, key.subject) == (PROFILE, name)]

    def profile(self) -> dict[str, Any]:
        filters, scores = self._filters(), self._scores()
        # Every plugin is named, so that nothing depends on what a scheduler has by default.
        points: dict[str, Any] = {
            "queueSort": _only([{"name": QUEUE_SORT}]),
            "filter": _only([{"name": name} for name in filters]),
            "score": _only([{"name": name, "weight": weight} for name, weight in scores.items()]),
            "postFilter": _only([{"name": PREEMPTION}] if self._preempts() else []),
        }
        if LOAD_AWARE in {*filters, *scores}:
            # There it remembers what it has placed until that is measured.
            points["reserve"] = {"enabled": [{"name": LOAD_AWARE}]}
        self._told()
        found: dict[str, Any] = {"schedulerName": self.graph.setting(PROFILE, self.name, "scheduler_name")}
        share = self._value("sampling")
        if isinstance(share, float) and share == int(share):
            found["percentageOfNodesToScore"] = int(share)
        else:
            self._left("sampling", "it is no whole percentage for all pods")
        found["plugins"] = points
        found["pluginConfig"] = [
            {"name": plugin, "args": {"apiVersion": API_VERSION, "kind": f"{plugin}Args", **arguments}}
            for plugin, arguments in self._arguments({*filters, *scores, PREEMPTION}).items()
        ]
        self.table.append(Taken(self.target, f"{KIND}/{self.name}"))
        return found

    # --- plugins ------------------------------------------------------------------------------

    def _filters(self) -> list[str]:
        return [item.name for item in self._items("filters")]

    def _scores(self) -> dict[str, int]:
        found = {}
        for item in self._items("scores"):
            weight = self._value(f"scores[{item.name}].weight")
            if not isinstance(weight, int):
                self._left(f"scores[{item.name}].weight", "it is not the same for all pods")
            elif weight:
                found[item.name] = weight
        return found

    def _items(self, things: str) -> Iterator[Item]:
        """Those at work that are plugins of koord-scheduler; the rest is told."""
        packed = {item.name: item for item in self.graph.items(PROFILE, PACKED, things)}
        for item in self.graph.items(PROFILE, self.name, things):
            field = f"{things}[{item.name}]"
            enabled = self._value(f"{field}.enabled")
            if enabled is False or item.name in PART_OF:
                continue
            if enabled is not True:
                self._left(f"{field}.enabled", "it is not the same for all pods")
            elif item.name not in packed or not self._as_packed(field, item, packed[item.name]):
                self._left(field, "koord-scheduler has no such plugin")
            else:
                yield item

    def _as_packed(self, field: str, item: Item, like: Item) -> bool:
        """Whether what decides there is what the built-in pack says."""
        if item.fields.get("match") != like.fields.get("match"):
            return False
        return not any(
            self._differs(key.field)
            for key in self._decisions
            if key.field.startswith(f"{field}.") and key.field.removeprefix(f"{field}.") not in _WRITTEN
        )

    def _differs(self, field: str) -> bool:
        return self._texts(self.target, field) != self._texts(None, field)

    def _texts(self, target: str | None, field: str) -> list[str]:
        """What documents say there; without a target, those of the packs about their profile."""
        name = f"{target or f'{PROFILE}/{PACKED}'}.{field}"
        if name not in self.graph:
            return []
        rules = self.graph.decision(name).rules
        return [rule.text for rule in rules if target is not None or rule.layer in self._packs]

    def _preempts(self) -> bool:
        plugin, policy = self._value("preemption.plugin"), self._value("preemption.policy")
        return bool(plugin == PREEMPTION and policy != "Never")

    def _told(self) -> None:
        """What is said otherwise than by the built-in pack, and has no place in the configuration."""
        reads = {
            f"{root}.{path}" for root, path in facts_of(self.graph.expression(f"{self.target}.queue.order"))
        }
        if reads != _BY_TIME:
            others = ", ".join(sorted(reads - _BY_TIME)) or "other than priority and time"
            self._left("queue.order", f"it reads {others}; {QUEUE_SORT} is written")
        for key in self._decisions:
            if (
                key.field in _PLACED
                or key.field.startswith(("filters[", "scores["))
                or not self._differs(key.field)
            ):
                continue
            if key.field == "parameters.ownSchedulers" and self._value(key.field) == [self.name]:
                continue
            self._left(key.field, "koord-scheduler's configuration has nothing like it")

    # --- arguments ----------------------------------------------------------------------------

    def _arguments(self, working: set[str]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for row in ARGUMENTS:
            field = f"parameters.{row.parameter}"
            if row.plugin not in working or f"{self.target}.{field}" not in self.graph:
                continue
            value = self._value(field)
            if value is None:
                self._left(field, "it is not the same for all pods")
            else:
                if row.parameter == "usageThresholds" and not value:
                    value = _NO_LIMITS
                _put(found.setdefault(row.plugin, {}), row.path, row.carriage.show(value))
        strategy = found.get("NodeResourcesFit", {}).get("scoringStrategy", {})
        if strategy.get("type") != "RequestedToCapacityRatio":
            strategy.pop("requestedToCapacityRatio", None)
        if SPREAD in working:
            preferred, required, unlabelled = (
                self._value(f"parameters.{name}") for name in SPREAD_PARAMETERS
            )
            if not unlabelled:
                found[SPREAD] = show_spread(preferred or {}, required or {})
            elif preferred != _SYSTEM_SPREAD or required:
                self._left(
                    "parameters.spreadOverUnlabelled",
                    "only constraints of the system score nodes without a label",
                )
        return found

    # --- values -------------------------------------------------------------------------------

    def _value(self, field: str) -> Any:
        """A value that holds for every pod; None where there is none."""
        name = f"{self.target}.{field}"
        try:
            if facts_of(self.graph.expression(name)):
                return None
            return self.graph.value(name)
        except CelError:
            return None

    def _left(self, field: str, reason: str) -> None:
        name = f"{self.target}.{field}"
        rules = self.graph.decision(name).rules if name in self.graph else ()
        self.table.append(Taken(name, reason=reason, layer=rules[0].layer if rules else ""))


def _only(enabled: list[dict[str, Any]]) -> dict[str, Any]:
    return {"disabled": [{"name": EVERY}], **({"enabled": enabled} if enabled else {})}


def _put(arguments: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Lay a value into arguments; of mappings that meet, entry by entry."""
    place: Any = arguments
    for step in path[:-1]:
        place = place.setdefault(step, {})
    there = place.get(path[-1])
    if isinstance(there, Mapping) and isinstance(value, Mapping):
        place[path[-1]] = {key: {**there.get(key, {}), **value.get(key, {})} for key in {**there, **value}}
    else:
        place[path[-1]] = value
