"""What the agents of all nodes say that they run, added up by revision."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.agent_runs import AgentRuns
from koordpolicy.model.policy_revision import (
    InstanceState,
    LaggingAgent,
    LaggingState,
    RevisionAgents,
)
from koordpolicy.model.unreadable import Unreadable

KIND: Final = "MetricCollection"
_ELSEWHERE: Final = "NodeSLO/"
"""Where policies come from of agents that obey a stock koord-manager: they follow no revision of ours."""
_RANK: Final = {state: rank for rank, state in enumerate(LaggingState)}
_LONGEST: Final = 63
"""Characters of a reason, as the definition has it."""
_LONGEST_NAME: Final = 256
_UNREADABLE: Final = "Unreadable"


@dataclass(frozen=True, slots=True)
class SummaryPace:
    """How agents are counted. Times in nanoseconds; so many are named of those that do not run a revision."""

    every: int
    silent_after: int
    most_named: int


def summary_pace(graph: RuleGraph) -> SummaryPace:
    """What policy says. Raises CelError."""
    about = graph.about(KIND, "")
    every, silent = about.value("summary.every"), about.value("summary.silentAfter")
    most = about.value("summary.mostNamed")
    if every is None or silent is None or most is None:
        raise CelError(f"policies say only a part of `{KIND}.summary`")
    return SummaryPace(every.ns, silent.ns, most)


@dataclass(frozen=True, slots=True)
class AgentSighting:
    """An agent as its node's NodeMetric object shows it: what it says, and when it reported last (None: never).

    `due` says whether it should decide by the revision that a rollout lets go ahead.
    """

    node: str
    runs: AgentRuns | Unreadable
    reported_at: int | None
    due: bool = False


@dataclass(frozen=True, slots=True)
class HeldSum:
    """The object of the revision that is being rolled out, and the step that it is at."""

    name: str
    step: str


@dataclass(slots=True)
class _Adding:
    """The counts of one revision while they grow."""

    counts: Counter[str] = field(default_factory=Counter)
    lagging: list[LaggingAgent] = field(default_factory=list)

    def lag(self, one: LaggingAgent) -> None:
        self.counts[str(one.state)] += 1
        self.lagging.append(one)

    def told(self, most: int, total: int | None, step: str = "", due: int | None = None) -> RevisionAgents:
        count = self.counts
        return RevisionAgents(
            count[InstanceState.ACTIVE],
            count[InstanceState.SHADOW],
            count[InstanceState.CANARY],
            count[LaggingState.REJECTED],
            count[LaggingState.BEHIND],
            count[LaggingState.SILENT],
            total,
            tuple(sorted(self.lagging, key=lambda one: (_RANK[one.state], one.node))[:most]),
            step,
            due,
        )


def added_up(
    sightings: Iterable[AgentSighting],
    names: Mapping[str, str],
    active: str,
    pace: SummaryPace,
    now: int,
    held: HeldSum | None = None,
) -> dict[str, RevisionAgents]:
    """What agents make of revisions, by the names of their objects; `active` is the one that all are to run, `held` one that some are.

    `names` gives the object of a revision by what agents call it. Agents that follow no revision of ours are left out;
    without any other there is nothing to say, but of a rollout that none is due.
    """
    adding: dict[str, _Adding] = {}
    total = due = 0
    for one in sightings:
        if isinstance(one.runs, AgentRuns) and one.runs.origin.startswith(_ELSEWHERE):
            continue
        total += 1
        wanted = [active]
        if held is not None and one.due:
            due += 1
            wanted.append(held.name)
        if one.reported_at is None or now - one.reported_at > pace.silent_after:
            lags = _silent(one)
        elif isinstance(one.runs, Unreadable):
            lags = LaggingAgent(one.node, LaggingState.BEHIND, "", _UNREADABLE, one.runs.reason)
        else:
            _count(adding, one.node, one.runs, names, wanted)
            continue
        for name in wanted:
            _of(adding, name).lag(lags)
    if total:
        _of(adding, active)
    if held is not None:
        _of(adding, held.name)
    return {
        name: found.told(pace.most_named, None, held.step, due)
        if held is not None and name == held.name
        else found.told(pace.most_named, total if name == active else None)
        for name, found in adding.items()
    }


def _count(
    adding: dict[str, _Adding], node: str, runs: AgentRuns, names: Mapping[str, str], wanted: Sequence[str]
) -> None:
    """An agent that reports: what it makes of the revisions that are wanted of it, and of any other."""
    made: dict[str, str] = {}
    for name, state in _states(runs, names):
        made.setdefault(name, state)
    for name, state in made.items():
        if state == LaggingState.REJECTED:
            _of(adding, name).lag(
                LaggingAgent(node, LaggingState.REJECTED, _short(runs), runs.reason[:_LONGEST], runs.message)
            )
        else:
            _of(adding, name).counts[state] += 1
    for name in wanted:
        if made.get(name) in (None, InstanceState.SHADOW):
            _of(adding, name).lag(LaggingAgent(node, LaggingState.BEHIND, _short(runs)))


def _states(runs: AgentRuns, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Objects of revisions and what the agent makes of each, what decides first."""
    running = names.get(runs.revision) or names.get(f"sha256:{runs.digest}")
    if running:
        yield running, InstanceState.ACTIVE
    held = names.get(runs.candidate)
    if held and runs.stage in (InstanceState.SHADOW, InstanceState.CANARY):
        yield held, runs.stage
    rejected = names.get(runs.rejected)
    if rejected:
        yield rejected, LaggingState.REJECTED


def _of(adding: dict[str, _Adding], name: str) -> _Adding:
    return adding.setdefault(name, _Adding())


def _silent(one: AgentSighting) -> LaggingAgent:
    said = _short(one.runs) if isinstance(one.runs, AgentRuns) else ""
    return LaggingAgent(one.node, LaggingState.SILENT, said)


def _short(runs: AgentRuns) -> str:
    return runs.revision[:_LONGEST_NAME]
