"""How a command ends, and what it takes."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

OK = 0
FINDINGS = 1
CANNOT_RUN = 2
TESTS_FAILED = 3
DIFFERENT = 4
GAVE_UP = 5
LEFT_OUT = 6


class CannotRunError(Exception):
    """The command cannot do its work; the message says why and what to do (exit code 2)."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a command takes: `add` declares its arguments, `epilog` stands below its help.

    Its name and summary stand in the table of `main`. What it does is `run` of its module: that gives the exit code, 0
    when all is well, 1 when there are findings, or one of the others above; it raises `CannotRunError` when it cannot
    start. `compiles` says whether it finds a compiler among its arguments.
    """

    add: Callable[[argparse.ArgumentParser], None]
    epilog: str = ""
    compiles: bool = False
