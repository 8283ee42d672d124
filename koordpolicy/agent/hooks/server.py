"""The agent as a hook server: it answers runtime proxies at a Unix socket, and announces itself in their directory."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Final

from koordpolicy.agent.hooks.places import HookPlaces
from koordpolicy.agent.hooks.proxied import answer
from koordpolicy.agent.hooks.scenes import HookScenes, NodeUnknown
from koordpolicy.agent.hooks.starting import HookFailed
from koordpolicy.cri.calls import CallFailed, GrpcCall, GrpcServer, Handler
from koordpolicy.cri.stages import TTRPC_ENDPOINT, HookStage
from koordpolicy.cri.ttrpc import Refused, Status, TtrpcServer, not_known
from koordpolicy.cri.wire import WireError
from koordpolicy.files import replace_file

LOG: Final = logging.getLogger(__name__)

ANNOUNCED: Final = "koordlet.json"
"""As koordlet's file is called: one agent is on a node, and another one's announcement would be out of date."""
_LOOK: Final = 1.0
"""Seconds between looks whether policy says something else of stages and failures."""
_STAGES: Final = {stage.method_name: stage for stage in HookStage}


class HookServing:
    """Answers and announces, as long as `run` runs."""

    def __init__(self, scenes: HookScenes, places: HookPlaces, count: Callable[[str, str], None]) -> None:
        self._scenes = scenes
        self._places = places
        self._count = count
        self._announced = b""
        self._told: set[str] = set()

    async def run(self) -> None:
        """Serve until cancelled. Raises OSError where it cannot listen."""
        servers = (
            GrpcServer(self._places.socket, self._handlers()),
            TtrpcServer(self._places.ttrpc, self._answer_method),
        )
        for server in servers:
            await server.start()
        LOG.info("hooks are answered at %s", self._places.socket)
        try:
            while True:
                self.announce()
                await asyncio.sleep(_LOOK)
        finally:
            for server in servers:
                await server.stop()

    def announce(self) -> None:
        """Bring the announcement up to date, where it says something else. What cannot be written is told of, and tried again."""
        said = self._scenes.announced()
        if said is None:
            return  # not decided yet, or not now: what was announced stays
        endpoint, ttrpc = self._places.announced
        data = json.dumps(
            {
                "remote-endpoint": str(endpoint),
                TTRPC_ENDPOINT: str(ttrpc),
                "failure-policy": said.failure_policy,
                "runtime-hooks": said.stages,
            },
            indent=2,
        ).encode()
        file = self._places.directory / ANNOUNCED
        if data == self._announced and file.exists():
            return
        try:
            self._places.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            replace_file(file, data, 0o644)
        except OSError as error:
            self._tell(f"hooks cannot be announced in {file}: {error.strerror}")
            return
        self._announced = data
        LOG.info("runtime proxies ask at %s", ", ".join(said.stages) or "no stage")

    def _handlers(self) -> Mapping[str, Handler]:
        return {stage.method: self._handler(stage) for stage in HookStage}

    def _handler(self, stage: HookStage) -> Handler:
        async def handle(asked: GrpcCall) -> bytes:
            try:
                return self._answer(stage, asked.request)
            except Refused as refused:
                raise CallFailed(refused.status.name, str(refused)) from None

        return handle

    def _answer_method(self, method: str, request: bytes) -> bytes:
        stage = _STAGES.get(method)
        if stage is None:
            raise not_known(method)
        return self._answer(stage, request)

    def _answer(self, stage: HookStage, request: bytes) -> bytes:
        """The answer to a question. Raises `Refused`."""
        try:
            made, notes = answer(self._scenes.scene(), self._scenes.pod, stage, request)
        except NodeUnknown as away:
            self._count(stage, "not ready")
            raise Refused(str(away), Status.UNAVAILABLE) from None
        except HookFailed as failure:
            self._count(stage, "failed")
            raise Refused(str(failure), Status.FAILED_PRECONDITION) from None
        except WireError as error:
            self._count(stage, "unreadable")
            raise Refused(f"{stage}: {error}", Status.INVALID_ARGUMENT) from None
        self._count(stage, "passed over" if notes else "answered")
        for note in notes:
            self._tell(note)
        return made

    def _tell(self, words: str) -> None:
        if words not in self._told and len(self._told) < 1000:
            self._told.add(words)
            LOG.warning("%s", words)
