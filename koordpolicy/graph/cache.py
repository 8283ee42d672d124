"""What a compiler remembers from one revision to the next, so that only changes cost time."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Cache:
    """Results by content. Entries that a compilation did not use are dropped after it.

    Holds plain values only, under keys that mean the same in every process: sharing them between graphs, and between
    processes, is safe.
    """

    _kept: dict[Hashable, object] = field(default_factory=dict)
    _used: dict[Hashable, object] = field(default_factory=dict)
    _made: dict[Hashable, object] = field(default_factory=dict)
    _handed_on: set[Hashable] = field(default_factory=set)
    """What was learned and counts as made where it is used."""
    _same_kept: dict[Hashable, tuple[tuple[object, ...], object]] = field(default_factory=dict)
    _same_used: dict[Hashable, tuple[tuple[object, ...], object]] = field(default_factory=dict)
    """Of `same`, with the objects that results were made of: as long as they are held, no other ones have their identities."""
    checking: bool = False
    """Whether what is made now serves to check, which another compiler of the same revision need not do."""

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result under `key`, made when neither this nor the last compilation has it."""
        if key in self._used:
            return self._used[key]  # type: ignore[return-value]  # a key names one type of result
        if key in self._kept:
            value = self._kept[key]
            new = key in self._handed_on
        else:
            value = make()
            new = True
        if new and not self.checking:
            self._made[key] = value
        self._used[key] = value
        return value  # type: ignore[return-value]  # as above

    def same(self, what: Hashable, parts: tuple[object, ...], make: Callable[[], T]) -> T:
        """The result of these very objects: for what is large, is itself made from revision to revision of objects that are
        remembered, and would take as long to compare as to make. It stays in this process.
        """
        key = (what, *map(id, parts))
        found = self._same_used.get(key)
        if found is None:
            found = self._same_used[key] = self._same_kept.get(key) or (parts, make())
        return found[1]  # type: ignore[return-value]  # as above

    def turn(self) -> Mapping[Hashable, object]:
        """End a compilation: keep what it used, forget the rest. Gives what it made, checks aside."""
        self._kept, self._used = self._used, {}
        self._same_kept, self._same_used = self._same_used, {}
        self._handed_on.clear()
        made, self._made = self._made, {}
        return made

    def kept(self) -> Mapping[Hashable, object]:
        """All that the last compilation used, whoever made it."""
        return self._kept

    def learn(self, made: Mapping[Hashable, object], *, hand_on: bool = False) -> None:
        """Take what another compiler has made, for the next compilation; with `hand_on` it counts as made by that one."""
        self._kept.update(made)
        if hand_on:
            self._handed_on.update(made)
