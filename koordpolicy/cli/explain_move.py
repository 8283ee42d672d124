"""`koordpolicy explain move POD`: whether the descheduler would have a pod leave its node, why or why not, and where the scheduler would put it."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from koordpolicy.algorithms.descheduling.relief_round import ReliefStop
from koordpolicy.algorithms.work import finished
from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.explain_not_meant import not_meant
from koordpolicy.cli.explain_pod import ExplainedPod, objects_by_key, pod_named, where_it_goes
from koordpolicy.cli.picture import as_of_reports, picture_of
from koordpolicy.cli.pod_policies import policies_of
from koordpolicy.cli.simulation.words import Page
from koordpolicy.cli.terminal import Terminal
from koordpolicy.cluster.event_handlers import replay
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.relocation import Relocations
from koordpolicy.descheduler.by_peers import PEER_PLUGINS
from koordpolicy.descheduler.evictor import within_budgets
from koordpolicy.descheduler.low_node_load import NEITHER, PoolReport
from koordpolicy.descheduler.migration.rules import MigrationRules
from koordpolicy.descheduler.moves import Move
from koordpolicy.descheduler.process import WATCHED
from koordpolicy.descheduler.round import STOPPED, Memories, RoundReport, run_round
from koordpolicy.descheduler.rules import KIND, ProfileRules, Stays, StrategyRules
from koordpolicy.descheduler.snapshot import ClusterSnapshot, SeenNode, SeenPod, snapshot_of
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.relocation import SchedulerRelocations


@dataclass(frozen=True, slots=True)
class ProfileAnswer:
    """What one profile says of a pod: its move, or each reason why it stays."""

    profile: str
    move: Move | None
    reasons: Sequence[Stays] = ()


def explain_move(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Say whether the pod of the arguments would be moved, and where it would go. Raises `CannotRunError`."""
    if arguments.policies and arguments.policies_from_cluster:
        raise CannotRunError("policies come from `-p` or from the cluster: give one of the two")
    cluster, heard = picture_of(arguments, terminal)
    if arguments.filename and not arguments.snapshot:
        cluster = as_of_reports(cluster)
    policies = policies_of(arguments, heard)
    pod = pod_named(cluster, str(arguments.name))
    if not pod.node_name:
        raise CannotRunError(
            f"the pod `{'/'.join(pod.key)}` is on no node: `koordpolicy explain pod` says where it goes"
        )
    objects = known_objects(cluster, terminal)
    relocations = SchedulerRelocations(policies.graph, lambda: cluster.taken)
    for _ in replay(objects_by_key(cluster), relocations, WATCHED):
        pass  # what cannot be read has been told
    goes = where_it_goes(policies, cluster, pod, 0, terminal)
    elsewhere = goes.decision.placed and goes.decision.node != goes.on
    answers = [*answers_on(policies.graph, objects, pod.key, cluster.taken, relocations, elsewhere=elsewhere)]
    if arguments.output == "json":
        terminal.print(json_text(_plain(goes, answers), indent=2))
    else:
        page = Page(terminal.width, terminal.colour())
        terminal.print("\n".join(_lines(goes, answers, page)))
    return OK


def known_objects(cluster: Snapshot, terminal: Terminal) -> ClusterObjects:
    """What a descheduler knows of a picture; what cannot be read is told."""
    objects = ClusterObjects()
    for resource, obj, why in replay(objects_by_key(cluster), objects, WATCHED):
        terminal.say(f"{resource} {obj['metadata']['name']} is unreadable: {why.reason}")
    return objects


def answers_on(
    graph: RuleGraph,
    objects: ClusterObjects,
    key: PodKey,
    now: int,
    relocations: Relocations | None = None,
    *,
    elsewhere: bool = True,
) -> Iterator[ProfileAnswer]:
    """What each profile says of a pod, as if nodes were too full for long enough; `elsewhere` is whether the scheduler has another node for it."""
    snapshot = finished(snapshot_of(objects, graph.catalogue, now))
    found = _seen(snapshot, key)
    for name in graph.subjects(KIND):
        try:
            rules = ProfileRules(graph, name)
        except CelError as error:
            yield ProfileAnswer(name, None, [Stays("policy", f"the profile cannot be asked: {error}")])
            continue
        if found is None:
            why = "its node is not ready"
            yield ProfileAnswer(name, None, [Stays("node", why)])
            continue
        report = finished(
            run_round(
                rules,
                # A round changes what it sees: each profile gets its own.
                finished(snapshot_of(objects, graph.catalogue, now)),
                graph.catalogue,
                Memories(impatient=True),
                lambda going, pod: within_budgets(objects, going, pod),
                relocations,
            )
        )
        move = next((one for one in report.moves if one.pod.key == key), None)
        reasons = (
            [] if move is not None else [*_reasons(graph, rules, report, objects, *found, now, elsewhere)]
        )
        reasons += (
            []
            if move is None or not rules.migrate or move.pod.terminal
            else [*_no_migration(graph, found[1], now)]
        )
        yield ProfileAnswer(name, None if reasons else move, reasons)


def _seen(snapshot: ClusterSnapshot, key: PodKey) -> tuple[SeenNode, SeenPod] | None:
    return next(
        ((node, pod) for node in snapshot.nodes for pod in (*node.pods, *node.ended) if pod.pod.key == key),
        None,
    )


