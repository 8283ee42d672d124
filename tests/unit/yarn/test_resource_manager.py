"""The client of YARN's ResourceManager: what it makes of answers, good and bad, and of none."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from koordpolicy.model.reading import ObjectError
from koordpolicy.yarn.nodes import NodeManager, YARNAmounts, read_node_managers
from koordpolicy.yarn.resource_manager import (
    ResourceManagerAccess,
    ResourceManagerError,
    connect_resource_manager,
)
from tests.parts.http_answers import answering

NODE: dict[str, Any] = {
    "id": "nm-0:8041",
    "state": "RUNNING",
    "numContainers": 2,
    "usedMemoryMB": 1024,
    "availMemoryMB": 3072,
    "usedVirtualCores": 1,
    "availableVirtualCores": -1,
}
ONE = NodeManager("nm-0:8041", "RUNNING", YARNAmounts(4096, 0), YARNAmounts(1024, 1), 2)


def test_nodes_are_read() -> None:
    assert read_node_managers({"nodes": {"node": [NODE]}}) == {"nm-0:8041": ONE}
    assert read_node_managers({"nodes": None}) == {}
    assert read_node_managers({"nodes": {}}) == {}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({}, "ResourceManager"),
        ({"nodes": []}, "nodes"),
        ({"nodes": {"node": {}}}, "node"),
        ({"nodes": {"node": [{}]}}, r"node\.id"),
        *(
            ({"nodes": {"node": [{**NODE, key: value}]}}, key)
            for key in NODE
            if key not in {"id", "state"}
            for value in (None, "1", 1.5, True)
        ),
    ],
)
def test_what_is_malformed_is_told_with_its_place(answer: Any, words: str) -> None:
    with pytest.raises(ObjectError, match=words):
        read_node_managers(answer)


ANSWERS = {
    "good": (200, json.dumps({"nodes": {"node": [NODE]}})),
    "no JSON": (200, "<html>"),
    "a list": (200, "[]"),
    "deep": (200, "[" * 200_000),
    "unauthorised": (401, "<html>Authentication required</html>"),
    "forbidden": (403, json.dumps({"RemoteException": {"message": "User x is not an admin"}})),
    "conflict": (409, "busy"),
    "unknown": (404, json.dumps({"RemoteException": {"message": "nodeId, nm-0:8041, is not found"}})),
    "odd": (500, json.dumps({"RemoteException": []})),
    "standby": (307, "This is standby RM. The redirect url is: /"),
    "standby by page": (200, "This is standby RM. Redirecting"),
}
HEARD: list[tuple[str, Mapping[str, str]]] = []


def by_token(path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Answers by the bearer token."""
    HEARD.append((path, dict(headers)))
    status, body = ANSWERS[headers["Authorization"].removeprefix("Bearer ")]
    return status, body.encode()


def test_answers(tmp_path: Path) -> None:
    heard: list[tuple[str, int]] = []
    token = tmp_path / "token"

    async def story(url: str) -> None:
        access = ResourceManagerAccess((url,), "hadoop", token)
        async with connect_resource_manager(access, lambda *told: heard.append(told)) as manager:
            with pytest.raises(ResourceManagerError, match="token"):
                await manager.node_managers(10)
            token.write_text("good\n")
            assert await manager.node_managers(10) == {"nm-0:8041": ONE}
            await manager.offer("nm-0:8041", YARNAmounts(1024, 1), 3000, 10)
            for answer, status, words in (
                ("no JSON", 0, "cannot be read"),
                ("a list", 0, "cannot be read"),
                ("deep", 0, "cannot be read"),
                ("unauthorised", 401, "401 .*--yarn-user.*--yarn-token-file.*yarn.admin.acl"),
                ("forbidden", 403, "User x is not an admin"),
                ("conflict", 409, "409: busy"),
                ("unknown", 404, "is not found"),
                ("odd", 500, "500"),
                ("standby", 307, "standby"),
                ("standby by page", 307, "standby"),
            ):
                token.write_text(answer)
                with pytest.raises(ResourceManagerError, match=words) as raised:
                    await manager.node_managers(10)
                assert raised.value.status == status, answer

    HEARD.clear()
    with answering(by_token) as url:
        asyncio.run(story(url))
    assert [path for path, _ in HEARD[:2]] == [
        "/ws/v1/cluster/nodes?user.name=hadoop",
        "/ws/v1/cluster/nodes/nm-0:8041/resource?user.name=hadoop",
    ]
    assert heard[:3] == [("nodes", 0), ("nodes", 200), ("update", 200)]


def test_who_is_on_standby_or_gone_is_passed_over() -> None:
    async def story(urls: tuple[str, ...]) -> list[int]:
        heard: list[int] = []
        access = ResourceManagerAccess(urls)
        async with connect_resource_manager(access, lambda what, status: heard.append(status)) as manager:
            for _ in range(2):
                assert await manager.node_managers(10) == {"nm-0:8041": ONE}
        return heard

    def says(name: str) -> Any:
        status, body = ANSWERS[name]
        return lambda path, headers: (status, body.encode())

    with answering(says("standby")) as first, answering(says("good")) as second:
        assert asyncio.run(story(("http://127.0.0.1:1", first, second))) == [0, 307, 200, 200]


def test_who_is_slow_is_not_waited_for() -> None:
    asked = Event()

    def slow(path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        asked.wait(30)
        return 200, b"{}"

    async def ask(url: str) -> None:
        async with connect_resource_manager(ResourceManagerAccess((url,))) as manager:
            with pytest.raises(ResourceManagerError, match=r"nothing within 0\.2 s"):
                await manager.node_managers(0.2)

    with answering(slow) as url:
        try:
            asyncio.run(ask(url))
        finally:
            asked.set()
