"""Hook servers as files announce them: who is asked at which stage, in which order, and what holds when nobody answers."""

import json
import logging
import os
import stat as files
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from koordpolicy.cri.calls import CallFailed, Channel, GrpcCall
from koordpolicy.cri.stages import REFUSED, SERVICE, TTRPC_ENDPOINT, HookStage
from koordpolicy.cri.ttrpc import Disconnected, Refused, Status, TtrpcChannel
from koordpolicy.cri.wire import WireError

LOG: Final = logging.getLogger(__name__)

_FAIL: Final = "Fail"
_MOST_CHANNELS: Final = 10
_MOST_FILES: Final = 100
_LONGEST: Final = 1 << 20
_SCHEME: Final = "unix://"
_Asked = TypeVar("_Asked", Channel, TtrpcChannel)


class HookRefused(Exception):
    """A hook that has to have its say could not: the call must not go on."""


@dataclass(frozen=True, slots=True)
class HookServer:
    """One that is announced: its socket, its stages, whether calls fail without it, and its socket of ttrpc if it has one."""

    name: str
    endpoint: Path
    stages: frozenset[str]
    fails: bool
    ttrpc: Path | None = None


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as it was read last. `server` is None where it says nothing that can be read."""

    inode: int
    changed: tuple[int, int]
    server: HookServer | None


class HookServers:
    """The servers that a directory announces, in order of file name; the directory is looked at with every question.

    One that does not parse keeps what it said before, if it is the same file. `timeout` is in seconds.
    """

    def __init__(self, directory: Path, timeout: float) -> None:
        self._directory = directory
        self._timeout = timeout
        self._seen: dict[str, _Seen] = {}
        self._channels: OrderedDict[Path, Channel | TtrpcChannel] = OrderedDict()

    def known(self) -> list[HookServer]:
        """Those that are announced now."""
        stats: dict[str, os.stat_result] = {}
        with (
            suppress(OSError),
            os.scandir(self._directory) as entries,
        ):  # made by whoever announces itself first
            for entry in entries:
                if entry.name.endswith("json"):
                    with suppress(OSError):
                        stats[entry.name] = entry.stat()
        seen = {name: self._look(name, stats[name]) for name in sorted(stats)[:_MOST_FILES]}
        for gone in self._seen.keys() - seen.keys():
            LOG.info("%s announces no hook server any more", self._directory / gone)
        self._seen = seen
        return [one.server for one in seen.values() if one.server is not None]

    async def ask(self, stage: HookStage, request: bytes, seconds: float | None) -> bytes | None:
        """The answer of the first server that is there for a stage; None where none is, or none has to be heeded.

        Raises `HookRefused` where one has to be and could not be asked, or answers by an error.
        """
        refusal = ""
        for server in self._for(stage):
            try:
                return await self._asked(server, stage, request, self._within(seconds))
            except CallFailed as failure:
                LOG.warning("%s of hook server %s: %s", stage, server.name, failure)
                if server.fails or failure.code == REFUSED:
                    refusal = refusal or f"hook server err: {server.name}: {failure}"
                if not failure.unanswered:
                    break
        if refusal:
            raise HookRefused(refusal)
        return None

    async def close(self) -> None:
        """Give all connections up."""
        for channel in self._channels.values():
            await channel.close()

    async def _asked(self, server: HookServer, stage: HookStage, request: bytes, seconds: float) -> bytes:
        """The answer of one. Raises `CallFailed`."""
        if server.ttrpc is None:
            channel = self._channel(server.endpoint, Channel)
            return await channel.call(stage.method, GrpcCall(request, seconds=seconds))
        direct = self._channel(server.ttrpc, TtrpcChannel)
        try:
            return await direct.call(SERVICE, stage.method_name, request, seconds)
        except Refused as refused:
            raise CallFailed(refused.status.name, str(refused)) from None
        except TimeoutError:
            raise CallFailed(Status.DEADLINE_EXCEEDED.name, f"no answer within {seconds:g} s") from None
        except (OSError, Disconnected) as error:
            raise CallFailed(Status.UNAVAILABLE.name, str(error)) from None
        except WireError as error:
            raise CallFailed(Status.UNKNOWN.name, f"an answer that is no message: {error}") from None

    def _for(self, stage: HookStage) -> Iterator[HookServer]:
        return (one for one in self.known() if stage in one.stages)

    def _within(self, seconds: float | None) -> float:
        return self._timeout if seconds is None else min(self._timeout, seconds)

    def _channel(self, path: Path, make: Callable[[Path], _Asked]) -> _Asked:
        found = self._channels.pop(path, None) or make(path)
        self._channels[path] = found
        if len(self._channels) > _MOST_CHANNELS:
            self._channels.popitem(last=False)  # closed by its last call's end
        return cast(_Asked, found)

    def _look(self, name: str, stat: os.stat_result) -> _Seen:
        before = self._seen.get(name)
        changed = (stat.st_mtime_ns, stat.st_size)
        if before is not None and before.inode == stat.st_ino and before.changed == changed:
            return before
        server: HookServer | None
        path = self._directory / name
        try:
            server = read_hook_server(name, _read(path))
            LOG.info(
                "hook server %s at %s: %s", server.name, server.endpoint, ", ".join(sorted(server.stages))
            )
        except (OSError, ValueError) as error:
            LOG.warning("%s announces no hook server: %s", path, error)
            server = before.server if before is not None and before.inode == stat.st_ino else None
        return _Seen(stat.st_ino, changed, server)


def read_hook_server(name: str, data: bytes) -> HookServer:
    """What a file announces. Raises ValueError."""
    try:
        said: Any = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(said, dict):
        raise ValueError("an object with `remote-endpoint` and `runtime-hooks` was expected")  # noqa: TRY004  # of a file
    endpoint, stages = said.get("remote-endpoint"), said.get("runtime-hooks") or []
    if not isinstance(endpoint, str) or not endpoint:
        raise ValueError("`remote-endpoint` has to name a Unix socket")
    if not isinstance(stages, list) or not all(isinstance(one, str) for one in stages):
        raise ValueError("`runtime-hooks` has to be a list of stages")
    ttrpc = said.get(TTRPC_ENDPOINT)
    direct = _path(ttrpc) if isinstance(ttrpc, str) and ttrpc else None
    fails = said.get("failure-policy") == _FAIL
    return HookServer(name, _path(endpoint), frozenset(stages), fails, direct)


def _read(path: Path) -> bytes:
    """A file of whoever announces itself: neither one that has no end, nor one that lets its reader wait. Raises OSError, ValueError."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not files.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no plain file")
        data = file.read(_LONGEST + 1)
    if len(data) > _LONGEST:
        raise ValueError(f"it has more than {_LONGEST} bytes")
    return data


def _path(endpoint: str) -> Path:
    if not endpoint.isprintable():
        raise ValueError(f"{endpoint!a} is no path of a socket")
    return Path(endpoint.removeprefix(_SCHEME))
