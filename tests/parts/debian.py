"""Programs of Debian's packages, fetched by apt-get and unpacked into the cache. Nothing is installed.

Installing would need root, and some packages start a service as they are installed. Fetching needs neither: where
the machine's package lists are missing or out of date, apt-get gets its own below the cache.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.parts import cache
from tests.parts.cache import Tell
from tests.parts.finding import CannotMake

LAYOUT = 1
"""Changes when the way of unpacking does."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A program that works only where it is installed, by the owner of the machine."""

    package: str

    def says(self) -> str:
        return f"installed by hand (Debian: {self.package})"

    def made(self, program: str) -> Path | None:
        return None

    def make(self, program: str, tell: Tell) -> Path:
        raise CannotMake(f"not installed, or too old (Debian: apt-get install {self.package})")


@dataclass(frozen=True, slots=True)
class DebianPackages:
    """Packages that together hold a program: the one named first, and the libraries a bare machine may lack."""

    packages: tuple[str, ...]
    program: str

    def says(self) -> str:
        return f"Debian's {self.packages[0]}"

    def made(self, program: str) -> Path | None:
        there = self._place() / program
        return there if there.exists() else None

    def make(self, program: str, tell: Tell) -> Path:
        missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
        if missing:
            raise CannotMake(f"not installed, and there is no {missing[0]} to fetch it with")
        place = self._place()
        with cache.lock(cache.directory() / "apt.lock", lambda: tell(f"{program}: waiting for apt-get")):
            if not (place / program).exists():
                tell(f"{program}: fetching Debian's {', '.join(self.packages)}")
                unfinished = place.with_name(place.name + ".unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.mkdir()
                self._unpack(unfinished, tell)
                _write_start(unfinished, program, self.program)
                shutil.rmtree(place, ignore_errors=True)
                unfinished.rename(place)
        return place / program

    def _place(self) -> Path:
        key = cache.content_key(repr(self.packages), self.program, str(LAYOUT))
        return cache.directory() / f"{self.packages[0]}-{key}"

    def _unpack(self, target: Path, tell: Tell) -> None:
        try:
            _apt("download", target, self.packages)
        except CannotMake:
            own = _own_state()
            tell("apt-get: fetching package lists")
            _apt("update", target, (), own)
            _apt("download", target, self.packages, own)
        for archive in sorted(target.glob("*.deb")):
            _run(["dpkg-deb", "--extract", str(archive), str(target / "root")], target)
            archive.unlink()


def _own_state() -> list[str]:
    """Options with which apt-get keeps lists and archives below the cache, so that it needs no rights."""
    state = cache.directory() / "apt"
    for name in ("lists/partial", "archives/partial"):
        (state / name).mkdir(parents=True, exist_ok=True)
    return [
        f"--option=Dir::State::lists={state / 'lists'}",
        f"--option=Dir::Cache={state}",
        "--option=APT::Sandbox::User=",
        "--option=Debug::NoLocking=1",
    ]


def _apt(action: str, folder: Path, packages: Sequence[str], options: Sequence[str] = ()) -> None:
    _run(["apt-get", "--quiet", *options, action, *packages], folder)


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        ran = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
            check=False, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotMake(f"{command[0]}: {error}") from error
    if ran.returncode != 0:
        lines = (ran.stdout + ran.stderr).strip().splitlines()
        raise CannotMake(f"{command[0]} failed: {' | '.join(lines[-2:])[:400]}")


def _write_start(place: Path, name: str, program: str) -> None:
    """A script that starts the program with the unpacked libraries behind the machine's own."""
    start = place / name
    start.write_text(
        "#!/bin/sh\n"
        'root=$(dirname "$(readlink -f "$0")")/root\n'
        'LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(echo "$root"/usr/lib/*-linux-gnu*:"$root"/lib/*-linux-gnu*)"\n'
        "export LD_LIBRARY_PATH\n"
        f'exec "$root/{program}" "$@"\n',
        "utf-8",
    )
    start.chmod(0o755)
