"""Some of the scheduler's decisions for the decision log, each with the rules, facts and scores behind it.

What an entry says is gathered when the decision falls, while the nodes are as they were evaluated; it is written once it
is known what came of it. Decisions that are not taken cost one comparison.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from koordpolicy.graph import Answer, RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.pod import PodKey
from koordpolicy.model.table import NodeTable
from koordpolicy.runtime.decisions import DecisionLog, provenance_shown
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.evaluation import Evaluation
from koordpolicy.scheduler.profile import KIND
from koordpolicy.scheduler.select_host import comparison

LOG: Final = logging.getLogger(__name__)

_REASONS: Final = 20
"""Reasons that an entry counts nodes by, the most frequent."""
_BEST: Final = 3
"""Nodes whose scores an entry shows, the chosen one first."""
_OPEN: Final = 4096
"""Entries that wait to hear what came of their decisions; more are written without that."""
_REVISIONS: Final = 4
"""Revisions whose questions are known at once; two decide while one is rolled out."""
_FIELDS: Final = ("enabled", "require", "reason", "value", "weight", "normalize", "plugin")


class PlacementLog:
    """Writes placements down. `graph` gives the graph of a digest as far as it decides here, else the one that does;
    `revision_of` is what people call it.
    """

    def __init__(
        self,
        log: DecisionLog,
        profile: str,
        graph: Callable[[str], RuleGraph],
        revision_of: Callable[[str], str],
    ) -> None:
        self._log = log
        self._name = f"{KIND}/{profile}"
        self._graph = graph
        self._revision_of = revision_of
        self._open: dict[str, dict[str, Any]] = {}
        self._asked: dict[str, tuple[str, ...]] = {}

    def decided(
        self, cycle: Cycle, evaluation: Evaluation | None, table: NodeTable, decision: PodDecision
    ) -> None:
        """A decision has fallen: see `Scheduler.on_decided`. Whatever goes wrong here, the decision stands."""
        if not self._log.wants(self._name):
            return
        try:
            entry = self._gathered(cycle, evaluation, table, decision)
        except Exception:
            LOG.exception("a decision on %s cannot be explained in the decision log", "/".join(decision.pod))
            self._log.drop()
            return
        if len(self._open) >= _OPEN:
            self._log.add(self._open.pop(next(iter(self._open))))
        self._open[decision.uid] = entry

    def _gathered(
        self, cycle: Cycle, evaluation: Evaluation | None, table: NodeTable, decision: PodDecision
    ) -> dict[str, Any]:
        if evaluation is not None:
            with suppress(CycleProblem):
                decision = comparison(cycle, evaluation, table, decision, _BEST)
        return self._head(decision.pod, decision.uid, decision.digest) | {
            "nodes": decision.nodes,
            "feasible": decision.feasible,
            "refusals": [
                {"filter": one.filter, "reason": one.reason, "nodes": one.nodes} for one in decision.refusals
            ],
            "best": [
                {"node": one.node, "total": one.total, "scores": dict(one.parts)} for one in decision.best
            ],
            **self._provenance(cycle, decision.digest, table, decision.node),
        }

    def answered(self, cycle: Cycle, asked: int, passed: Collection[str], refused: Iterable[str]) -> None:
        """As an extender, the profile let some of the nodes pass that it was asked about; `refused` says why not."""
        if not self._log.wants(self._name):
            return
        pod, digest = cycle.view.pod, cycle.profile.digest
        counted = Counter(refused)
        entry = self._head(pod.key, pod.uid, digest) | {
            "nodes": asked,
            "feasible": len(passed),
            "refusals": [
                {"reason": reason, "nodes": nodes} for reason, nodes in counted.most_common(_REASONS)
            ],
            "result": "filtered",
        }
        try:
            entry |= self._provenance(cycle, digest)
        except Exception:
            LOG.exception("an answer on %s cannot be explained in the decision log", "/".join(pod.key))
        self._log.add(entry)

    def _head(self, pod: PodKey, uid: str, digest: str) -> dict[str, Any]:
        subject = {"pod": "/".join(pod), "uid": uid}
        return self._log.head(self._name, subject, self._revision_of(digest), digest)

    def settled(self, decision: PodDecision, result: str, error: str) -> None:
        """It is known what came of a decision: `result` in one word, `error` what went wrong."""
        if not self._open:
            return
        entry = self._open.pop(decision.uid, None)
        if entry is None:
            return
        entry["value"] = decision.node or None
        entry["result"] = result
        if error:
            entry["error"] = error
        if decision.message:
            entry["message"] = decision.message
        if decision.preemption is not None:
            entry["preemption"] = {
                "node": decision.preemption.node,
                "victims": ["/".join(victim.pod) for victim in decision.preemption.victims],
                **_beside(decision.preemption.beside),
            }
        self._log.add(entry)

    def _provenance(
        self, cycle: Cycle, digest: str, table: NodeTable | None = None, node: str = ""
    ) -> dict[str, Any]:
        """The rules of the profile that decided on this pod, on its node where it has one, and what they read."""
        graph = self._graph(digest)
        if graph.digest != digest:
            return provenance_shown((), ())  # another revision decides by now
        records: dict[str, Any] = dict(cycle.records)
        if table is not None and node in table:
            records["node"] = table.row(table.index(node))
        rules, facts = {}, {}
        for answer in self._answers(graph, records):
            for rule in answer.provenance.rules:
                rules[rule.decision, rule.document] = rule
            for fact in answer.provenance.facts:
                facts[fact.path] = fact
        return provenance_shown(tuple(rules.values()), tuple(facts[path] for path in sorted(facts)))

    def _answers(self, graph: RuleGraph, records: Mapping[str, Any]) -> Iterator[Answer]:
        for name in self._names(graph):
            try:
                yield graph.ask(name, **records)
            except CelError:
                continue

    def _names(self, graph: RuleGraph) -> tuple[str, ...]:
        """What a profile's steps ask of policy, where some rule speaks of it; found once a revision."""
        found = self._asked.get(graph.digest)
        if found is None:
            target = self._name
            found = tuple(
                str(key)
                for key in graph.decisions
                if key.target == target
                and key.field.startswith(("filters[", "scores["))
                and (key.field.rpartition(".")[2] in _FIELDS or ".parameters." in key.field)
            )
            if len(self._asked) >= _REVISIONS:
                self._asked.clear()
            self._asked[graph.digest] = found
        return found


def _beside(pods: Sequence[tuple[PodKey, str]]) -> dict[str, Any]:
    """The pods that room is made for as well, by name, with their nodes; nothing without any."""
    return {"beside": {"/".join(key): node for key, node in pods}} if pods else {}
