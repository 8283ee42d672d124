"""Rounds of the network: who sends from where, and which mechanism keeps classes apart now."""

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.plan import Plan, joined
from koordpolicy.agent.strategies.isolation import Isolations
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


class NetworkRounds:
    """Keeps the numbers of pods' own classes, and which mechanism was at work: it is cleaned up after, once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._at_work: frozenset[str] = frozenset({TC, TERWAY})
        """At the start both: whatever the process before has left."""

    def plan(self, frame: NodeFrame) -> Plan:
        """What is wanted of the network."""
        network = IsolatedNetwork(Isolations(frame.graph, frame.record, frame.now))
        mechanism = network.mechanism
        plans = []
        try:
            if mechanism == TC:
                pods = _pods(frame)
                self._numbers = own_numbers(pods, self._numbers)
                plans.append(network.traffic(pods, self._numbers))
            elif mechanism == TERWAY:
                plans.append(network.terway(_pods(frame)))
        except NetworkError as problem:
            return Plan(notes=(str(problem),))
        if TC in self._at_work and mechanism != TC:
            plans.append(nothing_shaped())
        if TERWAY in self._at_work and mechanism != TERWAY:
            plans.append(nothing_told())
        self._at_work = frozenset({mechanism} if mechanism else ())
        return joined(plans)


def _pods(frame: NodeFrame) -> list[NetworkPod]:
    """The pods that run, in the order of their UIDs."""
    found = []
    for facts in sorted(frame.pod_records, key=lambda one: str(one.get("uid", ""))):
        one = frame.pods.get(str(facts.get("uid", "")))
        if one is not None and facts["active"] and facts["known"]:
            found.append(NetworkPod(facts, one.addresses, one.on_host, tuple(one.containers), one.group))
    return found
