"""Which packages belong to the image, and the hash of each."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_EXTRAS: Final = ("tracing",)
"""What an operator may switch on, so that the image has it."""


class BuildError(Exception):
    """Why there is no image; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Debian:
    """A package of Debian's, as `debian.lock` pins it."""

    name: str
    version: str
    architecture: str
    sha256: str

    @property
    def file(self) -> str:
        """The name of its file, as apt-get writes it."""
        return f"{self.name}_{self.version.replace(':', '%3a')}_{self.architecture}.deb"


@dataclass(frozen=True, slots=True)
class Pinned:
    """A package of PyPI's, as a `requirements.lock` pins it: one of the hashes is that of the file that is taken."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    wanted_by: frozenset[str]


def debian_lock(file: Path) -> Sequence[Debian]:
    """The packages of a lock, a line each: name, version, architecture, SHA-256. Raises BuildError with the line."""
    found = []
    for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 4 or not re.fullmatch(r"[0-9a-f]{64}", words[3]):
            raise BuildError(
                f"{file}:{number}: expected `name version architecture sha256`; run build --lock"
            )
        found.append(Debian(*words))
    return found


def debian_roots(file: Path) -> tuple[Sequence[str], frozenset[str]]:
    """The packages that are wanted with all that they depend on, and those that are left out."""
    words = [line.partition("#")[0].strip() for line in file.read_text("utf-8").splitlines()]
    left_out = frozenset(word[1:] for word in words if word.startswith("-"))
    return [word for word in words if word and not word.startswith("-")], left_out


def python_lock(lock: Path) -> Mapping[str, Pinned]:
    """The packages of a lock that `uv pip compile --generate-hashes` wrote, with who wants each."""
    found = {}
    for block in re.split(r"\n(?=[A-Za-z0-9])", lock.read_text("utf-8")):
        head = re.match(r"([A-Za-z0-9._-]+)==([^\s;\\]+)\s*(?:;\s*([^\\\n]+?))?\s*\\?\n", block)
        if head is None:
            continue
        wanted = re.findall(r"^\s+#\s+(?:via )?([A-Za-z0-9._-]+)", block, re.MULTILINE)
        found[head[1]] = Pinned(
            name=head[1],
            version=head[2],
            marker=head[3] or "",
            hashes=tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})", block)),
            wanted_by=frozenset(wanted) - {"via"},
        )
    return found


def running_packages(lock: Path, project: Path) -> Sequence[Pinned]:
    """What a running process needs of a lock that also holds what developers need, by name. Raises BuildError."""
    declared = _declared(tomllib.loads(project.read_text("utf-8"))["project"])
    pinned = python_lock(lock)
    needed = {_name(one) for one in declared}
    if absent := sorted(needed - pinned.keys()):
        raise BuildError(f"{lock} does not pin {', '.join(absent)}; run `make lock`")
    waiting = True
    while waiting:
        more = {one.name for one in pinned.values() if one.wanted_by & needed} - needed
        needed |= more
        waiting = bool(more)
    return [pinned[name] for name in sorted(needed) if not _other_system(pinned[name].marker)]


def requirements(packages: Sequence[Pinned]) -> Iterator[str]:
    """Lines for `pip --require-hashes`."""
    for one in packages:
        yield " ".join((f"{one.name}=={one.version}", *(f"--hash=sha256:{digest}" for digest in one.hashes)))


def _declared(project: Mapping[str, Any]) -> Sequence[str]:
    return [
        *project["dependencies"],
        *(one for extra in _EXTRAS for one in project["optional-dependencies"][extra]),
    ]


def _name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def _other_system(marker: str) -> bool:
    """Whether a package is for Windows alone; every other marker in use holds on the image's system."""
    return re.search(r"==\s*'(win32|Windows|emscripten)'", marker) is not None
