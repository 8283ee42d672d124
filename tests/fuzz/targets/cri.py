"""What kubelets, runtimes and hook servers say to the proxy, to the agent's hooks and to its plugin: bytes that should be messages.

Whatever comes: a request that no hook changes arrives as it was, fields that nobody knows always do, and nothing but the errors that are
told of is raised.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from random import Random

from koordpolicy.agent.hooks.nri import NriPlugin
from koordpolicy.agent.hooks.proxied import answer
from koordpolicy.agent.hooks.scenes import HookScenes
from koordpolicy.agent.hooks.starting import HookFailed, HookScene
from koordpolicy.algorithms.cpu_pools import CPUPools
from koordpolicy.cri.calls import Channel, GrpcCall
from koordpolicy.cri.nri_shapes import OF_CONTAINER
from koordpolicy.cri.shapes import (
    CONTAINER_HOOK_ANSWER,
    CONTAINER_HOOK_REQUEST,
    CREATE_CONTAINER,
    IDENTITY,
    POD_HOOK_ANSWER,
    RUN_POD_SANDBOX,
    UPDATE_RESOURCES,
)
from koordpolicy.cri.stages import HookStage
from koordpolicy.cri.ttrpc import Refused
from koordpolicy.cri.wire import Message, Shape, WireError, encoded_varint
from koordpolicy.model.pod import Pod
from koordpolicy.runtime_proxy.checkpoint import Checkpoint, Kept, Prepared, read_record
from koordpolicy.runtime_proxy.hook_servers import HookServers
from koordpolicy.runtime_proxy.interceptor import RUNTIME_SERVICE, Interceptor
from tests.fuzz.mutations import mutate_bytes
from tests.fuzz.target import Defect, Target
from tests.fuzz.targets.policies import NOW, graph_of_the_pack
from tests.unit.agent.nodes import record, sight

_SHAPES: dict[str, Shape] = {
    "RunPodSandbox": RUN_POD_SANDBOX,
    "CreateContainer": CREATE_CONTAINER,
    "UpdateContainerResources": UPDATE_RESOURCES,
}
_CALLS = (*_SHAPES, "StartContainer", "StopContainer", "StopPodSandbox", "RemoveContainer")
_MARK = b"\n--\n"
"""Between a request and the answer of a hook to it."""
_LOOPS: list[asyncio.AbstractEventLoop] = []


class _Runtime(Channel):
    """A runtime that notes what arrives."""

    def __init__(self) -> None:
        self.arrived = b""

    async def call(self, method: str, asked: GrpcCall, meanwhile: Callable[[], None] | None = None) -> bytes:
        self.arrived = asked.request
        if meanwhile is not None:
            meanwhile()
        return _identity("known")


class _Hooks(HookServers):
    """A hook server that says what it is told to."""

    def __init__(self, said: bytes | None) -> None:
        self.said = said

    async def ask(self, stage: HookStage, request: bytes, seconds: float | None) -> bytes | None:
        return self.said


class _Unkept(Checkpoint):
    """Keeps nothing."""

    def __init__(self) -> None:
        pass

    def prepare(self, name: str, kept: Kept) -> Prepared | None:
        return None

    def keep(self, identity: str, kept: Kept) -> None:
        pass

    def forget(self, identity: str) -> None:
        pass


class _Scenes(HookScenes):
    """Of one node."""

    def __init__(self) -> None:
        self._said = None

    def scene(self) -> HookScene:
        return _scene()

    def pod(self, uid: str) -> Pod | None:
        return None


@lru_cache(maxsize=1)
def _scene() -> HookScene:
    compiled = graph_of_the_pack()
    return HookScene(compiled, record(compiled, sight()), CPUPools({0: "0-3"}, {0: "0-5"}), NOW)


def _identity(value: str) -> bytes:
    made = Message(IDENTITY)
    made.put_text("id", value)
    return made.encoded()


def _filled(shape: Shape, depth: int = 4) -> Message:
    """A message with something in every field that the shape knows, and one that it does not."""
    message = Message(shape, b"\xa2\x06\x03abc")
    for name, field in shape.items():
        match field.form.name:
            case "INTEGER":
                message.put_integer(name, 7)
            case "TEXT":
                message.put_text(name, "known")
            case "TEXTS":
                message.put_texts(name, {"koordinator.sh/qosClass": "BE", "b": "2"})
            case "LIST":
                message.put_list(name, ["a", "b"])
            case "MESSAGE" if depth:
                message.put_message(name, _filled(field.shape or {}, depth - 1))
            case "MESSAGES" if depth:
                message.put_messages(name, [_filled(field.shape or {}, depth - 1)] * 2)
    return message


def _seeds() -> Sequence[bytes]:
    of_pod, of_container = _filled(POD_HOOK_ANSWER).encoded(), _filled(CONTAINER_HOOK_ANSWER).encoded()
    requests = [_filled(shape).encoded() for shape in _SHAPES.values()]
    more = [_filled(shape).encoded() for shape in (CONTAINER_HOOK_REQUEST, OF_CONTAINER)]
    return tuple(
        request + _MARK + said
        for request in (*requests, *more, _identity("known"))
        for said in (of_pod, of_container)
    )


def _mutate(chance: Random, seeds: Sequence[bytes]) -> bytes:
    """Any bytes changed; or a field of random number and length put before, so that what follows stays readable."""
    if chance.random() < 0.5:
        return mutate_bytes(chance, seeds)
    payload = chance.randbytes(chance.randrange(6))
    tag = encoded_varint(chance.randrange(1, 1 << chance.randrange(1, 28)) << 3 | 2)
    return tag + encoded_varint(len(payload)) + payload + chance.choice(seeds)


def _run(data: bytes) -> None:
    if not _LOOPS:
        _LOOPS.append(asyncio.new_event_loop())
    request, _, said = data.partition(_MARK)
    logging.disable(logging.WARNING)  # of what is no message the proxy tells each time
    try:
        _all(request, said)
    finally:
        logging.disable(logging.NOTSET)


def _all(request: bytes, said: bytes) -> None:
    _LOOPS[0].run_until_complete(_proxied(request, said))
    with suppress(WireError):
        read_record(request)
    for stage in HookStage:
        with suppress(WireError, HookFailed):
            answer(_scene(), lambda uid: None, stage, request)
    plugin = NriPlugin(_Scenes(), Path("nowhere"), lambda stage, result: None)
    for method in ("Configure", "Synchronize", "CreateContainer", "UpdateContainer"):
        with suppress(Refused):
            _LOOPS[0].run_until_complete(plugin.answer(method, request))


async def _proxied(request: bytes, said: bytes) -> None:
    for hooks in (None, said):
        runtime = _Runtime()
        proxy = Interceptor(runtime, _Hooks(hooks), lambda labels: False, _Unkept())
        handlers = proxy.handlers()
        for first in ("RunPodSandbox", "CreateContainer"):  # so that there is something to know
            await handlers[RUNTIME_SERVICE + first](GrpcCall(_filled(_SHAPES[first]).encoded()))
        for call in _CALLS:
            await handlers[RUNTIME_SERVICE + call](GrpcCall(request))
            if (hooks is None or call not in _SHAPES) and runtime.arrived != request:
                raise Defect(f"{call} without a hook's say arrived otherwise than it was")
            if call in _SHAPES and _unknown(_SHAPES[call], runtime.arrived) != _unknown(
                _SHAPES[call], request
            ):
                raise Defect(f"{call} lost a field that nobody knows")


def _unknown(shape: Shape, data: bytes) -> Sequence[object]:
    numbers = {field.number for field in shape.values()}
    try:
        return [field for field in Message(shape, data)._fields if field[0] not in numbers]
    except WireError:
        return [data]


CRI = Target("cri", "messages of kubelets, runtimes and hook servers", _seeds, _mutate, _run)
