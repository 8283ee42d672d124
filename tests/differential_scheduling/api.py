"""Objects to and from the API server: many at once, statuses and deletions included."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final, Self

import aiohttp

from koordpolicy.scheduler.watched import WATCHED
from tests.differential_scheduling.case import Object
from tests.parts.apiserver import Access

RESOURCES: Final = {resource.kind: resource for resource in WATCHED}
_WITH_STATUS: Final = {"PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget", "Pod"}
_AT_ONCE: Final = 24


class Refused(Exception):
    """The API server does not take an object; the message says why."""


def path_of(kind: str, namespace: str = "", name: str = "") -> str:
    resource = RESOURCES[kind]
    base = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"{base}{within}/{resource.plural}" + (f"/{name}" if name else "")


class Api:
    """A client of one API server as its administrator."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def __aenter__(self) -> Self:
        context = ssl.create_default_context(cafile=str(self._access.authority))
        self._session = aiohttp.ClientSession(
            base_url=self._access.url,
            headers={"Authorization": f"Bearer {self._access.token('admin')}"},
            connector=aiohttp.TCPConnector(ssl=context, limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def request(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """Raises Refused when the answer is not a good one."""
        data = None if body is None else json.dumps(body)
        async with (
            self._room,
            self._session.request(method, path, data=data, headers={"Content-Type": kind}) as answer,
        ):
            text = await answer.text()
            if answer.status >= 300:
                raise Refused(f"{method} {path}: {answer.status} {text[:600]}")
            return json.loads(text)

    async def create(self, obj: Object) -> Object:
        """Create an object, with its status where the server takes that apart, terminating if it says so."""
        metadata = {**obj["metadata"]}
        leaving = metadata.pop("deletionTimestamp", None)
        grace = metadata.pop("deletionGracePeriodSeconds", None)
        metadata.pop("uid", None)
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        made: Object = await self.request(
            "POST", path_of(obj["kind"], namespace), {**obj, "metadata": metadata}
        )
        one = path_of(obj["kind"], namespace, name)
        if obj["kind"] in _WITH_STATUS and obj.get("status") not in (None, {"phase": "Pending"}):
            made = await self.request(
                "PATCH", f"{one}/status", {"status": obj["status"]}, "application/merge-patch+json"
            )
        if leaving:
            await self.request("DELETE", one, {"gracePeriodSeconds": grace or 3600})
        return made

    async def create_all(self, objects: Iterable[Object]) -> list[Object | Refused]:
        """Create them at once; a Refused stands for each that the server does not take."""

        async def one(obj: Object) -> Object | Refused:
            try:
                return await self.create(obj)
            except Refused as refused:
                return refused

        return list(await asyncio.gather(*(one(obj) for obj in objects)))

    async def read_all(self, kinds: Sequence[str]) -> list[Object]:
        """All objects of some kinds, as the server has them."""
        lists = await asyncio.gather(*(self.request("GET", path_of(kind)) for kind in kinds))
        found = []
        for kind, listed in zip(kinds, lists, strict=True):
            # Items of a list do not say what they are.
            about = {"apiVersion": RESOURCES[kind].api_version, "kind": kind}
            found += [{**about, **item} for item in listed["items"]]
        return found

    async def clear(self, kinds: Sequence[str], namespaces: Iterable[str]) -> None:
        """Delete all objects of some kinds, at once and without grace."""
        paths = []
        for kind in kinds:
            within = namespaces if RESOURCES[kind].namespaced else [""]
            paths += [path_of(kind, namespace) for namespace in within]
        body = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        await asyncio.gather(*(self.request("DELETE", path, body) for path in paths))

    async def watch_pods(self) -> AsyncIterator[tuple[str, Object]]:
        """Types of events and pods, from now on, for ever."""
        async with self._session.get("/api/v1/pods?watch=true") as answer:
            rest = b""
            async for part in answer.content.iter_any():
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    yield event["type"], event["object"]
