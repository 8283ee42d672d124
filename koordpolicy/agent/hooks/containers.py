"""What pods and their containers get from the kernel by policy, in the kernel's own numbers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.agent.hooks.stages import Stage
from koordpolicy.algorithms.container_resources import UNLIMITED, normalized_quota, quota_of, shares_of
from koordpolicy.algorithms.cpu_pools import CPUChoice
from koordpolicy.algorithms.records import PodRecords
from koordpolicy.graph import About, RuleGraph
from koordpolicy.graph.bands import translated_resources
from koordpolicy.graph.graph import Facts
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.pod import container_facts
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import EXTENDED_RESOURCE_SPEC
from koordpolicy.model.reading import ObjectError, amounts, embedded_object, mapping, optional_mapping

KIND: Final = "ContainerHook"
TEXTS: Final = ("environment", "annotations", "unified")
"""Fields of a container that are maps of texts."""
_SLOTS: Final = ("cpuRequest", "cpuLimit", "memoryLimit", "cpus", "oomScore")
_OF_CONTAINERS: Final = tuple(f"container.{name}" for name in _SLOTS)
_NUMBERS: Final = (*(f"pod.{name}" for name in _SLOTS[:3]), *_OF_CONTAINERS)
_ALWAYS_ASKED: Final = ("stages", "writer", "cpuSpeed", "failurePolicy")
_FIELDS: Final = (*_NUMBERS, "pod.annotations", *(f"container.{name}" for name in TEXTS))


@dataclass(frozen=True, slots=True)
class GroupNumbers:
    """Numbers for one control group; None leaves the kernel's alone.

    `shares` as cpu.shares, `quota` in microseconds in 100 ms, `memory_limit` in bytes; -1 is unlimited. `cpus` says which
    CPUs a container runs on, `oom_score` how soon the kernel kills it.
    """

    shares: int | None = None
    quota: int | None = None
    memory_limit: int | None = None
    cpus: CPUChoice | None = None
    oom_score: int | None = None

    def overlaid(self, other: "GroupNumbers") -> "GroupNumbers":
        """These numbers, with those that the other has in their place."""
        if other == _SILENT:
            return self
        if self == _SILENT:
            return other
        return GroupNumbers(
            self.shares if other.shares is None else other.shares,
            self.quota if other.quota is None else other.quota,
            self.memory_limit if other.memory_limit is None else other.memory_limit,
            self.cpus if other.cpus is None else other.cpus,
            self.oom_score if other.oom_score is None else other.oom_score,
        )


_SILENT: Final = GroupNumbers()


@dataclass(frozen=True, slots=True)
class PodNumbers:
    """Numbers for a pod's control group and those of its containers by name."""

    pod: GroupNumbers = GroupNumbers()
    containers: Mapping[str, GroupNumbers] = field(default_factory=dict)

    def overlaid(self, other: "PodNumbers") -> "PodNumbers":
        """These numbers, with those that the other has in their place, of the same containers."""
        return PodNumbers(
            self.pod.overlaid(other.pod),
            {name: one.overlaid(other.containers[name]) for name, one in self.containers.items()},
        )


@dataclass(frozen=True, slots=True)
class HookedNumbers:
    """What all hooks say of a pod, and what those of each writer do, whom Arbitration knows by that name."""

    whole: PodNumbers = PodNumbers()
    by_writer: Mapping[str, PodNumbers] = field(default_factory=dict)

    def joined(self, writer: str, said: PodNumbers) -> "HookedNumbers":
        """These, with what one more hook says over them, of the same containers."""
        if said.pod == _SILENT and all(one == _SILENT for one in said.containers.values()):
            return self  # most hooks have nothing to say of most pods
        before = self.by_writer.get(writer)
        own = said if before is None else before.overlaid(said)
        return HookedNumbers(self.whole.overlaid(said), {**self.by_writer, writer: own})


def pod_numbers(
    graph: RuleGraph, pod: Pod, node: Record, now: int, hooks: Sequence[str] | None = None
) -> PodNumbers:
    """What all hooks say of a pod, or some, in order of name, later ones over earlier ones.

    `node` is the node's record with `suppression.byQuota`, `now` in nanoseconds since 1970. Raises
    `CelError` where policy cannot decide: then nothing should be written.
    """
    return numbers_by_writer(graph, pod, node, now, hooks).whole


