"""`koordpolicy explain pod`: where a pod goes and why, or what would help it, on a cluster or a picture of one."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.explain_admission import READ, plain_verdict, verdict
from koordpolicy.cli.explain_holds import ExplainedHolds, hold_lines, holds_of_picture, plain_holds
from koordpolicy.cli.picture import picture_of
from koordpolicy.cli.pod_policies import Policies, policies_of
from koordpolicy.cli.simulation.explained import tables
from koordpolicy.cli.simulation.words import DIM, Page
from koordpolicy.cli.snapshot_facts import SnapshotFacts
from koordpolicy.cli.terminal import Terminal
from koordpolicy.cluster.event_handlers import replay
from koordpolicy.cluster.pods import scheduler_of
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import PODS, Resource
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.manager.webhooks.rehearsal import PictureObjects, Rehearsal, RehearsedAdmission
from koordpolicy.model.pod import Pod, PodKey, read_pod
from koordpolicy.model.reading import mapping
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.scheduler import PodDecision
from koordpolicy.scheduler.decision import Victim
from koordpolicy.scheduler.explanation import explanation
from koordpolicy.scheduler.job_room import rehearse
from koordpolicy.scheduler.plugins.reservation import RESERVATION
from koordpolicy.scheduler.plugins.reservation.telling import ToldReservation, told
from koordpolicy.scheduler.plugins.volumes.binding import claims_of
from koordpolicy.scheduler.profile import KIND
from koordpolicy.scheduler.scheduler import DEFAULT_PROFILE, Scheduler
from koordpolicy.scheduler.watched import WATCHED


@dataclass(frozen=True, slots=True)
class ExplainedPod:
    """A pod with the decision on it, `profile` the one that was asked; `on` is where it is already."""

    pod: Pod
    on: str
    profile: str
    decision: PodDecision
    table: Mapping[str, Any]
    policies: Policies
    gates: tuple[str, ...] = ()
    """What holds it back from being tried at all."""
    kept_out: str = ""
    """Why a plugin keeps it out of the queue, as one does whose gang is not there."""
    claims: tuple[str, ...] = ()
    """Its claims for which a node is selected, and no volume is there yet: it has been decided on, and waits for these."""
    reservations: tuple[ToldReservation, ...] = ()
    """The Reservations that it owns, with what is to be said of each."""
    admission: RehearsedAdmission | None = None
    """What becomes of it at its creation; None for one that is on a node."""
    submitted: bool = False
    """Whether it is to be created yet: then the decision is on what admission makes of it."""
    held: ExplainedHolds | None = None
    """What holds it back on its node; None for one that is on none."""


def explain_pod(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Say where the pod of the arguments goes, or why nowhere, and by which policies. Raises `CannotRunError`."""
    if arguments.policies and arguments.policies_from_cluster:
        raise CannotRunError("policies come from `-p` or from the cluster: give one of the two")
    cluster, heard = picture_of(arguments, terminal)
    policies = policies_of(arguments, heard)
    pod = pod_named(cluster, str(arguments.name))
    submitted = bool(arguments.filename) and not pod.node_name
    admission = None if pod.node_name else _admission(policies, cluster, pod)
    if submitted and admission is not None and admission.changes and not admission.refused:
        pod = _admitted(pod, admission.mutation.pod)
    found = where_it_goes(policies, cluster, pod, max(0, arguments.top), terminal)
    found = replace(
        found, admission=admission, submitted=submitted, held=_held(policies, cluster, pod, terminal)
    )
    if arguments.output == "json":
        terminal.print(json_text(plain_pod(found), indent=2))
    else:
        page = Page(terminal.width, terminal.colour())
        terminal.print("\n".join(_lines(found, page)))
    return OK


# --- the question ---------------------------------------------------------------------------------


def _admission(policies: Policies, cluster: Snapshot, pod: Pod) -> RehearsedAdmission:
    objects = PictureObjects(policies.graph, {resource: cluster.of(resource) for resource in READ})
    return Rehearsal(policies.graph, objects, cluster.taken).of(pod.raw)


def _held(policies: Policies, cluster: Snapshot, pod: Pod, terminal: Terminal) -> ExplainedHolds | None:
    if not pod.node_name or pod.terminal:
        return None
    try:
        return holds_of_picture(policies, policies.graph, cluster, SnapshotFacts(cluster), pod)
    except CannotRunError as error:
        terminal.say(f"what holds it back is not told: {error}")
        return None


def _admitted(pod: Pod, changed: Object) -> Pod:
    """The pod as admission leaves it, with what the cluster keeps of it."""
    metadata = {**mapping(pod.raw, "metadata"), **mapping(changed, "metadata")}
    return _read({**pod.raw, "metadata": metadata, "spec": changed["spec"]}, pod.name)


