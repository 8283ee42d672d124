"""Devices through the real scheduler: no share is promised twice, whatever happens, and a restart knows all of it."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.graph import RuleGraph
from koordpolicy.model.devices import read_devices
from koordpolicy.model.pod_devices import read_shares, shares_text
from koordpolicy.model.protocol import (
    DEVICE_ALLOCATE_HINT,
    DEVICE_ALLOCATED,
    DEVICE_JOINT_ALLOCATE,
    GPU_PARTITION_SPEC,
)
from koordpolicy.scheduler.plugins.devices.claim import write
from koordpolicy.scheduler.plugins.devices.filters import devices_free
from koordpolicy.scheduler.plugins.parameters import Parameters
from tests.unit.scheduler.world import PROFILE, World, pod
from tests.vectors.policies import document, graph

TIES = document("SchedulingProfile", "own", {"schedulerName": PROFILE, "ties": "First"})
GRAPH = graph(TIES)
ROOM = {"cpu": "100", "memory": "100Gi"}
GPU, RATIO, RDMA = "koordinator.sh/gpu", "koordinator.sh/gpu-memory-ratio", "koordinator.sh/rdma"


def device_object(cards: int, nics: int = 0, **metadata: Any) -> dict[str, Any]:
    """Cards in pairs at a switch, four at a NUMA zone, a NIC at each switch."""
    amounts = {"koordinator.sh/gpu-core": "100", RATIO: "100", "koordinator.sh/gpu-memory": "16Gi"}
    listed = [
        {
            "type": kind,
            "id": f"{kind}-{at}",
            "minor": at,
            "health": True,
            "resources": resources,
            "topology": {"nodeID": at * per // 4, "pcieID": str(at * per // 2)},
        }
        for kind, count, per, resources in (("gpu", cards, 1, amounts), ("rdma", nics, 2, {RDMA: "100"}))
        for at in range(count)
    ]
    return {"metadata": {"name": "n0", **metadata}, "spec": {"devices": listed}}


class Pool(World):
    """Nodes n0, n1, ... with so many cards each."""

    def __init__(self, *cards: int, nics: int = 0, graph: RuleGraph = GRAPH, **metadata: Any) -> None:
        super().__init__(graph)
        offers = {**ROOM, **dict.fromkeys((GPU, RATIO, RDMA, "koordinator.sh/gpu-memory"), "1Ti")}
        self.build({"nodes": {f"n{at}": {"allocatable": offers} for at in range(len(cards))}})
        for at, count in enumerate(cards):
            self.devices(f"n{at}", device_object(count, nics, **metadata))

    def devices(self, node: str, listed: dict[str, Any]) -> None:
        """A node has these devices."""
        found = read_devices(listed)
        self.scheduler.set_state(lambda state: state.set_devices(node, found), Event.DEVICES_CHANGED)

    @property
    def cards(self) -> Any:
        return self.scheduler.cache.state.cards

    def minors(self, name: str, type: str = "gpu") -> list[int]:
        claim = self.cards.claim_of(("default", name))
        return [share.minor for share in claim.shares.get(type, ())] if claim else []

    def given(self) -> dict[Any, Any]:
        """What of which device is taken."""
        taken: Counter[Any] = Counter()
        for node in ("n0", "n1"):
            for claim in self.cards.owners(node).values():
                for type, shares in claim.shares.items():
                    for share in shares:
                        for name, number in share.resources.items():
                            taken[node, type, share.minor, name] += number
        return dict(taken)


def asks(amount: str, annotations: dict[str, Any] | None = None, **more: str) -> dict[str, Any]:
    """A pod that asks for so much of GPUs."""
    said = {key: json.dumps(value) for key, value in (annotations or {}).items()}
    names = {name.replace("_", "."): value for name, value in more.items()}
    rest = {"koordinator.sh/rdma": names["rdma"]} if "rdma" in names else {}
    return {"request": {"cpu": "1", **({GPU: amount} if amount else {}), **rest}, "annotations": said}


def test_cards_are_shared_until_they_are_full() -> None:
    pool = Pool(2)
    assert [pool.place(f"p{at}", asks("40")).placed for at in range(5)] == [True] * 4 + [False]
    assert sorted(Counter(pool.minors(f"p{at}")[0] for at in range(4)).values()) == [2, 2]
    refused = pool.scheduler.framework.decide(pod("one-more", asks("40")))
    assert [one.reason for one in refused.refusals] == ["Insufficient gpu devices"]
    assert pool.place("small", asks("20")).placed


@pytest.mark.parametrize("amount", ["9e18", "9.3e18", "9E"])
def test_what_one_node_claims_to_have_is_no_matter_for_others(amount: str) -> None:
    pool = Pool(0, 2)
    assert pool.place("before", asks("50")).node == "n1"
    claimed = device_object(8)
    for one in claimed["spec"]["devices"]:
        one["resources"] = dict.fromkeys(one["resources"], amount)
    pool.devices("n0", claimed)
    assert pool.place("after", asks("50")).placed
    pool.devices("n0", device_object(0))
    assert pool.place("repaired", asks("50")).node == "n1"


def test_a_pod_that_is_gone_leaves_its_cards_to_others() -> None:
    pool = Pool(1)
    assert pool.place("first", asks("100")).placed
    assert not pool.place("second", asks("10")).placed
    pool.scheduler.remove_pod(("default", "first"))
    assert pool.given() == {}
    decision = pool.scheduler.schedule_one()
    assert decision is not None
    assert decision.placed


def test_the_order_of_cards_is_policy() -> None:
    own = document("DeviceSharing", "gpu", {"scheduling": {"order": [{"cel": "-device.index"}]}})
    pool = Pool(4, graph=graph(own, TIES))
    assert pool.place("share", asks("40")).placed
    assert pool.minors("share") == [3]
    pool = Pool(4)
    assert pool.place("share", asks("40")).placed
    assert pool.place("whole", asks("100")).placed
    assert pool.place("pair", asks("200")).placed
    assert [pool.minors(name) for name in ("share", "whole", "pair")] == [[0], [1], [2, 3]]


def test_what_cannot_be_asked_for_is_said() -> None:
    pool = Pool(2)
    refused = pool.place("odd", asks("150"))
    assert not refused.placed
    assert [one.reason for one in refused.refusals] == ["invalid resource unit koordinator.sh/gpu: 150"]
    assert [one.resolvable for one in refused.refusals] == [False]


def test_whole_cards_come_in_partitions_where_a_pod_wants_them() -> None:
    wants = {GPU_PARTITION_SPEC: {"allocatePolicy": "Restricted"}}
    pool = Pool(8)
    refused = pool.place("none", asks("200", wants))
    assert [one.reason for one in refused.refusals] == ["node(s) missing GPU Partition Table"]
    pool = Pool(8, labels={"node.koordinator.sh/gpu-model": "H100"})
    assert pool.place("one", asks("100", wants)).placed
    assert pool.place("two", asks("200", wants)).placed
    assert pool.place("four", asks("400", wants)).placed
    assert [pool.minors(name) for name in ("one", "two", "four")] == [[0], [2, 3], [4, 5, 6, 7]]
    assert not pool.place("more", asks("200", wants)).placed


def test_cards_of_one_switch_come_with_its_network_card() -> None:
    pool = Pool(8, nics=4)
    joint = {DEVICE_JOINT_ALLOCATE: {"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"}}
    assert pool.place("a", asks("100")).placed
    assert pool.place("b", asks("200", joint, rdma="50")).placed
    assert pool.minors("b") == [2, 3]
    assert pool.minors("b", "rdma") == [1]
    scoped = {DEVICE_ALLOCATE_HINT: {"gpu": {"requiredTopologyScope": "PCIe"}}}
    refused = pool.place("c", asks("300", scoped))
    assert [one.reason for one in refused.refusals] == ["Insufficient Topology Scoped GPU Devices"]


def _virtual(pool: Pool, *groups: dict[str, Any]) -> None:
    listed = device_object(2, 2)
    for device in listed["spec"]["devices"]:
        if device["type"] == "rdma":
            at = device["minor"]
            device["labels"] = {"speed": ("fast", "slow")[at]}
            device["vfGroups"] = [
                {**one, "vfs": [{"minor": vf, "busID": f"0000:{at}{place}:00.{9 - vf}"} for vf in range(2)]}
                for place, one in enumerate(groups)
            ]
    pool.devices("n0", listed)


def functions(pool: Pool, name: str) -> list[str]:
    claim = pool.cards.claim_of(("default", name))
    return [one.bus for share in claim.shares["rdma"] for one in share.functions]


def test_a_virtual_function_is_one_pods() -> None:
    pool = Pool(2)
    wants = {DEVICE_ALLOCATE_HINT: {"rdma": {"vfSelector": {"matchLabels": {"net": "a"}}}}}
    refused = pool.place("none", asks("", wants, rdma="10"))
    assert [one.reason for one in refused.refusals] == ["Insufficient rdma devices"]
    pool.scheduler.remove_pod(("default", "none"))
    _virtual(pool, {"labels": {"net": "a"}}, {"labels": {"net": "b"}})
    assert all(pool.place(f"p{at}", asks("", wants, rdma="10")).placed for at in range(4))
    got = [functions(pool, f"p{at}") for at in range(4)]
    assert sorted(got) == [["0000:00:00.8"], ["0000:00:00.9"], ["0000:10:00.8"], ["0000:10:00.9"]]
    refused = pool.place("more", asks("", wants, rdma="10"))
    assert [one.reason for one in refused.refusals] == ["Insufficient rdma devices"]
    claim = pool.cards.claim_of(("default", "p1"))
    assert read_shares({DEVICE_ALLOCATED: shares_text(claim.shares)}) == claim.shares
    assert json.loads(shares_text(claim.shares))["rdma"][0]["extension"]["vfs"][0]["busID"] == got[1][0]
    pool.scheduler.remove_pod(("default", "p1"))
    decision = pool.scheduler.schedule_one()
    assert decision is not None
    assert decision.placed
    assert functions(pool, "more") == got[1]


def test_devices_are_selected_by_expressions() -> None:
    pool = Pool(2)
    _virtual(pool)
    for values, expected in ((["slow"], [1]), (["fast", "slow"], [0])):
        said = {"matchExpressions": [{"key": "speed", "operator": "In", "values": values}]}
        name = f"p-{len(values)}"
        assert pool.place(
            name, asks("", {DEVICE_ALLOCATE_HINT: {"rdma": {"selector": said}}}, rdma="10")
        ).placed
        assert pool.minors(name, "rdma") == expected
    virtual: dict[str, Any] = {DEVICE_ALLOCATE_HINT: {"rdma": {"vfSelector": {}}}}
    refused = pool.place("virtual", asks("", virtual, rdma="10"))
    assert [one.reason for one in refused.refusals] == ["node(s) Insufficient rdma VirtualFunctions"]


def test_cards_are_shared_where_pods_are_kept_apart_as_they_want() -> None:
    pool = Pool(2, 2)
    said = asks("40")
    said["labels"] = {"koordinator.sh/gpu-isolation-provider": "HAMi-core"}
    refused = pool.place("p", said)
    assert [one.reason for one in refused.refusals] == [
        "node(s) do not keep pods on gpu devices apart by HAMi-core"
    ]
    offers = {**ROOM, **dict.fromkeys((GPU, RATIO, "koordinator.sh/gpu-memory"), "1Ti")}
    pool.build({"nodes": {"n1": {"allocatable": offers, "labels": said["labels"]}}})
    decision = pool.scheduler.schedule_one()
    assert decision is not None
    assert decision.node == "n1"
    whole = {**asks("100"), "labels": said["labels"]}
    assert pool.place("whole", whole).placed


def test_models_that_are_given_as_a_whole_only() -> None:
    own = document("DeviceSharing", "gpu", {"scheduling": {"unsharedModels": ["A800"]}})
    pool = Pool(2, graph=graph(own, TIES), labels={"node.koordinator.sh/gpu-model": "A800"})
    refused = pool.place("p", asks("40"))
    assert [one.reason for one in refused.refusals] == ["gpu devices of the model A800 are not shared"]
    assert pool.place("whole", asks("100")).placed


def test_a_card_may_be_sold_more_than_once() -> None:
    listed = device_object(1)
    listed["spec"]["devices"][0]["resources"] |= {"koordinator.sh/gpu-core": "200", RATIO: "200"}
    pool = Pool(1)
    pool.devices("n0", listed)
    assert [pool.place(f"p{at}", asks("60")).placed for at in range(4)] == [True] * 3 + [False]


NPU = "huawei.com/npu-core"
PARTS = {"small": {NPU: 2, "huawei.com/npu-cpu": 1, "koordinator.sh/gpu-memory": "4Gi"}}
TEMPLATES = graph(
    TIES, document("DeviceSharing", "gpu", {"scheduling": {"templates": {"huawei-310P": PARTS}}})
)


def _npus(policies: RuleGraph, vendor: str = "huawei") -> Pool:
    """One node with two NPUs that templates divide."""
    world = Pool(0, graph=policies)
    amounts = {NPU: "8", "huawei.com/npu-cpu": "7", "koordinator.sh/gpu-memory": "16Gi"}
    world.build(
        {
            "nodes": {
                "n0": {
                    "allocatable": {**ROOM, **dict.fromkeys((*amounts, "koordinator.sh/gpu.shared"), "1Ti")}
                }
            }
        }
    )
    listed = device_object(2)
    listed["metadata"]["labels"] = {
        "node.koordinator.sh/gpu-vendor": vendor, "node.koordinator.sh/gpu-model": "310P",
    }  # fmt: skip
    for one in listed["spec"]["devices"]:
        one["resources"] = amounts
    world.devices("n0", listed)
    return world


def _part(**amounts: str) -> dict[str, Any]:
    words = {"core": NPU, "cpu": "huawei.com/npu-cpu", "memory": "koordinator.sh/gpu-memory"}
    request = {words[name]: amount for name, amount in amounts.items()}
    return {"request": {"koordinator.sh/gpu.shared": "1", **request}}


def test_parts_that_are_given_by_a_template_alone() -> None:
    world = _npus(TEMPLATES)
    small = _part(core="2", cpu="1", memory="4Gi")
    assert world.place("a", small).placed
    shares = world.cards.claim_of(("default", "a")).shares
    assert shares["gpu"][0].template == "small"
    assert json.loads(shares_text(shares))["gpu"][0]["extension"] == {"gpuSharedResourceTemplate": "small"}
    refused = world.scheduler.framework.decide(pod("b", _part(core="3", cpu="1", memory="4Gi")))
    assert [(one.reason, one.resolvable) for one in refused.refusals] == [
        ("no matched GPU shared resource template", False)
    ]
    for other in (_npus(TEMPLATES, "another"), _npus(GRAPH)):
        assert not other.place("a", small).placed


ADAPTED = graph(
    TIES, document("DeviceSharing", "gpu", {"parameters": {"devicePluginAdaption": {"value": True}}})
)


def test_device_plugins_of_vendors_find_what_they_read() -> None:
    wanted = {"request": {GPU: "30"}, "labels": {"koordinator.sh/gpu-isolation-provider": "HAMi-core"}}
    for policies, said in ((ADAPTED, {"hami.io/vgpu-node": "n0"}), (GRAPH, {})):
        world = Pool(0, graph=policies)
        label = {"koordinator.sh/gpu-isolation-provider": "HAMi-core"}
        world.build({"nodes": {"n0": {"allocatable": {**ROOM, GPU: "100"}, "labels": label}}})
        world.devices("n0", device_object(1))
        assert world.place("a", wanted).placed
        claim = world.cards.claim_of(("default", "a"))
        assert claim.said == said
        port = _Writes()
        asyncio.run(write(None, claim, port, None))  # type: ignore[arg-type]  # it needs no host and does not sleep
        assert port.patches[0][1].keys() == {DEVICE_ALLOCATED, *said}
        world.scheduler.remove_pod(("default", "a"))
        plain = {"request": {GPU: "100"}}
        assert world.place("b", plain).placed
        assert world.cards.claim_of(("default", "b")).said == {}


def test_a_node_that_lists_no_devices_leaves_them_to_its_kubelet() -> None:
    pool = Pool(1)
    pool.build({"nodes": {"bare": {"allocatable": {**ROOM, GPU: "800"}}}})
    assert pool.place("first", asks("100")).node == "n0"
    assert pool.place("second", asks("100")).node == "bare"
    assert pool.minors("second") == []


def test_what_is_missing_is_told_with_numbers() -> None:
    pool = Pool(2)
    for name, amount in (("a", "70"), ("b", "80")):
        assert pool.place(name, asks(amount)).placed
    said = pool.scheduler.framework.advise(pod("c", asks("40")))
    assert any("1/2 gpu has 30 % free, the pod asks 40 %" in one.text for one in said), said


class _Writes:
    """What is written before a pod is bound."""

    def __init__(self) -> None:
        self.patches: list[Any] = []

    async def get(self, *_arguments: Any, **_options: Any) -> Any:
        raise AssertionError

    async def patch(self, _resource: Any, name: str, patch: Any, **options: Any) -> Any:
        self.patches.append((name, patch.body["metadata"]["annotations"], options))
        return {}


def test_what_a_pod_got_is_written_and_read_again_after_a_restart() -> None:
    pool = Pool(2, 4)
    names = [f"p{at}" for at in range(9)]
    asked = {name: asks(("40", "100", "25")[at % 3]) for at, name in enumerate(names)}
    for name in names:
        pool.place(name, asked[name])
    port = _Writes()
    after = Pool(2, 4)
    for name in names:
        claim = pool.cards.claim_of(("default", name))
        if claim is None:
            continue
        asyncio.run(write(None, claim, port, None))  # type: ignore[arg-type]  # it needs no host and does not sleep
        annotations = port.patches[-1][1]
        assert read_shares(annotations) == claim.shares
        bound = pod(name, {**asked[name], "annotations": annotations, "node": claim.node, "phase": "Running"})
        after.scheduler.set_pod(bound)
    assert after.given() == pool.given()
    assert {one[2]["subresource"] for one in port.patches} == {"status"}


def _restarted(before: Pool, after: Pool, asked: Mapping[str, Mapping[str, Any]]) -> Pool:
    """A scheduler that finds pods bound that asked for something, by name, with what was written on them."""
    for name, spec in asked.items():
        claim = before.cards.claim_of(("default", name))
        if claim is not None:
            annotations = {**spec.get("annotations", {}), DEVICE_ALLOCATED: shares_text(claim.shares)}
            after.scheduler.set_pod(
                pod(name, {**spec, "annotations": annotations, "node": claim.node, "phase": "Running"})
            )
    return after


def _with_functions() -> Pool:
    """A node with two cards of two virtual functions each."""
    pool = Pool(2)
    _virtual(pool, {"labels": {"net": "a"}})
    return pool


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["place", "place", "place", "gone", "failed", "tried"]),
        st.integers(0, 11),
        st.sampled_from(["10", "25", "40", "60", "100", "200"]),
    ),
    max_size=30,
)


@settings(max_examples=40)
@given(STEPS)
def test_no_share_is_promised_twice_over_any_history(steps: list[tuple[str, int, str]]) -> None:
    pool = Pool(2, 3)
    scheduler, there = pool.scheduler, dict[str, str]()
    for step, which, amount in steps:
        name = f"p{which}"
        if step == "place" and name not in there:
            pool.submit(name, asks(amount))
            there[name] = amount
            while scheduler.schedule_one() is not None:
                pass
        elif step == "gone" and name in there:
            scheduler.remove_pod(("default", name))
            del there[name]
        elif step == "tried":
            before = pool.given()
            with scheduler.cache.trial():
                scheduler.cache.displace(*[("default", one) for one in there])
                assert pool.given() == {}
            assert pool.given() == before
        taken = pool.given()
        assert all(number <= 100 for key, number in taken.items() if key[3] == RATIO)
        total = sum(number for key, number in taken.items() if key[3] == RATIO)
        held = [one for one in there if pool.minors(one)]
        assert total == sum(int(there[one]) for one in held)
    asked = {name: asks(amount) for name, amount in there.items()}
    assert _restarted(pool, Pool(2, 3), asked).given() == pool.given()


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(["place", "place", "gone", "tried"]), st.integers(0, 7)), max_size=20)
)
def test_no_virtual_function_is_promised_twice_over_any_history(steps: list[tuple[str, int]]) -> None:
    pool = _with_functions()
    wants = {DEVICE_ALLOCATE_HINT: {"rdma": {"vfSelector": {"matchLabels": {"net": "a"}}}}}
    there: set[str] = set()
    for step, which in steps:
        name = f"p{which}"
        if step == "place" and name not in there:
            pool.submit(name, asks("", wants, rdma="10"))
            there.add(name)
            while pool.scheduler.schedule_one() is not None:
                pass
        elif step == "gone" and name in there:
            pool.scheduler.remove_pod(("default", name))
            there.remove(name)
            while pool.scheduler.schedule_one() is not None:
                pass
        elif step == "tried":
            with pool.scheduler.cache.trial():
                pool.scheduler.cache.displace(*[("default", one) for one in there])
        claims = pool.cards.owners("n0").values()
        held = [one.bus for claim in claims for share in claim.shares["rdma"] for one in share.functions]
        assert len(set(held)) == len(held) == min(4, len(there))
    after = _restarted(pool, _with_functions(), dict.fromkeys(there, asks("", wants, rdma="10")))
    assert after.given() == pool.given()
    assert all(
        after.cards.function_taken("n0", "rdma", share.minor, one.bus)
        for claim in pool.cards.owners("n0").values()
        for share in claim.shares["rdma"]
        for one in share.functions
    )
    for name in there:
        if pool.cards.claim_of(("default", name)) is not None:
            after.scheduler.remove_pod(("default", name))
    assert after.given() == {}


def test_a_text_of_shares_reads_back() -> None:
    pool = Pool(2)
    pool.place("a", asks("200"))
    claim = pool.cards.claim_of(("default", "a"))
    assert read_shares({DEVICE_ALLOCATED: shares_text(claim.shares)}) == claim.shares
    assert json.loads(shares_text(claim.shares))["gpu"][1] == {
        "minor": 1,
        "id": "gpu-1",
        "resources": {
            "koordinator.sh/gpu-core": "100",
            "koordinator.sh/gpu-memory": str(16 << 30),
            RATIO: "100",
        },
    }


def test_a_pod_that_asks_for_no_devices_is_refused_nowhere_whoever_asks() -> None:
    scheduler = Pool(2).scheduler
    nodes = NodeView(scheduler.cache.table, None, scheduler.cache.state)
    cycle = scheduler.framework.cycle(scheduler.framework.view(pod("plain")))
    said = devices_free(cycle.view, nodes, Parameters({}))
    assert said.refused.shape == (1, 1)
    assert not said.refused.any()


def _scored_pool(strategy: str, sharing: dict[str, Any], *cards: int) -> Pool:
    profile = {
        "schedulerName": PROFILE,
        "ties": "First",
        "scores": [
            {
                "name": "F",
                "weight": 1000,  # the pack has other scores
                "plugin": "DeviceShare",
                "parameters": {"strategy": strategy},
            }
        ],
    }
    return Pool(
        *cards,
        graph=graph(
            document("SchedulingProfile", "own", profile),
            document("DeviceSharing", "gpu", {"scheduling": {"placement": "Anywhere", **sharing}}),
        ),
    )


def test_pods_go_where_usual_pods_lose_least() -> None:
    usual = {"1000m 1x50": 1, "1000m 1x100": 1}
    sharing = {"usualPods": usual, "order": [{"cel": "-device.gradient"}]}
    pool = _scored_pool("FragmentationGradient", sharing, 2, 2)
    placed = [pool.place(f"p{at}", asks("50")) for at in range(4)]
    assert [one.node for one in placed] == ["n0", "n0", "n1", "n1"]
    assert [pool.minors(f"p{at}") for at in range(4)] == [[0]] * 4


def test_policy_says_what_nodes_are_worth_by_their_devices() -> None:
    # Pods of one sort together, on the node with the fewest idle cards.
    worth = "(devices.asked.sort in devices.sorts ? 100 : size(devices.sorts) == 0 ? 50 : 0) - devices.idle"
    pool = _scored_pool("Policy", {"score": {"cel": worth}, "order": [{"cel": "device.free"}]}, 4, 3, 2)
    asked = ["50", "100", "200", "50", "100", "100", "50"]
    placed = [pool.place(f"p{at}", asks(one)) for at, one in enumerate(asked)]
    assert [one.node for one in placed] == ["n2", "n1", "n0", "n2", "n1", "n1", "n2"]
    assert [pool.minors(f"p{at}") for at in (0, 3, 6)] == [[0], [0], [1]]
    pool.scheduler.remove_pod(("default", "p1"))
    assert pool.place("again", asks("100")).node == "n1"


def test_lots_are_drawn_once() -> None:
    by_lot = {"order": [{"cel": "device.lot"}]}
    pools = [_scored_pool("LeastAllocated", by_lot, 8) for _ in range(2)]
    drawn = []
    for pool in pools:
        for at in range(6):
            assert pool.place(f"p{at}", asks("100")).placed
        drawn.append([pool.minors(f"p{at}") for at in range(6)])
    assert drawn[0] == drawn[1]
    assert drawn[0] != sorted(drawn[0])


def test_cpu_and_cards_are_left_in_balance_where_usual_pods_do_not_mind() -> None:
    sharing = {"usualPods": {"1000m 1x100": 1}, "order": [{"cel": "device.free"}]}
    for weight, expected in ((0, "n1"), (100, "n0")):
        pool = _scored_pool("FragmentationGradient", {**sharing, "imbalance": weight}, 4, 4)
        assert pool.place("a", {"request": {"cpu": "25"}, "annotations": {}}).node == "n0"
        # A quarter of the cards beside a quarter of the CPU; other scores prefer the empty node.
        assert pool.place("b", asks("100")).node == expected
