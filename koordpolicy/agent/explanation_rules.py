"""Which rules of policy stand behind the value of a kernel file, and where each of them is written."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.hooks.containers import KIND as HOOK
from koordpolicy.agent.hooks.containers import extended_containers
from koordpolicy.agent.node_kernel import NoSuchGroup
from koordpolicy.agent.plan import BEST_EFFORT, BURSTABLE, Group
from koordpolicy.agent.strategies import memory_isolation, system_tuning
from koordpolicy.agent.strategies.cache_isolation import GROUPS, SCHEMATA
from koordpolicy.agent.strategies.cpu_isolation import IDENTITY_FILE, IDLE_FILE
from koordpolicy.agent.strategies.disk_isolation import blocks_rule
from koordpolicy.agent.strategies.isolation import BE, KIND, LS, ROOT, SYSTEM, Isolations, group_of
from koordpolicy.agent.strategies.network_isolation import CLASSID, HANDLES, TERWAY_NODE, TERWAY_PODS, TRAFFIC
from koordpolicy.algorithms.records import pod_record
from koordpolicy.graph.bands import translated_resources
from koordpolicy.graph.graph import Facts
from koordpolicy.language.facts import TIMES
from koordpolicy.linux.files.kernel_file import FileWriter
from koordpolicy.linux.writes.traffic_shaping import WHOLE
from koordpolicy.linux.writes.write import FileWrite
from koordpolicy.model.facts.pod import container_facts, placed_pod_facts
from koordpolicy.model.pod_strategies import said_of_cpu, said_of_memory

_TUNING: Final = system_tuning.KIND
_DECISIONS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("cpu-suppress", "cpuset.cpus"): ("CPUSuppress.target",),
    ("cpu-suppress", "cpu.cfs_quota_us"): ("CPUSuppress.target",),
    ("cpu-burst", "cpu.cfs_burst_us"): ("CPUBurst.burst",),
    ("cpu-burst", "cpu.cfs_quota_us"): ("CPUBurst.quota.ceiling",),
    ("cold-memory", "kidled.scan_period_in_seconds"): ("MetricCollection.coldMemory.scanEvery",),
    ("cold-memory", "kidled.use_hierarchy"): ("MetricCollection.coldMemory.enabled",),
    **{("system", file): (f"{_TUNING}.{field}",) for field, file in system_tuning.FIELDS},
    ("network", TERWAY_NODE): (
        f"{_TUNING}.networkMechanism",
        f"{_TUNING}.networkBandwidth",
        *(
            f"{KIND}/{name}.network.{way}.{bound}"
            for name in (LS, BE)
            for way in ("egress", "ingress")
            for bound in ("request", "limit")
        ),
    ),
    ("network", TERWAY_PODS): (f"{_TUNING}.networkMechanism",),
}
"""By writer and file: the decisions that the value follows from."""
_HOOK_FIELDS: Final = {
    "cpu.shares": "cpuRequest",
    "cpu.cfs_quota_us": "cpuLimit",
    "memory.limit_in_bytes": "memoryLimit",
    "cpuset.cpus": "cpus",
}
_HOOK_WRITERS: Final = frozenset({"batch-resources", "cpu-normalization", "cpuset"})
_CLASSES: Final = {handle: name for name, handle in HANDLES.items()}


def rules_behind(frame: NodeFrame, writer: str, write: FileWrite) -> list[dict[str, Any]]:
    """The rules that decided, each once, with its place; none where an annotation of a pod did."""
    roots: dict[str, Any] = {"node": frame.record, "now": TIMES.timestamp(frame.now)}
    names: Iterable[str] = _DECISIONS.get((writer, write.file), ())
    if writer in _HOOK_WRITERS and write.file in _HOOK_FIELDS:
        level, more = _hook_roots(frame, write.target)
        roots |= more
        names = [f"{HOOK}/{hook}.{level}.{_HOOK_FIELDS[write.file]}" for hook in frame.graph.subjects(HOOK)]
    elif fields := _FIELDS_OF.get(writer):
        names = fields(frame, write)
    found = [
        {
            "decision": one.decision,
            "rule": one.document,
            "file": one.span.file,
            "line": one.span.start.line,
            "column": one.span.start.column,
        }
        for name in names
        if name in frame.graph
        for one in frame.graph.ask(name, **roots).provenance.rules
    ]
    if writer == FileWriter.BLOCK_IO:
        found += _blocks(frame, write, roots)
    return [one for at, one in enumerate(found) if one not in found[:at]]


# --- hooks --------------------------------------------------------------------------------------------


def _hook_roots(frame: NodeFrame, target: str) -> tuple[str, dict[str, Any]]:
    """Whether hooks were asked of a pod or of a container, and the facts that they were asked with."""
    for one in frame.pods.values():
        if target == one.group or target.startswith(f"{one.group}/"):
            record = {**pod_record(one.pod, frame.graph.catalogue, TIMES), **placed_pod_facts(one.pod)}
            extended = extended_containers(one.pod, translated_resources(frame.graph))
            if extended is not None:
                record["extendedContainers"] = [container_facts(each, init=False) for each in extended]
            name = next((name for name, group in one.containers.items() if group == target), None)
            found = [each for each in extended or one.pod.containers if each.name == name]
            if found:
                return "container", {"pod": record, "container": container_facts(found[0], init=False)}
            return "pod", {"pod": record}
    return "pod", {}


# --- isolation ----------------------------------------------------------------------------------------


def _memory(frame: NodeFrame, write: FileWrite) -> Iterator[str]:
    pod = _pod_of(frame, write.target)
    if pod is None:
        name = _class_at(frame, write.target)
    else:
        name = "" if said_of_memory(pod["annotations"]) else group_of(pod)
    for field in memory_isolation.FIELDS.get(write.file, ()) if name else ():
        yield f"{KIND}/{name}.memory.enabled"
        yield f"{KIND}/{name}.memory.{field}"


def _cpu(frame: NodeFrame, write: FileWrite) -> Iterator[str]:
    field = {IDENTITY_FILE: "identity", IDLE_FILE: "idle"}.get(write.file)
    if field is None:
        yield f"{_TUNING}.cpuMechanism"
        return
    pod = _pod_of(frame, write.target)
    if pod is None:
        name = _class_at(frame, write.target)
    else:
        isolations = Isolations(frame.graph, frame.record, frame.now)
        said = said_of_cpu(pod["annotations"]) is not None
        name = "" if said else isolations.labelled_or_kubernetes(pod, "cpu")
    if name:
        yield f"{KIND}/{name}.cpu.enabled"
        yield f"{KIND}/{name}.cpu.{field}"


def _caches(_frame: NodeFrame, write: FileWrite) -> Iterator[str]:
    """Of the group of a class; those of single pods are as their annotations say."""
    if write.target not in GROUPS:
        return
    fields = ["enabled"]
    if write.file == SCHEMATA:
        fields += ["bandwidth"] if str(write.value).startswith("MB") else ["start", "end"]
    for field in fields:
        yield f"{KIND}/{write.target}.cache.{field}"


def _disks(frame: NodeFrame, write: FileWrite) -> Iterator[str]:
    if name := _disk_class(frame, write.target):
        yield f"{KIND}/{name}.disk.enabled"


def _blocks(frame: NodeFrame, write: FileWrite, roots: Facts) -> Iterator[dict[str, Any]]:
    """The document that says all devices of a class."""
    name = _disk_class(frame, write.target)
    found = blocks_rule(frame.graph, name, roots) if name else None
    if found is not None:
        document, span = found
        yield {
            "decision": f"{KIND}/{name}.blocks",
            "rule": document,
            "file": span.file,
            "line": span.start.line,
            "column": span.start.column,
        }


def _disk_class(frame: NodeFrame, target: str) -> str:
    """Whose devices a group's files limit; empty for a pod's own, which says them itself."""
    if not target:
        return ROOT
    return BE if target == _path(frame, BEST_EFFORT) else ""


def _network(frame: NodeFrame, write: FileWrite) -> Iterator[str]:
    """Of the class that a write makes, or puts a pod into; a class of a pod's own is as its annotation says."""
    yield from _DECISIONS.get((FileWriter.NETWORK, write.file), ())
    words = str(write.value).split()
    if write.file == CLASSID and isinstance(write.value, int):
        handle, made = f"{write.value >> 16:x}:{write.value & 0xFFFF:x}", False
    elif write.file == TRAFFIC and len(words) > 1:
        handle, made = (words[1], True) if words[0] == "class" else (words[-1], False)
    else:
        return
    name = _CLASSES.get(handle)
    if made and (handle == WHOLE or name == SYSTEM):
        yield f"{_TUNING}.networkBandwidth"
        if handle != WHOLE:  # the system has what is promised to nobody
            yield from (f"{KIND}/{one}.network.egress.request" for one in (LS, BE))
    elif name in (LS, BE):
        yield f"{KIND}/{name}.network.enabled"
        if made:
            yield from (f"{KIND}/{name}.network.egress.{bound}" for bound in ("request", "limit"))


