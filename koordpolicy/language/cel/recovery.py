"""Reading an expression to its end past what is wrong in it, so that one slip does not hide the next.

Where an operand cannot be read, all up to the next `&&`, `||`, `?`, `:`, `,` or closing bracket is given up, and a `Broken`
node stands in for it. What is reported first is what `parser.parse` would say.
"""

from dataclasses import dataclass

from koordpolicy.language.cel import ast
from koordpolicy.language.cel.lexer import NOT_CLOSED, Token, scan
from koordpolicy.language.cel.parser import FUNCTIONS, LEVELS, Parser, limit_depth, parse
from koordpolicy.language.cel.syntax import MAX_NODES, SyntaxProblem

MAX_PROBLEMS = 20
"""How many problems of one expression are told: what has more is no expression."""

_CLOSING = frozenset((")", "]", "}"))
_OPENING = frozenset(("(", "[", "{"))
_FOLLOW = frozenset(("?", ":", ",", "end")) | _CLOSING
_STOP = _FOLLOW | {"&&", "||"}
_TOO_LARGE = "KP211"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A tree, with `Broken` nodes where there are problems; without one where no sense can be made of the text."""

    tree: ast.Expr | None
    problems: tuple[SyntaxProblem, ...] = ()


def parse_all(source: str) -> Parsed:
    """The tree and all problems of an expression, by place; none where `parse` takes it."""
    try:
        return Parsed(parse(source))
    except SyntaxProblem as first:
        if first.code == _TOO_LARGE:
            return Parsed(None, (first,))
        return _recovered(source, first)


def _recovered(source: str, first: SyntaxProblem) -> Parsed:
    problems: list[SyntaxProblem] = []
    tree: ast.Expr | None = None
    try:
        stream = scan(source, problems)
        if len(stream) <= MAX_NODES:
            parser = _Recovering(source, stream, problems)
            tree = parser.whole()
            limit_depth(tree)
    except SyntaxProblem:  # too large, too many, or not to be read at all
        tree = None
    by_start = {first.start: first}
    for one in problems:
        if not _same_cause(one, first):
            by_start.setdefault(one.start, one)
    found = [by_start[start] for start in sorted(by_start)]
    return Parsed(tree, tuple(_without_quotes_of_others(source, found))[:MAX_PROBLEMS])


def _without_quotes_of_others(source: str, found: list[SyntaxProblem]) -> list[SyntaxProblem]:
    """The problems; where a quote is missing, those of the quotes behind it follow from it."""
    for at, one in enumerate(found[:-1]):
        before = source[: one.start].rstrip()
        if (
            before.endswith(("'", '"'))
            and one.code == "KP201"
            and any(NOT_CLOSED in other.message for other in found[at + 1 :])
        ):
            help = f"a {before[-1]} is missing before it"
            return [*found[:at], SyntaxProblem(one.message, one.start, one.end, help, one.code)]
    return found


def _same_cause(one: SyntaxProblem, first: SyntaxProblem) -> bool:
    return one.start == first.start or (one.start < first.end and first.start < one.end)


class _Recovering(Parser):
    """A parser that notes problems and goes on."""

    __slots__ = ("_lost", "_noted", "_problems")

    def __init__(self, source: str, stream: list[Token], problems: list[SyntaxProblem]) -> None:
        super().__init__(source, stream, macros=True)
        self._problems = problems
        self._noted: int | None = None
        self._lost = False
        """Whether the rest of the text was given up: what is missing at its end is then no further mistake."""

    def whole(self) -> ast.Expr:
        """All of the text as one tree."""
        parts = [self.expression()]
        while self.token.kind != "end":
            if not self._problems:
                self.note(self.unexpected("an operator or the end of the expression"))
            stray = self.token.kind
            while self.token.kind == stray or self.token.kind in LEVELS:
                self.advance()
            if self.token.kind != "end":
                parts.append(self.expression())
        return parts[0] if len(parts) == 1 else ast.Broken(0, len(self._source), tuple(parts))

    def note(self, problem: SyntaxProblem) -> None:
        """Remember a problem; raises it where it is not worth going on."""
        if problem.code == _TOO_LARGE or len(self._problems) >= MAX_PROBLEMS:
            raise problem
        at, self._noted = self._noted, self._position
        if self._lost or (at is not None and self._position - at <= 1):
            return  # nothing was read since: the same mistake
        if self.token.kind == "end":
            self._lost = True
        if self.token.kind != "bad":
            self._problems.append(problem)

    def give_up(self, start: int, first: int, parts: tuple[ast.Expr, ...] = ()) -> ast.Broken:
        """Skip to where something else begins; `first` is the token that what is given up began with."""
        depth = 0
        while self.token.kind != "end":
            kind = self.token.kind
            if kind in _OPENING:
                depth += 1
            elif depth and kind in _CLOSING:
                depth -= 1
            elif not depth and kind in _STOP:
                break
            self.advance()
        self._lost = self._lost or self.token.kind == "end"
        skipped = self._stream[first : self._position]
        end = skipped[-1].end if skipped else start
        return ast.Broken(start, max(start, end), parts, tuple(_chains(skipped)))

    def expression(self) -> ast.Expr:
        depth, first, start = self._depth, self._position, self.token.start
        try:
            return super().expression()
        except SyntaxProblem as problem:
            self._depth = depth
            self.note(problem)
            return self.give_up(start, first)

    def binary(self, lowest: int) -> ast.Expr:
        self._descend(1)
        left = self.settled(self.operand())
        while (level := LEVELS.get(self.token.kind, 0)) >= lowest:
            operator = self.advance()
            args = [left, self.binary(level + 1)]
            while level <= 2 and self.token.kind == operator.kind:
                self.advance()
                args.append(self.binary(level + 1))
            left = ast.CallExpr(
                left.start, args[-1].end, FUNCTIONS[operator.kind], tuple(args), None, operator.start
            )
        self._depth -= 1
        return left

    def settled(self, left: ast.Expr) -> ast.Expr:
        """An operand whose next token goes on from it, or ends what it stands in."""
        kind = self.token.kind
        if kind in LEVELS or kind in _FOLLOW:
            return left
        problem = self.unexpected("an operator")
        self.note(problem)
        if problem.replacement in LEVELS:
            self.token = self.token._replace(kind=problem.replacement)
            return left
        return self.give_up(left.start, self._position, (left,))

    def operand(self) -> ast.Expr:
        depth, first, start = self._depth, self._position, self.token.start
        try:
            return super().operand()
        except SyntaxProblem as problem:
            self._depth = depth
            self.note(problem)
            return self.give_up(start, first)

    def selection(self, operand: ast.Expr) -> ast.Expr:
        first = self._position
        try:
            return super().selection(operand)
        except SyntaxProblem as problem:
            self.note(problem)
            return self.give_up(operand.start, first, (operand,))

    def expect(self, kind: str, wanted: str) -> Token:
        if kind in (self.token.kind, "name"):
            return super().expect(kind, wanted)
        self.note(self.unexpected(wanted))
        at = self._stream[self._position - 1].end if self._position else 0
        if self.token.kind in _CLOSING and kind in _CLOSING:
            self.advance()  # most likely the wrong bracket
        return Token(kind, None, at, at)


def _chains(tokens: list[Token]) -> list[ast.Expr]:
    """Names and fields of names among tokens that make no sense together."""
    found: list[ast.Expr] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.kind != "name":
            continue
        node: ast.Expr = ast.Ident(token.start, token.end, str(token.value))
        while at + 1 < len(tokens) and tokens[at].kind == "." and tokens[at + 1].kind == "name":
            field = tokens[at + 1]
            node = ast.SelectExpr(token.start, field.end, node, str(field.value), field.start)
            at += 2
        found.append(node)
    return found
