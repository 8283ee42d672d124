"""What a command is."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from koordpolicy.cli.terminal import Terminal

OK = 0
FINDINGS = 1
CANNOT_RUN = 2
TESTS_FAILED = 3
DIFFERENT = 4
GAVE_UP = 5


class CannotRunError(Exception):
    """The command cannot do its work; the message says why and what to do (exit code 2)."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of `koordpolicy`, whose name and summary stand in the table of `main`.

    `add` declares its arguments. `run` does the work and gives the exit code: 0 when all is well, 1
    when there are findings, or one of the others above; it raises `CannotRunError` when it cannot start.
    """

    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Terminal], int]
    epilog: str = ""
