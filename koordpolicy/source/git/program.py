"""Git's own program, run with a time limit, a limit to what it may say, and nothing left behind."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping
from typing import Final

_MOST_OUTPUT: Final = 64 << 20
_MOST_ERRORS: Final = 64 << 10
"""Bytes that are kept of what Git writes. A server can make it say anything, for as long as it likes."""
_GUARD_EVERY: Final = 0.1
"""Seconds."""
_GRACE: Final = 2.0
"""Seconds that Git has for taking its lock files away when it is stopped."""


class GitFailed(Exception):
    """Git said no, took too long, or is not there.

    `said` is what it wrote to standard error, as it wrote it: not fit for the eyes of others, since addresses
    in it may hold passwords. `code` is its exit code, None where it did not end by itself.
    """

    def __init__(self, message: str, said: str = "", code: int | None = None) -> None:
        super().__init__(message)
        self.said = said
        self.code = code


class GitMissing(GitFailed):
    """There is no program `git`."""


class GitTookTooLong(GitFailed):
    """The time limit is over."""


class Git:
    """Runs Git, with `environment` (else that of this process) and `settings` of its configuration.

    `program` may be another one that takes no settings.
    """

    def __init__(
        self,
        *,
        environment: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
        program: str = "git",
    ) -> None:
        self.environment = environment
        self._program = program
        self._settings = tuple(
            part for key, value in (settings or {}).items() for part in ("-c", f"{key}={value}")
        )

    async def run(
        self,
        *arguments: str,
        seconds: float,
        look: Callable[[bytes], None] | None = None,
        guard: Callable[[], None] | None = None,
    ) -> str:
        """What Git writes to standard output; raises `GitFailed`. Nothing of it runs on afterwards.

        `look` is handed the output as it comes instead, so that it may be of any length. `guard` is called again and
        again while Git works, in a thread. What either raises stops Git, and is raised.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                self._program,
                *self._settings,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self.environment,
                # Git starts helpers (ssh, remote-https); a session of their own lets all of them be stopped.
                start_new_session=True,
            )
        except FileNotFoundError:
            raise GitMissing(f"there is no program `{self._program}`") from None
        except OSError as error:
            raise GitFailed(f"`{self._program}` cannot be started: {error.strerror}") from error
        ended = False
        watch = _Watch(process)
        guarding = None if guard is None else asyncio.create_task(watch.guarded(guard))
        try:
            async with asyncio.timeout(seconds):
                output, said, code = await asyncio.gather(
                    _drain(process.stdout, _MOST_OUTPUT, None if look is None else watch.looking(look)),
                    _drain(process.stderr, _MOST_ERRORS),
                    process.wait(),
                )
                ended = watch.refusal is None
        except TimeoutError:
            raise GitTookTooLong(f"{self._program} did not finish within {seconds:g} s") from None
        finally:
            if guarding is not None:
                guarding.cancel()
                await asyncio.gather(guarding, return_exceptions=True)
            await _stop(process, ended=ended)
        if watch.refusal is not None:
            raise watch.refusal
        if guard is not None:
            await asyncio.to_thread(guard)  # what was over before the first look
        errors = said[:_MOST_ERRORS].decode("utf-8", "replace")
        if code != 0:
            raise GitFailed(f"{self._program} failed with exit code {code}", errors, code)
        if len(output) > _MOST_OUTPUT:
            raise GitFailed(f"{self._program} said more than {_MOST_OUTPUT:,} bytes", errors)
        return output.decode("utf-8", "surrogateescape")


class _Watch:
    """Stops Git as soon as somebody objects, and remembers why."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.refusal: Exception | None = None
        self._process = process

    def refuse(self, why: Exception) -> None:
        """Git ends by this, and with it the reading of what it says."""
        if self.refusal is None:
            self.refusal = why
            _signal(self._process, signal.SIGKILL)

    def looking(self, look: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """`look` until it objects."""

        def once(chunk: bytes) -> None:
            if self.refusal is None:
                try:
                    look(chunk)
                except Exception as error:  # noqa: BLE001  # it is raised where Git was run
                    self.refuse(error)

        return once

    async def guarded(self, guard: Callable[[], None]) -> None:
        """Call it until it objects, for a small part of the time."""
        loop = asyncio.get_running_loop()
        pause = _GUARD_EVERY
        while True:
            await asyncio.sleep(pause)
            began = loop.time()
            try:
                await asyncio.to_thread(guard)
            except Exception as error:  # noqa: BLE001  # as above
                self.refuse(error)
                return
            pause = max(_GUARD_EVERY, 5 * (loop.time() - began))


async def _drain(
    stream: asyncio.StreamReader | None, most: int, look: Callable[[bytes], None] | None = None
) -> bytes:
    """All of a stream; of what goes beyond `most` bytes, only that there was more. With `look`, nothing is kept."""
    assert stream is not None
    kept = bytearray()
    while chunk := await stream.read(1 << 16):
        if look is not None:
            look(chunk)
        elif len(kept) <= most:
            kept += chunk
    return bytes(kept[: most + 1])


async def _stop(process: asyncio.subprocess.Process, *, ended: bool) -> None:
    """Make sure that the process and its helpers are gone, whatever happens meanwhile."""
    if ended:
        return
    stopping = asyncio.ensure_future(_end(process))
    while not stopping.done():
        try:
            await asyncio.shield(stopping)
        except asyncio.CancelledError:
            # The cancellation that brought us here goes on by itself; a second one must wait for the process.
            if stopping.done():
                break


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask it to stop, and make an end of whatever of its session is left then."""
    _signal(process, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GRACE):
            await process.wait()
    _signal(process, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GRACE):
            # Not before all have closed its pipes is the process over for the event loop.
            await asyncio.gather(_drain(process.stdout, 0), _drain(process.stderr, 0), process.wait())


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
