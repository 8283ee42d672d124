"""`koordpolicy explain gang`: how the pods of a gang stand, and where they would go together now."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.gang import Gang
from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.explain_pod import objects_by_key, scheduler_of_picture
from koordpolicy.cli.picture import picture_of
from koordpolicy.cli.pod_policies import Policies, policies_of
from koordpolicy.cli.simulation.words import Page
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.model.pod import PodKey
from koordpolicy.model.time import whole_seconds_text
from koordpolicy.scheduler.cycle import CycleProblem
from koordpolicy.scheduler.decision import PostFilterResult
from koordpolicy.scheduler.plugins.gang.gangs import Gangs
from koordpolicy.scheduler.plugins.gang.room import NoRoom
from koordpolicy.scheduler.plugins.gang.words import counted, lacking_text, shown, some
from koordpolicy.scheduler.plugins.topology.domains import DomainOffer
from koordpolicy.scheduler.plugins.topology.plan import NoPlan
from koordpolicy.scheduler.scheduler import DEFAULT_PROFILE, Scheduler

_DOMAINS: Final = 20
"""Domains that are told in text; JSON has all."""
_MEMBERS: Final = 50
"""Pods that are told in text; JSON has all."""


@dataclass(frozen=True, slots=True)
class ExplainedMember:
    """A pod of a gang: `on` is its node, `node` the one that it would get after those before it, `message` why it would get none."""

    pod: PodKey
    on: str = ""
    node: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ExplainedGang:
    """A gang with its pods, those of gangs that are placed together with it after its own."""

    gang: Gang
    members: tuple[ExplainedMember, ...]
    lacking: str
    policies: Policies
    room: PostFilterResult | None = None
    """Who would have to go for all of them, where not all find a node, and policy has others go."""
    no_room: str = ""
    """Why nobody would go then."""
    plan: Mapping[PodKey, str] | NoPlan | None = None
    """Where pods without a node are planned to go together; None where each goes anywhere."""

    @property
    def domains(self) -> tuple[DomainOffer, ...]:
        """The domains that were tried for all of them in vain."""
        return self.plan.domains if isinstance(self.plan, NoPlan) else ()

    @property
    def placed(self) -> int:
        """How many have a node, or would get one."""
        return sum(1 for one in self.members if one.on or one.node)


def explain_gang(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Say how the gang of the arguments stands, and where its pods would go. Raises `CannotRunError`."""
    if arguments.policies and arguments.policies_from_cluster:
        raise CannotRunError("policies come from `-p` or from the cluster: give one of the two")
    cluster, heard = picture_of(arguments, terminal)
    found = gang_of_picture(policies_of(arguments, heard), cluster, str(arguments.name), terminal)
    if arguments.output == "json":
        terminal.print(json_text(plain_gang(found), indent=2))
    else:
        terminal.print("\n".join(_lines(found, Page(terminal.width, terminal.colour()))))
    return OK


def gang_of_picture(policies: Policies, cluster: Snapshot, name: str, terminal: Terminal) -> ExplainedGang:
    """How a gang of a picture stands. Raises `CannotRunError`."""
    scheduler = scheduler_of_picture(policies, cluster, DEFAULT_PROFILE, 0, objects_by_key(cluster), terminal)
    gangs = scheduler.gangs
    if gangs is None:
        raise CannotRunError(
            f"the profile `{DEFAULT_PROFILE}` keeps no gangs together: name the plugin `Coscheduling` among its filters"
        )
    named = name if "/" in name else f"default/{name}"
    gang = gangs.book.gangs.get(named)
    if gang is None:
        others = sorted(one for one in gangs.book.gangs if one.rpartition("/")[2] == named.rpartition("/")[2])
        help = f"; there is `{others[0]}`" if others else f", of {len(gangs.book.gangs):,} gangs"
        raise CannotRunError(f"there is no gang `{named}`{help}")
    lacking = ""
    if gang.parameters is None:
        lacking = gangs.not_initialised(named)
    elif gangs.book.lacks(gang):
        lacking = lacking_text(gangs.book, gang)
    plan = None if lacking else _plan(scheduler, gangs, gang)
    members = tuple(_members(scheduler, gangs, gang, plan))
    room = None if lacking else _room(scheduler, gangs, members)
    if isinstance(room, NoRoom):
        return ExplainedGang(gang, members, lacking, policies, no_room=room.reason, plan=plan)
    return ExplainedGang(gang, members, lacking, policies, room, plan=plan)


def _plan(scheduler: Scheduler, gangs: Gangs, gang: Gang) -> Mapping[PodKey, str] | NoPlan | None:
    """Where its pods would be planned if the first without a node had its turn; None where they go anywhere."""
    for key in gang.pending:
        view = scheduler.waiting_view(key)
        if view is not None:
            try:
                return gangs.plan(gang, view, told=True)
            except CycleProblem as problem:
                return NoPlan(str(problem))
    return None


def _room(
    scheduler: Scheduler, gangs: Gangs, members: tuple[ExplainedMember, ...]
) -> PostFilterResult | NoRoom | None:
    """Who would go for all of them, asked for the first that finds no node."""
    for one in members:
        view = None if one.on or one.node else scheduler.waiting_view(one.pod)
        if view is not None and gangs.together(view):
            try:
                return gangs.room(view)
            except CycleProblem as problem:
                return NoRoom(str(problem))
    return None


