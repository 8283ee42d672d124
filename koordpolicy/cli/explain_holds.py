"""What holds a pod back on its node, and for what it may be let go: the part of `koordpolicy explain pod` about agents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.agent.holds.asked import evictions_of, holds_of
from koordpolicy.agent.holds.hold import HeldPod, Hold, HoldState, cores
from koordpolicy.agent.strategies.suppression import KIND as SUPPRESSION
from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.explain import answer_data
from koordpolicy.cli.pod_policies import Policies
from koordpolicy.cli.simulation.words import DIM, YELLOW, Page, length
from koordpolicy.cli.snapshot_facts import SnapshotFacts
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import NODE_METRICS
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.language.facts import TIMES
from koordpolicy.model.agent_runs import AgentRuns, read_agent_runs, read_dry_run
from koordpolicy.model.facts import Record
from koordpolicy.model.metric import NodeMetric, read_best_effort_cpu, read_node_metric
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import CPU, MEMORY
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.model.unreadable import Unreadable, readable

_REPORTS: Final = 3
"""Intervals of reports after which one is none."""
_TOLD: Final = frozenset({HoldState.HOLDS, HoldState.MAY, HoldState.UNKNOWN})
"""What is told line by line; of the others it is said that there are such."""


@dataclass(frozen=True, slots=True)
class NodeAgentSeen:
    """What the cluster shows of a node's agent: what it decides by, and what it reported last, `age` seconds ago (None: never).

    `allowed` and `best_effort_used` are millicores of all best-effort pods together, `used` and `used_memory` those of the pod; None
    for what nobody reported.
    """

    runs: AgentRuns | None = None
    dry_run: AgentRuns | None = None
    same: bool = False
    """Whether it decides by what answers here."""
    age: float | None = None
    allowed: int | None = None
    best_effort_used: int | None = None
    used: int | None = None
    used_memory: int | None = None


@dataclass(frozen=True, slots=True)
class ExplainedHolds:
    """What holds a pod back on its node, what it may be evicted for, and what its agent is known to do."""

    node: str
    held: tuple[Hold, ...]
    evictions: tuple[Hold, ...]
    agent: NodeAgentSeen


def holds_of_picture(
    policies: Policies, graph: RuleGraph, cluster: Snapshot, facts: SnapshotFacts, pod: Pod
) -> ExplainedHolds:
    """What holds a pod of a picture back. `graph` is that of the policies at the picture's moment. Raises `CannotRunError`."""
    name = "/".join(pod.key)
    if not pod.node_name:
        raise CannotRunError(f"`{name}` is on no node")
    records = next((roots for node, roots in facts.nodes(graph, SUPPRESSION) if node == pod.node_name), None)
    if records is None:
        raise CannotRunError(f"`{pod.node_name}`, the node of `{name}`, is not there or cannot be read")
    node = records["node"]
    mine = (one for one in node["pods"] if one["known"] and (one["namespace"], one["name"]) == pod.key)
    record = next(mine, None)
    if record is None or not record["active"]:
        raise CannotRunError(f"`{name}` has ended, and nothing holds it back")
    found = [one for one in cluster.of(NODE_METRICS) if one["metadata"].get("name") == pod.node_name]
    metric = readable(read_node_metric, found[0]) if found else None
    if isinstance(metric, NodeMetric):
        node = _as_of_report(node, metric, cluster.taken)
    held = HeldPod(graph, pod, record, node, cluster.taken)
    agent = _seen(policies, held, found[0], metric, cluster.taken) if found else NodeAgentSeen()
    return ExplainedHolds(pod.node_name, tuple(holds_of(held)), tuple(evictions_of(held)), agent)


def _as_of_report(node: Record, metric: NodeMetric, now: int) -> Record:
    """The node as its agent had it when it reported: that measures each second, and reports once a minute."""
    at = metric.updated_at
    if at is None or "metric.age" not in node or now - at > _REPORTS * metric.report_interval:
        return node
    return {**node, "metric.age": TIMES.duration(0)}


def _seen(
    policies: Policies, held: HeldPod, report: Object, metric: NodeMetric | Unreadable | None, now: int
) -> NodeAgentSeen:
    runs, dry = (readable(read, report) for read in (read_agent_runs, read_dry_run))
    allowed = readable(read_best_effort_cpu, report)
    known = metric if isinstance(metric, NodeMetric) else None
    at = None if known is None else known.updated_at
    best = [one for one in held.node["pods"] if one["known"] and one["kubernetesQoS"] == "BestEffort"]  # type: ignore[attr-defined]
    used = [one["usage.cpu"] for one in best if "usage.cpu" in one]
    return NodeAgentSeen(
        runs if isinstance(runs, AgentRuns) else None,
        dry if isinstance(dry, AgentRuns) else None,
        isinstance(runs, AgentRuns) and bool(runs.digest) and runs.digest == policies.graph.digest,
        None if at is None else max(now - at, 0) / NANOSECONDS,
        None if isinstance(allowed, Unreadable) else allowed,
        sum(used) if used else None,
        held.facts.get(f"usage.{CPU}"),
        held.facts.get(f"usage.{MEMORY}"),
    )


