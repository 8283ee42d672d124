"""What a part is, and the search for one that the machine already has."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.parts.cache import Tell


class Missing(Exception):
    """A part cannot be had on this machine; the message names it and says why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"no {name}: {reason}")
        self.name = name
        self.reason = reason


class Maker(Protocol):
    """A way to have a program that the machine lacks."""

    def says(self) -> str:
        """What it does, in a few words."""
        ...

    def made(self, program: str) -> Path | None:
        """The program if it was made before."""
        ...

    def make(self, program: str, tell: Tell) -> Path:
        """Make it, or wait until another process has. Raises `CannotMake`."""
        ...


class CannotMake(Exception):
    """Why a maker could not make a program."""


@dataclass(frozen=True, slots=True)
class Part:
    """A real program that tests use.

    `names` are the names it may have on the machine, the usual one first. `probe` are the arguments that make it
    print its version, `ends_with` the code with which it then ends, and `at_least` is the oldest version that tests work with. One
    `of_benchmarks` alone is made when a benchmark wants it, and not beforehand.
    """

    name: str
    purpose: str
    probe: tuple[str, ...]
    at_least: tuple[int, ...]
    maker: Maker
    names: tuple[str, ...] = ()
    of_benchmarks: bool = False
    ends_with: int = 0

    def candidates(self) -> Iterator[tuple[Path, str]]:
        """Programs of that name on this machine, each with where it was found."""
        assets = os.environ.get("KUBEBUILDER_ASSETS")
        for name in self.names or (self.name,):
            if assets and (found := shutil.which(name, path=assets)):
                yield Path(found), "KUBEBUILDER_ASSETS"
        for name in self.names or (self.name,):
            if found := shutil.which(name):
                yield Path(found), "PATH"


@dataclass(frozen=True, slots=True)
class Found:
    """A program, where it comes from, and its version as it says itself."""

    path: Path
    origin: str
    version: str


def version_of(program: Path, probe: Sequence[str], ends_with: int = 0) -> str:
    """The first version number in what the program prints when probed. Raises CannotMake when it does not run, or ends otherwise."""
    try:
        ran = subprocess.run(
            [program, *probe],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotMake(f"{program} does not start: {error}") from error
    said = ran.stdout + ran.stderr
    if ran.returncode != ends_with:
        last = said.strip().splitlines()[-1:] or [f"exit code {ran.returncode}"]
        raise CannotMake(f"{program} {' '.join(probe)}: {last[0]}")
    match = re.search(r"\d+(?:\.\d+)+", said)
    return match[0] if match else "unknown"


def new_enough(version: str, at_least: Sequence[int]) -> bool:
    """Whether a version is not older; one that the program does not tell is trusted."""
    if version == "unknown":
        return True
    return [int(number) for number in version.split(".")][: len(at_least)] >= list(at_least)
