"""Programs that tests start: they are stopped by process id, and end with the process that started them."""

import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

_PORTS = range(20_000, 32_000)
"""Below the ports that systems give to outgoing connections, so that a stopped server's port stays free."""


class Ended(Exception):
    """A program ended or did not become ready; the message has the end of its log."""


class Running:
    """A started program, its log in a file. A context manager that stops it.

    `arguments` begin with the program's path. The system ends the program when this process dies, however that
    happens, where `setpriv` is there (Linux).
    """

    def __init__(
        self,
        arguments: Sequence[str | Path],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.name = Path(arguments[0]).name
        self.log = log
        self._process = _start([str(one) for one in arguments], log, environment, folder)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def ready(self, question: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait until the question is answered with yes. Raises Ended when the program ends first or time is up."""
        until = time.monotonic() + seconds
        while not question():
            if not self.running:
                raise Ended(f"{self.name} ended with {self._process.returncode}:\n{self.tail()}")
            if time.monotonic() > until:
                raise Ended(f"{self.name} is not ready after {seconds:.0f} s:\n{self.tail()}")
            time.sleep(0.05)

    def tail(self, lines: int = 25) -> str:
        """The end of its log."""
        with suppress(OSError):
            return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:])
        return ""

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, as a crash does."""
        self._process.kill()
        self._process.wait()

    def stop(self, seconds: float = 10.0) -> int:
        """End it in good order, or at once when that takes too long. Gives its exit code."""
        self._process.terminate()
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _start(
    arguments: list[str], log: Path, environment: Mapping[str, str] | None, folder: Path | None
) -> subprocess.Popen[bytes]:
    setpriv = shutil.which("setpriv")
    if setpriv:
        arguments = [setpriv, "--pdeathsig", "KILL", *arguments]

    def start() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment,
                cwd=folder,
            )  # fmt: skip

    # The "parent" whose death the system watches is a thread: it has to be one that lives as long as the process.
    if not setpriv or threading.current_thread() is threading.main_thread():
        return start()
    return _starter().submit(start).result()


@cache
def _starter() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "starter")


def free_port() -> int:
    """A port on loopback that nothing listens on now."""
    for _ in range(200):
        port = random.choice(_PORTS)
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise Ended("no free port on loopback")


def listens(port: int) -> bool:
    """Whether connections to that port on loopback are taken now."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def alive(pid: int) -> bool:
    """Whether there is a process of that id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def terminate(pid: int) -> None:
    """Ask the process of that id to end, if there is one."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
