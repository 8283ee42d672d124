"""The co-location profiles of one revision, ready to be asked about pods."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.profile import PriorityClass, ProfileEffect, applies
from koordpolicy.graph import About, RuleGraph
from koordpolicy.graph.graph import Selection
from koordpolicy.graph.keys import mapping_keys

KIND: Final = "ColocationProfile"
_MAPS: Final = ("labels", "annotations", "copyLabels", "copyAnnotations", "labelSuffixes")

Roots = Mapping[str, Any]
"""The records of one question by root name."""


PriorityClasses = Callable[[str], PriorityClass | None]
"""The PriorityClass of a name; None where the cluster has none."""


class ColocationProfileError(Exception):
    """A profile cannot be applied to this pod; the request fails with it."""


@dataclass(frozen=True, slots=True)
class ColocationProfile:
    """One profile. `maps` has, for each of its mappings, the keys that policies set."""

    name: str
    graph: RuleGraph
    selections: tuple[Selection, ...]
    maps: Mapping[str, tuple[str, ...]]
    holds_up: bool = True
    """Whether a pod is refused that it cannot be decided for; otherwise it is left out."""

    def matches(self, roots: Roots) -> bool:
        """Whether it is in use and selects this pod. Raises `CelError` where that cannot be told."""
        return any(one.holds(roots) for one in self.selections) and bool(self._about(roots).value("enabled"))

    def reserves(self, roots: Roots) -> bool:
        """Whether it applies to Reservations."""
        return bool(self._about(roots).value("reservations"))

    def takes(self, draw: float, roots: Roots) -> bool:
        """Whether a pod that it matches gets it, for a random number from 0 to below 100."""
        about = self._about(roots)
        return applies(about.value("probability"), draw, inclusive=about.value("sampling") == "AtMost")

    def translation(self, roots: Roots) -> str:
        """When the pod's resources are renamed: `Matched`, `Applied` or `Never`."""
        return str(self._about(roots).value("resourceTranslation"))

    def effect(self, roots: Roots, priority_class: PriorityClasses) -> ProfileEffect:
        """What it does to the pod. Raises `ColocationProfileError` for a PriorityClass that does not exist, `CelError`."""
        about = self._about(roots)
        return ProfileEffect(
            labels=self._texts(about, "labels"),
            annotations=self._texts(about, "annotations"),
            label_copies=self._texts(about, "copyLabels"),
            annotation_copies=self._texts(about, "copyAnnotations"),
            label_suffixes=self._texts(about, "labelSuffixes"),
            scheduler_name=about.value("schedulerName") or "",
            qos=about.value("qosClass") or "",
            priority_class=self._priority_class(about, priority_class),
            sub_priority=about.value("subPriority"),
            patch=self.graph.setting(KIND, self.name, "patch", roots) or None,
        )

    def _about(self, roots: Roots) -> About:
        return self.graph.about(KIND, self.name, roots)

    def _texts(self, about: About, field: str) -> dict[str, str]:
        keys = self.maps.get(field)
        if not keys:
            return {}
        found = {key: about.value(f"{field}[{key}]") for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def _priority_class(self, about: About, existing: PriorityClasses) -> PriorityClass | None:
        name = about.value("priorityClassName")
        if name is None:
            band = about.value("band")
            if band is None:
                return None
            if band not in self.graph.classes.bands:
                raise ColocationProfileError(f"profile `{self.name}`: there is no priority band `{band}`")
            name = self.graph.classes.bands[band].get("priorityClass.name", band)
        found = existing(name)
        if found is None:
            raise ColocationProfileError(f"profile `{self.name}`: there is no PriorityClass `{name}`")
        return found


class Profiles:
    """All profiles of a revision, in order of name, found by the labels they ask for. Immutable.

    A profile that asks for a label, of the pod or its namespace, is only looked at where that label is there, so
    that many profiles cost no more than the few that come into question.
    """

    def __init__(self, graph: RuleGraph) -> None:
        self._profiles = tuple(_profiles(graph))
        self.names = frozenset(one.name for one in self._profiles)
        self._by_label: dict[tuple[str, str, str], list[int]] = defaultdict(list)
        self._anywhere: list[int] = []
        for at, profile in enumerate(self._profiles):
            for selection in profile.selections:
                labels = _needed_labels(selection)
                if not labels:
                    self._anywhere.append(at)
                for label in labels:
                    self._by_label[label].append(at)

    def candidates(self, roots: Roots) -> list[ColocationProfile]:
        """The profiles that may match a pod, by its labels, in the order in which they apply."""
        candidates = set(self._anywhere)
        for root in ("pod", "namespaceObject"):
            for key, value in roots[root].get("labels", {}).items():
                candidates.update(self._by_label.get((root, key, value), ()))
        return [self._profiles[at] for at in sorted(candidates)]


def _profiles(graph: RuleGraph) -> Iterable[ColocationProfile]:
    keys = mapping_keys(graph, KIND)
    for subject in graph.subjects(KIND):
        maps = {field: keys[subject, field] for field in _MAPS if (subject, field) in keys}
        holds_up = graph.about(KIND, subject).value("failurePolicy") != "Ignore"
        yield ColocationProfile(subject, graph, graph.selections(KIND, subject), maps, holds_up)


def _needed_labels(selection: Selection) -> list[tuple[str, str, str]]:
    """Labels of which one must be there for the selection to hold; empty when it asks for none."""
    for line in selection.requirements:
        if line.operator == "In":
            return [(line.root, line.key, value) for value in line.values]
    return []
