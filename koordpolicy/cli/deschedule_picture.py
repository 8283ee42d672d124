"""`koordpolicy descheduler --once` on a picture of a cluster: what one round of each profile finds there. Nobody goes."""

import argparse
from collections.abc import Iterator
from dataclasses import replace

from koordpolicy.algorithms.work import finished
from koordpolicy.cli.bundle import graph_of
from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.explain_pod import objects_by_key
from koordpolicy.cli.picture import as_of_reports, picture_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.cluster.event_handlers import EVERY_RESOURCE, replay
from koordpolicy.cluster.listeners import Listeners
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.descheduler.evictor import within_budgets
from koordpolicy.descheduler.migration.rules import MigrationRules
from koordpolicy.descheduler.round import Memories, RoundReport, report_data, report_text, run_round
from koordpolicy.descheduler.rules import KIND, ProfileRules, Stays
from koordpolicy.descheduler.snapshot import ClusterSnapshot, snapshot_of
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.relocation import SchedulerRelocations


def deschedule_picture(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Say what one round of each profile finds. Raises `CannotRunError`."""
    if not arguments.once:
        raise CannotRunError("a picture stands still: give `--once` beside `--snapshot` or `--filename`")
    if arguments.policies_from_cluster or arguments.policies_repo:
        raise CannotRunError("of a picture it is asked by the policies that `-p` names")
    cluster, _ = picture_of(arguments, terminal)
    if arguments.filename:
        cluster = as_of_reports(cluster)
    graph = graph_of([arguments.policies] if arguments.policies else [])
    objects = ClusterObjects()
    relocations = SchedulerRelocations(graph, lambda: cluster.taken)
    for resource, obj, why in replay(
        objects_by_key(cluster), Listeners(objects, relocations), EVERY_RESOURCE
    ):
        terminal.say(f"{resource} {obj['metadata']['name']} is unreadable: {why.reason}")
    try:
        for report in _rounds(graph, objects, relocations, arguments.profile, cluster.taken):
            if arguments.output == "json":
                terminal.print(json_text(report_data(report)))
            else:
                terminal.print("\n".join(report_text(report)))
    except CelError as error:
        raise CannotRunError(f"a profile of Descheduling cannot be asked: {error}") from None
    return OK


def _rounds(
    graph: RuleGraph, objects: ClusterObjects, relocations: SchedulerRelocations, profile: str, now: int
) -> Iterator[RoundReport]:
    names = [one for one in graph.subjects(KIND) if profile in ("", one)]
    if not names:
        raise CannotRunError(f"the policies have no profile `{profile}` of Descheduling")
    for name in names:
        rules = ProfileRules(graph, name)
        # A round changes what it sees: each profile gets its own.
        snapshot = finished(snapshot_of(objects, graph.catalogue, now))
        report = finished(
            run_round(
                rules,
                snapshot,
                graph.catalogue,
                Memories(impatient=True),
                lambda going, pod: within_budgets(objects, going, pod),
                relocations,
            )
        )
        yield replace(report, barred=_barred(graph, snapshot, report, now)) if rules.migrate else report


def _barred(
    graph: RuleGraph, snapshot: ClusterSnapshot, report: RoundReport, now: int
) -> dict[PodKey, Stays]:
    """Why pods that are to go get no migration."""
    if not report.moves:
        return {}
    rules = MigrationRules(graph)
    going = {one.pod.key for one in report.moves}
    seen = {one.pod.key: one for node in snapshot.nodes for one in node.pods if one.pod.key in going}
    found = {key: rules.barred(one.facts, one.pod.scheduler_name, now) for key, one in seen.items()}
    return {key: why for key, why in found.items() if why}
