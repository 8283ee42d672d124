"""What a compiler remembers from one revision to the next, so that only changes cost time."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Cache:
    """Results by content. Entries that a compilation did not use are dropped after it.

    Holds plain values only, so sharing them between graphs is safe.
    """

    _kept: dict[Hashable, object] = field(default_factory=dict)
    _used: dict[Hashable, object] = field(default_factory=dict)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result under `key`, made when neither this nor the last compilation has it."""
        if key in self._used:
            return self._used[key]  # type: ignore[return-value]  # a key names one type of result
        value = self._kept[key] if key in self._kept else make()
        self._used[key] = value
        return value  # type: ignore[return-value]  # as above

    def turn(self) -> None:
        """End a compilation: keep what it used, forget the rest."""
        self._kept, self._used = self._used, {}
