"""What is sent, what is repeated, what is counted, and how refusals come back."""

import asyncio
import json
import logging
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import koordpolicy
from koordpolicy.kube import (
    ApplyPatch,
    EventType,
    Forbidden,
    Gone,
    JsonPatch,
    MergePatch,
    NotFound,
    Preconditions,
    Propagation,
    TooManyRequests,
    Unreachable,
)
from koordpolicy.kube.api import ApiCluster, ClientLimits
from koordpolicy.kube.api.access import Access
from koordpolicy.kube.resources import PODS
from tests.unit.kube.api.scripted import POD, Scripted, drops, never, play, refuses, says

DOWN = refuses(503, "ServiceUnavailable")


async def get(cluster: ApiCluster, server: Scripted) -> None:
    await cluster.get(PODS, "a")


async def create(cluster: ApiCluster, server: Scripted) -> None:
    await cluster.create(PODS, POD)


async def update(cluster: ApiCluster, server: Scripted) -> None:
    await cluster.update(PODS, POD)


async def merge(cluster: ApiCluster, server: Scripted) -> None:
    await cluster.patch(PODS, "a", MergePatch({"metadata": {"labels": {"a": "b"}}}))


async def operate(cluster: ApiCluster, server: Scripted) -> None:
    await cluster.patch(PODS, "a", JsonPatch([{"op": "add", "path": "/a", "value": 1}]))


async def apply(cluster: ApiCluster, server: Scripted) -> None:
    await cluster.patch(PODS, "a", ApplyPatch(POD, "git", force=True))


async def delete(cluster: ApiCluster, server: Scripted) -> None:
    await cluster.delete(PODS, "a")


async def bind(cluster: ApiCluster, server: Scripted) -> None:
    await cluster.bind("default", "a", "n")


async def evict(cluster: ApiCluster, server: Scripted) -> None:
    await cluster.evict("default", "a")


REPEATABLE = [get, update, merge, apply, delete]
ONCE = [create, operate, bind, evict]


@pytest.mark.parametrize("request_", REPEATABLE)
@pytest.mark.parametrize("trouble", [DOWN, refuses(500), drops], ids=["503", "500", "broken"])
def test_what_may_be_repeated_is_until_it_works(tmp_path: Path, request_: Any, trouble: Any) -> None:
    assert play(tmp_path, request_, trouble, trouble, says(POD)).tried >= 3


@pytest.mark.parametrize("request_", ONCE)
@pytest.mark.parametrize("trouble", [DOWN, refuses(504), drops], ids=["503", "504", "broken"])
def test_what_may_have_happened_is_not_repeated(tmp_path: Path, request_: Any, trouble: Any) -> None:
    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        with pytest.raises(Unreachable):
            await request_(cluster, server)

    assert play(tmp_path, scene, trouble, says(POD)).tried == 1


@pytest.mark.parametrize("request_", [get, create, bind])
def test_a_server_that_asks_for_patience_gets_it(tmp_path: Path, request_: Any) -> None:
    busy = refuses(429, "TooManyRequests", Retry_After="1")
    began = time.monotonic()
    assert play(tmp_path, request_, busy, says(POD)).tried == 2
    assert time.monotonic() - began >= 1.0


@pytest.mark.parametrize(
    ("request_", "busy"),
    [
        (evict, refuses(429, "TooManyRequests", Retry_After="10")),
        (get, refuses(429, "TooManyRequests")),
        (get, refuses(429, "TooManyRequests", Retry_After="3600")),
    ],
    ids=["a budget", "no time named", "a very long time"],
)
def test_the_caller_decides_where_waiting_may_not_help(tmp_path: Path, request_: Any, busy: Any) -> None:
    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        with pytest.raises(TooManyRequests):
            await request_(cluster, server)

    assert play(tmp_path, scene, busy).tried == 1


def test_refusals_are_not_repeated(tmp_path: Path) -> None:
    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        with pytest.raises(NotFound):
            await cluster.get(PODS, "a")
        with pytest.raises(Forbidden):
            await cluster.list(PODS)

    assert play(tmp_path, scene, refuses(404, "NotFound"), refuses(403, "Forbidden")).tried == 2


def test_it_gives_up_in_the_end(tmp_path: Path) -> None:
    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        with pytest.raises(Unreachable, match="no"):
            await cluster.get(PODS, "a")

    assert play(tmp_path, scene, DOWN).tried == ClientLimits().attempts


def test_of_a_server_that_is_not_there_people_read_where_and_why(tmp_path: Path) -> None:
    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        tls = ssl.create_default_context()
        for address in ("https://127.0.0.1:9", "https://no.such.invalid:9"):
            cluster._transport._credentials.access = Access(address, tls=tls)
            with pytest.raises(Unreachable) as caught:
                await cluster.list(PODS)
            _, found, why = str(caught.value).partition(f"{address} cannot be reached: ")
            assert found
            assert len(why) > 5
            assert "SSLContext" not in why

    play(tmp_path, scene, says(POD), limits=ClientLimits(attempts=1))


