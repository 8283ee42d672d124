"""Koordinator's ClusterColocationProfile objects beside the profiles of policies: what they say, in one order of names.

A policy takes the place of the object of its name, so that profiles move into policies one by one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Final, Protocol

from koordpolicy.algorithms.profile import ProfileEffect, applies
from koordpolicy.cluster.label_index import LabelIndex
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.rules import Requirement
from koordpolicy.kube.known import KnownObjects
from koordpolicy.kube.mirror import ObjectChange
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import CLUSTER_COLOCATION_PROFILES
from koordpolicy.manager.webhooks.profiles import KIND as POLICY
from koordpolicy.manager.webhooks.profiles import (
    ColocationProfileError,
    PriorityClasses,
    Profiles,
    Roots,
)
from koordpolicy.manager.webhooks.webhook import WebhookContext
from koordpolicy.model.labels import LabelSelector, Operator, read_selector
from koordpolicy.model.protocol import SKIP_UPDATE_RESOURCES
from koordpolicy.model.reading import Json, ObjectError, integer, mapping, text, texts

KIND: Final = CLUSTER_COLOCATION_PROFILES.kind
_PERCENTAGE: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_ANY: Final = LabelSelector()


class Profile(Protocol):
    """What a pod may get at its creation: see `profiles.ColocationProfile`."""

    @property
    def name(self) -> str:
        """What it is called in reports."""
        ...

    @property
    def holds_up(self) -> bool:
        """Whether a pod is refused that it cannot be decided for."""
        ...

    def matches(self, roots: Roots) -> bool:
        """Whether it selects this pod."""
        ...

    def takes(self, draw: float, roots: Roots) -> bool:
        """Whether a pod that it matches gets it, for a random number from 0 to below 100."""
        ...

    def translation(self, roots: Roots) -> str:
        """When the pod's resources are renamed: `Matched`, `Applied` or `Never`."""
        ...

    def effect(self, roots: Roots, priority_class: PriorityClasses) -> ProfileEffect:
        """What it does to the pod."""
        ...


class Candidates(Protocol):
    """All profiles that there are."""

    def candidates(self, roots: Roots) -> Sequence[Profile]:
        """Those that may match a pod, by its labels, in the order in which they apply."""
        ...


@dataclass(frozen=True, slots=True)
class ClusterProfile:
    """One object. A selector that makes no sense matches all, as in Koordinator; a missing one does too."""

    key: str
    pods: LabelSelector
    namespaces: LabelSelector
    spec: Json
    translates: bool
    holds_up: bool = True

    @property
    def name(self) -> str:
        """See `Profile.name`: another one than that of a policy."""
        return f"{KIND}/{self.key}"

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """What its selectors ask for."""
        return tuple(
            Requirement(root, one.key, str(one.operator), tuple(sorted(one.values)))
            for root, selector in (("pod", self.pods), ("namespaceObject", self.namespaces))
            for one in selector.requirements
        )

    def matches(self, roots: Roots) -> bool:
        """See `Profile.matches`."""
        return self.pods.matches(roots["pod"].get("labels", {})) and self.namespaces.matches(
            roots["namespaceObject"].get("labels", {})
        )

    def takes(self, draw: float, roots: Roots) -> bool:
        """See `Profile.takes`. Raises `ColocationProfileError` for what is no percentage."""
        said = self.spec.get("probability")
        if said is None:
            return True
        whole = (
            str(said) if isinstance(said, int) else said.removesuffix("%") if isinstance(said, str) else ""
        )
        if not _PERCENTAGE.fullmatch(whole) or (isinstance(said, str) and not said.endswith("%")):
            raise ColocationProfileError(f"profile `{self.name}`: `{said}` is no percentage")
        return applies(min(max(int(whole), 0), 100), draw)

    def translation(self, roots: Roots) -> str:
        """See `Profile.translation`."""
        return "Matched" if self.translates else "Never"

    def effect(self, roots: Roots, priority_class: PriorityClasses) -> ProfileEffect:
        """See `Profile.effect`. Raises `ColocationProfileError` for a PriorityClass that does not exist, and malformed fields."""
        try:
            return self._effect(priority_class)
        except ObjectError as error:
            raise ColocationProfileError(f"profile `{self.name}`: {error}") from error

    def _effect(self, priority_class: PriorityClasses) -> ProfileEffect:
        spec = self.spec
        name = text(spec, "priorityClassName", "spec")
        found = priority_class(name) if name else None
        if name and found is None:
            raise ColocationProfileError(f"profile `{self.name}`: there is no PriorityClass `{name}`")
        return ProfileEffect(
            labels=texts(spec, "labels", "spec"),
            annotations=texts(spec, "annotations", "spec"),
            label_copies=texts(spec, "labelKeysMapping", "spec"),
            annotation_copies=texts(spec, "annotationKeysMapping", "spec"),
            label_suffixes=texts(spec, "labelSuffixes", "spec"),
            scheduler_name=text(spec, "schedulerName", "spec"),
            qos=text(spec, "qosClass", "spec"),
            priority_class=found,
            sub_priority=integer(spec, "koordinatorPriority", "spec"),
            patch=mapping(spec, "patch", "spec") or None,
        )


