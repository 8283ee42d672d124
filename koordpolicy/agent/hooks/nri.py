"""The agent as a plugin of NRI: containerd and cri-o ask it as they create and change containers, without a proxy between.

What runs when it registers is left to the agent's own rounds, which see to it anyway.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from koordpolicy.agent.hooks.proxied import told_container, told_pod
from koordpolicy.agent.hooks.scenes import HookScenes, NodeUnknown
from koordpolicy.agent.hooks.stages import Stage
from koordpolicy.agent.hooks.starting import HookFailed, StartChanges, container_changes
from koordpolicy.cri.nri_shapes import (
    CONFIGURE,
    CONFIGURED,
    CONTAINER_UPDATE,
    CREATED,
    NRI_KEY_VALUE,
    OF_CONTAINER,
    PLUGIN_CONNECTION,
    REGISTER,
    RUNTIME,
    RUNTIME_CONNECTION,
    SYNCHRONIZE,
    SYNCHRONIZED,
    UPDATED,
    NriEvent,
)
from koordpolicy.cri.shapes import POD_METADATA, RESOURCES
from koordpolicy.cri.trunk import connect
from koordpolicy.cri.ttrpc import Disconnected, Refused, not_known
from koordpolicy.cri.wire import Message, WireError
from koordpolicy.model.pod import Pod

LOG: Final = logging.getLogger(__name__)

PLUGIN_NAME, PLUGIN_INDEX = "koordlet_nri", "00"
"""As koordlet registers: other plugins of a node know their place by it."""
_STAGES: Final = {
    "CreateContainer": Stage.CREATE,
    "UpdateContainer": Stage.UPDATE,
}
_REGISTERED_WITHIN: Final = 10.0
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_STEADY: Final = 6.0
"""Seconds of a connection after which it was a good one, and the next attempt does not wait long."""

_ALONE: Final = (("cpu", "shares", "cpu.shares"), ("cpu", "quota", "cpu.cfs_quota_us"), ("memory", "limit", "memory.limit_in_bytes"))  # fmt: skip
"""Group and name of a number of NRI, and the kernel file that it stands for."""


class NriPlugin:
    """Registers at a socket, answers, and comes back when the runtime does, as long as `run` runs."""

    def __init__(self, scenes: HookScenes, socket: Path, count: Callable[[str, str], None]) -> None:
        self._scenes = scenes
        self._socket = socket
        self._count = count
        self._told: set[str] = set()

    async def run(self) -> None:
        """Be there until cancelled."""
        loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE
        while True:
            began, why = loop.time(), ""
            try:
                await self._serve()
            except (OSError, Disconnected, Refused, TimeoutError) as error:
                why = str(error) or type(error).__name__
            if loop.time() - began > _STEADY:
                pause = _FIRST_PAUSE
            LOG.log(
                logging.WARNING if pause == _FIRST_PAUSE else logging.DEBUG,
                "no NRI at %s, tried again: %s",
                self._socket,
                why,
            )
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _serve(self) -> None:
        trunk = await connect(self._socket, PLUGIN_CONNECTION, RUNTIME_CONNECTION)
        answering = asyncio.create_task(trunk.run(self.answer))
        try:
            request = Message(REGISTER)
            request.put_text("plugin_name", PLUGIN_NAME)
            request.put_text("plugin_idx", PLUGIN_INDEX)
            await trunk.call(RUNTIME, "RegisterPlugin", request.encoded(), _REGISTERED_WITHIN)
            LOG.info("registered with NRI at %s", self._socket)
            await answering
        except asyncio.CancelledError:
            if answering.done():  # the runtime went while it was asked to register us
                raise Disconnected("it has gone") from None
            raise
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)

    async def answer(self, method: str, data: bytes) -> bytes:
        """The answer to what a runtime asks or tells. Raises `Refused`."""
        try:
            if method == "Configure":
                return self._configured(Message(CONFIGURE, data))
            if method == "Synchronize":
                made = Message(SYNCHRONIZED)
                made.put_integer("more", Message(SYNCHRONIZE, data).integer("more"))
                return made.encoded()
            if method in ("StateChange", "Shutdown"):
                return b""
            if (stage := _STAGES.get(method)) is None:
                raise not_known(method)
            return self._changed(stage, Message(OF_CONTAINER, data))
        except WireError as error:
            raise Refused(f"{method} is no message: {error}") from None

    def _configured(self, asked: Message) -> bytes:
        LOG.info("NRI of %s %s", asked.text("runtime_name"), asked.text("runtime_version"))
        made = Message(CONFIGURED)
        made.put_integer("events", sum(1 << (one - 1) for one in NriEvent))
        return made.encoded()

    def _changed(self, stage: Stage, asked: Message) -> bytes:
        container = asked.message("container")
        try:
            if stage not in self._scenes.stages():
                return b""
            changes = container_changes(self._scenes.scene(), self._pod(asked), container.text("name"), stage)
        except HookFailed as failure:
            self._count(stage, "failed")
            raise Refused(str(failure)) from None
        except NodeUnknown as away:
            self._count(stage, "not ready")
            if self._scenes.fails():
                raise Refused(str(away)) from None
            return b""
        self._count(stage, "passed over" if changes.notes else "answered")
        for note in changes.notes:
            self._tell(note)
        return created(changes) if stage is Stage.CREATE else updated(container.text("id"), changes, asked)

    def _pod(self, asked: Message) -> Pod:
        pod, container = asked.message("pod"), asked.message("container")
        known = self._scenes.pod(pod.text("uid"))
        if known is not None:
            return known
        metadata = Message(POD_METADATA)
        for name in ("name", "uid", "namespace"):
            metadata.put_text(name, pod.text(name))
        return told_pod(
            metadata,
            pod.texts("labels"),
            pod.texts("annotations"),
            pod.message("linux").text("cgroup_parent"),
            (
                told_container(
                    container.text("name"), _as_cri(container.message("linux").message("resources"))
                ),
            ),
        )

    def _tell(self, words: str) -> None:
        if words not in self._told and len(self._told) < 1000:
            self._told.add(words)
            LOG.warning("%s", words)


def created(changes: StartChanges) -> bytes:
    """The answer to CreateContainer: the container as hooks want it."""
    made = Message(CREATED)
    adjusted = made.message("adjust")
    adjusted.put_texts("annotations", changes.annotations)
    environment = []
    for key, value in changes.environment.items():
        environment.append(Message(NRI_KEY_VALUE))
        environment[-1].put_text("key", key)
        environment[-1].put_text("value", value)
    adjusted.put_messages("env", environment)
    linux = adjusted.message("linux")
    resources = linux.message("resources")
    if _put(resources, changes):
        linux.put_message("resources", resources)
    score = changes.files.get("oom_score_adj")
    if isinstance(score, int):
        _put_number(linux, "oom_score_adj", score)
    if linux.encoded():
        adjusted.put_message("linux", linux)
    made.put_message("adjust", adjusted)
    return made.encoded()


def updated(identity: str, changes: StartChanges, asked: Message) -> bytes:
    """The answer to UpdateContainer: what it is asked to change, with what hooks want of that."""
    resources = asked.message("linux_resources")
    if not _put(resources, changes):
        return b""
    one = Message(CONTAINER_UPDATE)
    one.put_text("container_id", identity)
    linux = one.message("linux")
    linux.put_message("resources", resources)
    one.put_message("linux", linux)
    made = Message(UPDATED)
    made.put_messages("update", [one])
    return made.encoded()


def _put(resources: Message, changes: StartChanges) -> bool:
    """Make resources say what hooks change; whether that is anything."""
    said = False
    for group, name, file in _ALONE:
        value = changes.files.get(file)
        if isinstance(value, int):
            inner = resources.message(group)
            _put_number(inner, name, value)
            resources.put_message(group, inner)
            said = True
    if changes.cpus:  # NRI has no word for none
        inner = resources.message("cpu")
        inner.put_text("cpus", changes.cpus)
        resources.put_message("cpu", inner)
        said = True
    if changes.unified:
        resources.put_texts("unified", {**resources.texts("unified"), **changes.unified})
        said = True
    return said


def _put_number(message: Message, name: str, value: int) -> None:
    number = message.message(name)
    number.put_integer("value", value)
    message.put_message(name, number)


def _as_cri(resources: Message) -> Message:
    """Resources of NRI as those of CRI, as far as they tell of a container's amounts."""
    made, cpu = Message(RESOURCES), resources.message("cpu")
    for name, number in (
        ("cpu_shares", cpu.message("shares")),
        ("cpu_quota", cpu.message("quota")),
        ("cpu_period", cpu.message("period")),
        ("memory_limit_in_bytes", resources.message("memory").message("limit")),
    ):
        made.put_integer(name, number.integer("value"))
    return made
