"""The live process's side of trials."""

import os
import socket
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from koordpolicy.graph.layers import PackFinder
from koordpolicy.runtime.policies.packs import find_pack
from koordpolicy.runtime.trial.limits import TrialLimits
from koordpolicy.runtime.trial.server import serve
from koordpolicy.runtime.trial.verdict import Rehearse, TrialRequest, TrialsLost, TrialVerdict
from koordpolicy.runtime.trial.wire import Closed, receive, send

_PATIENCE: Final = 60.0
"""Seconds beyond a trial's own limit in which the keeper must have answered."""


class Trials:
    """A way to try revisions, one at a time. Made by `start_trials`; closing it ends the process behind it."""

    def __init__(self, channel: socket.socket, pid: int, limits: TrialLimits) -> None:
        self._channel = channel
        self.pid = pid
        self._ended: list[int] = []
        """Keepers that have made way for others."""
        self._lost = ""
        self._turn = threading.Lock()
        channel.settimeout(limits.wall + _PATIENCE)

    def attempt(self, request: TrialRequest) -> TrialVerdict:
        """How a trial of the revision ends; waits for it. Raises `TrialsLost`, from then on always."""
        with self._turn:
            if self._lost:
                raise TrialsLost(self._lost)
            try:
                send(self._channel, request)
                verdict: TrialVerdict = receive(self._channel)
            except (Closed, TimeoutError) as error:
                self._lost = str(error) or "it does not answer"
                self._channel.close()
                raise TrialsLost(self._lost) from None
            if verdict.keeper:
                self._ended.append(self.pid)
                self.pid = verdict.keeper
            self._ended = [pid for pid in self._ended if not _reaped(pid)]
            return verdict

    def close(self) -> None:
        """End the process, and any trial under way, without waiting for what it does."""
        with suppress(OSError):  # it went first
            self._channel.shutdown(socket.SHUT_RDWR)
        self._channel.close()
        for pid in (*self._ended, self.pid):
            with suppress(ChildProcessError):  # somebody else reaped it: whose child it has become
                os.waitpid(pid, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _reaped(pid: int) -> bool:
    """Whether there is nothing left of a process."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def start_trials(
    limits: TrialLimits, rehearse: Rehearse | None = None, packs: PackFinder = find_pack
) -> Trials | None:
    """Fork the process that tries revisions; None where a system cannot fork.

    Call it before this process has threads or an event loop: the fork has only the thread that asked for it.
    """
    if sys.platform == "win32":
        return None
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        serve(theirs, packs, limits, rehearse)
    theirs.close()
    return Trials(ours, pid, limits)
