"""Changes that are tried and taken back: a log of what undoes each, written only while a trial is under way.

    with log.trial():
        ...                      # whoever changes something notes what takes it back
    # here all is as before, whatever happened

Trials may be nested. Nothing is copied but what is changed; without a trial nothing is noted, nor while one is taken
back.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Undo = Callable[[], object]


class UndoLog:
    """The notes of the trials that are under way. `depth` is how many there are, one within the other."""

    __slots__ = ("_notes", "depth")

    def __init__(self) -> None:
        self.depth = 0
        self._notes: list[Undo] = []

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Take back at the end what is changed meanwhile, the latest first."""
        begin = len(self._notes)
        self.depth += 1
        try:
            yield
        finally:
            notes = self._notes[begin:]
            del self._notes[begin:]
            depth, self.depth = self.depth - 1, 0
            try:
                for undo in reversed(notes):
                    undo()
            finally:
                self.depth = depth

    def note(self, undo: Undo) -> None:
        """Something has been changed, which this takes back. Only within a trial."""
        if self.depth:
            self._notes.append(undo)
