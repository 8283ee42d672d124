"""Python source under construction, with scopes that remember what has been computed where."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class Writer:
    """Lines of a function body. What is remembered in a block is forgotten at its end.

    All names begin with `mark`, which keeps those of two functions apart.
    """

    __slots__ = ("_depth", "_lines", "_mark", "_names", "_scopes", "constants")

    def __init__(self, mark: str = "") -> None:
        self._lines: list[str] = []
        self._names = 0
        self._mark = mark
        self._depth = 1
        self._scopes: list[dict[Hashable, object]] = [{}]
        self.constants: dict[str, object] = {}

    def line(self, text: str) -> None:
        """Write a statement."""
        self._lines.append(" " * self._depth + text)

    def name(self, prefix: str) -> str:
        """A name that nothing else has."""
        self._names += 1
        return f"{self._mark}{prefix}{self._names}"

    def let(self, prefix: str, text: str) -> str:
        """Give a new name to an expression's value."""
        name = self.name(prefix)
        self.line(f"{name} = {text}")
        return name

    def constant(self, prefix: str, value: object) -> str:
        """A global name of the generated module for a value."""
        name = self.name(prefix)
        self.constants[name] = value
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A compound statement around what is written inside."""
        self.line(head)
        self._depth += 1
        self._scopes.append({})
        begin = len(self._lines)
        try:
            yield
        finally:
            if len(self._lines) == begin:
                self.line("pass")
            self._scopes.pop()
            self._depth -= 1

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
        mark = len(self._lines)
        self._scopes.append({})
        try:
            yield
        except BaseException:
            self._scopes.pop()
            del self._lines[mark:]
            raise
        inner = self._scopes.pop()
        self._scopes[-1].update(inner)

    @property
    def text(self) -> str:
        """The statements."""
        return "\n".join(self._lines)
