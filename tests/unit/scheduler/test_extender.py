"""The extender: what it answers (cases in `extender.yaml`), what it takes for a cycle, and its server."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import PODS
from koordpolicy.model.pod import read_pod
from koordpolicy.runtime.http import HttpServer
from koordpolicy.runtime.http.authentication import Authentication, Authenticator
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.scheduler.extender.extender import Extender
from koordpolicy.scheduler.extender.server import MEMORY, NOT_READY, ExtenderServer, limits_of
from koordpolicy.scheduler.extender.steps import OWN, restricted_to
from koordpolicy.scheduler.extender.wire import ExtenderArgs, Going, PreemptionArgs
from koordpolicy.scheduler.plugins import PLUGINS
from koordpolicy.scheduler.profile import ProfileError, profile_of
from koordpolicy.scheduler.role import Role
from tests.unit.scheduler.world import PROFILE, START, World, pod, policies

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("extender.yaml").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "-"))
def test_what_it_answers(case: dict[str, Any]) -> None:
    world = World(policies(*case.get("policies", ())), role=Role(restricted_to(case.get("steps", OWN))))
    world.build(case)
    extender, expected = Extender(world.scheduler), case["expect"]
    asked = ExtenderArgs(pod("pod", case.get("pod")), tuple(case.get("asked", case["nodes"])))
    before = list(world.scheduler.cache.table.row(0).items())
    if "left" in expected:
        passed = extender.filter(asked)
        assert list(passed.names) == expected["left"]
        assert passed.failed == expected.get("failed", {})
        assert passed.unresolvable == expected.get("unresolvable", {})
    if "scores" in expected:
        left = ExtenderArgs(asked.pod, tuple(expected["scores"]))
        assert extender.prioritize(left) == list(expected["scores"].items())
    if "going" in case:
        going = {node: Going(tuple(f"uid-{name}" for name in names)) for node, names in case["going"].items()}
        found = extender.room(PreemptionArgs(asked.pod, going))
        assert {node: list(one.uids) for node, one in found.items()} == {
            node: [f"uid-{name}" for name in names] for node, names in expected["going"].items()
        }
        assert world.scheduler.cache.pod_count == sum(len(one["pods"]) for one in case["nodes"].values())
    assert list(world.scheduler.cache.table.row(0).items()) == before


def test_every_twin_is_a_plugin_and_koordinators_are_none() -> None:
    assert any(plugin.of_kubernetes for plugin in PLUGINS.values())
    profile = restricted_to(OWN)(profile_of(policies(), PROFILE))
    assert [step.name for step in profile.filters] == [
        "ElasticQuota", "AmplifiedCPU", "Reservation", "NodeNUMAResource", "DeviceShare", "Coscheduling", "LoadAwareScheduling",
            "NetworkTopology",
    ]  # fmt: skip
    assert [step.name for step in profile.scores] == [
        "LoadAwareScheduling", "NodeResourcesFitPlus", "ScarceResourceAvoidance", "Reservation", "NodeNUMAResource", "DeviceShare",
            "NetworkTopology",
    ]  # fmt: skip


def test_steps_that_the_profile_has_not_are_told() -> None:
    with pytest.raises(ProfileError, match="no filter or score `Nonsense`"):
        restricted_to("LoadAwareScheduling,Nonsense")(profile_of(policies(), PROFILE))


def test_pods_of_gangs_go_nowhere_unless_policy_has_them_placed_one_by_one() -> None:
    ganged = pod("p", {"annotations": {"gang.scheduling.koordinator.sh/name": "g"}})
    for steps in (OWN, "NodeResourcesFit"):
        world = World(role=Role(restricted_to(steps)))
        world.build({"nodes": {"a": {}}})
        found = Extender(world.scheduler).filter(ExtenderArgs(ganged, ("a", "unknown")))
        assert not found.names
        assert not found.failed, "who goes does not help"
        assert set(found.unresolvable) == {"a", "unknown"}
        assert "gang default/g cannot be placed as a whole here" in found.unresolvable["a"]
        assert Extender(world.scheduler).filter(ExtenderArgs(pod("q"), ("a",))).names == ("a",)
    off = policies({"filters": [{"name": "Coscheduling", "enabled": False}]})
    world = World(off, role=Role(restricted_to(OWN)))
    world.build({"nodes": {"a": {}}})
    assert Extender(world.scheduler).filter(ExtenderArgs(ganged, ("a",))).names == ("a",)


def test_what_is_bound_through_it_counts_at_once_and_not_twice() -> None:
    world = World(role=Role(restricted_to("NodeResourcesFit")))
    world.build({"nodes": {"a": {}}})
    extender, large = Extender(world.scheduler), pod("large", {"request": {"cpu": "6"}})
    other = ExtenderArgs(pod("other", {"request": {"cpu": "6"}}), ("a",))
    assert extender.filter(other).names == ("a",)
    world.scheduler.assume(large, "a")
    assert extender.filter(other).failed == {"a": "Insufficient cpu"}
    world.scheduler.set_pod(pod("large", {"request": {"cpu": "6"}, "node": "a"}))
    world.scheduler.withdraw(large)
    assert extender.filter(other).failed == {"a": "Insufficient cpu"}, "the cluster has confirmed it"
    world.scheduler.remove_pod(large.key)
    world.scheduler.assume(large, "a")
    world.scheduler.withdraw(large)
    assert extender.filter(other).names == ("a",)
    assert list(world.scheduler.pending) == []


POD = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u"},
    "spec": {"containers": [{"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1"}}}]},
}


class Site:
    """An extender on a server, and a cluster with a pod for it to bind."""

    def __init__(self, patience: float, memory: int) -> None:
        self.world = World(role=Role(restricted_to(OWN)))
        self.world.build(
            {
                "nodes": {
                    "a": {"metric": {"usage": {"cpu": 1, "memory": 0}}},
                    "b": {"metric": {"usage": {"cpu": 9, "memory": 0}}},
                }
            }
        )
        self.cluster = MemoryCluster(Store(lambda: START // 10**9))
        self.metrics = Metrics("scheduler")
        self.heard: dict[tuple[str, str], dict[str, Any]] = {}
        self.answering = ExtenderServer(
            self.world.scheduler,
            lambda *key: self.heard.get(key),
            self.cluster,
            self.metrics,
            patience,
            memory,
        )
        self.answering.ready = True
        self.server = HttpServer(
            "127.0.0.1",
            0,
            self.answering.routes(),
            self.metrics,
            limits=limits_of(memory),
            authenticator=Authenticator(Authentication(anonymous_writes=True)),
        )

    async def post(self, verb: str, body: Any) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.server.port}/{verb}"
        async with aiohttp.ClientSession() as session, session.post(url, data=data) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if "json" in answer.content_type else text


@asynccontextmanager
async def site(patience: float = 0.0, memory: int = MEMORY) -> AsyncIterator[Site]:
    here = Site(patience, memory)
    async with here.server:
        yield here


def test_names_are_answered_with_names_and_nodes_with_nodes() -> None:
    async def story() -> None:
        async with site() as here:
            status, told = await here.post("filter", {"Pod": POD, "NodeNames": ["a", "b"]})
            assert (status, told["NodeNames"], told["Error"]) == (200, ["a"], "")
            assert told["FailedNodes"] == {"b": "node(s) cpu usage exceed threshold"}
            assert "Nodes" not in told
            nodes = [{"metadata": {"name": name}, "spec": {"kept": name}} for name in ("a", "b")]
            status, told = await here.post(
                "filter", {"pod": POD, "nodes": {"items": nodes}, "nodenames": None}
            )
            assert (status, told["Nodes"]["items"]) == (200, nodes[:1])
            assert "NodeNames" not in told
            status, told = await here.post("prioritize", {"Pod": POD, "NodeNames": ["b", "a"]})
            assert (status, [one["Host"] for one in told]) == (200, ["b", "a"])
            assert told[1]["Score"] > told[0]["Score"]

    asyncio.run(story())


def test_room_is_asked_for_by_uids_or_by_pods() -> None:
    async def story() -> None:
        async with site() as here:
            here.world.scheduler.set_pod(pod("x", {"node": "a", "priority": 0}))
            pods: list[dict[str, Any]]
            for key, pods in (
                ("NodeNameToMetaVictims", [{"UID": "uid-x"}]),
                ("NodeNameToVictims", [{"metadata": {"uid": "uid-x"}}]),
            ):
                body = {"Pod": POD, key: {"a": {"Pods": pods, "NumPDBViolations": 2}, "b": {"Pods": pods}}}
                status, told = await here.post("preempt", body)
                assert status == 200
                going = {"a": {"Pods": [{"UID": "uid-x"}], "NumPDBViolations": 2}}
                assert told == {"NodeNameToMetaVictims": going}

    asyncio.run(story())


def test_binding_binds_counts_and_tells_what_went_wrong() -> None:
    async def story() -> None:
        async with site() as here:
            body = {**POD, "metadata": {"name": "p", "namespace": "default"}}
            made = await here.cluster.create(PODS, body, namespace="default")
            uid = made["metadata"]["uid"]
            wanted = {"PodNamespace": "default", "PodName": "p", "PodUID": uid, "Node": "a"}
            status, told = await here.post("bind", {**wanted, "PodUID": "another"})
            assert (status, told) == (200, {"Error": "pod default/p is another one by now"})
            assert here.world.scheduler.cache.pod_count == 0
            assert await here.post("bind", wanted) == (200, {"Error": ""})
            assert here.world.scheduler.cache.node_of(("default", "p")) == "a"
            bound = await here.cluster.get(PODS, "p", namespace="default")
            assert bound["spec"]["nodeName"] == "a"
            # A second binding is refused by the cluster, and what counted already stays.
            here.world.scheduler.set_pod(read_pod(bound))
            status, told = await here.post("bind", {**wanted, "Node": "b"})
            assert status == 200
            assert told["Error"]
            assert here.world.scheduler.cache.node_of(("default", "p")) == "a"
            await here.cluster.delete(PODS, "p", namespace="default")
            here.world.scheduler.remove_pod(("default", "p"))
            status, told = await here.post("bind", wanted)
            assert told["Error"]
            assert here.world.scheduler.cache.pod_count == 0

    asyncio.run(story())


@pytest.mark.parametrize("scored", [True, False], ids=["scored", "the-only-node"])
@pytest.mark.parametrize("here_bound", [True, False], ids=["bound-here", "by-another-replica"])
def test_the_next_pod_is_judged_once_the_last_counts(scored: bool, here_bound: bool) -> None:
    async def story() -> None:
        async with site(patience=3600.0) as here:
            large = {"containers": [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": "5"}}}]}
            body = {**POD, "metadata": {"name": "p", "namespace": "default"}, "spec": large}
            made = await here.cluster.create(PODS, body, namespace="default")
            if scored:
                await here.post("prioritize", {"Pod": made, "NodeNames": ["a", "b"]})
            else:
                status, told = await here.post("filter", {"Pod": made, "NodeNames": ["a", "b"]})
                assert told["NodeNames"] == ["a"]
            another = {**made, "metadata": {**made["metadata"], "name": "q", "uid": "q"}}
            asking = asyncio.create_task(here.post("filter", {"Pod": another, "NodeNames": ["a"]}))
            await asyncio.sleep(0.2)
            assert not asking.done()
            uid = made["metadata"]["uid"]
            if here_bound:
                wanted = {"PodNamespace": "default", "PodName": "p", "PodUID": uid, "Node": "a"}
                assert await here.post("bind", wanted) == (200, {"Error": ""})
            else:
                await here.cluster.bind("default", "p", "a", uid=uid)
                here.world.scheduler.set_pod(read_pod(await here.cluster.get(PODS, "p", namespace="default")))
                here.answering.heard()
            status, told = await asking
            assert (status, told["NodeNames"]) == (200, [])
            assert told["FailedNodes"] == {"a": "node(s) cpu usage exceed threshold"}

    asyncio.run(story())


def test_a_pod_that_is_not_bound_keeps_nobody_waiting() -> None:
    async def story() -> None:
        async with site(patience=0.01) as here:
            claim: list[Any] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
            specs: tuple[dict[str, Any], ...] = ({"containers": []}, {"containers": [], "volumes": claim})
            for spec in specs:
                status, _ = await here.post("prioritize", {"Pod": {**POD, "spec": spec}, "NodeNames": ["a"]})
                assert status == 200
                status, told = await here.post("filter", {"Pod": POD, "NodeNames": ["a"]})
                assert (status, told["NodeNames"]) == (200, ["a"])

    asyncio.run(story())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "not JSON: Input data was truncated"),
        (b"[" * 100_000, "nested more than 100 levels deep"),
        ([], "body is not an object"),
        ({"Pod": POD}, "NodeNames is not a list"),
        ({"NodeNames": ["a"]}, "Pod is not an object"),
        ({"Pod": POD, "NodeNames": [1]}, "NodeNames is not a list"),
        ({"Pod": POD, "Nodes": {"items": [{}]}}, "Nodes.items holds something without a name"),
        ({"Pod": {"metadata": {"name": 3}}, "NodeNames": []}, ""),
    ],
    ids=range(8),
)
def test_malformed_questions_are_told(body: Any, said: str) -> None:
    async def story() -> None:
        async with site() as here:
            status, told = await here.post("filter", body)
            assert status == 200
            assert told["Error"]
            assert said in told["Error"]
            status, text = await here.post("prioritize", body)
            assert status == 400
            assert said in text
            assert (
                here.metrics.value("koordpolicy_extender_calls_total", verb="filter", result="malformed") == 1
            )

    asyncio.run(story())


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("a") | st.just("2e9999"),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(
        st.sampled_from(
            [
                "Pod", "pod", "NodeNames", "Nodes", "items", "metadata", "name", "namespace", "uid", "UID", "spec", "status",
                "Pods", "NumPDBViolations", "a", "NodeNameToVictims", "NodeNameToMetaVictims", "PodNamespace", "PodName",
                "PodUID", "Node", "containers", "resources", "requests", "cpu", "volumes", "labels", "annotations",
            ]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip
QUESTIONS = ODD | st.fixed_dictionaries({"Pod": ODD, "NodeNames": st.just(["a"])}) | st.fixed_dictionaries(
    {"Pod": st.just(POD)}, optional={"NodeNames": ODD, "Nodes": ODD, "NodeNameToVictims": ODD}
)  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(st.lists(QUESTIONS, min_size=10, max_size=20))
def test_no_question_is_unforeseen(cycles: list[Any]) -> None:
    async def story() -> None:
        async with site() as here:
            for cycle in cycles:
                for verb in ("filter", "prioritize", "preempt", "bind"):
                    status, told = await here.post(verb, cycle)
                    assert status != 500 or told != "internal error\n", (verb, cycle)
        assert here.metrics.numbers().get("koordpolicy_http_failures_total") is None

    asyncio.run(story())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            b'{"Pod": {}, "NodeNames": [' + b"[]," * 200_000 + b"0]}",
            "bytes of memory; 10000000 are permitted",
        ),
        (b'{"Pod": ' + b"[" * 50_000, "nested more than 100 levels deep"),
    ],
    ids=["wide", "deep"],
)
def test_what_would_take_too_much_memory_is_not_read(body: bytes, said: str) -> None:
    async def story() -> None:
        async with site(memory=10_000_000) as here:
            status, told = await here.post("filter", body)
            assert (status, said in told["Error"]) == (200, True), told
            assert (await here.post("prioritize", body))[0] == 400
            assert (await here.post("filter", {"Pod": POD, "NodeNames": ["a"]}))[0] == 200

    asyncio.run(story())


def test_nothing_is_answered_before_the_cluster_is_known() -> None:
    async def story() -> None:
        async with site() as here:
            here.answering.ready = False
            cycle = {"Pod": POD, "NodeNames": ["a"]}
            assert await here.post("filter", cycle) == (200, {"Error": NOT_READY})
            assert await here.post("prioritize", cycle) == (503, f"{NOT_READY}\n")

    asyncio.run(story())