_FIELDS_OF: Final[Mapping[str, Callable[[NodeFrame, FileWrite], Iterator[str]]]] = {
    FileWriter.MEMORY_QOS: _memory,
    FileWriter.GROUP_IDENTITY: _cpu,
    FileWriter.CORE_SCHEDULING: _cpu,
    FileWriter.RESCTRL: _caches,
    FileWriter.BLOCK_IO: _disks,
    FileWriter.NETWORK: _network,
}
"""By writer: the decisions behind one write for a class of pods."""


def _pod_of(frame: NodeFrame, target: str) -> Facts | None:
    """The facts of the pod whose group that is, or that of one of its containers."""
    for uid, one in frame.pods.items():
        if target == one.group or target.startswith(f"{one.group}/"):
            return next((pod for pod in frame.pod_records if str(pod["uid"]) == uid), None)
    return None


def _class_at(frame: NodeFrame, target: str) -> str:
    """The class whose fields the group of a Kubernetes class follows; empty for that of all pods."""
    return next(
        (name for group, name in ((BURSTABLE, LS), (BEST_EFFORT, BE)) if target == _path(frame, group)), ""
    )


def _path(frame: NodeFrame, group: Group) -> str | None:
    try:
        return frame.kernel.target_of(group, frame.pods)
    except NoSuchGroup:
        return None
