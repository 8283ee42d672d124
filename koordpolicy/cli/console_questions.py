"""What answers the console's questions: the same functions that `koordpolicy explain` prints the answers of."""

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from heapq import nsmallest
from typing import Any

from koordpolicy.agent.holds.evictions import decisions_of
from koordpolicy.algorithms.quota_lending import lending_below
from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.explain import answer_data
from koordpolicy.cli.explain_admission import READ, plain_admission
from koordpolicy.cli.explain_admitted import plain_admitted
from koordpolicy.cli.explain_gang import gang_of_picture, plain_gang
from koordpolicy.cli.explain_holds import holds_of_picture, plain_holds
from koordpolicy.cli.explain_migration import migration_of_pod, plain_migration
from koordpolicy.cli.explain_node_room import owned_devices, owned_zones, plain_room
from koordpolicy.cli.explain_pod import (
    objects_by_key,
    plain_pod,
    pod_named,
    scheduler_of_picture,
    where_it_goes,
)
from koordpolicy.cli.explain_quota import plain_lending, plain_quota, quota_of_picture
from koordpolicy.cli.explain_record import recorded_in
from koordpolicy.cli.pod_policies import Policies
from koordpolicy.cli.snapshot_facts import SnapshotFacts
from koordpolicy.cli.terminal import Terminal
from koordpolicy.console.worlds.world import CannotAnswer
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.describe.layout import place
from koordpolicy.graph.diff.affected import things_of
from koordpolicy.graph.graph import UnknownDecision
from koordpolicy.kube.port import Object
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.manager.webhooks.rehearsal import PictureObjects, Rehearsal
from koordpolicy.scheduler.plugins.gang.words import shown
from koordpolicy.scheduler.scheduler import DEFAULT_PROFILE, Scheduler

_BEST = 5
"""Best nodes that are told of."""
_LISTED = 500
"""Gangs, or pods of one, that a page lists; it counts the others."""


def questions_by(origin: str) -> Callable[[RuleGraph], "ConsoleQuestions"]:
    """What makes who answers by a graph; `origin` says where the policies are from."""
    return lambda graph: ConsoleQuestions(Policies(graph, origin, f"sha256:{graph.digest}", None, ""))