def _members(
    scheduler: Scheduler, gangs: Gangs, gang: Gang, plan: Mapping[PodKey, str] | NoPlan | None
) -> Iterator[ExplainedMember]:
    """The pods of a gang and of those together with it, those without a node one after another as in a round of theirs."""
    together = [gang, *(one for one in gangs.book.together(gang) if one is not gang)]
    cache = scheduler.cache
    for one in together:
        for key in one.bound:
            yield ExplainedMember(key, on=cache.node_of(key) or "")
    if isinstance(plan, NoPlan):
        for key in [key for one in together for key in one.pending]:
            yield ExplainedMember(key, message=plan.reason)
        return
    planned = cache.state.network.planned
    planned.update(plan or {})
    with cache.trial():
        for key in [key for one in together for key in one.pending]:
            view = scheduler.waiting_view(key)
            if view is None:
                continue
            decision = scheduler.framework.decide(view)
            if decision.placed:
                cache.place(view, decision.node, 0)
            yield ExplainedMember(key, node=decision.node, message=decision.message.partition("\n")[0])
    planned.clear()


# --- the answer -----------------------------------------------------------------------------------


def plain_gang(found: ExplainedGang, most: int | None = None) -> dict[str, Any]:
    """As JSON values; `most` is how many are listed of each sort of thing, None for all."""
    gang, said = found.gang, found.gang.parameters
    return {
        "gang": gang.id if most is None else shown(gang.id),
        "policies": found.policies.plain(),
        "minimum": None if said is None else said.minimum,
        "mode": None if said is None else said.mode,
        "matchPolicy": None if said is None else said.match_policy,
        "together": [] if said is None else list(said.group[:most]),
        "pods": len(gang.pods),
        "count": len(found.members),
        "bound": len(gang.bound),
        "placed": found.placed,
        "lacking": found.lacking or None,
        "room": None if found.room is None else _plain_room(found.room, most),
        "noRoom": found.no_room or None,
        "domains": [
            {"name": one.name, "nodes": one.nodes, "takes": one.takes, "refused": dict(one.refused)}
            for one in found.domains[:most]
        ],
        "members": [
            {
                "pod": "/".join(one.pod),
                "on": one.on or None,
                "node": one.node or None,
                "message": one.message or None,
            }
            for one in found.members[:most]
        ],
    }


def _plain_room(room: PostFilterResult, most: int | None) -> dict[str, Any]:
    return {
        "victims": [{"pod": "/".join(one.pod), "on": one.node} for one in room.victims[:most]],
        "violations": room.violations,
        "nodes": {"/".join(key): node for key, node in room.beside[:most]},
    }


def _lines(found: ExplainedGang, page: Page) -> Iterator[str]:
    gang, said = found.gang, found.gang.parameters
    count = len(found.members)
    yield page.heading(f"gang {shown(gang.id)}: {_verdict(found)}", f"{found.placed} of {count} placed")
    policies = found.policies
    yield from page.wrapped(policies.told, 4, "  ")
    yield from page.wrapped(policies.note, 4)
    if said is not None:
        wait = whole_seconds_text(said.wait)
        yield from page.wrapped(
            f"needs {said.minimum} pods, {said.mode}, {said.match_policy}, waits {wait} for all of them",
            4,
            "  ",
        )
        if len(said.group) > 1:
            together = some(map(shown, said.group), len(said.group))
            yield from page.wrapped(f"placed together: {together}", 4, "  ")
    yield ""
    if found.lacking:
        yield from page.wrapped(f"{found.lacking}.", 4, "  ")
        yield ""
    for one in found.members[:_MEMBERS]:
        name = "/".join(one.pod)
        if one.on:
            yield from page.wrapped(f"{name} is on {one.on}", 6, "  ")
        elif one.node:
            yield from page.wrapped(f"{name} would go to {one.node}", 6, "  ")
        else:
            yield from page.wrapped(f"{name} finds no node: {one.message}", 6, "  ")
    left = found.members[_MEMBERS:]
    if left:
        nowhere = sum(1 for one in left if not (one.on or one.node))
        yield from page.wrapped(
            f"and {counted(len(left), 'pod')} more, of which {nowhere:,} find no node", 6, "  "
        )
    yield from _domains(found, page)
    yield from _ways_out(found, page)


def _domains(found: ExplainedGang, page: Page) -> Iterator[str]:
    """Which domains were tried, and why each is none for all of its pods."""
    for number, one in enumerate(found.domains[:_DOMAINS]):
        if not number:
            yield ""
        refused = ", ".join(f"{count} {reason}" for reason, count in one.refused)
        why = f": {refused}" if refused else ": no room for more beside them" if one.takes else ""
        yield from page.wrapped(f"{one.name} ({counted(one.nodes, 'node')}) takes {one.takes}{why}", 6, "  ")
    if len(found.domains) > _DOMAINS:
        yield from page.wrapped(f"{len(found.domains) - _DOMAINS:,} more take no more than that", 6, "  ")


def _ways_out(found: ExplainedGang, page: Page) -> Iterator[str]:
    """Who would have to go for the gang; or why nobody would."""
    room = found.room
    if room is None and not found.no_room:
        return
    yield ""
    if room is None:
        yield from page.wrapped(f"nobody would go for it: {found.no_room}.", 4, "  ")
        return
    victims = room.victims
    gone = some((f"{'/'.join(one.pod)} on {one.node}" for one in victims), len(victims), _MEMBERS) or "nobody"
    broken = f", which breaks {counted(room.violations, 'disruption budget')}" if room.violations else ""
    yield from page.wrapped(f"room would be made for all of them: {gone} would have to go{broken}.", 4, "  ")


def _verdict(found: ExplainedGang) -> str:
    gang, count = found.gang, len(found.members)
    if found.lacking:
        return "it is not tried"
    assert gang.parameters is not None
    if not gang.pending:
        return "all its pods are bound"
    if found.placed == count:
        return "all its pods find a node now"
    if len(gang.bound) >= gang.parameters.minimum:
        return "it runs, and not all its pods find a node"
    return "not all its pods find a node now, so that none is bound"
