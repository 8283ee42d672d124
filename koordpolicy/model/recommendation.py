"""Recommendation objects as values: which pods they speak of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from koordpolicy.model.labels import LabelSelector, read_selector
from koordpolicy.model.reading import NO_TEXT, Json, ObjectError, mapping, text, texts

_BY_WORKLOAD = "workload"
_BY_LABELS = "podSelector"


@dataclass(frozen=True, slots=True)
class Target:
    """The pods of a workload, by its kind and name, or those that `selector` selects."""

    kind: str = ""
    name: str = ""
    selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class RecommendationObject:
    """A Recommendation, without what it recommends."""

    namespace: str
    name: str
    target: Target
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    annotations: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)


def read_recommendation(obj: Json) -> RecommendationObject:
    """A Recommendation from its JSON. Raises ObjectError with the place of what is malformed."""
    metadata = mapping(obj, "metadata")
    return RecommendationObject(
        text(metadata, "namespace", "metadata") or "default",
        text(metadata, "name", "metadata"),
        _target(mapping(mapping(obj, "spec"), "target", "spec")),
        texts(metadata, "labels", "metadata"),
        texts(metadata, "annotations", "metadata"),
    )


def _target(target: Json) -> Target:
    at = "spec.target"
    how = text(target, "type", at)
    if how == _BY_WORKLOAD:
        workload = mapping(target, "workload", at)
        kind, name = text(workload, "kind", f"{at}.workload"), text(workload, "name", f"{at}.workload")
        if not kind or not name:
            raise ObjectError(f"{at}.workload: a workload has a kind and a name")
        return Target(kind, name)
    if how == _BY_LABELS:
        selector = read_selector(mapping(target, "podSelector", at), f"{at}.podSelector")
        if not selector.requirements:
            raise ObjectError(f"{at}.podSelector: it selects every pod of the namespace: name a label")
        return Target(selector=selector)
    raise ObjectError(f"{at}.type: `{how}` is neither `{_BY_WORKLOAD}` nor `{_BY_LABELS}`")
