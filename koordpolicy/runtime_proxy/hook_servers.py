"""Hook servers as files announce them: who is asked at which stage, in which order, and what holds when nobody answers."""

import json
import logging
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from koordpolicy.cri.calls import CallFailed, Channel, GrpcCall
from koordpolicy.cri.stages import REFUSED, HookStage

LOG: Final = logging.getLogger(__name__)

_FAIL: Final = "Fail"
_MOST_CHANNELS: Final = 10
_MOST_FILES: Final = 100
_LONGEST: Final = 1 << 20
_SCHEME: Final = "unix://"


class HookRefused(Exception):
    """A hook that has to have its say could not: the call must not go on."""


@dataclass(frozen=True, slots=True)
class HookServer:
    """One that is announced: its socket, the stages in the order of its file, and whether calls fail without it."""

    name: str
    endpoint: Path
    stages: tuple[str, ...]
    fails: bool


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
        self._channels: OrderedDict[Path, Channel] = OrderedDict()

    def known(self) -> list[HookServer]:
        """Those that are announced now."""
        try:
            names = sorted(one for one in self._directory.iterdir() if one.name.endswith("json"))
        except OSError:
            names = []  # made by whoever announces itself first
        seen = {path.name: found for path in names[:_MOST_FILES] if (found := self._look(path))}
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
                return await self._channel(server.endpoint).call(
                    stage.method, GrpcCall(request, seconds=self._within(seconds))
                )
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

    def _for(self, stage: HookStage) -> Iterator[HookServer]:
        return (one for one in self.known() if stage in one.stages)

    def _within(self, seconds: float | None) -> float:
        return self._timeout if seconds is None else min(self._timeout, seconds)

    def _channel(self, path: Path) -> Channel:
        found = self._channels.pop(path, None) or Channel(path)
        self._channels[path] = found
        if len(self._channels) > _MOST_CHANNELS:
            self._channels.popitem(last=False)  # closed by its last call's end
        return found

    def _look(self, path: Path) -> _Seen | None:
        before = self._seen.get(path.name)
        try:
            stat = path.stat()
        except OSError:
            return None
        changed = (stat.st_mtime_ns, stat.st_size)
        if before is not None and before.inode == stat.st_ino and before.changed == changed:
            return before
        server: HookServer | None
        try:
            server = read_hook_server(path.name, path.read_bytes()[:_LONGEST])
            LOG.info("hook server %s at %s: %s", server.name, server.endpoint, ", ".join(server.stages))
        except (OSError, ValueError) as error:
            LOG.warning("%s announces no hook server: %s", path, error)
            server = before.server if before is not None and before.inode == stat.st_ino else None
        return _Seen(stat.st_ino, changed, server)


def read_hook_server(name: str, data: bytes) -> HookServer:
    """What a file announces. Raises ValueError."""
    said: Any = json.loads(data)
    if not isinstance(said, dict):
        raise ValueError("an object with `remote-endpoint` and `runtime-hooks` was expected")  # noqa: TRY004  # of a file
    endpoint, stages = said.get("remote-endpoint"), said.get("runtime-hooks") or []
    if not isinstance(endpoint, str) or not endpoint:
        raise ValueError("`remote-endpoint` has to name a Unix socket")
    if not isinstance(stages, list) or not all(isinstance(one, str) for one in stages):
        raise ValueError("`runtime-hooks` has to be a list of stages")
    path = Path(endpoint.removeprefix(_SCHEME))
    return HookServer(name, path, tuple(stages), said.get("failure-policy") == _FAIL)