class ConsoleQuestions:
    """Answers by one revision. What was made of the latest picture is kept: mostly several questions are about the same."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._picture: Snapshot | None = None
        self._facts: SnapshotFacts | None = None
        self._scheduler: Scheduler | None = None

    def pod(self, picture: Snapshot, name: str) -> dict[str, Any]:
        """See `Questions`."""
        with _answering() as terminal:
            return plain_pod(
                where_it_goes(self._policies, picture, pod_named(picture, name), _BEST, terminal)
            )

    def admission(self, picture: Snapshot, submitted: Object) -> dict[str, Any]:
        """See `Questions`."""
        rehearsal = Rehearsal(self._policies.graph, self._known_to_webhooks(picture), picture.taken)
        with _answering():
            return plain_admission(rehearsal.of(submitted), self._policies)

    def admitted(self, picture: Snapshot, name: str, submitted: Object | None, source: str) -> dict[str, Any]:
        """See `Questions`."""
        with _answering():
            pod = pod_named(picture, name)
            rehearsal = Rehearsal(self._policies.graph, self._known_to_webhooks(picture), picture.taken)
            return plain_admitted(rehearsal, self._policies, pod.raw, submitted, source)

    def holds(self, picture: Snapshot, name: str) -> dict[str, Any]:
        """See `Questions`."""
        with _answering():
            graph = self._policies.graph.at(Timestamp(picture.taken))
            pod = pod_named(picture, name)
            facts = self._facts_of(picture)
            return plain_holds(holds_of_picture(self._policies, graph, picture, facts, pod), graph)

    def behind(self, reason: str) -> list[dict[str, Any]]:
        """See `Questions`."""
        graph = self._policies.graph
        rules = ((name, graph.decision(name).rules) for name in decisions_of(reason) if name in graph)
        return [
            {"decision": name, "at": place(rule.span), "document": rule.document}
            for name, found in rules
            for rule in found
        ]

    def migration(self, picture: Snapshot, name: str) -> dict[str, Any] | None:
        """See `Questions`."""
        with _answering() as terminal:
            found = migration_of_pod(self._policies, picture, name, terminal)
            return None if found is None else plain_migration(found, self._policies)

    def node(self, picture: Snapshot, name: str) -> dict[str, Any]:
        """See `Questions`."""
        state = self._scheduler_of(picture).cache.state
        return plain_room(name, [*owned_devices(state, name)], [*owned_zones(state, name)])

    def decision(self, picture: Snapshot, decision: str, name: str) -> dict[str, Any]:
        """See `Questions`."""
        with _answering():
            at = Timestamp(picture.taken)
            graph = self._policies.graph.at(at)
            try:
                if things_of(graph, decision) == "cluster":
                    return answer_data(graph, decision, {})
                found = recorded_in(graph, decision, self._facts_of(picture), name, at)
            except UnknownDecision as error:
                raise CannotAnswer(str(error)) from None
            return answer_data(graph, decision, found.records)

    def gangs(self, picture: Snapshot) -> dict[str, Any]:
        """See `Questions`."""
        gangs = self._scheduler_of(picture).gangs
        known = gangs.book.gangs.values() if gangs is not None else ()
        first = nsmallest(_LISTED, known, key=lambda gang: (not gang.pending, gang.id))
        return {
            "count": len(known),
            "gangs": [
                {
                    "gang": shown(gang.id),
                    "minimum": None if gang.parameters is None else gang.parameters.minimum,
                    "mode": None if gang.parameters is None else str(gang.parameters.mode),
                    "pods": len(gang.pods),
                    "bound": len(gang.bound),
                    "pending": len(gang.pending),
                }
                for gang in first
            ],
        }

    def gang(self, picture: Snapshot, name: str) -> dict[str, Any]:
        """See `Questions`."""
        with _answering() as terminal:
            return plain_gang(gang_of_picture(self._policies, picture, name, terminal), _LISTED)

    def quotas(self, picture: Snapshot) -> list[dict[str, Any]]:
        """See `Questions`."""
        quotas = self._scheduler_of(picture).cache.state.quotas
        found = []
        lent: dict[tuple[str, str], dict[str, Any]] = {}
        for kept in quotas:
            name = kept.quota.name
            sums = quotas.sums(name)
            account = sums.get(name)
            if account is not None and not quotas.outside(name):
                parent = "" if account.parent is None else account.parent.terms.name
                if account.parent is not None and (kept.tree, parent) not in lent:
                    lent[kept.tree, parent] = {
                        resource: plain_lending(lending_below(sums, parent, resource, split))
                        for above, resource, split in sums.splits(name)
                        if above == parent
                    }
                found.append(
                    {
                        "quota": name,
                        "parent": parent,
                        "tree": kept.tree,
                        "min": dict(account.terms.min),
                        "max": dict(account.terms.max),
                        "request": dict(account.request),
                        "used": dict(account.used),
                        "limit": dict(quotas.limit(name)),
                        "lending": _of_one(name, lent.get((kept.tree, parent), {})),
                        "pods": len(quotas.pods_of(name)),
                        "waiting": sum(not one.placed for one in quotas.pods_of(name).values()),
                    }
                )
        return found

    def quota(self, picture: Snapshot, name: str) -> dict[str, Any]:
        """See `Questions`."""
        with _answering() as terminal:
            return plain_quota(quota_of_picture(self._policies, picture, name, terminal))

    def _known_to_webhooks(self, picture: Snapshot) -> PictureObjects:
        return PictureObjects(self._policies.graph, {resource: picture.of(resource) for resource in READ})

    # --- of the latest picture ----------------------------------------------------------------------

    def _facts_of(self, picture: Snapshot) -> SnapshotFacts:
        self._of(picture)
        if self._facts is None:
            self._facts = SnapshotFacts(picture)
        return self._facts

    def _scheduler_of(self, picture: Snapshot) -> Scheduler:
        self._of(picture)
        if self._scheduler is None:
            with _answering() as terminal:
                self._scheduler = scheduler_of_picture(
                    self._policies, picture, DEFAULT_PROFILE, 0, objects_by_key(picture), terminal
                )
        return self._scheduler

    def _of(self, picture: Snapshot) -> None:
        if self._picture is not picture:
            self._picture, self._facts, self._scheduler = picture, None, None


def _of_one(name: str, level: Mapping[str, Any]) -> dict[str, Any]:
    """What one quota of a level has of others and what others have of it, by resource."""
    return {
        resource: {
            "from": {one["lender"]: one["amount"] for one in told["loans"] if one["borrower"] == name},
            "to": {one["borrower"]: one["amount"] for one in told["loans"] if one["lender"] == name},
            "free": told["free"].get(name, 0),
            "beyond": told["beyond"].get(name, 0),
        }
        for resource, told in level.items()
    }


@contextmanager
def _answering() -> Iterator[Terminal]:
    """A terminal that nobody sees; why a command could not run is why there is no answer."""
    try:
        yield Terminal(io.StringIO(), io.StringIO())
    except CannotRunError as error:
        raise CannotAnswer(str(error)) from None
