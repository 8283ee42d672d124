"""What hooks change where containers start: the pure function, its messages, and the agent that answers runtime proxies."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.agent.hooks.containers import numbers_by_writer
from koordpolicy.agent.hooks.places import HookPlaces
from koordpolicy.agent.hooks.proxied import answer
from koordpolicy.agent.hooks.scenes import Announced, HookScenes, NodeUnknown, announced
from koordpolicy.agent.hooks.server import HookServing
from koordpolicy.agent.hooks.stages import Stage
from koordpolicy.agent.hooks.starting import (
    HookFailed,
    HookScene,
    StartChanges,
    container_changes,
    pod_changes,
)
from koordpolicy.algorithms.cpu_pools import CPUPools
from koordpolicy.cri.calls import CallFailed, Channel, GrpcCall
from koordpolicy.cri.shapes import (
    CONTAINER_HOOK_ANSWER,
    CONTAINER_HOOK_REQUEST,
    POD_HOOK_ANSWER,
    POD_HOOK_REQUEST,
)
from koordpolicy.cri.stages import SERVICE, TTRPC_ENDPOINT, HookStage
from koordpolicy.cri.ttrpc import TtrpcChannel
from koordpolicy.cri.wire import Message
from koordpolicy.model import protocol as wire
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import BATCH_CPU, BATCH_MEMORY, DEVICE_ALLOCATED, QOS_CLASS, RESOURCE_STATUS
from tests.unit.agent.nodes import NOW, record, sight
from tests.vectors.policies import document, graph

BATCH = {BATCH_CPU: 1500, BATCH_MEMORY: 1 << 30}
POD = Pod(
    "p", uid="u", labels={QOS_CLASS: "BE"}, kubernetes_qos="BestEffort",
    containers=(Container("main", requests=BATCH, limits=BATCH),), init_containers=(Container("first"),),
)  # fmt: skip
POOLS = CPUPools({0: "0-3"}, {0: "0-5"})


def scene(*documents: Any, **node: Any) -> HookScene:
    compiled = graph(*documents)
    return HookScene(compiled, record(compiled, sight(**node)), POOLS, NOW)


def hook(name: str, **spec: Any) -> Any:
    return document("ContainerHook", name, spec)


def test_sizes_and_cpus_are_those_of_what_runs() -> None:
    found = container_changes(scene(), POD, "main", Stage.CREATE)
    assert found.files == {
        "cpu.shares": 1536,
        "cpu.cfs_quota_us": 150_000,
        "memory.limit_in_bytes": 1 << 30,
    }
    assert found.cpus == ""  # best-effort work is moved as a whole


def test_arbitration_settles_as_while_it_runs() -> None:
    owned = replace(POD, annotations={RESOURCE_STATUS: json.dumps({"cpuset": "2-3"})})
    assert container_changes(scene(), owned, "main", Stage.CREATE).cpus == ""  # no best-effort pod owns CPUs
    believed = (
        hook(
            "owned-cpus",
            match={"condition": "pod.ownsCPUs"},
            writer="cpuset",
            container={"cpuLimit": {"cel": "millicores(-1)"}},
        ),
        hook("cpus", container={"cpus": "Owned"}),
    )
    found = container_changes(scene(*believed), owned, "main", Stage.CREATE)
    assert (found.files["cpu.cfs_quota_us"], found.cpus) == (-1, "2-3")
    batch_first = document(
        "Arbitration", "ours", {"file": "cpu.cfs_quota_us", "order": ["batch-resources", "cpuset"]}
    )
    found = container_changes(scene(*believed, batch_first), owned, "main", Stage.CREATE)
    assert found.files["cpu.cfs_quota_us"] == 150_000


def test_texts_of_later_hooks_go_over_those_of_earlier_ones() -> None:
    hooks = (
        hook(
            "a",
            container={
                "environment": {"A": "1", "B": "1"},
                "annotations": {"x": "1"},
                "unified": {"memory.high": "7"},
            },
        ),
        hook(
            "b",
            match={"pods": {"matchLabels": {QOS_CLASS: "BE"}}},
            container={"environment": {"cel": "{'B': container.name + '@' + node.name}"}},
        ),
        hook("c", match={"pods": {"matchLabels": {QOS_CLASS: "LS"}}}, container={"environment": {"B": "no"}}),
    )
    found = container_changes(scene(*hooks), POD, "main", Stage.CREATE)
    assert found.environment == {"A": "1", "B": "main@n"}
    assert (found.annotations, found.unified) == ({"x": "1"}, {"memory.high": "7"})
    first = container_changes(scene(*hooks), POD, "first", Stage.CREATE)
    assert (first.environment["B"], first.files) == ("first@n", {})  # init containers have no numbers


def test_a_hook_speaks_at_its_stages_alone() -> None:
    late = scene(hook("late", stages=["Running"], container={"cpuLimit": 1, "environment": {"A": "1"}}))
    assert container_changes(late, POD, "main", Stage.CREATE).environment == {}
    assert numbers_by_writer(late.graph, POD, late.node, NOW).whole.containers["main"].quota == 100_000
    early = scene(
        hook("early", stages=["CreateContainer"], container={"cpuLimit": 1}, pod={"annotations": {"a": "1"}})
    )
    assert numbers_by_writer(early.graph, POD, early.node, NOW).whole.containers["main"].quota == 150_000
    assert container_changes(early, POD, "main", Stage.CREATE).files["cpu.cfs_quota_us"] == 100_000
    assert container_changes(early, POD, "main", Stage.UPDATE).files["cpu.cfs_quota_us"] == 150_000
    assert pod_changes(early, POD, Stage.RUN_POD) == StartChanges()


@pytest.mark.parametrize("policy", ["Ignore", "Fail"])
def test_a_hook_that_cannot_be_decided_is_passed_over_or_stops_the_container(policy: str) -> None:
    failing = scene(
        hook(
            "failing",
            failurePolicy=policy,
            container={"environment": {"cel": "{'A': pod.annotations['none']}"}},
        ),
        hook("other", container={"environment": {"B": "1"}}),
    )
    if policy == "Fail":
        with pytest.raises(HookFailed, match="ContainerHook/failing"):
            container_changes(failing, POD, "main", Stage.CREATE)
        return
    found = container_changes(failing, POD, "main", Stage.CREATE)
    assert found.environment == {"B": "1"}
    (note,) = found.notes
    assert note.startswith("ContainerHook/failing")


def test_containers_learn_the_cards_of_their_pod() -> None:
    shares = [{"minor": 2, "id": "GPU-b"}, {"minor": 0}]
    given = replace(POD, annotations={DEVICE_ALLOCATED: json.dumps({"gpu": shares, "rdma": [{"minor": 7}]})})
    named = hook("ids", container={"environment": {"cel": "{'IDS': string(pod.deviceIDs['gpu'].join('|'))}"}})
    for name in ("main", "first"):
        found = container_changes(scene(named), given, name, Stage.CREATE)
        assert found.environment == {"NVIDIA_VISIBLE_DEVICES": "2,0", "IDS": "GPU-b|"}
    unreadable = replace(POD, annotations={DEVICE_ALLOCATED: '{"gpu": [{"minor": "x"}]}'})
    assert container_changes(scene(), unreadable, "main", Stage.CREATE).environment == {}


# --- messages -----------------------------------------------------------------------------------------


def question(uid: str = "u", environment: Mapping[str, str] | None = None, **numbers: int) -> bytes:
    asked = Message(CONTAINER_HOOK_REQUEST)
    for name, of in (("pod_meta", {"name": "p", "uid": uid}), ("container_meta", {"name": "main"})):
        metadata = asked.message(name)
        for key, value in of.items():
            metadata.put_text(key, value)
        asked.put_message(name, metadata)
    asked.put_texts("pod_labels", {QOS_CLASS: "BE"})
    asked.put_text("pod_cgroup_parent", "/kubepods/besteffort/podu")
    asked.put_texts("container_envs", environment or {})
    resources = asked.message("container_resources")
    for name, number in numbers.items():
        resources.put_integer(name, number)
    resources.put_text("cpuset_cpus", "7")
    asked.put_message("container_resources", resources)
    return asked.encoded()


def answered(where: HookScene, pod: Pod | None, data: bytes) -> Message:
    made, _ = answer(where, lambda uid: pod if uid == "u" else None, HookStage.PRE_CREATE, data)
    return Message(CONTAINER_HOOK_ANSWER, made)


def test_the_answer_is_the_question_with_what_hooks_change() -> None:
    data = question(environment={"A": "0"}, cpu_period=100_000, cpu_shares=2, oom_score_adj=1000)
    found = answered(scene(hook("ours", container={"environment": {"B": "1"}})), POD, data)
    resources = found.message("container_resources")
    assert {
        name: resources.integer(name)
        for name in ("cpu_period", "cpu_shares", "cpu_quota", "memory_limit_in_bytes", "oom_score_adj")
    } == {
        "cpu_period": 100_000,
        "cpu_shares": 1536,
        "cpu_quota": 150_000,
        "memory_limit_in_bytes": 1 << 30,
        "oom_score_adj": 1000,
    }
    assert resources.text("cpuset_cpus") == ""
    assert found.texts("container_envs") == {"A": "0", "B": "1"}


def test_a_pod_that_nobody_has_told_of_is_known_by_the_question() -> None:
    announced_in_annotation = json.dumps({"containers": {"main": {"requests": {BATCH_CPU: 1000}}}})
    asked = Message(CONTAINER_HOOK_REQUEST, question("unknown", cpu_shares=2))
    asked.put_texts("pod_annotations", {wire.EXTENDED_RESOURCE_SPEC: announced_in_annotation})
    found = answered(scene(), None, asked.encoded())
    assert found.message("container_resources").integer("cpu_shares") == 1024
    limited = hook(
        "ours", container={"environment": {"cel": "{'LIMIT': string(container.limit.cpu / cpu('1'))}"}}
    )
    found = answered(scene(limited), None, question("unknown", cpu_period=100_000, cpu_quota=250_000))
    assert found.texts("container_envs") == {"LIMIT": "2.5"}


def test_pods_get_annotations() -> None:
    asked = Message(POD_HOOK_REQUEST)
    asked.put_texts("labels", {QOS_CLASS: "BE"})
    where = scene(hook("ours", pod={"annotations": {"cel": "{'class': pod.qosLabel}"}}))
    made, notes = answer(where, lambda _: None, HookStage.PRE_RUN_POD, asked.encoded())
    assert (Message(POD_HOOK_ANSWER, made).texts("annotations"), notes) == ({"class": "BE"}, ())
    assert answer(where, lambda _: None, HookStage.POST_STOP_POD, asked.encoded()) == (b"", ())


# --- the server ---------------------------------------------------------------------------------------


def test_what_proxies_are_told_is_policy() -> None:
    pack = scene()
    assert announced(pack.graph, pack.node, NOW) == Announced(
        (HookStage.PRE_RUN_POD, HookStage.PRE_CREATE, HookStage.PRE_UPDATE), "Ignore"
    )
    strict = scene(document("RuntimeHooks", "ours", {"stages": ["CreateContainer"], "failurePolicy": "Fail"}))
    assert announced(strict.graph, strict.node, NOW) == Announced((HookStage.PRE_CREATE,), "Fail")


class OneScene(HookScenes):
    """Scenes that a test gives."""

    def __init__(self, given: HookScene | None) -> None:
        self.given = given
        self._said = None

    def scene(self) -> HookScene:
        if self.given is None:
            raise NodeUnknown("the agent does not know its node yet")
        return self.given

    def pod(self, uid: str) -> Pod | None:
        return POD if uid == "u" else None


def test_the_agent_answers_and_announces_itself(tmp_path: Path) -> None:
    async def story() -> None:
        scenes, counts = OneScene(None), list[tuple[str, str]]()
        places = HookPlaces(tmp_path / "agent.sock", tmp_path / "hooks", Path("/var/run/agent.sock"))
        serving = HookServing(scenes, places, lambda stage, result: counts.append((stage, result)))
        running = asyncio.create_task(serving.run())
        client, method = Channel(places.socket), HookStage.PRE_CREATE.method
        try:
            async with asyncio.timeout(20):
                while not places.socket.exists():  # noqa: ASYNC110  # a file wakes nobody
                    await asyncio.sleep(0.01)
                with pytest.raises(CallFailed, match="does not know its node"):
                    await client.call(method, GrpcCall(question(), seconds=10))
                assert not (places.directory / "koordlet.json").exists()
                scenes.given = scene()
                serving.announce()
                told = json.loads((places.directory / "koordlet.json").read_bytes())
                assert told["remote-endpoint"] == "/var/run/agent.sock"
                assert told["failure-policy"] == "Ignore"
                made = Message(
                    CONTAINER_HOOK_ANSWER, await client.call(method, GrpcCall(question(), seconds=10))
                )
                assert made.message("container_resources").integer("cpu_quota") == 150_000
                with pytest.raises(CallFailed, match="INVALID_ARGUMENT"):
                    await client.call(method, GrpcCall(b"\xff", seconds=10))
                assert told[TTRPC_ENDPOINT] == "/var/run/agent.sock.ttrpc"
                direct = TtrpcChannel(places.ttrpc)
                over_ttrpc = await direct.call(SERVICE, HookStage.PRE_CREATE.method_name, question(), 10)
                assert over_ttrpc == made.encoded()
                await direct.close()
                scenes.given = scene(document("RuntimeHooks", "ours", {"failurePolicy": "Fail"}))
                serving.announce()
                told = json.loads((places.directory / "koordlet.json").read_bytes())
                assert told["failure-policy"] == "Fail"
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await client.close()
        assert [result for _, result in counts] == ["not ready", "answered", "unreadable", "answered"]

    asyncio.run(story())