def where_it_goes(
    policies: Policies, cluster: Snapshot, pod: Pod, top: int, terminal: Terminal
) -> ExplainedPod:
    """Where the scheduler would put a pod, if it came anew. `top`: best nodes that are told of."""
    graph = policies.graph
    wanted = scheduler_of(pod)
    profile = wanted if wanted in graph.subjects(KIND) else DEFAULT_PROFILE
    if profile != wanted:
        reason = f"the policies have no profile `{wanted}`" if wanted else "the pod names no scheduler"
        terminal.say(f"{reason}; `{profile}` is asked instead")
    # It is asked of as if it came anew; one that waits may be promised a node already.
    without = pod.key if pod.node_name else None
    scheduler = scheduler_of_picture(
        policies, cluster, profile, top, objects_by_key(cluster, without), terminal
    )
    spec = {key: value for key, value in mapping(pod.raw, "spec").items() if key != "nodeName"}
    free = replace(pod, node_name="", raw={**pod.raw, "spec": spec}) if pod.node_name else pod
    decision = rehearse(scheduler.framework, scheduler.gangs, free)
    view = scheduler.framework.cycle(free).view
    table = explanation(graph, scheduler.profile, decision, view.facts)
    gates = () if pod.node_name else view.placement.gates
    kept_out = "" if pod.node_name else scheduler.kept_out(pod.key)
    claims: tuple[str, ...] = ()
    if decision.placed and not pod.node_name:
        waiting = claims_of(view, scheduler.cache.state.volumes).waiting
        claims = tuple(claim.name for claim in waiting if claim.selected_node == decision.node)
    reservations = told(
        view, scheduler.cache.state.reservations, checks_taints=_checks_taints(scheduler, free)
    )
    return ExplainedPod(
        pod,
        pod.node_name,
        profile,
        decision,
        table,
        policies,
        gates,
        kept_out,
        claims,
        reservations,
    )


def _checks_taints(scheduler: Scheduler, pod: Pod) -> bool:
    """Whether taints of Reservations keep off pods that say nothing of any."""
    records = scheduler.framework.cycle(pod).records
    asked = [step for step in scheduler.profile.filters if step.plugin is RESERVATION]
    return any(step.values(records).get("checksTaints") is True for step in asked)


Objects = Callable[[Resource], Iterator[Object]]


def objects_by_key(cluster: Snapshot, without: PodKey | None = None) -> Objects:
    """The objects of a picture in the order in which a server lists them, since the first of equal nodes is taken; but for a pod."""

    def objects(resource: Resource) -> Iterator[Object]:
        for obj in sorted(cluster.of(resource), key=_key):
            if without is None or resource is not PODS or _key(obj) != without:
                yield obj

    return objects


def scheduler_of_picture(
    policies: Policies, cluster: Snapshot, profile: str, top: int, objects: Objects, terminal: Terminal
) -> Scheduler:
    """A scheduler that knows a picture of a cluster. What cannot be read of it is told."""
    scheduler = Scheduler(policies.graph, lambda: cluster.taken, profile=profile, explained=top)
    for resource, obj, why in replay(objects, scheduler, WATCHED):
        terminal.say(f"{resource} {'/'.join(_key(obj))} is unreadable: {why.reason}")
    return scheduler


def pod_named(cluster: Snapshot, name: str) -> Pod:
    """A pod by its name, or by namespace and name. Raises `CannotRunError`."""
    namespace, _, short = name.rpartition("/")
    key = (namespace or "default", short)
    for obj in cluster.pods:
        if _key(obj) == key:
            return _read(obj, name)
    others = sorted("/".join(_key(obj)) for obj in cluster.pods if _key(obj)[1] == short)
    help = f"; there is `{others[0]}`" if others else f", of {len(cluster.pods):,} pods"
    raise CannotRunError(f"there is no pod `{'/'.join(key)}`{help}")


def _read(obj: Object, name: str) -> Pod:
    pod = readable(read_pod, obj)
    if isinstance(pod, Unreadable):
        raise CannotRunError(f"the pod `{name}` is unreadable: {pod.reason}")
    return pod


