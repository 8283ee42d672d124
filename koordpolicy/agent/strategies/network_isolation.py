"""What classes of pods get of the node's network: shares of its bandwidth, as classes of `tc` or for Terway."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

from koordpolicy.agent.plan import NODE, Plan, Write, container_group, pod_group
from koordpolicy.agent.strategies.isolation import BE, LS, LSR, SYSTEM, Isolations, labelled_group
from koordpolicy.graph.graph import Facts
from koordpolicy.language.facts import TIMES
from koordpolicy.linux.writes.traffic_shaping import (
    ALWAYS,
    NONE,
    PRIORITIES,
    WHOLE,
    TrafficClass,
    sender_text,
)
from koordpolicy.model.protocol import NETWORK_QOS
from koordpolicy.model.quantity import amount
from koordpolicy.model.reading import Json, ObjectError, embedded_object

KIND: Final = "SystemTuning"
WRITER: Final = "network"
TRAFFIC: Final = "traffic"
"""No file: one class of the node's traffic, or who is in one."""
TERWAY_PODS, TERWAY_NODE = "terway pods", "terway node"
"""No files of the kernel: what Terway reads of pods, and of the node; empty text for nothing (any more)."""
CLASSID: Final = "net_cls.classid"
TC, TERWAY = "tc", "terway-qos"

HANDLES: Final = dict(zip((SYSTEM, LS, BE), ALWAYS, strict=True))
"""The handles of classes, by the groups of pods that are in them."""
_PRIORITIES: Final = dict(zip((SYSTEM, LS, BE), PRIORITIES, strict=True))
_TERWAY_PRIORITIES: Final = {SYSTEM: 0, LSR: 1, LS: 1, BE: 2}
_FIRST_OWN: Final = 0x10
_LAST_OWN: Final = 0xFFF
_LEAST: Final = 1000
"""Bytes a second: the kernel takes no class without any."""


class NetworkError(ValueError):
    """Shares that do not go together. The message says why."""


@dataclass(frozen=True, slots=True)
class NetworkPod:
    """A pod with its addresses and the names of its containers; those `on_host` have the node's own addresses."""

    facts: Facts
    addresses: Sequence[str] = ()
    on_host: bool = False
    containers: Sequence[str] = ()
    group: str = ""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bytes a second that a class gets in any case, and at most."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class IsolatedNetwork:
    """The policies of a node on its network."""

    isolations: Isolations

    @property
    def mechanism(self) -> str:
        """What keeps classes apart; empty where no class is kept apart, or nobody says what the network carries."""
        if not any(self.isolations.on(group, "network") for group in (LS, LSR, BE)):
            return ""
        return str(self._said("networkMechanism") or TC) if self.total else ""

    @property
    def total(self) -> int:
        """Bytes a second that the network carries; 0 for unknown."""
        return int(self._said("networkBandwidth") or 0) // 8

    def bounds(self, group: str, direction: str) -> Bandwidth:
        """What a class gets in a direction, `ingress` or `egress`; all there is where nothing is said of it."""
        least = self._share(group, f"{direction}.request")
        most = self._share(group, f"{direction}.limit")
        return Bandwidth(least, most or self.total)

    def traffic(self, pods: Sequence[NetworkPod], own: Mapping[str, int]) -> Plan:
        """What is shaped by `tc`. `own` are the numbers of pods, by UID, that have classes of their own.

        Raises NetworkError.
        """
        total, latency, batch = self.total, self.bounds(LS, "egress"), self.bounds(BE, "egress")
        left = total - latency.least - batch.least
        if left < 0:
            raise NetworkError("more of the network is promised to classes than it carries")
        classes = [
            TrafficClass(WHOLE, total, total, parent="1:"),
            TrafficClass(HANDLES[SYSTEM], max(left, _LEAST), total, _PRIORITIES[SYSTEM]),
            TrafficClass(HANDLES[LS], max(latency.least, _LEAST), latency.most, _PRIORITIES[LS]),
            TrafficClass(HANDLES[BE], max(batch.least, _LEAST), batch.most, _PRIORITIES[BE]),
        ]
        writes = [Write(TRAFFIC, NODE, one.text, f"{KIND}.networkBandwidth", WRITER) for one in classes]
        notes: list[str] = []
        for pod in pods:
            name = f"{pod.facts['namespace']}/{pod.facts['name']}"
            handle, priority = _class_of(pod.facts)
            try:
                limit = own_limit(pod.facts["annotations"], "egressLimit")
            except (ObjectError, ValueError) as problem:
                notes.append(f"{name}: {NETWORK_QOS}: {problem}")
                limit = None
            if limit is not None and str(pod.facts["uid"]) in own:
                handle = f"1:{own[str(pod.facts['uid'])]:x}"
                rate = max(min(limit, total), _LEAST)
                one = TrafficClass(handle, rate, rate, priority)
                writes.append(Write(TRAFFIC, NODE, one.text, f"what {name} says itself", WRITER))
            writes += _members(pod, handle, f"network class of {name}")
        return Plan(tuple(writes), notes=tuple(notes))

    def terway(self, pods: Sequence[NetworkPod]) -> Plan:
        """What Terway is told of the node and of pods."""
        lines = [("hw_tx_bps_max", self.total), ("hw_rx_bps_max", self.total)]
        for level, group in (("l1", LS), ("l2", BE)):
            for way, direction in (("tx", "egress"), ("rx", "ingress")):
                found = self.bounds(group, direction)
                lines += [
                    (f"offline_{level}_{way}_bps_min", found.least),
                    (f"offline_{level}_{way}_bps_max", found.most),
                ]
        notes: list[str] = []
        told = {}
        for pod in pods:
            name, uid = f"{pod.facts['namespace']}/{pod.facts['name']}", str(pod.facts["uid"])
            limits: dict[str, int] = {}
            for said, key in (("ingressLimit", "ingressBandwidth"), ("egressLimit", "egressBandwidth")):
                try:
                    limits[key] = own_limit(pod.facts["annotations"], said) or 0
                except (ObjectError, ValueError) as problem:
                    notes.append(f"{name}: {NETWORK_QOS}: {problem}")
                    limits[key] = 0
            told[uid] = {
                "podName": str(pod.facts["name"]),
                "podNamespace": str(pod.facts["namespace"]),
                "podUID": uid,
                "prio": _TERWAY_PRIORITIES.get(labelled_group(pod.facts), 1),
                "cgroupDir": f"/{pod.group}",
                "qosConfig": limits,
            }
        node = "".join(f"{name} {value}\n" for name, value in lines)
        reason = f"{KIND}.networkMechanism: {TERWAY}"
        return Plan(
            (
                Write(TERWAY_NODE, NODE, node, reason, WRITER),
                Write(TERWAY_PODS, NODE, json.dumps(told, sort_keys=True), reason, WRITER),
            ),
            notes=tuple(notes),
        )

    def _share(self, group: str, field: str) -> int:
        """Bytes a second; 0 where nothing is said."""
        said = self.isolations.value(group, "network", field)
        if not said:
            return 0
        text = str(said)
        if text.endswith("%"):
            return self.total * int(text.removesuffix("%")) // 100
        found = amount("memory", text) // 8
        if found > self.total:
            raise NetworkError(f"Isolation/{group}.network.{field}: {text} is more than the network carries")
        return found

    def _said(self, field: str) -> Any:
        about = self.isolations.graph.about(
            KIND, "", {"node": self.isolations.node, "now": TIMES.timestamp(self.isolations.now)}
        )
        return about.value(field)


