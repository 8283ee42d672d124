"""The calls of CRI that hooks take part in: asked before, merged, handed on, remembered, asked again afterwards."""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from koordpolicy.cri.calls import CallFailed, Channel, GrpcCall, Handler
from koordpolicy.cri.shapes import (
    CREATE_CONTAINER,
    IDENTITY,
    POD_HOOK_REQUEST,
    RUN_POD_SANDBOX,
    UPDATE_RESOURCES,
)
from koordpolicy.cri.stages import HookStage
from koordpolicy.cri.wire import Message, WireError
from koordpolicy.runtime_proxy.checkpoint import Checkpoint, Prepared
from koordpolicy.runtime_proxy.hook_servers import HookRefused, HookServers
from koordpolicy.runtime_proxy.merging import (
    merge_container,
    merge_pod,
    merge_update,
    put_container,
    put_pod,
    put_update,
)
from koordpolicy.runtime_proxy.records import ContainerRecord, PodRecord, Records, container_request

LOG: Final = logging.getLogger(__name__)

RUNTIME_SERVICE: Final = "/runtime.v1.RuntimeService/"
_LISTED_WITHIN: Final = 10.0
"""Seconds for what is running when the proxy begins."""


class Interceptor:
    """Stands in the way of eight calls; `skips` says by a pod's labels that hooks are not asked about it."""

    def __init__(
        self,
        runtime: Channel,
        servers: HookServers,
        skips: Callable[[Mapping[str, str]], bool],
        checkpoint: Checkpoint,
    ) -> None:
        self._runtime = runtime
        self._servers = servers
        self._skips = skips
        self.records = Records(checkpoint)

    def handlers(self) -> Mapping[str, Handler]:
        """What answers which call. Those that remove something change nothing, and what they remove is forgotten."""
        return {
            RUNTIME_SERVICE + name: handler
            for name, handler in (
                ("RunPodSandbox", self._run_pod),
                ("StopPodSandbox", self._stop_pod),
                ("CreateContainer", self._create),
                ("StartContainer", self._start),
                ("UpdateContainerResources", self._update),
                ("StopContainer", self._stop),
                ("RemoveContainer", self._remove),
                ("RemovePodSandbox", self._remove_pod),
            )
        }

    async def take_over(self) -> None:
        """Remember what runs already. A runtime that cannot say it is told of, and nothing is remembered."""
        try:
            pods = await self._list("ListPodSandbox")
            containers = await self._list("ListContainers")
            lost = self.records.take_over(pods, containers)
        except (CallFailed, WireError) as error:
            LOG.warning("what runs already is not known, hooks are not asked about it: %s", error)
            return
        for identity in lost:
            LOG.error(
                "container %s is of no pod that the runtime lists: hooks are not asked about it", identity
            )
        LOG.info(
            "%d pods and %d containers run already", len(self.records.pods), len(self.records.containers)
        )

    async def _list(self, what: str) -> bytes:
        return await self._runtime.call(RUNTIME_SERVICE + what, GrpcCall(b"", seconds=_LISTED_WITHIN))

    # --- pods -------------------------------------------------------------------------------------

    async def _run_pod(self, asked: GrpcCall) -> bytes:
        try:
            request = Message(RUN_POD_SANDBOX, asked.request)
            config = request.message("config")
            record = _pod_record(request, config)
            if await self._ask(HookStage.PRE_RUN_POD, record, asked):
                put_pod(config, record)
                request.put_message("config", config)
                asked = _with(asked, request)
        except WireError as error:
            return await self._unread("RunPodSandbox", asked, error)
        answer = await self._on("RunPodSandbox", asked)
        if identity := _identity(answer):
            self.records.put_pod(identity, record)
        return answer

    async def _stop_pod(self, asked: GrpcCall) -> bytes:
        identity = _identity(asked.request)
        record = self.records.pods.get(identity)
        try:
            return await self._on("StopPodSandbox", asked)
        finally:
            if record is not None:
                await self._tell(HookStage.POST_STOP_POD, record, asked)
                self.records.drop_pod(identity)

    async def _remove_pod(self, asked: GrpcCall) -> bytes:
        answer = await self._on("RemovePodSandbox", asked)
        self.records.drop_sandbox(_identity(asked.request))
        return answer

    # --- containers -------------------------------------------------------------------------------

    async def _create(self, asked: GrpcCall) -> bytes:
        try:
            request = Message(CREATE_CONTAINER, asked.request)
            pod = self.records.pods.get(sandbox := request.text("pod_sandbox_id"))
            if pod is None:
                return await self._on("CreateContainer", asked)
            record = _container_record(request.message("config"), pod, sandbox)
            if await self._ask(HookStage.PRE_CREATE, record, asked):
                put_container(request, record)
                asked = _with(asked, request)
        except WireError as error:
            return await self._unread("CreateContainer", asked, error)
        prepared: Prepared | None = None

        def prepare() -> None:  # while the runtime is at work, so that nobody waits for it
            nonlocal prepared
            prepared = self.records.prepare_container(record)

        identity = ""
        try:
            answer = await self._runtime.call(RUNTIME_SERVICE + "CreateContainer", asked, prepare)
            identity = _identity(answer)
        finally:
            if identity:
                self.records.put_new_container(identity, record, prepared)
            else:
                self.records.give_up(prepared)
        return answer

    async def _start(self, asked: GrpcCall) -> bytes:
        record = self.records.containers.get(identity := _identity(asked.request))
        if record is not None and await self._ask(HookStage.PRE_START, record, asked):
            self.records.put_container(identity, record)
        try:
            return await self._on("StartContainer", asked)
        finally:
            if record is not None:
                await self._tell(HookStage.POST_START, record, asked)

    async def _update(self, asked: GrpcCall) -> bytes:
        try:
            request = Message(UPDATE_RESOURCES, asked.request)
            record = self.records.containers.get(identity := request.text("container_id"))
            if record is not None:
                merge_update(record, request.message("linux"))
                if await self._ask(HookStage.PRE_UPDATE, record, asked) and record.has_resources:
                    put_update(request, record)
                    asked = _with(asked, request)
        except WireError as error:
            return await self._unread("UpdateContainerResources", asked, error)
        answer = await self._on("UpdateContainerResources", asked)
        if record is not None:
            self.records.put_container(identity, record)
        return answer

    async def _stop(self, asked: GrpcCall) -> bytes:
        identity = _identity(asked.request)
        record = self.records.containers.get(identity)
        try:
            return await self._on("StopContainer", asked)
        finally:
            if record is not None:
                await self._tell(HookStage.POST_STOP, record, asked)
                self.records.drop_container(identity)

    async def _remove(self, asked: GrpcCall) -> bytes:
        answer = await self._on("RemoveContainer", asked)
        self.records.drop_container(_identity(asked.request))
        return answer

    # --- hooks ------------------------------------------------------------------------------------

    async def _ask(self, stage: HookStage, record: PodRecord | ContainerRecord, asked: GrpcCall) -> bool:
        """Ask a hook before a call, and take its answer over; whether there was one. Raises `CallFailed` where it has to be heeded."""
        pod = record if isinstance(record, PodRecord) else record.pod
        if self._skips(pod.labels):
            return False
        try:
            answer = await self._servers.ask(stage, record.asked.encoded(), asked.seconds)
        except HookRefused as refusal:
            raise CallFailed("UNKNOWN", str(refusal)) from None
        if answer is None:
            return False
        try:
            if isinstance(record, PodRecord):
                merge_pod(record, answer)
            else:
                merge_container(record, answer)
        except WireError as error:
            LOG.warning("the answer to %s is no message, the request stays as it was: %s", stage, error)
            return False
        return True

    async def _tell(self, stage: HookStage, record: PodRecord | ContainerRecord, asked: GrpcCall) -> None:
        """Ask a hook afterwards: nothing follows from what it says, or that it says nothing."""
        pod = record if isinstance(record, PodRecord) else record.pod
        if self._skips(pod.labels):
            return
        try:
            await self._servers.ask(stage, record.asked.encoded(), asked.seconds)
        except HookRefused as refusal:
            LOG.warning("%s: %s", stage, refusal)

    async def _on(self, call: str, asked: GrpcCall) -> bytes:
        return await self._runtime.call(RUNTIME_SERVICE + call, asked)

    async def _unread(self, call: str, asked: GrpcCall, error: WireError) -> bytes:
        """What is no message to us is the runtime's to refuse."""
        LOG.warning("%s is handed on without hooks, as it is no message: %s", call, error)
        return await self._on(call, asked)


def _pod_record(request: Message, config: Message) -> PodRecord:
    made = Message(POD_HOOK_REQUEST)
    made.take("pod_meta", config, "metadata")
    made.take("runtime_handler", request, "runtime_handler")
    made.take("labels", config, "labels")
    made.take("annotations", config, "annotations")
    made.take("cgroup_parent", config.message("linux"), "cgroup_parent")
    return PodRecord(made)


def _container_record(config: Message, pod: PodRecord, sandbox: str) -> ContainerRecord:
    made = container_request(pod)
    made.put_message("container_meta", config.message("metadata"))  # read once, as it is changed later
    made.take("container_annotations", config, "annotations")
    linux = config.message("linux")
    if has := linux.has("resources"):
        made.take("container_resources", linux, "resources")
    made.take("container_envs", config, "envs")
    return ContainerRecord(pod, sandbox, made, has)


def _with(asked: GrpcCall, request: Message) -> GrpcCall:
    return GrpcCall(request.encoded(), asked.metadata, asked.seconds)


def _identity(data: bytes) -> str:
    """The ID that stands first in a message; empty where it is none."""
    try:
        return Message(IDENTITY, data).text("id")
    except WireError:
        return ""