def test_nobody_there_is_unreachable_for_any_request(tmp_path: Path) -> None:
    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        access = Access("http://127.0.0.1:9")  # nobody listens there
        cluster._transport._credentials.access = access
        for request in (get, create, evict):
            with pytest.raises(Unreachable, match="cannot be reached"):
                await request(cluster, server)
        with pytest.raises(Unreachable, match="cannot be reached"):
            async with cluster.watch(PODS):
                pass

    counted: list[tuple[str, int]] = []
    observer = lambda verb, resource, code, seconds: counted.append((verb, code))  # noqa: E731
    server = play(tmp_path, scene, says(POD), observer=observer, limits=ClientLimits(attempts=2))
    assert server.tried == 0
    assert counted == [("get", 0)] * 2 + [("create", 0)] * 2 + [("evict", 0)] * 2 + [("watch", 0)]


def test_a_server_that_does_not_answer_is_given_up_in_time(tmp_path: Path) -> None:
    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        with pytest.raises(Unreachable, match="did not answer"):
            await cluster.create(PODS, POD)
        with pytest.raises(Unreachable, match="did not answer"):
            async with cluster.watch(PODS):
                pass

    limits = ClientLimits(request=0.2, list=0.2, attempts=1)
    assert play(tmp_path, scene, never, limits=limits).tried == 2


def test_no_more_at_once_than_agreed(tmp_path: Path) -> None:
    at_once = [0, 0]

    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        at_once[0] += 1
        at_once[1] = max(at_once)
        await asyncio.sleep(0.02)
        at_once[0] -= 1
        return web.json_response(POD)

    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        await asyncio.gather(*(cluster.get(PODS, "a") for _ in range(20)))

    assert play(tmp_path, scene, slow, limits=ClientLimits(requests=3)).tried == 20
    assert at_once[1] == 3


def test_requests_say_who_sends_them_and_what_they_hold(tmp_path: Path) -> None:
    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        await cluster.create(PODS, {"metadata": {"name": "a"}}, namespace="ns", dry_run=True)
        await apply(cluster, server)
        await operate(cluster, server)
        await cluster.delete(
            PODS,
            "a",
            preconditions=Preconditions(uid="u"),
            grace_seconds=0,
            propagation=Propagation.ORPHAN,
            dry_run=True,
        )
        await cluster.bind("ns", "a", "n", uid="u", annotations={"x": "y"})
        await cluster.evict("ns", "a", grace_seconds=5)

    asked = play(tmp_path, scene, says(POD), component="scheduler").asked
    agent = f"koordpolicy/{koordpolicy.__version__} scheduler"
    assert {request.headers["user-agent"] for request in asked} == {agent}
    assert {request.headers["authorization"] for request in asked} == {"Bearer secret"}
    assert [(request.method, request.target) for request in asked] == [
        ("POST", "/api/v1/namespaces/ns/pods?fieldManager=koordpolicy-scheduler&dryRun=All"),
        ("PATCH", "/api/v1/namespaces/default/pods/a?fieldManager=git&force=true"),
        ("PATCH", "/api/v1/namespaces/default/pods/a?fieldManager=koordpolicy-scheduler"),
        ("DELETE", "/api/v1/namespaces/default/pods/a"),
        ("POST", "/api/v1/namespaces/ns/pods/a/binding?fieldManager=koordpolicy-scheduler"),
        ("POST", "/api/v1/namespaces/ns/pods/a/eviction"),
    ]
    assert [request.headers["content-type"] for request in asked[:4]] == [
        "application/json",
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/json",
    ]
    assert asked[0].body == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    assert asked[2].body == [{"op": "add", "path": "/a", "value": 1}]
    assert asked[3].body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u"},
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Orphan",
        "dryRun": ["All"],
    }
    assert asked[4].body["metadata"] == {
        "name": "a",
        "namespace": "ns",
        "uid": "u",
        "annotations": {"x": "y"},
    }
    assert asked[4].body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n"}
    assert asked[5].body["apiVersion"] == "policy/v1"
    assert asked[5].body["deleteOptions"] == {"gracePeriodSeconds": 5}


def test_a_warning_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        for _ in range(3):
            await cluster.get(PODS, "a")

    warned = says(POD, Warning='299 - "unknown field \\"spec.x\\"", 299 - "v1beta1 is old"')
    with caplog.at_level(logging.WARNING):
        play(tmp_path, scene, warned)
    assert [record.getMessage() for record in caplog.records] == [
        'the server warns about get of pods: unknown field \\"spec.x\\"',
        "the server warns about get of pods: v1beta1 is old",
    ]


