"""The keeper of trials: a process that forks for each revision.

A fork that found its revision good knows all that it was made of, and goes on as the keeper in place of the one that
forked it: the next trial has only changes to do. One that found it bad ends, and nothing of it remains.
"""

import gc
import importlib
import mmap
import os
import pickle
import select
import signal
import socket
import sys
from dataclasses import replace
from typing import Final, NoReturn

from koordpolicy.graph import Compiler, RuleGraph
from koordpolicy.graph.layers import PackFinder
from koordpolicy.runtime.pickling import dumps
from koordpolicy.runtime.policies.pack_cache import kept_results
from koordpolicy.runtime.policies.packs import find_pack
from koordpolicy.runtime.policies.revisions import Reason
from koordpolicy.runtime.trial.attempt import attempt
from koordpolicy.runtime.trial.limits import MIB, TrialLimits
from koordpolicy.runtime.trial.verdict import Rehearse, TrialRequest, TrialVerdict
from koordpolicy.runtime.trial.wire import Closed, read_until, receive, send

_NEEDED: Final = (
    "koordpolicy.graph.testing",
    "koordpolicy.graph.foresight",
    *(f"koordpolicy.graph.passes.{name}" for name in ("availability", "conflicts", "cost", "meaning")),
)
"""What trials take to check and test, and the live process does without."""
_PAUSE: Final = 1.0
"""Seconds without a question until the keeper looks for garbage."""
_COLLECTED: Final = 8
"""Good revisions after which it looks at everything, and not only at what is new."""
_NOTE: Final = 1024
"""Bytes in which a trial says what it is doing: shared, so that it is known after the trial was killed."""


def serve(
    channel: socket.socket, packs: PackFinder, limits: TrialLimits, rehearse: Rehearse | None
) -> NoReturn:
    """Try what comes through the channel until its other end is gone. Ends the process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the live process decides when this one ends
    code = 0
    try:
        _Keeper(channel, packs, limits, rehearse).run()
    except Closed:
        pass
    except BaseException as error:  # noqa: BLE001 - a fork must never run on in its parent's frames
        sys.stderr.write(f"the process that tries revisions failed: {type(error).__name__}: {error}\n")
        code = 1
    os._exit(code)


class _Keeper:
    def __init__(
        self, channel: socket.socket, packs: PackFinder, limits: TrialLimits, rehearse: Rehearse | None
    ) -> None:
        self._channel = channel
        self._packs = packs
        self._limits = limits
        self._rehearse = rehearse
        self._compiler = Compiler(packs, limits.max_cost)
        self._before: RuleGraph | None = None
        self._generation = 0
        self._note = mmap.mmap(-1, _NOTE)

    def run(self) -> None:
        """Raises `Closed` at the end."""
        for name in _NEEDED:  # once here, rather than in each fork
            importlib.import_module(name)
        gc.disable()
        if self._packs is find_pack:  # the live process has none of it, and learns it from the first trial
            self._compiler.learn(kept_results(), hand_on=True)
        while True:
            if not select.select([self._channel], [], [], _PAUSE)[0]:
                self._clear()
            request: TrialRequest = receive(self._channel)
            self._note[:] = bytes(_NOTE)
            read_end, write_end = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(read_end)
                self._try(request, write_end)
            else:
                os.close(write_end)
                self._answer(pid, read_end)

    def _clear(self) -> None:
        """Take what was made since the last time out of the collector's way; its pages stay shared with trials."""
        if self._generation >= _COLLECTED:
            self._generation = 0
            gc.unfreeze()
            gc.collect()
        else:
            gc.collect(1)
        gc.freeze()

    def _answer(self, pid: int, read_end: int) -> None:
        """Say what the trial in that process says; ends this one where that one takes its place."""
        try:
            said = read_until(read_end, self._channel, self._limits.wall)
        except Closed:
            _killed(pid)
            raise
        finally:
            os.close(read_end)
        if said is None:
            verdict = self._unsaid(True, *_killed(pid))
        elif not said:
            verdict = self._unsaid(False, *_end_of(pid))
        else:
            verdict = pickle.loads(said)  # noqa: S301 - from our own fork
            if verdict.reason is None:
                send(self._channel, replace(verdict, keeper=pid))
                os._exit(0)
            _end_of(pid)
        send(self._channel, verdict)

    def _try(self, request: TrialRequest, out: int) -> None:
        """In the fork: the trial itself. Returns where this process is the keeper from now on."""
        code, graph = 0, None
        try:
            allowed = self._limits.allowed_memory()
            with self._limits.imposed(allowed):
                try:
                    verdict, graph = attempt(
                        self._compiler, request, self._limits, self._rehearse, self._progress, self._before
                    )
                except MemoryError:
                    # What failed is let go of with its frames; the little that is needed now fits again.
                    verdict = TrialVerdict(Reason.LIMIT_EXCEEDED, self._memory_message(allowed))
                with os.fdopen(out, "wb") as pipe:
                    pipe.write(dumps(verdict))
        except BaseException:  # noqa: BLE001 - a fork must never run on in its parent's frames; the keeper tells of it
            code, graph = 1, None
        if graph is None:
            os._exit(code)
        self._before = graph
        self._generation += 1

    def _progress(self, doing: str) -> None:
        said = doing.encode("utf-8", "backslashreplace")[: _NOTE - 1]
        self._note[: len(said) + 1] = said + b"\0"

    def _doing(self) -> str:
        said = bytes(self._note[:]).partition(b"\0")[0].decode("utf-8", "ignore")
        return f", while {said}" if said else ""

    def _flag(self, limit: str) -> str:
        return f" (--policy-trial-{limit})" if self._limits.by_flags else ""

    def _memory_message(self, allowed: int) -> str:
        return f"it needs more than {allowed // MIB:,} MiB of memory{self._doing()}{self._flag('memory')}"

    def _unsaid(self, late: bool, status: int, cpu: float) -> TrialVerdict:
        """What to say for a trial that was ended before it could say anything itself."""
        limits, doing = self._limits, self._doing()
        if (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU) or cpu >= limits.cpu:
            message = f"it takes more than {limits.cpu:g} s of CPU time{doing}{self._flag('cpu')}"
        elif late:
            message = f"it took more than {limits.wall:g} s{doing}{self._flag('cpu')}"
        elif os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            message = f"its trial was killed, as the kernel does where memory runs short{doing}"
        else:
            name = (
                signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"code {status >> 8}"
            )
            return TrialVerdict(
                Reason.INTERNAL_ERROR, f"its trial ended with {name}{doing}; please report this", cpu=cpu
            )
        return TrialVerdict(Reason.LIMIT_EXCEEDED, message, cpu=cpu)


def _killed(pid: int) -> tuple[int, float]:
    os.kill(pid, signal.SIGKILL)
    return _end_of(pid)


def _end_of(pid: int) -> tuple[int, float]:
    """How a process ended, and the seconds of CPU time that it took; waits for that."""
    _, status, used = os.wait4(pid, 0)
    return status, used.ru_utime + used.ru_stime
