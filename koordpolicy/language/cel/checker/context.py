"""What the parts of the checker share: the environment, the scope, and how to report."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Protocol

from koordpolicy.diagnostics.value import Severity
from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.types import DYN, ERROR, Type
from koordpolicy.language.cel.unify import Unifier
from koordpolicy.language.cel.unparse import unparse

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding in an expression; `start:end` are code-point offsets into it.

    After a warning the typed form is whole; after an error a part of it is missing. `replacement` is
    a text that would mend it in the place of `start:end`, where there is just one.
    """

    code: str
    message: str
    start: int
    end: int
    help: str | None = None
    severity: Severity = Severity.ERROR
    replacement: str | None = None


class Stretch(Protocol):
    """Anything with a place in the source."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


Watch = Callable[[ast.Expr, object, Mapping[str, ir.Var]], None]
"""Takes a syntax node, the typed node (or the group of facts, or space of names) that it stands for, and the local names."""


@dataclass(slots=True)
class Context:
    """One check in progress.

    `visit` checks a subexpression. `scope` maps the local names that can be seen to their variables.
    """

    environment: Environment
    problems: list[Problem]
    source: str
    visit: Callable[[ast.Expr], ir.Node]
    unifier: Unifier = field(default_factory=Unifier)
    scope: dict[str, ir.Var] = field(default_factory=dict)
    mixed_literals: int = 0
    """How many `dyn()` stand around: their literals may mix types."""
    watch: "Watch | None" = None
    """Told what each name and subexpression turned out to be."""
    expanded: int = 0
    """Nodes that calls of Library functions have put in place of one."""

    def type(self, node: ir.Node) -> Type:
        """What is known of a node's type: nothing when the expression is read unchecked."""
        if self.environment.unchecked:
            return DYN
        return self.unifier.resolved(node.type) if self.unifier.used else node.type

    def fail(
        self,
        code: str,
        message: str,
        start: int,
        end: int,
        help: str | None = None,
        replacement: str | None = None,
    ) -> ir.Node:
        """Report, and give the node that stands in and silences everything above."""
        self.problems.append(Problem(code, message, start, end, help, replacement=replacement))
        return ir.Const(ERROR, key="error", start=start, end=end)

    def warn(self, code: str, message: str, start: int, end: int, help: str | None = None) -> None:
        """Report what is valid but hardly meant."""
        self.problems.append(Problem(code, message, start, end, help, Severity.WARNING))

    def text(self, place: "Stretch") -> str:
        """The user's own words for a node, shortened for a message."""
        words = " ".join(self.source[place.start : place.end].split()) or "..."
        return words if len(words) <= _SHOWN else words[: _SHOWN - 3] + "..."

    def local_name(self, node: ast.Expr, name: str) -> str:
        """The name under which a variable that `node` binds appears in the typed form.

        It depends on the text of the node and on the variables it sees, so equal comprehensions are
        equal nodes, and a comprehension never meets its own name within itself.
        """
        seen = [f"{used}={self.scope[used].name}" for used in sorted(names_in(node)) if used in self.scope]
        digest = blake2s("\0".join((unparse(node), *seen)).encode(), digest_size=6).hexdigest()
        return f"{name}_{digest}"

    @contextmanager
    def bound(self, variables: Mapping[str, ir.Var]) -> Iterator[None]:
        """Within, the names stand for these local variables."""
        before = self.scope
        self.scope = {**before, **variables}
        try:
            yield
        finally:
            self.scope = before


def names_in(node: ast.Expr) -> set[str]:
    """All simple names in an expression, and the slots of blocks it reads."""
    found: set[str] = set()
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.Ident) and not current.absolute:
            found.add(current.name)
        elif isinstance(current, ast.CallExpr) and (slot := block_slot(current)) is not None:
            found.add(slot)
        pending.extend(ast.children(current))
    return found


def block_slot(node: ast.Expr) -> str | None:
    """The name behind `cel.index(n)` and `cel.iterVar(depth, n)`, which optimisers write for variables."""
    match node:
        case ast.CallExpr(function="index" | "iterVar", target=ast.Ident(name="cel"), args=args) if args:
            parts = [arg.value for arg in args if isinstance(arg, ast.Literal)]
            if len(parts) == len(args) == (1 if node.function == "index" else 2):
                return f"@{node.function}" + "".join(f"_{part}" for part in parts)
    return None