def numbers_by_writer(
    graph: RuleGraph, pod: Pod, node: Record, now: int, hooks: Sequence[str] | None = None
) -> HookedNumbers:
    """The same of those hooks that speak of what runs, with what those of each writer say by themselves. Raises `CelError`."""
    roots = hook_roots(graph, pod, node, now)
    listed = listed_containers(graph, pod)
    found = nothing_said(listed)
    spoken = spoken_fields(graph)
    for hook in spoken if hooks is None else hooks:
        about = graph.about(KIND, hook, roots)
        if Stage.RUNNING in about.value("stages"):
            found = found.joined(about.value("writer"), said_by_hook(about, spoken[hook], listed))
    return found


def hook_roots(graph: RuleGraph, pod: Pod, node: Record, now: int, known: PodRecords | None = None) -> Facts:
    """The records that hooks are asked about; `now` in nanoseconds since 1970, `known` those of pods that were asked about before."""
    records = PodRecords() if known is None else known
    record = records.placed(pod, graph.catalogue, TIMES)
    extended = extended_containers(pod, translated_resources(graph))
    if extended is not None:
        record["extendedContainers"] = [container_facts(one, init=False) for one in extended]
    return {"pod": record, "node": node, "now": TIMES.timestamp(now)}


def listed_containers(graph: RuleGraph, pod: Pod) -> Mapping[str, Container]:
    """The containers that have numbers, by name: those of the pod, and those of an overcommitted band in its place."""
    extended = extended_containers(pod, translated_resources(graph))
    return {one.name: one for one in pod.containers} | {one.name: one for one in extended or ()}


def nothing_said(listed: Collection[str]) -> HookedNumbers:
    """Of these containers."""
    return HookedNumbers(PodNumbers(containers={name: GroupNumbers() for name in listed}))


def said_by_hook(about: About, spoken: frozenset[str], listed: Mapping[str, Container]) -> PodNumbers:
    """What one hook says of a pod and its containers, by the fields that it speaks of. Raises `CelError`."""
    if spoken.isdisjoint(_NUMBERS):
        return PodNumbers(containers=dict.fromkeys(listed, _SILENT))
    speed = about.value("cpuSpeed")
    return PodNumbers(
        _group(about, spoken, "pod", speed),
        dict.fromkeys(listed, _SILENT)
        if spoken.isdisjoint(_OF_CONTAINERS)
        else {
            name: _group(about, spoken, "container", speed, container=container_facts(one, init=False))
            for name, one in listed.items()
        },
    )


def spoken_fields(graph: RuleGraph) -> Mapping[str, frozenset[str]]:
    """Of each hook, in order of name, the fields that any rule speaks of: the others need not be asked, for any pod."""

    def found() -> Mapping[str, frozenset[str]]:
        return {
            hook: frozenset(name for name in _FIELDS if graph.about(KIND, hook).says(name))
            for hook in graph.subjects(KIND)
        }

    return graph.once((KIND, "spoken"), found)


def make_programs(graph: RuleGraph) -> None:
    """Make all that hooks can be asked for, once a graph, so that no container waits for it."""

    def made() -> bool:
        for hook, spoken in spoken_fields(graph).items():
            for name in (*_ALWAYS_ASKED, *spoken):
                graph.program(f"{KIND}/{hook}.{name}")
        return True

    graph.once((KIND, "programs"), made)


def extended_containers(pod: Pod, resources: Collection[str]) -> tuple[Container, ...] | None:
    """The containers with resources of an overcommitted band, as the pod says or else its annotation.

    None when neither says anything, or the annotation cannot be read.
    """
    own = tuple(
        one for one in pod.containers if any(name in one.requests or name in one.limits for name in resources)
    )
    source = pod.annotations.get(EXTENDED_RESOURCE_SPEC)
    if own or not source:
        return own or None
    try:
        declared = optional_mapping(embedded_object(source, EXTENDED_RESOURCE_SPEC), "containers")
        if declared is None:
            return None
        return tuple(_announced(name, mapping(declared, name, EXTENDED_RESOURCE_SPEC)) for name in declared)
    except ObjectError:
        return None


def _announced(name: str, said: Mapping[str, object]) -> Container:
    at = f"{EXTENDED_RESOURCE_SPEC}.{name}"
    return Container(name, requests=amounts(said, "requests", at), limits=amounts(said, "limits", at))


def _group(about: About, spoken: frozenset[str], level: str, speed: float, **more: Any) -> GroupNumbers:
    request, limit, memory, choice, score = (
        about.value(name, **more) if (name := f"{level}.{one}") in spoken else None for one in _SLOTS
    )
    return GroupNumbers(
        None if request is None else shares_of(request),
        None if limit is None else normalized_quota(quota_of(limit), speed),
        None if memory is None else max(memory, UNLIMITED),
        None if choice is None else CPUChoice(choice),
        score,
    )
