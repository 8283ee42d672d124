"""Python source under construction, with scopes that remember what has been computed where."""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

OUT = "\0"
"""Stands in a line for the array that its operation writes to."""

SPACE = "#space"
"""Begins a line that says where a space begins: its number and the name of its number of entries."""


@dataclass(frozen=True, slots=True)
class Line:
    """A statement. `makes` is the variable whose array it writes anew, at `OUT`, with the name of the
    array's type and the number of its space; a line without it may give other names to arrays. With
    `apart` the array must not be that of an operand.
    """

    depth: int
    text: str
    makes: str | None = None
    dtype: str = ""
    space: int = 0
    looped: bool = False
    apart: bool = False
    aliases: tuple[str, ...] | None = None


class Writer:
    """Lines of a function body. What is remembered in a block is forgotten at its end.

    All names begin with `mark`, which keeps those of two functions apart. `constants` has what the
    generated module holds besides functions; a writer `beside` another shares them.
    """

    __slots__ = ("_depth", "_loops", "_mark", "_names", "_scopes", "constants", "lines")

    def __init__(self, mark: str = "", beside: "Writer | None" = None) -> None:
        self.lines: list[Line] = []
        self._names = 0
        self._mark = mark
        self._depth = 1
        self._loops = 0
        self._scopes: list[dict[Hashable, object]] = [{}]
        self.constants: dict[str, object] = {} if beside is None else beside.constants

    def line(self, text: str, aliases: Sequence[str | None] | None = None) -> None:
        """Write a statement.

        `aliases` are the names that may stand for one array after it; by default all in an assignment.
        """
        known = None if aliases is None else tuple(name for name in aliases if name is not None)
        self.lines.append(Line(self._depth, text, aliases=known))

    def name(self, prefix: str) -> str:
        """A name that nothing else has."""
        self._names += 1
        return f"{self._mark}{prefix}{self._names}"

    def let(self, prefix: str, text: str) -> str:
        """Give a new name to an expression's value."""
        name = self.name(prefix)
        self.line(f"{name} = {text}")
        return name

    def make(self, name: str, dtype: str, space: int, text: str, apart: bool = False) -> str:
        """Name an array that an operation writes: `text` has `OUT` where it takes one.

        Say `apart` when the operation reads operands after it has begun to write.
        """
        looped = self._loops > 0
        self.lines.append(Line(self._depth, f"{name} = {text}", name, dtype, space, looped, apart))
        return name

    def constant(self, prefix: str, value: object) -> str:
        """A global name of the generated module for a value."""
        name = f"{self._mark}{prefix}{len(self.constants)}"
        self.constants[name] = value
        return name

    @property
    def loops(self) -> int:
        """How many loops stand around what is written now."""
        return self._loops

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A compound statement around what is written inside."""
        self.line(head)
        looped = head.startswith("for ")
        self._depth += 1
        self._loops += looped
        self._scopes.append({})
        begin = len(self.lines)
        try:
            yield
        finally:
            if len(self.lines) == begin:
                self.line("pass")
            self._scopes.pop()
            self._depth -= 1
            self._loops -= looped

    def recall(self, key: Hashable) -> object | None:
        """What was remembered under a key in this block or one around it."""
        for scope in reversed(self._scopes):
            found = scope.get(key)
            if found is not None:
                return found
        return None

    def remember(self, key: Hashable, value: object) -> None:
        """Remember a value until the block ends."""
        self._scopes[-1][key] = value

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Take back what was written inside when an exception leaves it."""
        mark = len(self.lines)
        self._scopes.append({})
        try:
            yield
        except BaseException:
            self._scopes.pop()
            del self.lines[mark:]
            raise
        inner = self._scopes.pop()
        self._scopes[-1].update(inner)
