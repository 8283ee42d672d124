"""What policies say of recommendations, asked about a workload, a pod of it, or a container."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.recommended import MILLI, Layout, Wanted
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import About
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.recommender.histories import CPU, RESOURCES
from koordpolicy.model.facts import Record
from koordpolicy.model.recommendation import RecommendationObject
from koordpolicy.model.time import NANOSECONDS

KIND: Final = "Recommendation"
_PERCENT: Final = 100
_SECONDS_OF_MINUTE: Final = 60


def workload_facts(recommendation: RecommendationObject) -> Record:
    """The facts of a workload as a whole."""
    return {
        "recommendation": recommendation.name,
        "namespace": recommendation.namespace,
        "labels": recommendation.labels,
        "annotations": recommendation.annotations,
        "kind": recommendation.target.kind,
        "name": recommendation.target.name,
        "container": "",
    }


def container_facts(workload: Record, container: str, history: int) -> Record:
    """The facts of one of its containers, whose use is known for so many nanoseconds."""
    return {**workload, "container": container, "history": TIMES.duration(history)}


@dataclass(frozen=True, slots=True)
class WritingPace:
    """How often recommendations are computed and histories are written, in seconds; `most` checkpoints a minute."""

    interval: float
    checkpoint: float
    most: int
    containers: int


def pace_of(graph: RuleGraph) -> WritingPace:
    """What holds for all workloads together. Raises `CelError` where policy has no answer."""
    about = graph.about(KIND, "")
    return WritingPace(
        max(_ns(about, "publish.interval") / NANOSECONDS, 1.0),
        max(_ns(about, "checkpoint.interval") / NANOSECONDS, 1.0),
        about.value("checkpoint.mostPerMinute"),
        about.value("history.containers"),
    )


def layouts_of(graph: RuleGraph, workload: Record, now: int) -> Mapping[str, Layout]:
    """The buckets and half-lives of a container, by resource. Raises `CelError`, LayoutError."""
    about = _about(graph, workload, now)
    found = {}
    for resource in RESOURCES:
        units = MILLI if resource == CPU else 1
        layout = Layout(
            _value(about, f"{resource}.buckets.first") / units,
            _value(about, f"{resource}.buckets.growth") / _PERCENT,
            _value(about, f"{resource}.buckets.most") / units,
            _ns(about, f"{resource}.halfLife"),
        )
        layout.check()
        found[resource] = layout
    return found


def wanted_of(graph: RuleGraph, resource: str, workload: Record, now: int) -> Wanted:
    """What of a container's use is recommended. Raises `CelError`."""
    about = _about(graph, workload, now)
    lower, target, upper, margin = (
        _value(about, f"{resource}.{field}") / _PERCENT for field in ("lower", "target", "upper", "margin")
    )
    return Wanted(
        lower,
        target,
        upper,
        margin,
        about.value(f"{resource}.minimum") or 0,
        about.value(f"{resource}.maximum"),
    )


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long things hold of a container, in nanoseconds; amounts are written that changed by more than `share`."""

    confident: int
    forget: int
    share: float
    at_least: int


def keeping_of(graph: RuleGraph, workload: Record, now: int) -> Keeping:
    """Ask about a container, or about a workload as a whole. Raises `CelError`."""
    about = _about(graph, workload, now)
    return Keeping(
        _ns(about, "history.confidentAfter"),
        _ns(about, "history.forgetAfter"),
        _value(about, "publish.whenChangedBy") / _PERCENT,
        _ns(about, "publish.atLeastEvery"),
    )


def is_enabled(graph: RuleGraph, workload: Record, now: int) -> bool:
    """Whether a Recommendation is followed. Raises `CelError`."""
    return bool(_about(graph, workload, now).value("enabled"))


@dataclass(frozen=True, slots=True)
class Counting:
    """How a pod's use counts for a workload: what a sample weighs, and by container which share of CPU and memory is its."""

    weight: float
    shares: tuple[tuple[str, float, float], ...]


def counting_of(graph: RuleGraph, workload: Record, pod: Record, now: int) -> Counting | None:
    """None where its use does not count. Raises `CelError`."""
    about = _about(graph, workload, now, pod=pod)
    if not about.value("counted"):
        return None
    listed: Any = pod["containers"]
    containers = [one for one in listed if not one["init"]]
    weight = float(_value(about, "history.weight"))
    if len(containers) == 1:
        return Counting(weight, ((containers[0]["name"], 1.0, 1.0),))
    return Counting(
        weight,
        tuple(
            (
                one["name"],
                float(_value(about, "cpu.share", container=one)),
                float(_value(about, "memory.share", container=one)),
            )
            for one in containers
        ),
    )


def _about(graph: RuleGraph, workload: Record, now: int, **more: Record) -> About:
    return graph.about(KIND, "", {"workload": workload, "now": TIMES.timestamp(now), **more})


def _value(about: About, field: str, **more: Record) -> Any:
    found = about.value(field, **more)
    if found is None:
        raise CelError(f"no policy says `{KIND}.{field}`")
    return found


def _ns(about: About, field: str) -> int:
    return int(_value(about, field).ns)