def _key(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return str(metadata.get("namespace") or "default"), str(metadata["name"])


# --- the answer -----------------------------------------------------------------------------------


def plain_pod(found: ExplainedPod) -> dict[str, Any]:
    """As JSON values."""
    decision, preemption = found.decision, found.decision.preemption
    return {
        **{name: value for name, value in found.table.items() if name != "node"},
        "admission": None if found.admission is None else plain_verdict(found.admission, found.policies),
        "profile": found.profile,
        "policies": found.policies.plain(),
        "on": found.on or None,
        "gates": list(found.gates),
        "keptOutOfQueue": found.kept_out or None,
        "waitingForClaims": list(found.claims),
        **({"reservations": [one._asdict() for one in found.reservations]} if found.reservations else {}),
        "node": decision.node or None,
        "message": decision.message.partition("\n")[0] or None,
        "advice": list(decision.advice),
        "preemption": None
        if preemption is None
        else {
            "node": preemption.node,
            "victims": ["/".join(victim.pod) for victim in preemption.victims],
            "violations": preemption.violations,
        },
        "revision": decision.digest,
        **({} if found.held is None else {"held": plain_holds(found.held, found.policies.graph)}),
    }


def _lines(found: ExplainedPod, page: Page) -> Iterator[str]:
    decision = found.decision
    name = "/".join(found.pod.key)
    admission = found.admission
    refused = admission is not None and bool(admission.refused)
    if refused and found.submitted:
        would = f"would go to {decision.node}" if decision.placed else "would find no node"
        yield page.heading(f"{name} would be refused at its creation; admitted, it {would}", found.profile)
    elif found.gates:
        one = len(found.gates) == 1
        gates = ", ".join(found.gates)
        yield page.heading(f"{name} is gated, and would not be tried", found.profile)
        would = f"it would go to {decision.node}" if decision.placed else "it would find no node"
        yield from page.wrapped(
            f"Scheduling gate{'' if one else 's'} {gates} hold{'s' if one else ''} it back; without"
            f" {'it' if one else 'them'} {would} now.",
            2,
        )
    elif found.kept_out:
        yield page.heading(f"{name} is kept out of the queue, and would not be tried", found.profile)
        would = f"go to {decision.node}" if decision.placed else "find no node"
        yield from page.wrapped(f"{found.kept_out}. But for that it would {would} now.", 2)
    elif decision.placed and found.on:
        same = (
            "where it would go again" if decision.node == found.on else f"but would go to {decision.node} now"
        )
        yield page.heading(f"{name} is on {found.on}, {same}", found.profile)
    elif found.claims:
        yield page.heading(f"{name} waits for its claims (binding), to go to {decision.node}", found.profile)
        one = len(found.claims) == 1
        yield from page.wrapped(
            f"The node is selected for the claim{'' if one else 's'} {', '.join(found.claims)}, which"
            f" {'has' if one else 'have'} no volume there yet: the provisioner of the storage class makes"
            f" {'it' if one else 'them'}. Then the pod is bound.",
            2,
        )
    elif decision.placed:
        yield page.heading(f"{name} would go to {decision.node}", found.profile)
    elif found.on:
        yield page.heading(f"{name} is on {found.on}, but would find no node now", found.profile)
    else:
        yield page.heading(f"{name} finds no node", found.profile)
    policies = found.policies
    yield from page.wrapped(policies.told, 4, "  ")
    yield from page.wrapped(policies.note, 4)
    yield ""
    if admission is not None and (
        refused or (found.submitted and (admission.warnings or admission.violations))
    ):
        if not found.submitted:
            yield from page.wrapped("It is there already; created anew, it would be refused:", 2)
        yield from verdict(admission, policies, page)
        yield ""
    if found.submitted and admission is not None and admission.changes and not refused:
        count = sum(len(step.changes) for step in admission.changes)
        places = "1 place" if count == 1 else f"{count} places"
        yield from page.wrapped(
            f"Admission changes it in {places} first, which is counted here; `explain pod -f` without a name shows them.",
            2,
        )
        yield ""
    if not decision.placed:
        yield from page.wrapped(decision.message.partition("\n")[0], 2)
        yield from _ways_out(decision, page)
        yield ""
    if found.reservations:
        for told_of in found.reservations:
            yield from page.wrapped(f"Reservation {told_of.name} on {told_of.node}: {told_of.why}.", 2)
        yield ""
    yield from tables(found.table, page)
    if found.held is not None:
        yield ""
        yield from hold_lines(found.held, policies.graph, page)


def _gone(victim: Victim) -> str:
    name = "/".join(victim.pod)
    return f"{name} on {victim.node}" if victim.node else name


def _ways_out(decision: PodDecision, page: Page) -> Iterator[str]:
    preemption = decision.preemption
    if preemption is not None:
        gone = ", ".join(map(_gone, preemption.victims)) or "nobody"
        broken = f", which breaks {preemption.violations} disruption budgets" if preemption.violations else ""
        more = " and where its gang is to go" if preemption.beside else ""
        yield from page.wrapped(
            f"Room would be made on {preemption.node}{more}: {gone} would have to go{broken}.", 2
        )
    if decision.advice:
        yield page.paint("  What would help:", DIM)
        for line in decision.advice:
            yield from page.wrapped(f"{line}.", 6, "    ")
