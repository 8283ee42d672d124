"""What stands behind each kernel file that policies decide about: its value, the strategy, the rule and its line."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from koordpolicy.agent.agent import NodeAgent
from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.hooks.containers import KIND as HOOK
from koordpolicy.agent.hooks.containers import extended_containers
from koordpolicy.algorithms.records import pod_record
from koordpolicy.graph.bands import translated_resources
from koordpolicy.language.facts import TIMES
from koordpolicy.linux.writes.write import FileWriteResult
from koordpolicy.model.cpuset import cpuset_text
from koordpolicy.model.facts.pod import container_facts, placed_pod_facts

_DECISIONS: Final[Mapping[tuple[str, str], str]] = {
    ("cpu-suppress", "cpuset.cpus"): "CPUSuppress.target",
    ("cpu-suppress", "cpu.cfs_quota_us"): "CPUSuppress.target",
    ("cpu-burst", "cpu.cfs_burst_us"): "CPUBurst.burst",
    ("cpu-burst", "cpu.cfs_quota_us"): "CPUBurst.quota.ceiling",
    ("cold-memory", "kidled.scan_period_in_seconds"): "MetricCollection.coldMemory.scanEvery",
    ("cold-memory", "kidled.use_hierarchy"): "MetricCollection.coldMemory.enabled",
    ("system", "vm.min_free_kbytes"): "SystemTuning.minFreeFactor",
    ("system", "vm.watermark_scale_factor"): "SystemTuning.watermarkScaleFactor",
}
"""By writer and file: the decision that the value follows from. Of a ContainerHook each hook's own fields decide."""
_HOOK_FIELDS: Final = {
    "cpu.shares": "cpuRequest",
    "cpu.cfs_quota_us": "cpuLimit",
    "memory.limit_in_bytes": "memoryLimit",
    "cpuset.cpus": "cpus",
}
_HOOK_WRITERS: Final = frozenset({"batch-resources", "cpu-normalization", "cpuset"})


def node_explanation(agent: NodeAgent, frame: NodeFrame) -> dict[str, Any]:
    """The node as JSON values: policies, what was measured, each file of the last rounds, evictions, notes."""
    active = agent.component.live.active
    return {
        "node": agent.watch.node,
        "at": frame.now / 1e9,
        "revision": active and active.revision.name,
        "bundle": active and active.bundle,
        "dryRun": agent.dry_run,
        "usage": {
            name: frame.record[path]
            for name, path in (("cpu", "usage.total.cpu"), ("memory", "usage.total.memory"))
            if path in frame.record
        },
        "pods": len(frame.pods),
        "files": [
            _file(frame, kind, result)
            for kind, results in agent.doing.results.items()
            for result in _last_of_each(results)
        ],
        "evictions": [
            {"pod": f"{one.namespace}/{one.name}", "strategy": one.strategy, "reason": one.reason}
            for plan in agent.doing.plans.values()
            for one in plan.evictions
        ],
        "notes": list(agent.doing.notes),
        "troubles": agent.status()["troubles"],
    }


def _file(frame: NodeFrame, kind: str, result: FileWriteResult) -> dict[str, Any]:
    value = result.write.value
    return {
        "file": result.path or result.write.file,
        "group": result.write.target,
        "now": None if result.before is None else result.before.strip()[:200],
        "wanted": cpuset_text(value) if isinstance(value, frozenset) else value,
        "outcome": str(result.outcome),
        "strategy": kind,
        "reason": result.write.reason,
        "problem": result.problem,
        "rules": _rules(frame, kind, result.write.file, result.write.target),
    }


def _last_of_each(results: Iterable[FileWriteResult]) -> list[FileWriteResult]:
    """Of a file that is written twice in a round, as when groups shrink, what it ends with; the first says what it was."""
    found: dict[tuple[str, str], FileWriteResult] = {}
    for one in results:
        first = found.get((one.write.file, one.write.target))
        before = one.before if first is None or first.before is None else first.before
        found[one.write.file, one.write.target] = replace(one, before=before)
    return list(found.values())


def _rules(frame: NodeFrame, kind: str, file: str, target: str) -> list[dict[str, Any]]:
    """The rules that decided, each with its place."""
    roots: dict[str, Any] = {"node": frame.record, "now": TIMES.timestamp(frame.now)}
    names = [_DECISIONS[kind, file]] if (kind, file) in _DECISIONS else []
    if kind in _HOOK_WRITERS and file in _HOOK_FIELDS:
        level, more = _hook_roots(frame, target)
        roots |= more
        names = [f"{HOOK}/{hook}.{level}.{_HOOK_FIELDS[file]}" for hook in frame.graph.subjects(HOOK)]
    return [
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
