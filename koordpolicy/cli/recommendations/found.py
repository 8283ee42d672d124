"""Recommendations beside what their workloads request now."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.algorithms.recommended import Recommended
from koordpolicy.manager.recommender.histories import RESOURCES
from koordpolicy.manager.recommender.status import LOW_CONFIDENCE, recommended_in
from koordpolicy.model.reading import Json, ObjectError, amounts, mapping, objects, text
from koordpolicy.model.recommendation import Target, read_recommendation
from koordpolicy.model.unreadable import Unreadable, readable

TEMPLATES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = MappingProxyType(
    {
        "Deployment": ("apps/v1", ("spec", "template")),
        "StatefulSet": ("apps/v1", ("spec", "template")),
        "DaemonSet": ("apps/v1", ("spec", "template")),
        "ReplicaSet": ("apps/v1", ("spec", "template")),
        "Job": ("batch/v1", ("spec", "template")),
        "CronJob": ("batch/v1", ("spec", "jobTemplate", "spec", "template")),
    }
)
"""Kinds of workloads: their API, and where the template of their pods stands."""

SECTIONS: Final = ("containers", "initContainers")

WorkloadKey = tuple[str, str, str]
"""Namespace, kind, name."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A container as the workload's object declares it: the list that it stands in, requests and limits."""

    section: str
    requests: Mapping[str, int]
    limits: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RecommendationRow:
    """A resource of a container; `declared` is None where the workload's object is not known, or has no such container."""

    container: str
    resource: str
    recommended: Recommended
    declared: Declared | None

    @property
    def request(self) -> int | None:
        """What is requested now."""
        return None if self.declared is None else self.declared.requests.get(self.resource)

    @property
    def verdict(self) -> str:
        """`low` below the lower bound, `high` above the upper one, `ok` between; empty where nothing is requested."""
        if self.request is None:
            return ""
        if self.request < self.recommended.lower:
            return "low"
        return "high" if self.request > self.recommended.upper else "ok"


@dataclass(frozen=True, slots=True)
class FoundRecommendation:
    """A Recommendation, its rows, and what its condition says against it (empty where it can be relied on).

    `workload_known` says whether the workload's object was found.
    """

    namespace: str
    name: str
    target: Target
    rows: tuple[RecommendationRow, ...]
    caution: str
    workload_known: bool

    @property
    def label(self) -> str:
        """The recommendation, for messages."""
        return f"{self.namespace}/{self.name}"

    @property
    def workload(self) -> str:
        """`Deployment/web`; `(pods)` for one that selects pods."""
        return f"{self.target.kind}/{self.target.name}" if self.target.kind else "(pods)"


def find(
    recommendations: Iterable[Json], workloads: Iterable[Json]
) -> tuple[list[FoundRecommendation], list[str]]:
    """The recommendations by namespace and name, and why some objects cannot be read."""
    unread: list[str] = []
    declared: dict[WorkloadKey, dict[str, Declared]] = {}
    for obj in workloads:
        read = readable(_workload, obj)
        if isinstance(read, Unreadable):
            unread.append(f"{obj.get('kind')} {_name(obj)}: {read.reason}")
        else:
            declared[read[0]] = read[1]
    found: list[FoundRecommendation] = []
    for obj in recommendations:
        one = readable(lambda each: _found(each, declared), obj)
        if isinstance(one, Unreadable):
            unread.append(f"Recommendation {_name(obj)}: {one.reason}")
        else:
            found.append(one)
    return sorted(found, key=lambda one: (one.namespace, one.name)), unread


def _found(obj: Json, declared: Mapping[WorkloadKey, Mapping[str, Declared]]) -> FoundRecommendation:
    read = read_recommendation(obj)
    containers = declared.get((read.namespace, read.target.kind, read.target.name))
    said = recommended_in(obj)
    rows = tuple(
        RecommendationRow(name, resource, said[name][resource], (containers or {}).get(name))
        for name in sorted(said)
        for resource in RESOURCES
        if resource in said[name]
    )
    return FoundRecommendation(
        read.namespace, read.name, read.target, rows, _caution(obj), containers is not None
    )


def _caution(obj: Json) -> str:
    for one in objects(mapping(obj, "status"), "conditions", "status"):
        if text(one, "type") == LOW_CONFIDENCE and text(one, "status") == "True":
            return text(one, "message") or text(one, "reason")
    return ""


def _workload(obj: Json) -> tuple[WorkloadKey, dict[str, Declared]]:
    kind, metadata = text(obj, "kind"), mapping(obj, "metadata")
    _, path = TEMPLATES[kind]
    template: Json = reduce(mapping, path, obj)
    key = (text(metadata, "namespace", "metadata") or "default", kind, text(metadata, "name", "metadata"))
    return key, dict(_declared(mapping(template, "spec")))


def _declared(spec: Json) -> Iterator[tuple[str, Declared]]:
    for section in SECTIONS:
        for one in objects(spec, section):
            resources = mapping(one, "resources", section)
            name = text(one, "name", section)
            if not name:
                raise ObjectError(f"{section}: a container without a name")
            requests, limits = amounts(resources, "requests", name), amounts(resources, "limits", name)
            # A request that is not said is the limit.
            yield name, Declared(section, {**limits, **requests}, limits)


def _name(obj: Json) -> str:
    metadata: Any = obj.get("metadata")
    if not isinstance(metadata, Mapping):
        return "without a name"
    return f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"
