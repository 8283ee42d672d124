"""Work that runs beside this process, in a fork of it: on a processor of its own, and what it takes is given back when it is done."""

import multiprocessing
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

from koordpolicy.cli.command import CannotRunError

T = TypeVar("T")


def begun(work: Callable[[], T]) -> Callable[[], T]:
    """Begin with it; what waits for its result, or raises what it raised. On other systems than Linux it begins when it is waited for.

    Call it before this process has threads. The result comes pickled. What an interrupt leaves of it ends with this process.
    """
    if sys.platform != "linux":  # elsewhere, libraries do not bear it
        return work
    context = multiprocessing.get_context("fork")
    reading, writing = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(work, writing), daemon=True)
    process.start()
    writing.close()

    def result() -> T:
        with reading:
            try:
                value, error = reading.recv()
            except EOFError:
                process.join()
                raise CannotRunError(f"a process of this command was ended ({process.exitcode})") from None
        process.join()
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]

    return result


def _work(work: Callable[[], object], writing: Connection) -> None:
    told: tuple[object, BaseException | None]
    try:
        told = work(), None
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - whoever waits for it gets it
        told = None, error
    writing.send(told)
