"""A diagnostic and the places it speaks of, as plain values."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is. Only an `error` keeps a revision from becoming active."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a text file. Line and column count from 1, columns in code points."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of one file, `end` exclusive. `file` is the path as the user named it."""

    file: str
    start: Position
    end: Position

    def holds(self, other: "Span") -> bool:
        """Whether another stretch lies within this one."""
        return self.file == other.file and self.start <= other.start and other.end <= self.end

    @classmethod
    def at(cls, file: str, line: int = 1, column: int = 1, length: int = 1) -> "Span":
        """The span of `length` code points on one line."""
        return cls(file, Position(line, column), Position(line, column + length))


@dataclass(frozen=True, slots=True)
class Note:
    """Another place involved, with a phrase that says how."""

    message: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that would mend the finding and can be applied by a machine.

    A `safe` one says what was plainly meant, and may be applied unseen; any other is a guess that somebody confirms.
    """

    description: str
    span: Span
    replacement: str
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    `message` is one phrase, lower case, without final stop, with the user's text in backticks;
    it must be enough where only one line can be shown. Advice belongs in `help`.
    """

    code: str
    message: str
    span: Span
    severity: Severity = Severity.ERROR
    notes: tuple[Note, ...] = ()
    help: str | None = None
    fix: Fix | None = None

    @property
    def order(self) -> tuple[Span, str, str]:
        """The key of the one stable order in which findings are shown."""
        return (self.span, self.code, self.message)


@dataclass(slots=True)
class Diagnostics:
    """A collector that passes hand on. Equal findings are kept once."""

    _found: dict[Diagnostic, None] = field(default_factory=dict)

    def add(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        help: str | None = None,
        notes: tuple[Note, ...] = (),
        severity: Severity = Severity.ERROR,
        fix: Fix | None = None,
    ) -> Diagnostic:
        """Record a finding and return it."""
        found = Diagnostic(code, message, span, severity, notes, help, fix)
        self._found.setdefault(found)
        return found

    def append(self, diagnostic: Diagnostic) -> None:
        """Record a finding as it is."""
        self._found.setdefault(diagnostic)

    def discard(self, diagnostic: Diagnostic) -> None:
        """Take back a finding that follows from another one."""
        self._found.pop(diagnostic, None)

    def extend(self, others: "Diagnostics") -> None:
        """Take over all findings of another collector."""
        for diagnostic in others:
            self._found.setdefault(diagnostic)

    @property
    def has_errors(self) -> bool:
        return any(found.severity is Severity.ERROR for found in self._found)

    def __iter__(self) -> Iterator[Diagnostic]:
        """The findings by file and position."""
        return iter(sorted(self._found, key=lambda found: found.order))

    def __len__(self) -> int:
        return len(self._found)