def _reasons(
    graph: RuleGraph,
    rules: ProfileRules,
    report: RoundReport,
    objects: ClusterObjects,
    node: SeenNode,
    pod: SeenPod,
    now: int,
    elsewhere: bool,
) -> Iterator[Stays]:
    """Everything that keeps a pod, the profile first."""
    if report.idle:
        yield Stays("profile", report.idle)
        return
    if not rules.looks_at(node.facts, now):
        yield Stays("nodes", "the profile does not look at its node")
        return
    barred = list(rules.all_that_stays(pod.facts, node.facts, now))
    kept = report.kept.get(pod.pod.key)
    if kept is not None:
        yield from (*barred, kept)
        return
    budget = within_budgets(objects, [], pod)
    if budget is not None:
        barred.append(budget)
    # Those that are off are worth a word only where none is on.
    shown = [one for one in rules.strategies if one.enabled] or rules.strategies
    said = [_Strategy(graph, rules, report, strategy, elsewhere, now) for strategy in shown]
    yield from barred
    if barred and any(one.unwilling(node, pod) is None for one in said):
        return  # one has it go: nothing but what bars it keeps it
    for one in said:
        yield Stays(f"strategies[{one.strategy.name}]", one.unwilling(node, pod) or one.passed_over(node))


@dataclass(frozen=True, slots=True)
class _Strategy:
    """What one strategy says of a pod in a round."""

    graph: RuleGraph
    rules: ProfileRules
    report: RoundReport
    strategy: StrategyRules
    elsewhere: bool
    now: int

    def unwilling(self, node: SeenNode, pod: SeenPod) -> str | None:
        """Why it does not mean the pod; None where it does."""
        strategy, now = self.strategy, self.now
        if not strategy.enabled:
            return "the strategy is switched off"
        if not strategy.looks_at(node.facts, now):
            return "the strategy does not look at its node"
        if strategy.ended != pod.pod.terminal:
            return f"the strategy looks at pods that {'have ended' if strategy.ended else 'run'}"
        if not strategy.candidate(pod.facts, node.facts, now):
            return (
                f"the strategy does not mean it{not_meant(self.graph, self.rules, strategy, pod, node, now)}"
            )
        if strategy.plugin in PEER_PLUGINS:
            return None
        if strategy.load is None:
            return None if strategy.releases(node.facts, now) else "its node releases nobody"
        pool = self._pool(node)
        if pool is None:
            return "the strategy does not count its node: no pool has it, or it has not reported lately"
        group = pool.group_of(node.name)
        if not pool.is_too_full(node.name):
            return f"its node counts as {'neither high nor low' if group == NEITHER else group}"
        if pool.stop is None or pool.stop is ReliefStop.NOTHING_EVICTABLE:
            return None
        return f"its node counts as {group}, and nothing moves there: {STOPPED[pool.stop]}"

    def passed_over(self, node: SeenNode) -> str:
        """Why it does not have a pod go that it means."""
        others = sum(move.strategy == self.strategy.name for move in self.report.moves)
        pool = self._pool(node)
        if pool is not None:
            why = "others go before it" if pool.stop is None else f"nothing moves there: {STOPPED[pool.stop]}"
            return f"its node counts as {pool.group_of(node.name)}, and {why}"
        if others:
            return f"{others} {'other goes' if others == 1 else 'others go'} before it"
        if not self.elsewhere:
            return "no other node has room for it"
        peers = self.strategy.plugin in PEER_PLUGINS
        return "beside the others it need not go" if peers else "as many as may go are others"

    def _pool(self, node: SeenNode) -> PoolReport | None:
        pools = self.report.pools.get(self.strategy.name, ())
        return next((one for one in pools if one.group_of(node.name)), None)


def _no_migration(graph: RuleGraph, pod: SeenPod, now: int) -> Iterator[Stays]:
    """Why a pod that is to go gets no migration."""
    try:
        rules = MigrationRules(graph)
    except CelError as error:
        yield Stays("Migration", f"policy cannot be asked: {error}")
        return
    barred = rules.barred(pod.facts, pod.pod.scheduler_name, now)
    if barred is not None:
        yield barred


# --- the answer -----------------------------------------------------------------------------------


def _plain(goes: ExplainedPod, answers: Sequence[ProfileAnswer]) -> dict[str, Any]:
    return {
        "pod": "/".join(goes.pod.key),
        "on": goes.on,
        "profiles": [
            {
                "profile": one.profile,
                "moves": one.move is not None,
                "strategy": None if one.move is None else one.move.strategy,
                "reason": None if one.move is None else one.move.reason,
                "stays": [{"condition": stays.condition, "reason": stays.reason} for stays in one.reasons],
            }
            for one in answers
        ],
        "scheduler": {
            "profile": goes.profile,
            "node": goes.decision.node or None,
            "message": goes.decision.message.partition("\n")[0] or None,
        },
        "policies": goes.policies.plain(),
    }


def _lines(goes: ExplainedPod, answers: Sequence[ProfileAnswer], page: Page) -> Iterator[str]:
    name, moved = "/".join(goes.pod.key), any(one.move is not None for one in answers)
    yield page.heading(f"{name} would {'leave' if moved else 'stay on'} {goes.on}", "descheduler")
    for one in answers:
        if one.move is not None:
            yield from page.wrapped(
                f"{one.profile}: {one.move.strategy} would have it go: {one.move.reason}", 2
            )
            continue
        yield from page.wrapped(f"{one.profile}: it stays", 2)
        for stays in one.reasons:
            yield from page.wrapped(f"{stays.condition}: {stays.reason}", 4)
    node = goes.decision.node
    if not goes.decision.placed:
        message = goes.decision.message.partition("\n")[0]
        yield from page.wrapped(f"The scheduler would find no node for it now: {message}", 2)
    elif node == goes.on:
        yield from page.wrapped(
            f"The scheduler would put it on {node} again, were it not kept from there.", 2
        )
    else:
        yield from page.wrapped(f"The scheduler would put it on {node}.", 2)
