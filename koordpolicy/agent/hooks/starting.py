"""What hooks change in a pod or container whose runtime asks before it starts it: one pure function for every way of asking.

A runtime proxy, NRI and the agent's own rounds differ in who carries values out, never in the values: sizes, CPUs and scores are those that
`container_writes` would write while it runs, settled by Arbitration as there.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.agent.hooks.container_writes import container_cpus, container_writes
from koordpolicy.agent.hooks.containers import (
    KIND,
    TEXTS,
    HookedNumbers,
    hook_roots,
    listed_containers,
    nothing_said,
    said_by_hook,
    spoken_fields,
)
from koordpolicy.agent.hooks.stages import Stage
from koordpolicy.agent.plan import FileValue, container_group
from koordpolicy.agent.strategies.arbiter import settle
from koordpolicy.algorithms.cpu_pools import CPUPools
from koordpolicy.algorithms.records import PodRecords
from koordpolicy.graph import About, RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.cpuset import cpuset_text
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.pod import container_facts
from koordpolicy.model.pod import Pod
from koordpolicy.model.reading import ObjectError

_FAIL = "Fail"


class HookFailed(Exception):
    """A hook that has to have its say cannot be decided: the runtime must not go on. The message says which and why."""


@dataclass(frozen=True, slots=True)
class StartChanges:
    """What is to be another way than the runtime was asked for.

    `files` are values by name of kernel file in cgroup v1, in the units of `linux/files/table.py`. `cpus` is a list of CPUs as the kernel takes it, empty for
    those of the parents, None to leave them. `notes` tell of hooks that were passed over.
    """  # fmt: skip

    files: Mapping[str, FileValue] = field(default_factory=dict)
    cpus: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    unified: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HookScene:
    """The policies, the node's record, its pools of CPUs and the time in nanoseconds since 1970; records of pods that were asked about."""

    graph: RuleGraph
    node: Record
    pools: CPUPools
    now: int
    known: PodRecords = field(default_factory=PodRecords)


def pod_changes(scene: HookScene, pod: Pod, stage: Stage) -> StartChanges:
    """What hooks change in a pod as a whole: annotations. Raises `HookFailed`."""
    notes: list[str] = []
    annotations: dict[str, str] = {}
    roots = hook_roots(scene.graph, pod, scene.node, scene.now, scene.known)
    for hook, about, spoken in _speaking(scene, roots, stage, notes):
        if "pod.annotations" in spoken:
            with _heeding(hook, about, notes):
                annotations |= about.value("pod.annotations") or {}
    return StartChanges(annotations=annotations, notes=tuple(notes))


def container_changes(scene: HookScene, pod: Pod, name: str, stage: Stage) -> StartChanges:
    """What hooks change in one container of a pod, an init container too. Raises `HookFailed`."""
    notes: list[str] = []
    roots = hook_roots(scene.graph, pod, scene.node, scene.now, scene.known)
    listed = listed_containers(scene.graph, pod)
    hooked, texts = nothing_said(listed), _Texts()
    container = _facts(pod, name, listed)
    for hook, about, spoken in _speaking(scene, roots, stage, notes):
        with _heeding(hook, about, notes):
            # Init containers have none of the numbers while they run either: what they ask for is not in the pod's sum.
            numbers = said_by_hook(about, spoken, listed) if name in listed else None
            found = texts.joined(about, spoken, container)
            hooked = hooked if numbers is None else hooked.joined(about.value("writer"), numbers)
            texts = found
    group = container_group(pod.uid, name)
    try:
        plan = container_writes(pod, hooked, scene.pools)
        settled = settle(scene.graph, [plan], scene.node, scene.now).plan
    except CelError as error:
        raise HookFailed(f"Arbitration: {error}") from error
    files = {write.file: write.value for write in settled.writes if write.group == group}
    files.pop("cpuset.cpus", None)
    return StartChanges(
        files,
        _cpus(pod, hooked, name, scene.pools),
        texts.environment,
        texts.annotations,
        texts.unified,
        (*notes, *settled.notes),
    )


@dataclass(frozen=True, slots=True)
class _Texts:
    environment: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    unified: Mapping[str, str] = field(default_factory=dict)

    def joined(self, about: About, spoken: frozenset[str], container: Record) -> "_Texts":
        """These, and what a hook says over them. Raises `CelError`."""
        said = {
            name: about.value(field, container=container) or {}
            for name in TEXTS
            if (field := f"container.{name}") in spoken
        }
        return (
            _Texts(**{name: {**getattr(self, name), **said.get(name, {})} for name in TEXTS})
            if said
            else self
        )


def _facts(pod: Pod, name: str, listed: Mapping[str, Any]) -> Record:
    if name in listed:
        return container_facts(listed[name], init=False)
    first = next((one for one in pod.init_containers if one.name == name), None)
    return {"name": name, "init": False} if first is None else container_facts(first, init=True)


def _speaking(
    scene: HookScene, roots: Mapping[str, Any], stage: Stage, notes: list[str]
) -> Iterator[tuple[str, About, frozenset[str]]]:
    """The hooks that speak at a stage, in order of name, with the fields that they speak of."""
    for hook, spoken in spoken_fields(scene.graph).items():
        about = scene.graph.about(KIND, hook, roots)
        speaks = False
        with _heeding(hook, about, notes):
            speaks = stage in about.value("stages")
        if speaks:
            yield hook, about, spoken


@contextmanager
def _heeding(hook: str, about: About, notes: list[str]) -> Iterator[None]:
    """Around what is asked of one hook: one that fails is noted, or ends it all, as it says itself."""
    try:
        yield
    except CelError as error:
        words = f"{KIND}/{hook}: {error}"
        if about.value_or("failurePolicy", "Ignore") == _FAIL:
            raise HookFailed(words) from error
        notes.append(words)


def _cpus(pod: Pod, hooked: HookedNumbers, name: str, pools: CPUPools) -> str | None:
    numbers = hooked.whole.containers.get(name)
    if numbers is None:
        return None
    try:
        found = container_cpus(pod, numbers, pools)
    except (ObjectError, ValueError):
        return None  # noted by whoever planned its writes
    return None if found is None else cpuset_text(found)
