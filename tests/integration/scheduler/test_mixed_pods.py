"""CPUs of their own, cards and shares of cards, what is kept for an owner, gangs and a quota, all at once on a real API server with
kwok, over kills of the scheduler: what annotations say is promised once, and nothing is lost.

With `KOORDPOLICY_MIXED_PODS=full` the scheduler is killed ten times.
"""

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from koordpolicy.model.cpuset import parse_cpuset
from koordpolicy.model.protocol import DEVICE_ALLOCATED, QOS_CLASS, RESOURCE_STATUS
from tests.integration.scheduler.sites import Site
from tests.integration.scheduler.test_cpus import machine
from tests.parts.controllers import FAKE_NODE, kwok
from tests.parts.fixtures import need

_KILLS: Final = 10 if os.environ.get("KOORDPOLICY_MIXED_PODS") == "full" else 4
_CARDS: Final = 8
"""Of each node."""
_WORST: Final = 5
"""Cards that the pods of one round lie on at most."""
_NODES: Final = -(-(_WORST * _KILLS + 1) // _CARDS) + 1
_ZONE: Final = 16
"""CPUs of each of a node's two zones."""

_KOORDINATOR: Final = "/apis/scheduling.koordinator.sh/v1alpha1"
_COMMUNITY: Final = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default"
_GPU, _CORE, _RATIO = "koordinator.sh/gpu", "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio"
_MEMORY: Final = "koordinator.sh/gpu-memory"
_QUOTA: Final = "quota.scheduling.koordinator.sh/name"
_GANG: Final = "pod-group.scheduling.sigs.k8s.io"
_KEPT_BY: Final = "scheduling.koordinator.sh/reservation-allocated"
_LAB: Final = 200 * _KILLS
"""Percents of cards that the quota of the lab allows: those of the pods that share, and no more."""


@dataclass
class Laboratory:
    """What was asked for, and what annotations say that pods have."""

    site: Site
    asked: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of each pod its own CPUs, and percents of cards."""
    gangs: dict[str, int] = field(default_factory=dict)
    interrupted: int = 0

    def submit(self, name: str, cpus: int, percent: int, **labels: str) -> None:
        """A pod with so many CPUs of its own (0: some of what is shared), and so much of cards."""
        self.asked[name] = cpus, percent
        self.site.pod(
            name,
            metadata={"name": name, "labels": {QOS_CLASS: "LSR" if cpus else "LS", **labels}},
            priorityClassName="important",
            terminationGracePeriodSeconds=0,
            containers=[_container(cpus, percent)],
        )

    def gang(self, name: str, size: int) -> None:
        """So many pods that go together, with CPUs of their own and half a card each."""
        group = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup"}
        body = {**group, "metadata": {"name": name}, "spec": {"minMember": size}}
        self.site.do("POST", f"{_COMMUNITY}/podgroups", body)
        self.gangs[name] = size
        for number in range(size):
            self.submit(f"{name}-{number}", 2, 50, **{_GANG: name})

    def gone(self, name: str) -> None:
        """A pod ends."""
        self.site.gone(name)
        del self.asked[name]

    def reservation(self) -> Any:
        return self.site.do("GET", f"{_KOORDINATOR}/reservations/web")

    def check(self) -> dict[str, Any]:
        """Everything that is promised is promised once, and all pods are there; the pods."""
        pods, kept = self.site.pods(), self.reservation()
        assert set(pods) == set(self.asked), "no pod is lost, and none comes by itself"
        cpus: Counter[tuple[str, int]] = Counter()
        cards: Counter[tuple[str, int]] = Counter()
        home = kept.get("status", {}).get("nodeName", "")
        if home:
            cpus.update((home, cpu) for cpu in _cpus(kept))
            cards.update({(home, minor): share for minor, share in _cards(kept).items()})
            assert len(_cpus(kept)) == 4
            assert sum(_cards(kept).values()) == 100
        lab = 0
        for name, one in pods.items():
            node = one["spec"].get("nodeName")
            if not node:
                continue
            count, percent = self.asked[name]
            assert len(_cpus(one)) == count, f"{name}: {one['metadata']}"
            assert sum(_cards(one).values()) == percent, f"{name}: {one['metadata']}"
            lab += percent if one["metadata"]["labels"].get(_QUOTA) == "lab" else 0
            if _KEPT_BY in one["metadata"].get("annotations", {}):
                assert one["metadata"]["labels"]["app"] == "web", f"{name} has what is kept for others"
                assert node == home
                assert _cpus(one) <= _cpus(kept)
                assert _cards(one).keys() <= _cards(kept).keys()
                continue
            cpus.update((node, cpu) for cpu in _cpus(one))
            cards.update({(node, minor): share for minor, share in _cards(one).items()})
        assert max(cpus.values(), default=0) <= 1, "a CPU is promised twice"
        assert max(cards.values(), default=0) <= 100, "a card is promised beyond what it has"
        assert lab <= _LAB, "the quota holds"
        return pods

    def whole(self) -> bool:
        """Whether every gang of which a pod is bound is bound as a whole."""
        bound = Counter(
            one["metadata"]["labels"].get(_GANG, "")
            for one in self.check().values()
            if one["spec"].get("nodeName")
        )
        return all(bound[name] in (0, size) for name, size in self.gangs.items())


def _container(cpus: int, percent: int) -> dict[str, Any]:
    amounts = {"cpu": str(cpus) if cpus else "250m", "memory": "64Mi"}
    if percent:
        amounts[_GPU] = str(percent)
    return {"name": "main", "image": "pause", "resources": {"requests": amounts, "limits": amounts}}


def _cpus(obj: Any) -> frozenset[int]:
    said = obj["metadata"].get("annotations", {}).get(RESOURCE_STATUS, "{}")
    return parse_cpuset(json.loads(said).get("cpuset", ""))


def _cards(obj: Any) -> dict[int, int]:
    """Percents of cards, by their minor."""
    said = json.loads(obj["metadata"].get("annotations", {}).get(DEVICE_ALLOCATED, "{}"))
    return {one["minor"]: int(one["resources"][_CORE]) for one in said.get("gpu", ())}


def _furnish(site: Site) -> None:
    """Nodes with two zones and eight cards each, a quota, and what is kept for the owner."""
    for path in ("devices", "reservations"):
        site.do("DELETE", f"{_KOORDINATOR}/{path}")
    for path in ("podgroups", "elasticquotas"):
        site.do("DELETE", f"{_COMMUNITY}/{path}")
    card = {_CORE: "100", _RATIO: "100", _MEMORY: "80Gi"}
    for number in range(_NODES):
        name = f"n-{number}"
        machine(site, name, cpus=_ZONE)
        offered = {one: str(100 * _CARDS) for one in (_GPU, _CORE, _RATIO)}
        room = {
            "cpu": str(4 * _ZONE),
            "memory": "256Gi",
            "pods": "110",
            _MEMORY: f"{80 * _CARDS}Gi",
            **offered,
        }
        site.resize(name, room)
        site.do("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"annotations": FAKE_NODE}})
        devices = [
            {
                "type": "gpu", "id": f"{name}-{at}", "minor": at, "health": True, "resources": card,
                "topology": {"socketID": 0, "nodeID": 2 * at // _CARDS, "pcieID": str(at // 2), "busID": str(at)},
            }
            for at in range(_CARDS)
        ]  # fmt: skip
        head = {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device"}
        body = {**head, "metadata": {"name": name}, "spec": {"devices": devices}}
        site.do("POST", f"{_KOORDINATOR}/devices", body)
    bounds = {"max": {_GPU: str(_LAB), "cpu": "1000"}, "min": {_GPU: "0", "cpu": "0"}}
    quota = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "spec": bounds}
    site.do("POST", f"{_COMMUNITY}/elasticquotas", {**quota, "metadata": {"name": "lab"}})
    template = {
        "metadata": {"labels": {QOS_CLASS: "LSR"}},
        "spec": {
            "schedulerName": "koord-scheduler",
            "priority": 9500,
            "containers": [_container(4, 100)],
        },
    }
    owners = [{"labelSelector": {"matchLabels": {"app": "web"}}}]
    spec = {"template": template, "owners": owners, "ttl": "1h", "allocateOnce": False}
    head = {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation"}
    site.do("POST", f"{_KOORDINATOR}/reservations", {**head, "metadata": {"name": "web"}, "spec": spec})


def _round(lab: Laboratory, kill: int) -> None:
    """Pods of all kinds. The last owner goes with every second round, and another one comes."""
    owners = [name for name in lab.asked if name.startswith("web-")]
    if not owners:
        lab.submit(f"web-{kill}", 4, 100, app="web")
    elif kill % 2:
        lab.gone(owners[0])
    for number in range(2):
        lab.submit(f"share-{kill}-{number}", 0, 30 + 20 * number, **{_QUOTA: "lab"})
        lab.submit(f"own-{kill}-{number}", 2, 0)
    lab.submit(f"both-{kill}", 4, 100)
    lab.gang(f"gang-{kill}", 2)


@pytest.mark.soak
def test_killed_again_and_again_all_is_promised_once(pytestconfig: pytest.Config, site: Site) -> None:
    need(pytestconfig, "kwok")
    _furnish(site)
    lab = Laboratory(site)
    with kwok(site.access):
        for kill in range(_KILLS):
            # One write after the other, so that a kill comes between two.
            with site.scheduler("s", "--no-leader-elect", "--in-flight", "1", ready=False) as scheduler:
                _round(lab, kill)
                before = len(site.where())
                site.eventually(lambda than=before: len(site.where()) > than, "it works")  # type: ignore[misc]  # the default is the value
                scheduler.running.kill()
            lab.interrupted += bool(site.waiting())
            lab.check()
        assert lab.interrupted, "a kill that interrupts nothing shows nothing"
        with site.scheduler("s", "--no-leader-elect"):
            site.eventually(lambda: not site.waiting() and lab.whole(), "all have what they ask for")
            # Strangers take every card that is left, but the one that is kept.
            for name in [name for name in lab.asked if name.startswith("web-")]:
                lab.gone(name)
            for number in range(_CARDS * _NODES):
                lab.submit(f"stranger-{number}", 0, 100)
            site.eventually(
                # Where all of a node is taken its amounts say so, where parts of cards are left its devices.
                lambda: all(
                    "Insufficient gpu devices" in (said := site.refusal(name)[1])
                    or f"Insufficient {_GPU}" in said
                    for name in site.waiting()
                ),
                "they are told what is lacking",
            )
            taken = {
                (one["spec"].get("nodeName"), card) for one in lab.check().values() for card in _cards(one)
            }
            kept = lab.reservation()
            home = kept["status"]["nodeName"]
            assert taken.isdisjoint((home, card) for card in _cards(kept))
            assert len({one for one in taken if one[0]}) == _CARDS * _NODES - 1, "one card is kept"
            lab.submit("web-back", 4, 100, app="web")
            site.eventually(lambda: "web-back" in site.where(), "the owner is back in its place")
            pods = lab.check()
            assert _cpus(pods["web-back"]) == _cpus(kept)
            assert _cards(pods["web-back"]) == _cards(kept)
            site.eventually(
                lambda: (
                    [one["name"] for one in lab.reservation()["status"].get("currentOwners", ())]
                    == ["web-back"]
                ),
                "and the status names it",
            )
            lab.submit("over", 0, 0, **{_QUOTA: "lab"})
            lab.submit("beyond", 0, 100 * 200, **{_QUOTA: "lab"})
            site.eventually(lambda: "over" in site.where(), "who asks for no card is in")
            site.eventually(lambda: "quota" in site.refusal("beyond")[1].lower(), "the quota is told of")
            site.eventually(
                lambda: all(
                    one["status"].get("phase") == "Running"
                    for one in lab.check().values()
                    if one["spec"].get("nodeName")
                ),
                "kwok runs them",
            )