def nothing_shaped() -> Plan:
    """That nothing is shaped by `tc`."""
    return Plan((Write(TRAFFIC, NODE, NONE, "no class is kept apart by tc", WRITER),))


def nothing_told() -> Plan:
    """That Terway is told nothing."""
    reason = "no class is kept apart by Terway"
    return Plan((Write(TERWAY_NODE, NODE, "", reason, WRITER), Write(TERWAY_PODS, NODE, "", reason, WRITER)))


def own_limit(annotations: Mapping[str, str], name: str) -> int | None:
    """Bytes a second that a pod's annotation gives it at most; None where it says nothing.

    Raises ObjectError and ValueError for what cannot be read.
    """
    source = annotations.get(NETWORK_QOS)
    if not source:
        return None
    said: Json = embedded_object(source, NETWORK_QOS)
    value = said.get(name)
    if value is None:
        return None
    found = int(amount("memory", str(value))) // 8
    if found <= 0:
        raise ValueError(f"`{name}` of {value} is no bandwidth")
    return found


def own_numbers(pods: Sequence[NetworkPod], before: Mapping[str, int]) -> dict[str, int]:
    """A number for each pod with an annotation, by UID: the one that it had, else a free one; none for those too many."""
    named = [str(pod.facts["uid"]) for pod in pods if pod.facts["annotations"].get(NETWORK_QOS)]
    kept = {uid: before[uid] for uid in named if uid in before}
    free = (number for number in range(_FIRST_OWN, _LAST_OWN + 1) if number not in set(kept.values()))
    for uid in named:
        if uid not in kept:
            number = next(free, None)
            if number is None:
                break
            kept[uid] = number
    return kept


def _class_of(pod: Facts) -> tuple[str, int]:
    """The handle and priority of a pod's class; those without one are as latency-sensitive ones, system pods as the system."""
    group = labelled_group(pod)
    if group not in (SYSTEM, BE):
        group = BE if not group and str(pod["kubernetesQoS"]) == "BestEffort" else LS
    return HANDLES[group], _PRIORITIES[group]


def _members(pod: NetworkPod, handle: str, reason: str) -> Iterator[Write]:
    """That what a pod sends is in a class: by its addresses, and for pods on the host's network by their groups."""
    if pod.on_host:
        major, _, minor = handle.partition(":")
        number = (int(major, 16) << 16) + int(minor, 16)
        uid = str(pod.facts["uid"])
        for group in (pod_group(uid), *(container_group(uid, name) for name in pod.containers)):
            yield Write(CLASSID, group, number, reason, WRITER)
        return
    for address in pod.addresses:
        try:
            yield Write(TRAFFIC, NODE, sender_text(str(ip_address(address)), handle), reason, WRITER)
        except ValueError:
            continue  # the kubelet has not given it an address yet
