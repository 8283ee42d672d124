"""What an expression mentions by name, as its author wrote it: facts, variables, parameters."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from koordpolicy.graph.references import walk
from koordpolicy.language.cel import ast
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import SyntaxProblem
from koordpolicy.language.facts import FACTS, ROOTS, Fact

_SPACES = ("variables", "parameters")


@dataclass(slots=True)
class Mentions:
    """Names in order of first mention. Facts of list elements are not told from the list itself."""

    facts: dict[str, None] = field(default_factory=dict)
    variables: dict[str, None] = field(default_factory=dict)
    parameters: dict[str, None] = field(default_factory=dict)


def mentions(text: str) -> Mentions | None:
    """What a text mentions; None when it is no expression."""
    try:
        tree = parse(text)
    except SyntaxProblem:
        return None
    found = Mentions()
    for name in _chains(tree):
        first, _, rest = name.partition(".")
        if first in _SPACES and rest:
            getattr(found, first).setdefault(rest.partition(".")[0])
        elif first in ROOTS:
            fact = _fact(first, rest)
            if fact:
                found.facts.setdefault(fact)
    return found


def _chains(tree: ast.Expr) -> Iterator[str]:
    """Every chain of names, the longest first; shorter ones within it are told as well."""
    inner: set[int] = set()
    for node in walk(tree):
        if id(node) in inner:
            continue
        name = _name(node)
        if name:
            yield name
            below = node
            while isinstance(below, ast.SelectExpr):
                below = below.operand
                inner.add(id(below))


def _name(node: ast.Expr) -> str:
    """`a.b.c` for a chain of names, `?` between them allowed; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.SelectExpr):
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, ast.Ident):
        return ""
    return ".".join([node.name, *reversed(parts)])


def _fact(root: str, path: str) -> str:
    """The longest beginning of a chain that is a declared fact; the root for one that is a fact itself."""
    record = ROOTS[root].type.record
    if record is None:
        return root
    steps = path.split(".") if path else []
    for length in range(len(steps), 0, -1):
        shorter = ".".join(steps[:length])
        if isinstance(FACTS.resolve(record, shorter), Fact):
            return f"{root}.{shorter}"
    return "" if steps else root
