"""`koordpolicy explain migration JOB`, or of a pod: why a migration was made, where its pod is to go, and what it waits for."""

import argparse
from collections.abc import Iterable, Iterator
from typing import Any

from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.explain_move import known_objects
from koordpolicy.cli.picture import as_of_reports, picture_of
from koordpolicy.cli.pod_policies import Policies, policies_of
from koordpolicy.cli.simulation.words import Page, length
from koordpolicy.cli.terminal import Terminal
from koordpolicy.descheduler.migration.job import MigrationJob, read_job
from koordpolicy.descheduler.migration.standing import (
    MigrationPicture,
    MigrationStanding,
    job_text,
    pod_of_status,
)
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.describe.layout import place
from koordpolicy.graph.graph import UnknownDecision
from koordpolicy.kube.resources import (
    POD_MIGRATION_JOBS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESERVATIONS,
    STATEFUL_SETS,
)
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.protocol import DESCHEDULING_PROFILE, EVICT_REASON, EVICT_TRIGGER
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.unreadable import Unreadable, readable


def explain_migration(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Say where the migration of the arguments stands. Raises `CannotRunError`."""
    if arguments.policies and arguments.policies_from_cluster:
        raise CannotRunError("policies come from `-p` or from the cluster: give one of the two")
    cluster, heard = picture_of(arguments, terminal)
    if arguments.filename and not arguments.snapshot:
        cluster = as_of_reports(cluster)
    policies = policies_of(arguments, heard)
    jobs = [*_jobs(cluster, terminal)]
    found = _standing(policies, cluster, jobs, _named(jobs, str(arguments.name)), terminal)
    if arguments.output == "json":
        terminal.print(json_text(plain_migration(found, policies), indent=2))
    else:
        terminal.print("\n".join(_lines(found, policies.graph, Page(terminal.width, terminal.colour()))))
    return OK


def migration_of_pod(
    policies: Policies, cluster: Snapshot, pod: str, terminal: Terminal
) -> MigrationStanding | None:
    """The latest migration of a pod, `namespace/name`, or the one that it came by; None without any. Raises `CannotRunError`."""
    jobs = [*_jobs(cluster, terminal)]
    job = _latest(one for one in jobs if "/".join(one.pod) == pod) or _latest(
        one for one in jobs if pod_of_status(one) == pod
    )
    return None if job is None else _standing(policies, cluster, jobs, job, terminal)


def _standing(
    policies: Policies, cluster: Snapshot, jobs: list[MigrationJob], job: MigrationJob, terminal: Terminal
) -> MigrationStanding:
    picture = MigrationPicture(
        policies.graph,
        known_objects(cluster, terminal),
        jobs,
        {one["metadata"]["name"]: one for one in cluster.of(RESERVATIONS)},
        {
            one["metadata"]["uid"]: one
            for resource in (REPLICA_SETS, STATEFUL_SETS, REPLICATION_CONTROLLERS)
            for one in cluster.of(resource)
            if one["metadata"].get("uid")
        },
        cluster.pods,
        cluster.taken,
    )
    try:
        return picture.standing(job)
    except (CelError, ObjectError) as error:
        raise CannotRunError(f"it cannot be told where the migration `{job.name}` stands: {error}") from None


def _jobs(cluster: Snapshot, terminal: Terminal) -> Iterator[MigrationJob]:
    for obj in cluster.of(POD_MIGRATION_JOBS):
        found = readable(read_job, obj)
        if isinstance(found, Unreadable):
            terminal.say(f"the migration {obj['metadata'].get('name')} is unreadable: {found.reason}")
        else:
            yield found


def _named(jobs: list[MigrationJob], name: str) -> MigrationJob:
    """A job by its name, or the latest of a pod, one that is not over before others. Raises `CannotRunError`."""
    own = [one for one in jobs if one.name == name]
    namespace, _, short = name.rpartition("/")
    of_pod = [one for one in jobs if one.pod == (namespace or "default", short)]
    found = _latest(own or of_pod)
    if found is None:
        raise CannotRunError(
            f"there is no PodMigrationJob `{name}`, nor one of a pod of that name, of {len(jobs):,};"
            f" whether the pod would be moved says `koordpolicy explain move {name}`"
        )
    return found


def _latest(jobs: Iterable[MigrationJob]) -> MigrationJob | None:
    """One that is not over before others."""
    return max(jobs, key=lambda one: (not one.done, one.created_at, one.name), default=None)


def _made_by(job: MigrationJob, graph: RuleGraph) -> tuple[str, str, str, str]:
    """Strategy, reason, profile, and where policy switches the strategy on; empty where it does not say."""
    strategy = job.annotations.get(EVICT_TRIGGER, "")
    profile = job.annotations.get(DESCHEDULING_PROFILE, "")
    line = _place(graph, f"Descheduling/{profile}.strategies[{strategy}].enabled") if strategy else ""
    return strategy, job.annotations.get(EVICT_REASON, ""), profile, line


def _place(graph: RuleGraph, decision: str) -> str:
    """Where the last word on a decision stands; empty where policies do not have it."""
    try:
        rules = graph.decision(decision).rules
    except UnknownDecision:
        return ""
    return place(rules[0].span) if rules else ""


def plain_migration(found: MigrationStanding, policies: Policies) -> dict[str, Any]:
    """As JSON values."""
    job, graph = found.job, policies.graph
    strategy, reason, profile, line = _made_by(job, graph)
    return {
        "migration": job.name,
        "pod": "/".join(job.pod),
        "on": None if found.pod is None else found.pod.node_name,
        "phase": job_text(job),
        "mode": str(found.mode),
        "strategy": strategy or None,
        "profile": profile or None,
        "reason": reason or None,
        "rule": line or None,
        "destination": _node(found) or None,
        "reservation": job.reservation or None,
        "newPod": pod_of_status(job) or None,
        "secondsLeft": None if job.done else found.left,
        "ended": {"reason": job.reason, "message": job.message} if job.done else None,
        "waitsFor": [
            {"what": one.what, "decision": one.decision or None, "rule": _rule(graph, one.decision) or None}
            for one in found.waits
        ],
        "policies": policies.plain(),
    }


def _rule(graph: RuleGraph, decision: str) -> str:
    return _place(graph, decision) if decision else ""


def _node(found: MigrationStanding) -> str:
    return (found.reservation.node_name if found.reservation is not None else "") or found.job.node


def _lines(found: MigrationStanding, graph: RuleGraph, page: Page) -> Iterator[str]:
    job = found.job
    pod = "/".join(job.pod)
    on = f" on {found.pod.node_name}" if found.pod is not None and found.pod.node_name else ", which is gone"
    yield page.heading(f"migration of {pod}: {job_text(job)}", job.name)
    yield from page.wrapped(f"The pod {pod}{on}, {found.mode}.", 2)
    strategy, reason, profile, line = _made_by(job, graph)
    if strategy:
        of = f" of {profile}" if profile else ""
        yield from page.wrapped(f"Made by {strategy}{of}: {reason or 'it gives no reason'}", 2)
        if line:
            yield from page.wrapped(f"switched on at {line}", 4)
    else:
        yield from page.wrapped("Made by a user: no strategy stands in its annotations.", 2)
    node = _node(found)
    if node:
        yield from page.wrapped(
            f"It goes to {node}: the scheduler has placed the Reservation {job.reservation} there.", 2
        )
    elif str(found.mode) == "EvictDirectly":
        yield from page.wrapped(
            "No room is kept: the scheduler finds a node for the new pod when it comes.", 2
        )
    else:
        yield from page.wrapped("It has no destination yet: the scheduler gives its Reservation one.", 2)
    taker = pod_of_status(job)
    if taker:
        yield from page.wrapped(f"{taker} has taken the room.", 2)
    for one in found.waits:
        yield from page.wrapped(f"It waits for {one.what}" if _is_noun(one.what) else f"Now: {one.what}", 2)
        if one.decision:
            yield from page.wrapped(
                f"{one.decision}, {_rule(graph, one.decision) or 'as it is by default'}", 4
            )
    if job.done:
        said = ": ".join(part for part in (job.reason, job.message) if part)
        yield from page.wrapped(f"It is over{f': {said}' if said else ''}.", 2)
    elif found.left is not None and found.left > 0:
        yield from page.wrapped(f"{length(found.left)} are left of its time.", 2)


def _is_noun(what: str) -> bool:
    return what.startswith(("arbitration", "a new pod", "the new pod", "the Reservation", "the scheduler,"))
