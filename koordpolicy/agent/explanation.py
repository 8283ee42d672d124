"""What stands behind each kernel file that policies decide about: its value, the strategy, the rule and its line."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from koordpolicy.agent.agent import NodeAgent
from koordpolicy.agent.explanation_rules import rules_behind
from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.strategies.cache_isolation import SCHEMATA
from koordpolicy.agent.strategies.network_isolation import TERWAY_NODE, TERWAY_PODS, TRAFFIC
from koordpolicy.linux.files.kernel_file import FileWriter
from koordpolicy.linux.writes.traffic_shaping import NONE
from koordpolicy.linux.writes.write import FileOutcome, FileWriteResult
from koordpolicy.model.cpuset import cpuset_text

_NOTHING_DONE: Final = frozenset({FileOutcome.EQUAL, FileOutcome.REMEMBERED, FileOutcome.UNSUPPORTED})


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
            if not _about_nothing(result)
        ],
        "evictions": [
            {"pod": f"{one.namespace}/{one.name}", "strategy": one.strategy, "reason": one.reason}
            for plan in agent.doing.plans.values()
            for one in plan.evictions
        ],
        "notes": list(agent.doing.notes),
        "troubles": agent.status()["troubles"],
    }


def _about_nothing(result: FileWriteResult) -> bool:
    """Whether nothing is wanted of a network, and nothing was there: neither Terway nor classes of `tc` are in use."""
    wanted = {TRAFFIC: NONE, TERWAY_PODS: "", TERWAY_NODE: ""}.get(result.write.file)
    return result.write.value == wanted and result.outcome in _NOTHING_DONE


def _file(frame: NodeFrame, kind: str, result: FileWriteResult) -> dict[str, Any]:
    value = result.write.value
    return {
        "file": result.path or result.write.file,
        "group": result.write.target,
        "now": None if result.before is None else result.before.strip()[:200],
        "wanted": cpuset_text(value) if isinstance(value, frozenset) else value,
        "held": result.held[:200] or None,
        "outcome": str(result.outcome),
        "strategy": kind,
        "reason": result.write.reason,
        "problem": result.problem,
        "rules": rules_behind(frame, kind, result.write),
    }


def _last_of_each(results: Iterable[FileWriteResult]) -> list[FileWriteResult]:
    """Of a file that is written twice in a round, as when groups shrink, what it ends with; the first says what it was."""
    found: dict[tuple[str, str, str], FileWriteResult] = {}
    for one in results:
        key = (one.write.file, one.write.target, _line_of(one))
        first = found.get(key)
        before = one.before if first is None or first.before is None else first.before
        found[key] = replace(one, before=before)
    return list(found.values())


def _line_of(result: FileWriteResult) -> str:
    """What tells lines of a file apart of which each is written by itself: a device, a resource, a class, a sender."""
    file, value = result.write.file, result.write.value
    if not isinstance(value, str):
        return ""
    words = value.split()
    if file == TRAFFIC:
        return " ".join(words[:2])
    if file == SCHEMATA:
        return value.partition(":")[0]
    return words[0] if words and result.write.writer is FileWriter.BLOCK_IO else ""
