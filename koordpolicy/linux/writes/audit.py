"""What was written to the kernel lately, newest first, in bounded memory."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from koordpolicy.linux.writes.write import FileOutcome, FileWrite


@dataclass(frozen=True, slots=True)
class WriteAudit:
    """One write that was made, or that the kernel or the table refused.

    `sequence` counts from 1 without gaps; `at` is the door's clock in nanoseconds; `before` and `after` what the
    file said and was told, None and "" where that is not known.
    """

    sequence: int
    at: int
    path: str
    before: str | None
    after: str
    write: FileWrite
    outcome: FileOutcome
    problem: str = ""
    took: int = 0
    """Nanoseconds that the kernel took for it; 0 where it was not asked."""


class WriteLog:
    """The last `most` writes. `listener` hears of each one, to keep it elsewhere."""

    def __init__(self, most: int, listener: Callable[[WriteAudit], None] | None = None) -> None:
        self._kept: deque[WriteAudit] = deque(maxlen=most)
        self._listener = listener
        self.counted = 0

    def add(
        self,
        at: int,
        path: str,
        before: str | None,
        after: str,
        result: tuple[FileWrite, FileOutcome, str],
        took: int = 0,
    ) -> None:
        """Keep one write; the oldest is dropped where there are too many."""
        write, outcome, problem = result
        self.counted += 1
        audit = WriteAudit(self.counted, at, path, before, after, write, outcome, problem, took)
        self._kept.append(audit)
        if self._listener is not None:
            self._listener(audit)

    def newest(self, limit: int, before: int | None = None) -> tuple[WriteAudit, ...]:
        """At most `limit` writes, newest first; with `before`, those of lower sequence only."""
        return tuple(islice(self._older(before), max(0, limit)))

    def _older(self, before: int | None) -> Iterator[WriteAudit]:
        return (one for one in reversed(self._kept) if before is None or one.sequence < before)
