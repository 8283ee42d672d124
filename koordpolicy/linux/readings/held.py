"""Files that are read in every round, held open between rounds: to look for a path costs more than to read it."""

import resource
from typing import Final

from koordpolicy.linux.cgroups.hierarchy import Hierarchy, LocatedFile
from koordpolicy.linux.errors import NoSuchFile
from koordpolicy.linux.readings.value import cpus_of, number_of
from koordpolicy.linux.root import HeldFile, KernelRoot

_SHARE: Final = 2
"""Of so many files that the process may have open at once, one is held here."""
_MOST: Final = 16_384
_IDLE_ROUNDS: Final = 3
"""Rounds without a reading after which a file is closed."""


def most_held_files() -> int:
    """How many files may be held, by the process' own limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(soft // _SHARE, _MOST) if soft > 0 else _MOST


class _Held:
    __slots__ = ("file", "place", "round")

    def __init__(self, place: LocatedFile, file: HeldFile, round_: int) -> None:
        self.place = place
        self.file = file
        self.round = round_


class HeldFiles:
    """Files of the table by name and target, and others by path. Safe for one thread at a time.

    Of more than `most` files those that come late are opened at each reading. `next_round` closes what nobody reads
    any more.
    """

    def __init__(self, root: KernelRoot, hierarchy: Hierarchy, most: int) -> None:
        self._root = root
        self._hierarchy = hierarchy
        self._most = most
        self._held: dict[tuple[str, str], _Held] = {}
        self._plain: dict[str, HeldFile] = {}
        self._round = 0

    def __len__(self) -> int:
        return len(self._held) + len(self._plain)

    def located(self, name: str, target: str = "") -> tuple[LocatedFile, bytes]:
        """Where a file of the table is for a target, and what it says. Raises `NoSuchFile` where there is none."""
        key = (name, target)
        held = self._held.get(key)
        if held is not None:
            held.round = self._round
            try:
                return held.place, held.file.read()
            except NoSuchFile:  # its group has ended; another may have its name by now
                del self._held[key]
                held.file.close()
        missing = None  # as in `value.read_located`
        for place in self._hierarchy.located(name, target):
            try:
                file = self._root.hold(place.path)
            except NoSuchFile as error:
                missing = missing or (error.path, error.problem, error.number)
                continue
            said, kept = self._first(file)
            if kept:
                self._held[key] = _Held(place, file, self._round)
            return place, said
        raise NoSuchFile(*missing or (name, "no mounted version of cgroups has this file", 0))

    def number(self, name: str, target: str = "") -> int:
        """The number that a file of the table holds, in the table's unit. Raises `KernelFileError`."""
        place, content = self.located(name, target)
        return number_of(place, content.decode(errors="replace"))

    def cpus(self, name: str, target: str = "") -> frozenset[int]:
        """The CPUs that a file of the table holds. Raises `KernelFileError`."""
        place, content = self.located(name, target)
        return cpus_of(place, content.decode(errors="replace"))

    def plain(self, path: str) -> bytes:
        """What a file says that is always there, such as /proc/stat. Raises `KernelFileError`."""
        file = self._plain.get(path)
        if file is not None:
            return file.read()
        file = self._root.hold(path)
        said, kept = self._first(file)
        if kept:
            self._plain[path] = file
        return said

    def next_round(self) -> None:
        """Close what was not read for some rounds."""
        self._round += 1
        for key in [key for key, one in self._held.items() if one.round < self._round - _IDLE_ROUNDS]:
            self._held.pop(key).file.close()

    def close(self) -> None:
        """Close all."""
        while self._held:
            self._held.popitem()[1].file.close()
        while self._plain:
            self._plain.popitem()[1].close()

    def _first(self, file: HeldFile) -> tuple[bytes, bool]:
        """What a file says that was opened just now, and whether there is room to hold it; closed otherwise."""
        kept = False
        try:
            said = file.read()
            kept = len(self) < self._most
        finally:
            if not kept:
                file.close()
        return said, kept
