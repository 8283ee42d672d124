"""Work in a fork of a command's process."""

import os
import signal
import time

import pytest

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.simulation.forked import begun


def test_results_come_of_works_that_run_at_once() -> None:
    reading, writing = os.pipe()

    def first() -> tuple[int, bytes]:
        return os.getpid(), os.read(reading, 1)

    def second() -> int:
        os.write(writing, b"x")
        return os.getpid()

    waits = begun(first), begun(second)
    (one, read), other = waits[0](), waits[1]()
    assert read == b"x"
    assert len({one, other, os.getpid()}) == 3


def test_what_it_raises_is_raised_where_it_is_waited_for() -> None:
    def work() -> None:
        raise CannotRunError("no such thing")

    with pytest.raises(CannotRunError, match="no such thing"):
        begun(work)()


def test_one_that_was_killed_is_told() -> None:
    def work() -> None:
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)

    with pytest.raises(CannotRunError, match="ended"):
        begun(work)()
