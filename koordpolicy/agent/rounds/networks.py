"""Rounds of the network: who sends from where, and which mechanism keeps classes apart now."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.plan import Plan, joined
from koordpolicy.agent.strategies.isolation import KIND as ISOLATION
from koordpolicy.agent.strategies.isolation import Isolations
from koordpolicy.agent.strategies.network_isolation import KIND as TUNING
from koordpolicy.agent.strategies.network_isolation import (
    TC,
    TERWAY,
    IsolatedNetwork,
    NetworkError,
    NetworkPod,
    nothing_shaped,
    nothing_told,
    own_numbers,
)
from koordpolicy.agent.unchanged import Unchanged

_CLEANING: Final[Mapping[str, Callable[[], Plan]]] = MappingProxyType(
    {TC: nothing_shaped, TERWAY: nothing_told}
)


class NetworkRounds:
    """Keeps the numbers of pods' own classes, and which mechanism was at work: it is cleaned up after, once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._at_work: frozenset[str] = frozenset({TC, TERWAY})
        """At the start both: whatever the process before has left."""
        self._mechanism = ""
        self._wanted = Unchanged(self._plan, (ISOLATION, TUNING))
        self._problem = ""

    def plan(self, frame: NodeFrame) -> Plan:
        """What is wanted of the network."""
        wanted = self._wanted.plan(frame)
        if self._problem:
            return wanted
        left = self._at_work - {self._mechanism}
        self._at_work = frozenset({self._mechanism} if self._mechanism else ())
        cleaned = [clean() for mechanism, clean in _CLEANING.items() if mechanism in left]
        return joined((wanted, *cleaned)) if cleaned else wanted

    def _plan(self, frame: NodeFrame) -> Plan:
        network = IsolatedNetwork(Isolations(frame.graph, frame.record, frame.now))
        self._mechanism, self._problem = network.mechanism, ""
        try:
            if self._mechanism == TC:
                pods = _pods(frame)
                self._numbers = own_numbers(pods, self._numbers)
                return network.traffic(pods, self._numbers)
            return network.terway(_pods(frame)) if self._mechanism == TERWAY else Plan()
        except NetworkError as problem:
            self._problem = str(problem)
            return Plan(notes=(self._problem,))


def _pods(frame: NodeFrame) -> list[NetworkPod]:
    """The pods that run, in the order of their UIDs."""
    found = []
    for facts in sorted(frame.pod_records, key=lambda one: str(one.get("uid", ""))):
        one = frame.pods.get(str(facts.get("uid", "")))
        if one is not None and facts["active"] and facts["known"]:
            found.append(NetworkPod(facts, one.addresses, one.on_host, tuple(one.containers), one.group))
    return found
