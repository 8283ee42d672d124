"""What policy says of gangs: which one a pod belongs to, how it is placed, and how it stands."""

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from koordpolicy.algorithms.gang import Gang, GangGroup, GangParameters
from koordpolicy.algorithms.gang_records import declaration_facts, gang_facts
from koordpolicy.algorithms.gathering import GangNetwork, Gathering, GatherKey
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import Records, prepared
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.language.facts import TIMES
from koordpolicy.model.gang import GangDeclaration
from koordpolicy.model.network_topology import GatherRule
from koordpolicy.model.time import NANOSECONDS

KIND: Final = "GangScheduling"

_OF_PARAMETERS: Final = {
    "minimum": "minimum",
    "total": "total",
    "mode": "mode",
    "matchPolicy": "match_policy",
}
_OF_GROUP: Final = {"onceSatisfied": "once_satisfied", "rounds": "rounds"}
_NUMBER_OF: Final = {"pods": "pods", "pending": "pending", "waiting": "waiting", "bound": "bound"}
_COUNTS: Final = _OF_PARAMETERS.keys() | _OF_GROUP.keys() | _NUMBER_OF.keys()
"""The facts of a gang that do not tell it from another one that stands alike."""

_Likeness = Callable[[Gang, GangGroup, GangParameters], Hashable]
"""What a gang has in common with those that stand alike, in some of these facts."""

_KEPT: Final = 4096
"""Answers that are kept at most."""

BY_POD_GROUP: Final = "PodGroup"
AT_ONCE: Final = "AtOnce"
ALL_NAMED: Final = "Named"


@dataclass(frozen=True, slots=True)
class TooMany:
    """Of a gang so many are named that are placed together with it, while policy allows no more than `most`: none of that is read."""

    named: int
    most: int