# --- for programs ---------------------------------------------------------------------------------


def plain_holds(found: ExplainedHolds, graph: RuleGraph) -> dict[str, Any]:
    """As JSON values: amounts of CPU in millicores, of memory in bytes."""
    agent = found.agent
    runs, dry = agent.runs, agent.dry_run
    return {
        "node": found.node,
        "holds": [_plain(one, graph) for one in found.held],
        "evictions": [_plain(one, graph) for one in found.evictions],
        "agent": {
            "revision": None if runs is None else runs.revision or None,
            "candidate": None if runs is None else runs.candidate or None,
            "stage": None if runs is None else runs.stage or None,
            "same": agent.same,
            "dryRun": None if dry is None else dry.revision or "unnamed policies",
            "reportAgeSeconds": agent.age,
            "bestEffortAllowed": agent.allowed,
            "bestEffortUsed": agent.best_effort_used,
            "used": agent.used,
            "usedMemory": agent.used_memory,
        },
    }


def _plain(one: Hold, graph: RuleGraph) -> dict[str, Any]:
    return {
        "title": one.title,
        "kind": one.kind,
        "state": str(one.state),
        "says": one.says,
        "own": one.own or None,
        "unseen": one.unseen or None,
        "answers": _answers(one, graph),
        "settings": [
            {
                "decision": name,
                "document": document,
                "file": span.file,
                "line": span.start.line,
                "column": span.start.column,
            }
            for name, document, span in one.settings
        ],
    }


def _answers(one: Hold, graph: RuleGraph) -> list[dict[str, Any]]:
    """The decisions that a rule makes here, each answer once: containers of a pod mostly have the same."""
    found: list[dict[str, Any]] = []
    for asked in one.asked:
        answer = answer_data(graph, asked.decision, dict(asked.roots))
        if answer["rules"] and answer not in found:
            found.append(answer)
    return found


# --- for people -----------------------------------------------------------------------------------


def hold_lines(found: ExplainedHolds, graph: RuleGraph, page: Page) -> Iterator[str]:
    """A section for each: what holds the pod back, and what it may be let go for."""
    yield page.heading(f"What holds it back on {found.node}")
    for line in seen_words(found.agent):
        yield from page.wrapped(line, 2)
    yield from _lines(found.held, graph, page)
    yield ""
    yield page.heading("What its node's agent may let it go for")
    yield from _lines(found.evictions, graph, page)


def seen_words(agent: NodeAgentSeen) -> Iterator[str]:
    """What is known of the node's agent, and of what comes of it, sentence by sentence."""
    if agent.runs is None:
        yield "No agent of koordpolicy says that it acts there: what policy says is not known to be carried out."
    elif not agent.same:
        ahead = f", and tries {agent.runs.candidate} ({agent.runs.stage})" if agent.runs.candidate else ""
        yield f"Its agent decides by {agent.runs.revision or 'no policies'}{ahead}; what answers here may be another revision."
    if agent.dry_run is not None:
        yield "An agent in a dry run is there, too, which changes nothing."
    if agent.age is None:
        yield "The node has not reported what is used there."
        return
    parts = []
    if agent.used is not None:
        parts.append(f"the pod used {cores(agent.used)}")
    if agent.best_effort_used is not None:
        parts.append(f"all best-effort pods {cores(agent.best_effort_used)}")
    if agent.allowed is not None:
        parts.append(f"these were held to {cores(agent.allowed)}")
    yield "What the node's kernel is told says `koordpolicy explain node --agent`."
    yield f"By its report of {length(agent.age)} ago, {', '.join(parts) or 'nobody knows what pods used'}."


def _lines(holds: Sequence[Hold], graph: RuleGraph, page: Page) -> Iterator[str]:
    for one in holds:
        if one.state in _TOLD:
            yield from (
                page.paint(line, YELLOW if one.state is HoldState.HOLDS else "")
                for line in page.wrapped(f"{one.title}: {one.says}", 4, "  ")
            )
            if one.own:
                yield from page.wrapped(f"The pod says so itself: {one.own}", 4)
            for place in _places(one, graph):
                yield from (page.paint(line, DIM) for line in page.wrapped(place, 6, "    "))
            if one.unseen:
                yield from (
                    page.paint(line, DIM) for line in page.wrapped(f"Not known here: {one.unseen}.", 4)
                )
    for state, words in ((HoldState.SPARES, "Leave it alone"), (HoldState.OFF, "Nobody asks for")):
        names = ", ".join(one.title for one in holds if one.state is state)
        if names:
            yield from page.wrapped(f"{words}: {names}.", 4, "  ")


def _places(one: Hold, graph: RuleGraph) -> Iterator[str]:
    for answer in _answers(one, graph):
        rule = answer["rules"][0]
        value = answer["error"] or answer["value"]
        yield f"{answer['decision']}: {value}, {rule['file']}:{rule['line']}:{rule['column']}"
    for name, _, span in one.settings:
        yield f"{name}, {span.file}:{span.start.line}:{span.start.column}"
