"""The co-location profiles of one revision, ready to be asked about pods."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from koordpolicy.algorithms.profile import PriorityClass, ProfileEffect, applies
from koordpolicy.graph import About, RuleGraph
from koordpolicy.graph.graph import Selection
from koordpolicy.graph.keys import mapping_keys
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.reading import Json

KIND: Final = "ColocationProfile"
_MAPS: Final = ("labels", "annotations", "copyLabels", "copyAnnotations", "labelSuffixes")
_USE: Final = ("enabled", "probability", "sampling", "resourceTranslation")
_EFFECT: Final = ("schedulerName", "qosClass", "subPriority", "priorityClassName", "band")
_PATCH: Final = "patch"

Roots = Mapping[str, Any]
"""The records of one question by root name."""


PriorityClasses = Callable[[str], PriorityClass | None]
"""The PriorityClass of a name; None where the cluster has none."""


class ColocationProfileError(Exception):
    """A profile cannot be applied to this pod; the request fails with it."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What a profile says of a pod that it selects. `effect` lacks the PriorityClass, which is called `priority_class`."""

    enabled: bool
    probability: float
    inclusive: bool
    translation: str
    effect: ProfileEffect
    priority_class: str | None


class ColocationProfile:
    """One profile. `maps` has, for each of its mappings, the keys that policies set.

    With `holds_up`, a pod is refused that it cannot be decided for; otherwise it is left out. Most profiles are
    one document of constants, and say the same of every pod that they select: that is asked once.
    """

    __slots__ = ("_fixed", "_maps", "graph", "holds_up", "name", "selections")

    def __init__(
        self,
        name: str,
        graph: RuleGraph,
        selections: tuple[Selection, ...],
        maps: Mapping[str, tuple[str, ...]],
        *,
        holds_up: bool = True,
    ) -> None:
        self.name = name
        self.graph = graph
        self.selections = selections
        self.holds_up = holds_up
        self._maps = maps
        self._fixed: tuple[_Said | None] | None = None
        """What it says of every pod that it selects, None where pods differ; looked at with the first pod that it selects."""

    def matches(self, roots: Roots) -> bool:
        """Whether it is in use and selects this pod. Raises `CelError` where that cannot be told."""
        for one in self.selections:
            if one.holds(roots):
                if self._fixed is None:
                    self._fixed = (self._look(roots),)
                (said,) = self._fixed
                return said.enabled if said else bool(self._about(roots).value("enabled"))
        return False

    def reserves(self, roots: Roots) -> bool:
        """Whether it applies to Reservations."""
        return bool(self._about(roots).value("reservations"))

    def takes(self, draw: float, roots: Roots) -> bool:
        """Whether a pod that it matches gets it, for a random number from 0 to below 100."""
        said = self._alike
        if said:
            return applies(said.probability, draw, inclusive=said.inclusive)
        about = self._about(roots)
        return applies(about.value("probability"), draw, inclusive=about.value("sampling") == "AtMost")

    def translation(self, roots: Roots) -> str:
        """When the pod's resources are renamed: `Matched`, `Applied` or `Never`."""
        said = self._alike
        return said.translation if said else str(self._about(roots).value("resourceTranslation"))

    def effect(self, roots: Roots, priority_class: PriorityClasses) -> ProfileEffect:
        """What it does to the pod. Raises `ColocationProfileError` for a PriorityClass that does not exist, `CelError`."""
        said = self._alike
        if said:
            effect, name = said.effect, said.priority_class
        else:
            about = self._about(roots)
            patch = self.graph.setting(KIND, self.name, _PATCH, roots)
            effect, name = self._effect(about, patch), self._priority_class(about)
        if name is None:
            return effect
        found = priority_class(name)
        if found is None:
            raise ColocationProfileError(f"profile `{self.name}`: there is no PriorityClass `{name}`")
        return replace(effect, priority_class=found)

    @property
    def _alike(self) -> _Said | None:
        """What it says of every pod that it selects; None where pods differ, or nobody has looked."""
        return self._fixed[0] if self._fixed else None

    def _look(self, roots: Roots) -> _Said | None:
        """What it says of every pod that it selects, as these records are of one; None where pods differ."""
        graph, target = self.graph, f"{KIND}/{self.name}"
        documents = graph.setting_units(KIND, self.name, _PATCH)
        if len(documents) != 1 or documents[0].id != self.selections[0].document:
            return None
        texts = (f"{field}[{key}]" for field, keys in self._maps.items() for key in keys)
        fields = (*_USE, *_EFFECT, *texts)
        if not all(graph.is_fixed(f"{target}.{field}", documents[0].id) for field in fields):
            return None
        about = self._about(roots)
        try:
            return _Said(
                bool(about.value("enabled")),
                about.value("probability"),
                about.value("sampling") == "AtMost",
                str(about.value("resourceTranslation")),
                self._effect(about, graph.setting(KIND, self.name, _PATCH)),
                self._priority_class(about),
            )
        except (CelError, ColocationProfileError):
            return None  # whoever is asked about a pod says so

    def _effect(self, about: About, patch: Json | None) -> ProfileEffect:
        return ProfileEffect(
            labels=self._texts(about, "labels"),
            annotations=self._texts(about, "annotations"),
            label_copies=self._texts(about, "copyLabels"),
            annotation_copies=self._texts(about, "copyAnnotations"),
            label_suffixes=self._texts(about, "labelSuffixes"),
            scheduler_name=about.value("schedulerName") or "",
            qos=about.value("qosClass") or "",
            sub_priority=about.value("subPriority"),
            patch=patch or None,
        )

    def _about(self, roots: Roots) -> About:
        return self.graph.about(KIND, self.name, roots)

    def _texts(self, about: About, field: str) -> dict[str, str]:
        keys = self._maps.get(field)
        if not keys:
            return {}
        found = {key: about.value(f"{field}[{key}]") for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def _priority_class(self, about: About) -> str | None:
        """What the pod's PriorityClass is called; None where it keeps its own."""
        name = about.value("priorityClassName")
        if name is not None:
            return str(name)
        band = about.value("band")
        if band is None:
            return None
        if band not in self.graph.classes.bands:
            raise ColocationProfileError(f"profile `{self.name}`: there is no priority band `{band}`")
        return str(self.graph.classes.bands[band].get("priorityClass.name", band))


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
        yield ColocationProfile(subject, graph, graph.selections(KIND, subject), maps, holds_up=holds_up)


def _needed_labels(selection: Selection) -> list[tuple[str, str, str]]:
    """Labels of which one must be there for the selection to hold; empty when it asks for none."""
    for line in selection.requirements:
        if line.operator == "In":
            return [(line.root, line.key, value) for value in line.values]
    return []