def read_profile(obj: Object) -> ClusterProfile:
    """A profile from its JSON. Raises ObjectError."""
    metadata, spec = mapping(obj, "metadata"), mapping(obj, "spec")
    return ClusterProfile(
        key=text(metadata, "name", "metadata"),
        pods=_selector(spec, "selector"),
        namespaces=_selector(spec, "namespaceSelector"),
        spec=spec,
        translates=SKIP_UPDATE_RESOURCES not in texts(metadata, "annotations", "metadata"),
    )


def _selector(spec: Json, field: str) -> LabelSelector:
    try:
        return read_selector(mapping(spec, field, "spec"), field)
    except ObjectError:
        return _ANY


class ClusterProfiles:
    """All objects, kept from change to change and found by the labels that they ask for."""

    def __init__(self, objects: KnownObjects) -> None:
        self._profiles: dict[str, ClusterProfile] = {}
        self._by_pod: LabelIndex[str] = LabelIndex()
        self._by_namespace: LabelIndex[str] = LabelIndex()
        objects.follow(CLUSTER_COLOCATION_PROFILES, self._changed)

    def near(self, roots: Roots) -> list[ClusterProfile]:
        """Those that may match a pod, by its labels, in order of name."""
        if not self._profiles:
            return []
        found = [*self._by_pod.near(roots["pod"].get("labels", {}))]
        found += self._by_namespace.near(roots["namespaceObject"].get("labels", {}))
        return [self._profiles[name] for name in sorted(found)]

    def beside(self, graph: RuleGraph) -> list[ClusterProfile]:
        """Those whose place no policy takes, in order of name."""
        taken = frozenset(graph.subjects(POLICY))
        return [one for name, one in sorted(self._profiles.items()) if name not in taken]

    def requirements(self, graph: RuleGraph) -> list[tuple[Requirement, ...]]:
        """What the selectors of each of these ask for."""
        return [one.requirements for one in self.beside(graph)]

    def _changed(self, change: ObjectChange) -> None:
        name = change.key[1]
        before = self._profiles.pop(name, None)
        if before is not None:
            self._by_pod.discard(before.pods, name)
            self._by_namespace.discard(before.namespaces, name)
        if change.new is not None:
            profile = read_profile(change.new)
            self._profiles[name] = profile
            if any(one.operator is Operator.IN for one in profile.pods.requirements):
                self._by_pod.add(profile.pods, name)
            else:
                self._by_namespace.add(profile.namespaces, name)


@dataclass(frozen=True, slots=True)
class BothProfiles:
    """Profiles of policies and objects of the cluster, in order of name."""

    policies: Profiles
    objects: ClusterProfiles

    def candidates(self, roots: Roots) -> Sequence[Profile]:
        """See `Candidates.candidates`."""
        ours: Sequence[Profile] = self.policies.candidates(roots)
        theirs = [one for one in self.objects.near(roots) if one.key not in self.policies.names]
        if not theirs:
            return ours
        return list(merge(ours, theirs, key=_order))


def _order(profile: Profile) -> str:
    return profile.key if isinstance(profile, ClusterProfile) else profile.name


def cluster_profiles(context: WebhookContext) -> ClusterProfiles:
    """The objects that the handlers of one context share."""
    return context.once(ClusterProfiles, lambda one: ClusterProfiles(one.objects))
