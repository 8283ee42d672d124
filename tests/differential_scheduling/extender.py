"""The ear in kube-scheduler: an extender that it tells the nodes that passed its filters, and who would have to go.

It answers with an error, so that nothing comes of it, save for pods that may go on (`let`).
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Self

from aiohttp import web

Told = Mapping[str, Any]

REFUSAL = "only asked"


class Extender:
    """Serves on loopback. `nodes` and `rooms` hold by uid of pods what was told of them."""

    def __init__(self) -> None:
        self.nodes: dict[str, frozenset[str]] = {}
        self.rooms: dict[str, Mapping[str, Told]] = {}
        self.let: set[str] = set()
        self.heard = asyncio.Condition()
        self.port = 0

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/filter", self._filter)
        app.router.add_post("/preempt", self._preempt)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _filter(self, request: web.Request) -> web.Response:
        told = _lower(await request.json())
        async with self.heard:
            self.nodes[told["pod"]["metadata"]["uid"]] = frozenset(told["nodenames"] or ())
            self.heard.notify_all()
        return web.json_response({"Error": REFUSAL})

    async def _preempt(self, request: web.Request) -> web.Response:
        told = _lower(await request.json())
        uid = told["pod"]["metadata"]["uid"]
        victims = told["nodenametometavictims"] or {}
        self.rooms[uid] = {node: _lower(room) for node, room in victims.items()}
        if uid not in self.let:
            # Not an answer at all: kube-scheduler gives up without harm to anybody.
            return web.Response(status=500, text=REFUSAL)
        return web.json_response({"NodeNameToMetaVictims": victims})


def _lower(written: Mapping[str, Any]) -> dict[str, Any]:
    """Keys as Go writes them without tags, in small letters."""
    return {key.lower(): value for key, value in written.items()}
