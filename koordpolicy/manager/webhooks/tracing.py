"""Which rule made which change of a pod: a mutation taken apart, piece by piece, in the order in which it happens."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from koordpolicy.algorithms.json_patch import Change, json_patch
from koordpolicy.algorithms.profile import ProfileEffect, apply_profile
from koordpolicy.diagnostics import Span
from koordpolicy.graph import RuleGraph
from koordpolicy.manager.webhooks.cluster_profiles import Profile
from koordpolicy.manager.webhooks.profiles import KIND, ColocationProfile, Roots
from koordpolicy.model.reading import Json

_BAND: Final = "PriorityBand"
_DEVICES: Final = "DeviceSharing"
_PLACED: Final = "QuotaTree.nodeAffinity"
_DERIVE: Final = "requests.derive["
_EXPAND: Final = "requests.expand["
_MAPS: Final = (
    ("labels", "labels"),
    ("annotations", "annotations"),
    ("label_copies", "copyLabels"),
    ("annotation_copies", "copyAnnotations"),
    ("label_suffixes", "labelSuffixes"),
)
_FIELDS: Final = (
    ("scheduler_name", "schedulerName"),
    ("qos", "qosClass"),
    ("priority_class", "priorityClassName"),
    ("sub_priority", "subPriority"),
    ("patch", "patch"),
)
"""The fields of a profile by those of its effect, in the order in which `apply_profile` goes through them."""


class MutationObserver(Protocol):
    """Told of each step that changes a pod."""

    def profile(self, profile: Profile, pod: Json, effect: ProfileEffect) -> None:
        """A profile is applied to the pod as it is until then."""
        ...

    def translated(self, band: str, before: Json, after: Json) -> None:
        """Resources got the names of a band, and were announced."""
        ...

    def devices(self, before: Json, after: Json) -> None:
        """Requests for devices were put in other words."""
        ...

    def placed(self, before: Json, after: Json) -> None:
        """The pod was kept to the nodes of its quota's tree."""
        ...


@dataclass(frozen=True, slots=True)
class TracedChange:
    """What a decision changed, as operations of JSON Patch with, under `old`, what was there. `places` are those of its rules.

    `places` are empty for an object of the cluster, whose profile `decision` names.
    """

    decision: str
    places: tuple[Span, ...]
    changes: tuple[Change, ...]