class GangPolicy:
    """The decisions of one graph. Where one cannot be made, what it gives is said with it."""

    __slots__ = (
        "_by_count",
        "_decisions",
        "_latest_gang",
        "_of_pod",
        "by_pod_alone",
        "graph",
        "never_at_once",
        "reads_priority",
        "some_starve",
    )

    def __init__(self, graph: RuleGraph) -> None:
        self.graph = graph
        target = KIND
        self._decisions = {field: prepared(graph, f"{target}.{field}") for field in _FIELDS}
        of_pod = self._decisions["gangOfPod"].facts
        self._of_pod: Final = tuple(path for _, path in of_pod) if all(path for _, path in of_pod) else ()
        self.by_pod_alone: Final = all(root == "pod" for root, _ in of_pod)
        """Whether the gang of a pod follows from the pod alone, so that it need be asked for once."""
        self._latest_gang: tuple[list[Any], str] | None = None
        starves = self._decisions["queue.starves"]
        self.some_starve: Final = starves.program is not None or starves.constant is True
        """Whether others hold back for any gang at all."""
        placement = self._decisions["placement"]
        self.never_at_once: Final = placement.program is None and placement.constant != AT_ONCE
        """Whether no gang's pods are decided on in one go: this is asked after each decision of a round."""
        read = {fact for one in self._decisions.values() for fact in one.facts}
        self.reads_priority: Final = self.some_starve or ("gang", "priority") in read
        """Whether anything depends on the priority of gangs."""

        self._by_count: dict[str, tuple[_Likeness, dict[Hashable, Any]]] = {
            field: (_likeness({fact for _, fact in one.facts}), {})
            for field, one in self._decisions.items()
            if one.program is not None and all(root == "gang" and fact in _COUNTS for root, fact in one.facts)
        }
        """The decisions that gangs of other names, at another time, have in common with one that stands as they do: what they read,
        and their values by that.
        """

    def gang_of(self, pod: PodView, namespace: Mapping[str, Any], now: int) -> str:
        """The name of the gang that a pod belongs to; empty for none, and where it cannot be told."""
        records = {"pod": pod.facts, "namespaceObject": namespace, "now": _second(now)}
        return str(self._value("gangOfPod", records, "") or "")

    def gang_of_pod(self, pod: PodView) -> str:
        """The same where it follows from the pod alone. Pods of one workload come together, and are alike in what it follows from."""
        read = [pod.facts.get(path) for path in self._of_pod]
        latest = self._latest_gang
        if latest is None or latest[0] != read or not read:
            found = str(self._value("gangOfPod", {"pod": pod.facts}, "") or "")
            latest = self._latest_gang = read, found
        return latest[1]

    def declared_by(self, pod: PodView, namespace: Mapping[str, Any], now: int) -> str:
        """What says how the gang of a pod is placed: `PodGroup` or `Pod`."""
        records = {"pod": pod.facts, "namespaceObject": namespace, "now": _second(now)}
        return str(self._value("declaredBy", records, "Pod"))

    def parameters(
        self, said: GangDeclaration, namespace: Mapping[str, Any], now: int
    ) -> GangParameters | TooMany | None:
        """How a gang is placed of which this is said; None where that is not enough, or where it cannot be told."""
        records = {
            "gangDeclaration": declaration_facts(said, TIMES),
            "namespaceObject": namespace,
            "now": _second(now),
        }
        decisions = self._decisions
        try:
            if decisions["initialised"].value(records) is not True:
                return None
            minimum = int(decisions["minimum"].value(records))
            total = decisions["total"].value(records)
            wait = decisions["waitingTime"].value(records)
            groups = decisions["groups"].value(records) or [f"{said.namespace}/{said.name}"]
            most = int(decisions["mostTogether"].value(records))
            if len(groups) > most:
                return TooMany(len(groups), most)
            return GangParameters(
                minimum,
                tuple(sorted(map(str, groups))),
                minimum if total is None else int(total),
                str(decisions["mode"].value(records)),
                str(decisions["matchPolicy"].value(records)),
                wait.ns if isinstance(wait, Duration) else 0,
                self._network(records),
                decisions["acrossNamespaces"].value(records) == ALL_NAMED,
            )
        except CelError:
            return None

    def _network(self, records: Records) -> GangNetwork | None:
        """How a gang is gathered; None where it is not. Raises CelError."""
        enabled = self._decisions["network.enabled"].value(records) is True
        shares, wishes = (
            tuple(dict.fromkeys(self._decisions[f"network.{field}"].value(records) or ()))
            for field in ("mustShare", "preferShare")
        )
        if not (enabled or shares or wishes):
            return None
        must, multiples, candidates, filling, counts = (
            self._decisions[f"network.{field}"].value(records)
            for field in ("mustGather", "multiples", "candidates", "filling", "countsMembers")
        )
        rules = [GatherRule(layer, must=True) for layer in must or ()] if enabled else []
        for layer, number in (multiples or {}).items() if enabled else ():
            rules.append(GatherRule(layer, multiple=max(int(number), 1)))
        order = Gathering(
            candidates=tuple(map(GatherKey, candidates or ())), filling=tuple(map(GatherKey, filling or ()))
        )
        return GangNetwork(tuple(rules), order, counts is True, shares, wishes, enabled)

    # --- of a gang as it stands -------------------------------------------------------------------

    def says(self, field: str, records: Callable[[], Records], otherwise: Any) -> Any:
        """A decision on a gang; `otherwise` where it cannot be made. Records are made where it reads any."""
        decision = self._decisions[field]
        if decision.program is None:
            return otherwise if decision.constant is None else decision.constant
        return self._value(field, records(), otherwise)

    def answer(
        self,
        field: str,
        gang: Gang,
        group: GangGroup,
        records: Callable[[Gang, GangGroup], Records],
        otherwise: Any,
    ) -> Any:
        """The same as `says`, and remembered where it depends on nothing but numbers: these are asked several times of each pod."""
        by_count, said = self._by_count.get(field), gang.parameters
        if by_count is None or said is None:
            return self._says_of(field, gang, group, records, otherwise)
        likeness, answers = by_count
        key = likeness(gang, group, said)
        try:
            return answers[key]
        except KeyError:  # as hardly ever
            found = self._says_of(field, gang, group, records, otherwise)
        if len(answers) >= _KEPT:
            answers.clear()
        answers[key] = found
        return found

    def _says_of(
        self,
        field: str,
        gang: Gang,
        group: GangGroup,
        records: Callable[[Gang, GangGroup], Records],
        otherwise: Any,
    ) -> Any:
        # Apart from `answer`, which is faster where no function within it needs its variables.
        return self.says(field, lambda: records(gang, group), otherwise)

    def _value(self, field: str, records: Records, otherwise: Any) -> Any:
        try:
            found = self._decisions[field].value(records)
        except CelError:
            return otherwise
        return otherwise if found is None else found


