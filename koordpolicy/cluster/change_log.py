"""Which of many names changed since somebody last looked: as much work as there are changes."""

from itertools import takewhile


class ChangeLog:
    """Names in the order in which they changed last. `number` counts the changes."""

    __slots__ = ("_last", "_since", "number")

    def __init__(self) -> None:
        self.number = 0
        self._last: dict[str, int] = {}
        self._since = 0
        """The number before which changes are not known any more."""

    def note(self, name: str) -> None:
        """A name has changed."""
        self.number += 1
        self._last.pop(name, None)
        self._last[name] = self.number

    def forget(self, name: str) -> None:
        """A name is gone: to whoever looks next, all names have changed."""
        self._last.pop(name, None)
        self.number += 1
        self._since = self.number

    def since(self, number: int) -> list[str] | None:
        """The names that changed after a `number`, the last first; None where all may have."""
        if number == self.number:
            return []
        if number < self._since:
            return None
        return list(takewhile(lambda name: self._last[name] > number, reversed(self._last)))
