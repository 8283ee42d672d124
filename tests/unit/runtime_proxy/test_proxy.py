"""The proxy between a kubelet and a runtime over real gRPC: what passes, what hooks change, what holds when they are away."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from koordpolicy.cri.calls import CallFailed, Channel, GrpcCall, GrpcServer
from koordpolicy.cri.shapes import (
    CONTAINER_HOOK_ANSWER,
    CONTAINER_HOOK_REQUEST,
    CREATE_CONTAINER,
    POD_HOOK_ANSWER,
    POD_HOOK_REQUEST,
    RESOURCES,
    RUN_POD_SANDBOX,
    UPDATE_RESOURCES,
)
from koordpolicy.cri.stages import HookStage
from koordpolicy.cri.ttrpc import Refused, Status, TtrpcServer
from koordpolicy.cri.wire import Message
from koordpolicy.runtime_proxy.hook_servers import HookServers, read_hook_server
from tests.unit.runtime_proxy.runtimes import Noting, Place, identity, listed, listed_container, proxied

UNKNOWN = bytes.fromhex("a20603616263")
"""Field 100, which no shape knows."""


def run(folder: Path, work: Callable[[Place], Awaitable[None]], **options: object) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), proxied(folder, **options) as place:  # type: ignore[arg-type]  # a test's own
            await work(place)

    asyncio.run(main())


def pod_request(**labels: str) -> bytes:
    request = Message(RUN_POD_SANDBOX, UNKNOWN)
    config = request.message("config")
    metadata = config.message("metadata")
    metadata.put_text("name", "web")
    metadata.put_text("uid", "u1")
    config.put_message("metadata", metadata)
    config.put_texts("labels", labels)
    linux = config.message("linux")
    linux.put_text("cgroup_parent", "/kubepods/besteffort/podu1")
    config.put_message("linux", linux)
    request.put_message("config", config)
    return request.encoded()


def container_request(sandbox: str = "sandbox", **numbers: int) -> bytes:
    request = Message(CREATE_CONTAINER, UNKNOWN)
    request.put_text("pod_sandbox_id", sandbox)
    config = request.message("config")
    metadata = config.message("metadata")
    metadata.put_text("name", "main")
    config.put_message("metadata", metadata)
    shape = config.shape["envs"].shape or {}
    env = Message(shape)
    env.put_text("key", "A")
    env.put_text("value", "1")
    config.put_messages("envs", [env])
    linux = config.message("linux")
    linux.put_message("resources", resources("", **(numbers or {"cpu_shares": 2})))
    config.put_message("linux", linux)
    request.put_message("config", config)
    return request.encoded()


def resources(cpus: str = "", **numbers: int) -> Message:
    made = Message(RESOURCES)
    for name, value in numbers.items():
        made.put_integer(name, value)
    made.put_text("cpuset_cpus", cpus)
    return made


def resources_answer(environment: dict[str, str] | None = None, cpus: str = "", **numbers: int) -> bytes:
    answer = Message(CONTAINER_HOOK_ANSWER)
    answer.put_message("container_resources", resources(cpus, **numbers))
    answer.put_texts("container_envs", environment or {})
    return answer.encoded()


def created(request: bytes) -> Message:
    return Message(CREATE_CONTAINER, request).message("config").message("linux").message("resources")


def test_calls_without_hooks_pass_byte_for_byte(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        place.runtime.answers["Status"] = UNKNOWN * 1000
        assert await place.call("Status", UNKNOWN) == UNKNOWN * 1000
        requests = {
            "RunPodSandbox": pod_request(),
            "CreateContainer": container_request(),
            "StartContainer": identity("container") + UNKNOWN,
            "StopContainer": identity("container") + UNKNOWN,
            "RemoveContainer": identity("container"),
            "StopPodSandbox": identity("sandbox") + UNKNOWN,
        }
        for name, request in requests.items():
            await place.call(name, request)
        assert place.runtime.heard[1:] == list(requests.items())
        large = (
            b"\xa2\x06" + b"\x80\x80\x80\x04" + b"x" * (1 << 23)
        )  # twice what gRPC takes without being told
        place.runtime.answers["ListContainers"] = large
        assert await place.call("ListContainers", large) == large

    run(tmp_path, work)


def test_errors_and_metadata_pass_as_they_are(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        details = ("grpc-status-details-bin", b"\x08\x05\x12\x02no")
        place.runtime.answers["Status"] = CallFailed("NOT_FOUND", "no such thing", (details,))
        place.runtime.answers["StopContainer"] = CallFailed("ABORTED", "later", (details,))
        for name, code in (("Status", "NOT_FOUND"), ("StopContainer", "ABORTED")):
            with pytest.raises(CallFailed) as failed:
                await place.kubelet.call(
                    f"/runtime.v1.RuntimeService/{name}", GrpcCall(b"", (("trace-id", "7"),), 10)
                )
            assert failed.value.code == code
            assert details in failed.value.trailing
            assert ("trace-id", "7") in place.runtime.metadata[-1]
        for _ in range(200):  # grpcio lost the status now and then
            with pytest.raises(CallFailed) as failed:
                await place.call("OfATimeToCome")
            assert failed.value.code == "UNIMPLEMENTED"  # the runtime says so, not the proxy

    run(tmp_path, work)


def test_calls_of_any_sort_pass(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        place.runtime.answers["Version"] = b"\x0a\x01v"
        # A channel may be a server's onward one, so that two proxies stand one behind the other.
        second, client = (
            GrpcServer(tmp_path / "second.sock", {}, place.kubelet),
            Channel(tmp_path / "second.sock"),
        )
        await second.start()
        call = client.stream("/runtime.v1.RuntimeService/Version", _one(b""), GrpcCall(b"", seconds=10))
        assert [answer async for answer in call] == [b"\x0a\x01v"]
        await client.close()
        await second.stop()

    run(tmp_path, work)


async def _one(data: bytes):  # type: ignore[no-untyped-def]
    yield data


def test_a_hook_changes_a_pod(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        place.announce("koordlet", [HookStage.PRE_RUN_POD])
        async with place.hook_server("koordlet") as hooks:
            answer = Message(POD_HOOK_ANSWER)
            answer.put_texts("annotations", {"new": "1"})
            answer.put_text("cgroup_parent", "/elsewhere")
            answer.put_message("resources", resources(cpu_shares=7))  # which CRI cannot be told
            hooks.answers[HookStage.PRE_RUN_POD] = answer.encoded()
            await place.call("RunPodSandbox", pod_request(app="web"))
        ((_, asked),) = hooks.heard
        question = Message(POD_HOOK_REQUEST, asked)
        assert question.texts("labels") == {"app": "web"}
        assert question.text("cgroup_parent") == "/kubepods/besteffort/podu1"
        ((_, sent),) = place.runtime.heard
        config = Message(RUN_POD_SANDBOX, sent).message("config")
        assert sent.startswith(UNKNOWN)
        assert config.texts("annotations") == {"new": "1"}
        assert config.message("linux").text("cgroup_parent") == "/elsewhere"
        assert config.message("metadata").text("uid") == "u1"

    run(tmp_path, work)


def test_a_hook_changes_a_container_and_what_is_asked_of_it_later(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        place.announce("koordlet", [HookStage.PRE_CREATE, HookStage.PRE_UPDATE, HookStage.POST_STOP])
        async with place.hook_server("koordlet") as hooks:
            hooks.answers[HookStage.PRE_CREATE] = resources_answer(
                {"B": "2", "A": "3"}, "0-1", cpu_shares=512, cpu_quota=50_000, oom_score_adj=900
            )
            await place.call("RunPodSandbox", pod_request())
            await place.call(
                "CreateContainer", container_request(cpu_shares=2, memory_limit_in_bytes=1 << 30)
            )
            sent = place.runtime.heard[-1][1]
            there = created(sent)
            assert sent.startswith(UNKNOWN)
            assert (there.integer("cpu_shares"), there.integer("cpu_quota")) == (512, 50_000)
            assert (there.text("cpuset_cpus"), there.integer("oom_score_adj")) == ("0-1", 900)
            assert there.integer("memory_limit_in_bytes") == 1 << 30
            config = Message(CREATE_CONTAINER, sent).message("config")
            assert [(one.text("key"), one.text("value")) for one in config.messages("envs")] == [
                ("A", "3"),
                ("B", "2"),
            ]
            hooks.answers[HookStage.PRE_UPDATE] = resources_answer(cpus="2", cpu_quota=-1)
            update = Message(UPDATE_RESOURCES, UNKNOWN)
            update.put_text("container_id", "container")
            update.put_message("linux", resources(cpu_shares=1024))
            await place.call("UpdateContainerResources", update.encoded())
            asked = Message(CONTAINER_HOOK_REQUEST, hooks.heard[-1][1])
            assert asked.message("container_meta").text("id") == "container"
            assert asked.message("container_resources").integer("cpu_shares") == 1024
            linux = Message(UPDATE_RESOURCES, place.runtime.heard[-1][1]).message("linux")
            assert (linux.integer("cpu_shares"), linux.integer("cpu_quota")) == (1024, -1)
            assert (linux.text("cpuset_cpus"), linux.integer("memory_limit_in_bytes")) == ("2", 1 << 30)
            await place.call("StopContainer", identity("container"))
            assert hooks.heard[-1][0] == HookStage.POST_STOP
            assert place.interceptor.records.containers == {}

    run(tmp_path, work)


@pytest.mark.parametrize(("policy", "starts"), [("Ignore", True), ("", True), ("Fail", False)])
@pytest.mark.parametrize("away", ["no socket", "an error", "too slow"])
def test_while_a_hook_server_is_away_its_failure_policy_holds(
    tmp_path: Path, policy: str, starts: bool, away: str
) -> None:
    async def work(place: Place) -> None:
        place.announce("koordlet", [HookStage.PRE_RUN_POD, HookStage.POST_STOP_POD], policy)
        server = None
        if away != "no socket":

            async def handle(_: GrpcCall) -> bytes:
                if away == "too slow":
                    await asyncio.sleep(5)
                raise CallFailed("INTERNAL", "does not know")

            server = GrpcServer(
                tmp_path / "koordlet.sock",
                {one.method: handle for one in (HookStage.PRE_RUN_POD, HookStage.POST_STOP_POD)},
            )
            await server.start()
        if starts:
            await place.call("RunPodSandbox", pod_request())
        else:
            with pytest.raises(CallFailed, match="hook server err: koordlet"):
                await place.call("RunPodSandbox", pod_request())
        await place.call("StopPodSandbox", identity("sandbox"))  # nothing keeps a pod from ending
        called = [name for name, _ in place.runtime.heard]
        assert called == (["RunPodSandbox"] if starts else []) + ["StopPodSandbox"]
        if server is not None:
            await server.stop()

    run(tmp_path, work, hook_seconds=0.3)


def test_the_next_server_is_asked_where_one_is_not_there(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        place.announce("1-gone", [HookStage.PRE_RUN_POD], "Fail")
        place.announce("2-there", [HookStage.PRE_CREATE, HookStage.PRE_RUN_POD])
        place.announce("3-late", [HookStage.PRE_RUN_POD])
        async with place.hook_server("2-there") as there, place.hook_server("3-late") as late:
            await place.call("RunPodSandbox", pod_request())
            assert [name for name, _ in there.heard] == [HookStage.PRE_RUN_POD]
            assert late.heard == []

    run(tmp_path, work)


def test_a_server_that_speaks_ttrpc_is_asked_over_it(tmp_path: Path) -> None:
    said: list[tuple[str, bytes]] = []

    def answer(method: str, request: bytes) -> bytes:
        said.append((method, request))
        match len(said):
            case 1:
                return resources_answer({"A": "2"}, cpu_shares=512)
            case 2:
                raise Refused("not like that", Status.FAILED_PRECONDITION)
            case _:
                raise Refused("not known", Status.INVALID_ARGUMENT)

    async def work(place: Place) -> None:
        place.announce("koordlet", [HookStage.PRE_CREATE], ttrpc=True)
        server = TtrpcServer(tmp_path / "koordlet.ttrpc", answer)
        await place.call("RunPodSandbox", pod_request())
        await place.call(
            "CreateContainer", container_request()
        )  # nobody is there yet, and policy is to go on
        await server.start()
        await place.call("CreateContainer", container_request())
        assert created(place.runtime.heard[-1][1]).integer("cpu_shares") == 512
        with pytest.raises(CallFailed, match="not like that"):
            await place.call("CreateContainer", container_request())
        await place.call("CreateContainer", container_request())
        assert place.runtime.heard[-1][1] == container_request()
        await server.stop()
        await place.call("CreateContainer", container_request())
        assert [method for method, _ in said] == ["PreCreateContainerHook"] * 3

    run(tmp_path, work)


def test_pods_with_the_label_are_left_alone(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        place.announce("koordlet", list(HookStage), "Fail")
        await place.call("RunPodSandbox", pod_request(skip="true"))
        await place.call("CreateContainer", container_request())
        await place.call("StartContainer", identity("container"))
        assert [name for name, _ in place.runtime.heard] == [
            "RunPodSandbox",
            "CreateContainer",
            "StartContainer",
        ]

    run(tmp_path, work)


def test_what_runs_when_the_proxy_begins_is_known(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        place.announce("koordlet", [HookStage.PRE_CREATE])
        async with place.hook_server("koordlet") as hooks:
            await place.call("CreateContainer", container_request("old"))
            await place.call("CreateContainer", container_request("of nobody"))
            assert len(hooks.heard) == 1
            assert len(place.runtime.heard) == 2

    run(tmp_path, work, runtime=Noting(answers={"ListPodSandbox": listed("old")}))


def test_a_proxy_that_begins_again_knows_what_it_was_told(tmp_path: Path) -> None:
    records, asked = tmp_path / "records", list[bytes]()

    def update(**numbers: int) -> bytes:
        made = Message(UPDATE_RESOURCES)
        made.put_text("container_id", "container")
        made.put_message("linux", resources("", **numbers))
        return made.encoded()

    async def first(place: Place) -> None:
        await place.call("RunPodSandbox", pod_request(app="web"))
        await place.call("CreateContainer", container_request(cpu_shares=2, memory_limit_in_bytes=1 << 30))
        await place.call("UpdateContainerResources", update(cpu_quota=50_000))
        place.runtime.answers["UpdateContainerResources"] = CallFailed("NOT_FOUND", "gone")
        with pytest.raises(CallFailed):  # what did not come about is not kept
            await place.call("UpdateContainerResources", update(cpu_shares=7))

    async def second(place: Place) -> None:
        place.announce("koordlet", [HookStage.PRE_UPDATE])
        async with place.hook_server("koordlet") as hooks:
            await place.call("UpdateContainerResources", update(cpu_shares=9))
            asked.append(hooks.heard[-1][1])
        assert sorted(one.name for one in records.iterdir()) == [
            "container.record",
            "sandbox.record",
        ]
        await place.call("RemovePodSandbox", identity("sandbox"))
        assert list(records.iterdir()) == []
        assert place.interceptor.records.containers == {}

    run(tmp_path, first)
    assert {one.stat().st_mode & 0o777 for one in records.iterdir()} == {0o600}
    (records / "of-another-time.record").write_bytes(b"\xff")
    (records / "gone.record").write_bytes((records / "sandbox.record").read_bytes())
    (records / ".partly.record").touch()
    runs: dict[str, bytes | CallFailed] = {
        "ListPodSandbox": listed("sandbox"),
        "ListContainers": listed_container("container", "sandbox"),
    }
    run(tmp_path, second, runtime=Noting(answers=runs))
    told = Message(CONTAINER_HOOK_REQUEST, asked[0])
    assert (told.texts("pod_labels"), told.texts("container_envs")) == ({"app": "web"}, {"A": "1"})
    assert told.text("pod_cgroup_parent") == "/kubepods/besteffort/podu1"
    found = told.message("container_resources")
    assert {name: found.integer(name) for name in ("cpu_shares", "cpu_quota", "memory_limit_in_bytes")} == {
        "cpu_shares": 9,
        "cpu_quota": 50_000,
        "memory_limit_in_bytes": 1 << 30,
    }


def test_a_container_that_was_made_is_known_by_its_id_and_one_that_was_not_leaves_nothing(
    tmp_path: Path,
) -> None:
    records, asked = tmp_path / "records", list[bytes]()

    async def first(place: Place) -> None:
        await place.call("RunPodSandbox", pod_request())
        place.runtime.answers["CreateContainer"] = CallFailed("INTERNAL", "no space")
        with pytest.raises(CallFailed):
            await place.call("CreateContainer", container_request())
        assert [one.name for one in records.iterdir()] == ["sandbox.record"]
        place.runtime.answers["CreateContainer"] = identity("made")
        await place.call("CreateContainer", container_request())

    async def second(place: Place) -> None:
        place.announce("koordlet", [HookStage.PRE_START])
        async with place.hook_server("koordlet") as hooks:
            await place.call("StartContainer", identity("made"))
            asked.append(hooks.heard[-1][1])

    run(tmp_path, first)
    assert {one.name for one in records.iterdir()} == {"sandbox.record", "made.record"}
    runs: dict[str, bytes | CallFailed] = {
        "ListPodSandbox": listed("sandbox"),
        "ListContainers": listed_container("made", "sandbox"),
    }
    run(tmp_path, second, runtime=Noting(answers=runs))
    assert Message(CONTAINER_HOOK_REQUEST, asked[0]).message("container_meta").text("id") == "made"


def test_files_of_others_stay_where_records_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records, theirs = tmp_path / "records", {"admin.conf", ".hidden", "a", "-.record", ".record"}
    records.mkdir()
    for name in theirs:
        (records / name).write_text("a key")
    (records / "pki").mkdir()

    async def work(place: Place) -> None:
        await place.call("RunPodSandbox", pod_request(app="web"))
        await place.interceptor.take_over()
        await place.call("RemovePodSandbox", identity("sandbox"))

    run(tmp_path, work)
    assert {one.name for one in records.iterdir()} == {*theirs, "pki"}
    assert {(records / name).read_text() for name in theirs} == {"a key"}
    assert len([one for one in caplog.records if "left alone" in one.getMessage()]) == 1


def test_where_records_cannot_be_kept_pods_start_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("no directory")

    async def work(place: Place) -> None:
        place.runtime.answers["RunPodSandbox"] = identity("../../elsewhere")
        await place.call("RunPodSandbox", pod_request())
        place.runtime.answers["RunPodSandbox"] = identity("sandbox")
        await place.call("RunPodSandbox", pod_request())
        await place.call("StopPodSandbox", identity("sandbox"))

    run(tmp_path, work)
    assert (tmp_path / "records").read_text() == "no directory"


def test_a_request_or_answer_that_is_no_message_stops_nothing(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        place.announce("koordlet", [HookStage.PRE_RUN_POD])
        async with place.hook_server("koordlet") as hooks:
            hooks.answers[HookStage.PRE_RUN_POD] = b"\xff"
            await place.call("RunPodSandbox", b"\xff")
            await place.call("RunPodSandbox", pod_request())
            assert [sent for _, sent in place.runtime.heard] == [b"\xff", pod_request()]

    run(tmp_path, work)


# --- announcements ------------------------------------------------------------------------------------


def test_announcements_come_change_and_go(tmp_path: Path) -> None:
    servers, file = HookServers(tmp_path, 1), tmp_path / "a.json"
    assert servers.known() == []
    file.write_text(
        json.dumps({"remote-endpoint": "unix:///run/a.sock", "runtime-hooks": ["PreRunPodSandbox"]})
    )
    (tmp_path / "b.txt").write_text("{}")
    (first,) = servers.known()
    assert (first.endpoint, first.stages, first.fails) == (
        Path("/run/a.sock"),
        frozenset({"PreRunPodSandbox"}),
        False,
    )
    with file.open("w") as same:
        same.write("{ broken")
    os.utime(file, ns=(1, 1))
    assert servers.known() == [first]  # changed in place: what it said before holds
    file.unlink()
    file.with_suffix(".new").write_text("{ broken as well")
    file.with_suffix(".new").rename(file)
    assert servers.known() in ([], [first])  # another file, unless it got the number of the last
    file.unlink()
    assert servers.known() == []


@pytest.mark.parametrize(
    "said",
    [
        "[]",
        "{}",
        '{"remote-endpoint": 1}',
        '{"remote-endpoint": "/a", "runtime-hooks": "PreStart"}',
        "nope",
        '{"remote-endpoint": "/a\\u0000b"}',
        '{"remote-endpoint": "/a", "ttrpc-endpoint": "/a\\ud800"}',
        "[" * 200_000,
    ],
    ids=range(8),
)
def test_what_announces_nothing_is_told_of(said: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_hook_server("a.json", said.encode())


def test_an_announcement_that_lets_its_reader_wait_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = json.dumps({"remote-endpoint": "/a.sock", "runtime-hooks": ["PreRunPodSandbox"]})
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "b.json").symlink_to("/dev/zero")
    (tmp_path / "c.json").write_text(said + " " * (1 << 20))
    (tmp_path / "d.json").write_text(said)
    (found,) = HookServers(tmp_path, 1).known()
    assert found.name == "d.json"
    told = [one.getMessage() for one in caplog.records if "announces no" in one.getMessage()]
    assert [one.split("/")[-1].split()[0] for one in told] == ["a.json", "b.json", "c.json"]
