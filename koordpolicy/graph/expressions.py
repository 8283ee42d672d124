"""From the text of an expression in a document to its typed form, findings placed in the file."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from koordpolicy.diagnostics import Diagnostics, Fix, Severity
from koordpolicy.graph.cache import Cache
from koordpolicy.graph.comments import CODE as LOST_LINES
from koordpolicy.graph.comments import lost_lines
from koordpolicy.graph.references import walk
from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.checker import Problem, check, check_as
from koordpolicy.language.cel.environment import Environment, UserFunction
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.lookalikes import disguised
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.recovery import Parsed, parse_all
from koordpolicy.language.cel.syntax import SyntaxProblem
from koordpolicy.language.cel.types import ERROR, Type
from koordpolicy.language.documents import Document
from koordpolicy.language.documents.edits import replaced
from koordpolicy.language.kinds import LiteralProblem

Path = tuple[str | int, ...]

Probe = Callable[[ir.Node, str, Document, Path], ir.Node]
"""Puts something around parts of an expression that was checked, by its text and its place, before it is folded."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """An environment with a digest of everything that was added to it, to remember results by, in other processes too."""

    environment: Environment
    key: str = ""

    def extended(
        self,
        roots: Mapping[str, Type] | None = None,
        functions: Mapping[str, UserFunction] | None = None,
        **spaces: Mapping[str, Type],
    ) -> "Vocabulary":
        """More names: roots, library functions, and the spaces `variables`, `parameters`, ..."""
        named = {space: tuple(sorted(names.items(), key=_name)) for space, names in spaces.items()}
        added = (
            tuple(sorted((roots or {}).items(), key=_name)),
            tuple(sorted((functions or {}).items(), key=_name)),
            tuple(sorted(named.items())),
        )
        environment = self.environment.extended(roots, spaces, functions)
        key = hashlib.sha256(f"{self.key}{added!r}".encode("utf-8", "surrogatepass")).hexdigest()
        return replace(self, environment=environment, key=key)


def _name(entry: tuple[str, object]) -> str:
    return entry[0]


class Texts:
    """Parses and checks texts, each (text, vocabulary) once as long as the cache lives.

    What is wrong is added to `found`.
    """

    def __init__(self, cache: Cache, found: Diagnostics, probe: Probe | None = None) -> None:
        self._cache = cache
        self._probe = probe
        self.found = found

    def parse(self, text: str, document: Document, path: Path) -> ast.Expr | None:
        """The syntax tree, with what can be read of it where KP201, KP210 or KP220 is reported; None after KP211."""
        return self._parsed(self._meant(text, document, path), document, path).tree

    def _meant(self, text: str, document: Document, path: Path) -> str:
        """The text, without comments that take in lines below them."""
        lost = lost_lines(text, document.positions.text(path) if "//" in text else None)
        if lost is None:
            return text
        place = document.positions.text_span(path, lost.start, lost.end)
        self.found.add(
            LOST_LINES, place, "the comment takes in the lines below it", help=lost.help, fix=lost.fix
        )
        return lost.meant

    def _parsed(self, text: str, document: Document, path: Path) -> Parsed:
        parsed = self._cache.get(("parse", text), lambda: parse_all(text))
        for problem in parsed.problems:
            place = document.positions.text_span(path, problem.start, problem.end)
            fix = _fix(problem, document, path, safe=True)
            self.found.add(problem.code, place, problem.message, help=problem.help, fix=fix)
        for problem in () if parsed.problems else disguised(text):
            place = document.positions.text_span(path, problem.start, problem.end)
            fix = _fix(problem, document, path, safe=False)
            self.found.add(
                problem.code, place, problem.message, help=problem.help, severity=Severity.WARNING, fix=fix
            )
        return parsed

    def check(
        self, text: str, names: Vocabulary, document: Document, path: Path, wanted: Type | None = None
    ) -> ir.Node | None:
        """The folded typed form; None after findings. `path` leads to the string scalar.

        With `wanted` the expression must give that type (KP208).
        """
        meant = self._meant(text, document, path)
        whole, text = meant == text, meant
        parsed = self._parsed(text, document, path)
        tree = parsed.tree
        if tree is None:
            return None
        probe = self._probe
        key = ("check", text, names.key, wanted, probe is None)
        node, problems = self._cache.get(
            key, lambda: _checked(tree, names.environment, wanted, text, folded=probe is None)
        )
        for problem in problems:
            place = document.positions.text_span(path, problem.start, problem.end)
            self.found.add(
                problem.code,
                place,
                problem.message,
                help=problem.help,
                severity=problem.severity,
                fix=_fix(problem, document, path, safe=False),
            )
        if parsed.problems or not whole or _wrong(problems):
            return None
        return node if probe is None else fold(probe(node, text, document, path))


def _fix(problem: Problem | SyntaxProblem, document: Document, path: Path, *, safe: bool) -> Fix | None:
    """The replacement that a problem in the text at `path` has, as an edit of the file, where it has one."""
    if problem.replacement is None:
        return None
    return fix_within(document, path, problem.start, problem.end, problem.replacement, safe=safe)


def fix_within(
    document: Document, path: Path, start: int, end: int, replacement: str, *, safe: bool
) -> Fix | None:
    """The edit of the file that replaces a stretch of the text at `path`; None where it cannot be written there."""
    text = document.positions.text(path)
    edit = None if text is None else replaced(text, start, end, replacement)
    said = (
        f"write `{replacement}`" if replacement.strip() else "write a space" if replacement else "remove it"
    )
    return None if edit is None else Fix(said, *edit, safe=safe)


def literal_fix(problem: LiteralProblem, document: Document, path: Path) -> Fix | None:
    """What to write in place of the literal at `path`, where that can be said."""
    if problem.replacement is None:
        return None
    place = document.positions.value((*path, *problem.path))
    return Fix(f"write `{problem.replacement}`", place, problem.replacement, problem.safe)


def typed(text: str, environment: Environment) -> tuple[ir.Node | None, tuple[Problem, ...]]:
    """The folded typed form of a text that stands in no document, and what is wrong; None with an error in it."""
    try:
        tree = parse(text)
    except SyntaxProblem:
        return None, ()
    node, problems = _checked(tree, environment, None, text, folded=True)
    return (None if _wrong(problems) else node), problems


def _checked(
    tree: ast.Expr, environment: Environment, wanted: Type | None, text: str, *, folded: bool
) -> tuple[ir.Node, tuple[Problem, ...]]:
    problems: list[Problem] = []
    if wanted is None:
        node = check(tree, environment, problems, text)
    else:
        node = check_as(tree, wanted, environment, problems, text)
    whole = folded and node.type != ERROR and not _wrong(problems)
    problems += _decided(tree, text)
    return (fold(node) if whole else node), tuple(problems)


def _decided(tree: ast.Expr, text: str) -> Iterator[Problem]:
    """KP214 for literals where `?` asks for a condition."""
    for node in walk(tree) if "?" in text else ():
        if (
            isinstance(node, ast.CallExpr)
            and node.function == "_?_:_"
            and isinstance(node.args[0], ast.Literal)
        ):
            test = node.args[0]
            yield Problem(
                "KP214",
                f"`{text[test.start : test.end]}` decides here once and for all",
                test.start,
                test.end,
                "remove it with the arm that is never taken",
                Severity.WARNING,
            )


def _wrong(problems: Sequence[Problem]) -> bool:
    """Whether there is an error among the problems: a warning leaves the expression usable."""
    return any(problem.severity is Severity.ERROR for problem in problems)