class GangDecisions:
    """The rules of a `GangBook`, answered by policy. `policy` may be another one from one moment to the next.

    `clock` gives nanoseconds since 1970, `namespace` the facts of one, `priority` the highest one of a gang's pods.
    """

    __slots__ = ("_clock", "_namespaces", "policy", "priority")

    def __init__(
        self,
        policy: GangPolicy,
        clock: Callable[[], int],
        namespaces: Callable[[str], Mapping[str, Any]],
        priority: Callable[[Gang], int],
    ) -> None:
        self.policy = policy
        self._clock = clock
        self._namespaces = namespaces
        self.priority: Final = priority
        """The priority of a gang."""

    def records(self, gang: Gang, group: GangGroup) -> Records:
        """What decisions on a gang read."""
        now = self._clock()
        since = group.complete_since
        return {
            "gang": gang_facts(
                gang,
                group,
                TIMES,
                priority=self.priority(gang),
                unplaced_for=0 if since is None else max(0, now - since),
            ),
            "namespaceObject": self._namespaces(gang.id.partition("/")[0]),
            "now": _second(now),
        }

    def complete(self, gang: Gang, group: GangGroup) -> bool:
        """Whether enough of its pods are there."""
        return self.policy.answer("complete", gang, group, self.records, False) is True

    def satisfied(self, gang: Gang, group: GangGroup) -> bool:
        """Whether enough of its pods have a node."""
        return self.policy.answer("satisfied", gang, group, self.records, False) is True

    def free(self, gang: Gang, group: GangGroup) -> bool:
        """Whether its pods are placed one by one."""
        return self.policy.answer("free", gang, group, self.records, False) is True

    def rejects_together(self, gang: Gang, group: GangGroup) -> bool:
        """Whether all who wait give their nodes back where one does not get there."""
        return self._says("rejectsTogether", gang, group, otherwise=True)

    def one_enters(self, gang: Gang, group: GangGroup) -> bool:
        """Whether one pod waits in the queue for all."""
        return self._says("queue.oneEnters", gang, group)

    def finishes_first(self, gang: Gang, group: GangGroup) -> bool:
        """Whether its pods are tried before all others."""
        return self._says("queue.finishesFirst", gang, group)

    def starves(self, gang: Gang, group: GangGroup) -> bool:
        """Whether others hold back for it."""
        return self._says("queue.starves", gang, group)

    def displaces(self, gang: Gang, group: GangGroup, pod: PodView) -> bool:
        """Whether others go for it where it finds no room; `pod` is the one of it that found none."""
        found = self.policy.says(
            "preemption.enabled", lambda: {**self.records(gang, group), "pod": pod.facts}, False
        )
        return found is True

    def spares_budgets(self, gang: Gang, group: GangGroup) -> bool:
        """Whether those stay first, wherever they can, whose going breaks a disruption budget."""
        return self._says("preemption.sparesBudgets", gang, group)

    def at_once(self, gang: Gang, group: GangGroup) -> bool:
        """Whether its pods are decided on in one go."""
        found = self.policy.answer("placement", gang, group, self.records, "OneByOne")
        return str(found) == AT_ONCE

    def _says(self, field: str, gang: Gang, group: GangGroup, *, otherwise: bool = False) -> bool:
        return self.policy.answer(field, gang, group, self.records, otherwise) is True


def _likeness(facts: Collection[str]) -> _Likeness:
    """How to look at some of `_COUNTS` in few steps: this is asked several times of each pod."""
    said, shared, sets = (
        [names[fact] for fact in sorted(facts) if fact in names]
        for names in (_OF_PARAMETERS, _OF_GROUP, _NUMBER_OF)
    )
    of_said = attrgetter(*said) if said else _nothing
    of_group = attrgetter(*shared) if shared else _nothing
    if not sets:
        return lambda _gang, group, parameters: (of_said(parameters), of_group(group))
    if len(sets) == 1:
        only = attrgetter(*sets)
        return lambda gang, group, parameters: (of_said(parameters), of_group(group), len(only(gang)))
    some = attrgetter(*sets)
    return lambda gang, group, parameters: (of_said(parameters), of_group(group), *map(len, some(gang)))


def _nothing(_of: object) -> None:
    """Nothing of it is asked."""


def _second(now: int) -> Timestamp:
    return Timestamp(now - now % NANOSECONDS)


_FIELDS: Final = (
    "gangOfPod", "declaredBy", "initialised", "minimum", "total", "mode", "matchPolicy", "waitingTime", "groups", "mostTogether",
    "acrossNamespaces",
    "complete", "satisfied", "free", "rejectsTogether", "placement", "queue.oneEnters", "queue.finishesFirst", "queue.starves",
    "network.enabled", "network.mustGather", "network.mustShare", "network.preferShare", "network.multiples",
    "network.candidates", "network.filling", "network.countsMembers",
    "preemption.enabled", "preemption.sparesBudgets",
)  # fmt: skip
"""The decisions that the plugin asks."""