@dataclass(slots=True)
class MutationTrace:
    """All changes of one mutation, in order; `roots` are the records that its questions are asked about."""

    graph: RuleGraph
    roots: Roots = field(default_factory=dict)
    found: list[TracedChange] = field(default_factory=list)
    effects: list[ProfileEffect] = field(default_factory=list)
    """What profiles ask for, whether the pod had it before or not."""

    def profile(self, profile: Profile, pod: Json, effect: ProfileEffect) -> None:
        """See `MutationObserver.profile`."""
        self.effects.append(effect)
        for name, piece in pieces(effect):
            after = apply_profile(pod, piece)
            decision = f"{profile.name}.{name}"
            places: tuple[Span, ...] = ()
            if isinstance(profile, ColocationProfile):
                if (
                    name == "priorityClassName"
                    and profile.graph.value(f"{KIND}/{decision}", **self.roots) is None
                ):
                    decision = f"{profile.name}.band"
                decision = f"{KIND}/{decision}"
                places = self._of_setting(profile.name) if name == "patch" else self._of_decision(decision)
            self._add(decision, places, pod, after)
            pod = after

    def translated(self, band: str, before: Json, after: Json) -> None:
        """See `MutationObserver.translated`."""
        decision = f"{_BAND}/{band}.resources.names" if band else _BAND
        self._add(decision, self._of_decision(decision), before, after)

    def devices(self, before: Json, after: Json) -> None:
        """See `MutationObserver.devices`."""
        left = _changes(before, after)
        asked = {steps_of(one)[-1] for one in left}
        # What is derived is told by its own rule, all else by the one that took a resource apart.
        for part, alone in ((_DERIVE, True), (_EXPAND, False)):
            for key in self.graph.decisions:
                resource = key.field.removeprefix(part).removesuffix("]")
                if key.kind != _DEVICES or not key.field.startswith(part) or resource not in asked:
                    continue
                mine = [one for one in left if not alone or steps_of(one)[-1] == resource]
                left = [one for one in left if one not in mine]
                self._tell(str(key), self._of_decision(str(key)), mine)
        self._tell(_DEVICES, (), left)

    def placed(self, before: Json, after: Json) -> None:
        """See `MutationObserver.placed`."""
        self._add(_PLACED, self._rules_of(_PLACED), before, after)

    def _rules_of(self, decision: str) -> tuple[Span, ...]:
        """Where all rules of a decision stand, whichever decides."""
        known = [one for key, one in self.graph.decisions.items() if str(key) == decision]
        return tuple(rule.span for one in known for rule in one.rules)

    def _add(self, decision: str, places: tuple[Span, ...], before: Json, after: Json) -> None:
        self._tell(decision, places, _changes(before, after))

    def _tell(self, decision: str, places: tuple[Span, ...], changes: Sequence[Change]) -> None:
        if changes:
            self.found.append(TracedChange(decision, places, tuple(changes)))

    def _of_decision(self, decision: str) -> tuple[Span, ...]:
        if decision not in self.graph:
            return ()
        return tuple(one.span for one in self.graph.ask(decision, **self.roots).provenance.rules)

    def _of_setting(self, subject: str) -> tuple[Span, ...]:
        """Where patches of a profile stand."""
        return tuple(
            unit.document.positions.key(("spec", "patch"))
            for unit in self.graph.units
            if unit.kind.name == KIND and unit.subject == subject and "patch" in unit.spec.model_fields_set
        )


def pieces(effect: ProfileEffect) -> Iterator[tuple[str, ProfileEffect]]:
    """An effect as effects of one field each, which make the same of a pod in this order, with the fields of the profile."""
    only: dict[str, Any]
    for attribute, field_name in _MAPS:
        for key, value in getattr(effect, attribute).items():
            only = {attribute: {key: value}}
            yield f"{field_name}[{key}]", ProfileEffect(**only)
    for attribute, field_name in _FIELDS:
        value = getattr(effect, attribute)
        if value not in (None, ""):
            only = {attribute: value}
            yield field_name, ProfileEffect(**only)


def _changes(before: Json, after: Json) -> list[Change]:
    return [{**one, **_old(before, one)} for one in _leaves(json_patch(before, after))]


def _leaves(changes: list[Change]) -> Iterator[Change]:
    """An object that is new is told field by field, down to what has no fields."""
    for one in changes:
        value = one.get("value")
        if one["op"] == "add" and isinstance(value, Mapping) and value:
            for key, inner in value.items():
                step = str(key).replace("~", "~0").replace("/", "~1")
                yield from _leaves([{"op": "add", "path": f"{one['path']}/{step}", "value": inner}])
        else:
            yield one


def _old(before: Json, change: Change) -> Mapping[str, Any]:
    if change["op"] == "add":
        return {}
    found: Any = before
    for step in steps_of(change):
        found = found[int(step)] if isinstance(found, list | tuple) else found[step]
    return {"old": found}


def steps_of(change: Change) -> list[str]:
    """A path as the keys and places that lead there."""
    return [one.replace("~1", "/").replace("~0", "~") for one in str(change["path"]).split("/")[1:]]


def path_text(change: Change) -> str:
    """A path as people write it: `spec.containers[0].resources.requests["kubernetes.io/batch-cpu"]`."""
    said = ""
    for step in steps_of(change):
        if step.isdigit() or step == "-":
            said += f"[{'' if step == '-' else step}]"
        elif step.replace("_", "").isalnum():
            said += f".{step}" if said else step
        else:
            said += f'["{step}"]'
    return said