def test_answers_are_counted(tmp_path: Path) -> None:
    counted: list[tuple[str, str, int]] = []

    def observe(verb: str, resource: str, code: int, seconds: float) -> None:
        assert 0 <= seconds < 5
        counted.append((verb, resource, code))

    play(tmp_path, get, DOWN, says(POD), observer=observe)
    assert counted == [("get", "pods", 503), ("get", "pods", 200)]


def stream(*lines: bytes, then: str = "end") -> Any:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(line + b"\n")
        if then == "stay":
            await asyncio.sleep(60)
        elif then == "break":
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


ADDED = (
    b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7","managedFields":[]},"spec":{}}}'
)
EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'


@pytest.mark.parametrize("end", ["end", "break"])
def test_a_watch_gives_events_until_its_stream_ends(tmp_path: Path, end: str) -> None:
    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        async with cluster.watch(
            PODS, namespace="ns", resource_version="5", label_selector="a=b", bookmarks=True
        ) as events:
            [event] = [event async for event in events]
        assert event.type is EventType.ADDED
        assert event.object["metadata"] == {"name": "a", "resourceVersion": "7"}

    server = play(tmp_path, scene, stream(ADDED, then=end))
    path, _, query = server.asked[0].target.partition("?")
    assert path == "/api/v1/namespaces/ns/pods"
    assert sorted(query.split("&")) == [
        "allowWatchBookmarks=true",
        "labelSelector=a%3Db",
        "resourceVersion=5",
        "timeoutSeconds=300",
        "watch=1",
    ]


@pytest.mark.parametrize("answer", [stream(EXPIRED), refuses(410, "Expired")], ids=["event", "status"])
def test_a_version_that_is_gone_is_heard_in_both_forms(tmp_path: Path, answer: Any) -> None:
    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        with pytest.raises(Gone):
            async with cluster.watch(PODS, resource_version="1") as events:
                await anext(events)

    play(tmp_path, scene, answer)


def test_watches_last_differently(tmp_path: Path) -> None:
    draws = iter([0.0, 0.5, 0.999])

    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        for _ in range(3):
            async with cluster.watch(PODS) as events:
                assert [event async for event in events] == []

    server = play(tmp_path, scene, stream(), jitter=lambda: next(draws))
    assert [request.target.rpartition("=")[2] for request in server.asked] == ["300", "450", "599"]


def test_a_watch_that_is_left_leaves_nothing_open(tmp_path: Path) -> None:
    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        for _ in range(5):
            async with cluster.watch(PODS) as events:
                await anext(events)

    assert play(tmp_path, scene, stream(ADDED, then="stay"), limits=ClientLimits(watches=1)).tried == 5


def test_who_is_not_known_shows_new_papers_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        token.write_text("new")
        await cluster.create(PODS, POD)
        with pytest.raises(Forbidden) as refusal:
            await cluster.create(PODS, POD)
        assert refusal.value.code == 401

    unknown = refuses(401, "Unauthorized")
    server = play(tmp_path, scene, unknown, says(POD), unknown, user={"tokenFile": str(token)})
    shown = [request.headers["authorization"] for request in server.asked]
    assert shown == ["Bearer old", "Bearer new", "Bearer new"]


def test_a_watch_shows_new_papers_too(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        token.write_text("new")
        async with cluster.watch(PODS) as events:
            assert [event.resource_version async for event in events] == ["7"]

    server = play(tmp_path, scene, refuses(401), stream(ADDED), user={"tokenFile": str(token)})
    assert server.asked[1].headers["authorization"] == "Bearer new"


def test_many_who_are_refused_at_once_read_their_papers_once(tmp_path: Path) -> None:
    read = tmp_path / "read"
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"#!/bin/sh\necho x >> {read}\n"
        'echo \'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
        '"status":{"token":"\'$(wc -l < ' + str(read) + ")'\"}}'\n"
    )
    plugin.chmod(0o755)
    known = "Bearer 2"

    def answer(request: web.BaseRequest) -> Any:
        good = request.headers["Authorization"].replace(" ", "") == known.replace(" ", "")
        return says(POD)(request) if good else refuses(401)(request)

    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        await asyncio.gather(*(cluster.get(PODS, "a") for _ in range(10)))

    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}
    server = play(tmp_path, scene, answer, user=user)
    assert server.tried == 20
    assert read.read_text() == "x\n" * 2


def test_bodies_larger_than_a_buffer_arrive_whole(tmp_path: Path) -> None:
    large = {**POD, "metadata": {**POD["metadata"], "annotations": {"a": "x" * 1_000_000}}}  # type: ignore[dict-item]
    line = b'{"type":"ADDED","object":' + json.dumps(large).encode() + b"}"

    async def scene(cluster: ApiCluster, server: Scripted) -> None:
        assert await cluster.create(PODS, large) == large
        async with cluster.watch(PODS) as events:
            assert (await anext(events)).object == large

    play(tmp_path, scene, says(large), stream(line))
