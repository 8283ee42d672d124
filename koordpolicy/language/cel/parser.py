"""From tokens to the syntax tree: precedence climbing over the grammar of the language definition.

Chains of `&&` and of `||` become one call with many operands, so that no limit on depth meets a
long list of conditions.
"""

from dataclasses import replace

from koordpolicy.language.cel import ast
from koordpolicy.language.cel.ast import qualified_name
from koordpolicy.language.cel.habits import habit
from koordpolicy.language.cel.lexer import Token, tokens
from koordpolicy.language.cel.syntax import INSTEAD, MAX_DEPTH, MAX_NODES, RESERVED, SyntaxProblem
from koordpolicy.language.cel.types import BOOL, BYTES_VALUE, DOUBLE, INT, NULL, STRING, UINT

LEVELS = {
    "||": 1, "&&": 2,
    "<": 3, "<=": 3, ">": 3, ">=": 3, "==": 3, "!=": 3, "in": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip
FUNCTIONS = {operator: f"_{operator}_" for operator in LEVELS} | {"in": "@in"}
_PREFIXES = {"-": "-_", "!": "!_"}

_TOKENS_OF_PERCENTAGE = 2

_PER_LEVEL = 4
_MAX_RECURSION = (_PER_LEVEL + 1) * MAX_DEPTH
"""A budget in Python frames: a level of brackets takes about `_PER_LEVEL` of them and one for each
level of precedence below it, so 100 brackets in a row fit, and 50 that each hold all operators."""


def parse(source: str, macros: bool = True) -> ast.Expr:
    """The syntax tree of an expression. Without `macros`, `has(e.f)` is an ordinary call.

    Raises SyntaxProblem with the one first mistake; limits are part of it (KP211).
    """
    stream = tokens(source)
    if len(stream) > MAX_NODES:
        raise _too_large("the expression has too many parts", 0, len(source))
    parser = Parser(source, stream, macros)
    tree = parser.expression()
    if parser.token.kind != "end":
        raise parser.unexpected("an operator or the end of the expression")
    if len(stream) > MAX_DEPTH:  # every level takes a token, so a short text cannot be too deep
        limit_depth(tree)
    return tree


class Parser:
    """A cursor over the tokens; each method reads one construct."""

    __slots__ = ("_depth", "_macros", "_position", "_source", "_stream", "token")

    def __init__(self, source: str, stream: list[Token], macros: bool) -> None:
        self._source = source
        self._stream = stream
        self._macros = macros
        self._position = 0
        self._depth = 0
        self.token = stream[0]

    def advance(self) -> Token:
        """The current token; the cursor moves past it."""
        passed = self.token
        self._position += 1
        self.token = self._stream[self._position] if passed.kind != "end" else passed
        return passed

    def expect(self, kind: str, wanted: str) -> Token:
        if self.token.kind != kind:
            raise self.unexpected(wanted)
        return self.advance()

    def unexpected(self, wanted: str) -> SyntaxProblem:
        token = self.token
        if token.kind == "end":
            at = self._stream[self._position - 1].end if self._position else 0
            what = (
                "the expression is empty"
                if not self._position
                else f"the expression ends where {wanted} should follow"
            )
            return SyntaxProblem(what, at, at, habit(self._stream, self._position)[1])
        replacement, help = habit(self._stream, self._position)
        return SyntaxProblem(
            f"expected {wanted}, found {self.shown(token)}",
            token.start,
            token.end,
            help,
            replacement=replacement,
        )

    def shown(self, token: Token) -> str:
        if token.kind in ("string", "bytes"):
            return "a text in quotes"
        if token.kind == "quoted":
            return "a name in backticks"
        return f"`{self._source[token.start : token.end]}`"

    def expression(self) -> ast.Expr:
        self._descend(_PER_LEVEL)
        condition = self.binary(1)
        if self.token.kind != "?":
            self._depth -= _PER_LEVEL
            return condition
        question = self.advance()
        then = self.binary(1)
        if self.token.kind == "?":
            raise SyntaxProblem(
                "a conditional between `?` and `:` needs parentheses", then.start, self.token.end,
                "write `a ? (b ? c : d) : e`",
            )  # fmt: skip
        if self.token.kind != ":" and self._source.startswith("?.", question.start):
            raise SyntaxProblem(
                "`?.` is not an operator", question.start, question.end + 1,
                "an optional field is written `a.?b`", replacement=".?",
            )  # fmt: skip
        self.expect(":", "`:` of the conditional")
        otherwise = self.expression()
        self._depth -= _PER_LEVEL
        return ast.CallExpr(
            condition.start, otherwise.end, "_?_:_", (condition, then, otherwise), None, question.start
        )

    def binary(self, lowest: int) -> ast.Expr:
        self._descend(1)
        left = self.operand()
        while (level := LEVELS.get(self.token.kind, 0)) >= lowest:
            operator = self.advance()
            if level <= 2:
                terms = [left, self.binary(level + 1)]
                while self.token.kind == operator.kind:
                    self.advance()
                    terms.append(self.binary(level + 1))
                args = tuple(terms)
            else:
                self._refuse_percentage()
                args = (left, self.binary(level + 1))
            left = ast.CallExpr(
                left.start, args[-1].end, FUNCTIONS[operator.kind], args, None, operator.start
            )
        self._depth -= 1
        return left

    def _refuse_percentage(self) -> None:
        """`x * 65% - y` is a remainder to CEL, whose divisor is less than nothing: nobody who writes it so means that."""
        if self.token.kind == "-" and self._position >= _TOKENS_OF_PERCENTAGE:
            number, sign = self._stream[self._position - _TOKENS_OF_PERCENTAGE : self._position]
            is_glued = number.end == sign.start and sign.end < self.token.start
            if sign.kind == "%" and number.kind in ("int", "double") and is_glued:
                raise self.unexpected("a value")

    def _descend(self, frames: int) -> None:
        self._depth += frames
        if self._depth > _MAX_RECURSION:
            raise _too_large("the expression is nested too deeply", self.token.start, self.token.end)

    def operand(self) -> ast.Expr:
        """Prefix operators, one primary, and what follows it after dots and in brackets."""
        prefixes: list[Token] = []
        while self.token.kind in _PREFIXES:
            if len(prefixes) > MAX_DEPTH:
                raise _too_large("the expression is nested too deeply", self.token.start, self.token.end)
            prefixes.append(self.advance())
        if prefixes and prefixes[-1].kind == "-" and self.token.kind in ("int", "double"):
            # The minus belongs to the literal, or -9223372036854775808 could not be written.
            node = self.number(prefixes.pop())
        else:
            node = self.primary()
        node = self.members(node)
        while prefixes:
            prefix = prefixes.pop()
            node = ast.CallExpr(prefix.start, node.end, _PREFIXES[prefix.kind], (node,), None, prefix.start)
        return node

    def primary(self) -> ast.Expr:
        token = self.token
        kind = token.kind
        if kind == "name":
            return self.name(absolute=False)
        if kind == "string":
            self.advance()
            return ast.Literal(token.start, token.end, STRING, token.value)
        if kind in ("int", "uint", "double"):
            return self.number(None)
        if kind == "(":
            self.advance()
            inner = self.expression()
            close = self.expect(")", "`)`")
            return replace(inner, start=token.start, end=close.end)
        if kind == "[":
            return self.list_literal()
        if kind == "{":
            return self.map_literal()
        if kind == ".":
            self.advance()
            return self.name(absolute=True, start=token.start)
        if kind in _CONSTANTS:
            self.advance()
            constant_type, value = _CONSTANTS[kind]
            return ast.Literal(token.start, token.end, constant_type, value)
        if kind == "bytes":
            self.advance()
            return ast.Literal(token.start, token.end, BYTES_VALUE, token.value)
        raise self.unexpected("a value")

    def number(self, minus: Token | None) -> ast.Expr:
        token = self.advance()
        start = minus.start if minus is not None else token.start
        value = token.value
        if isinstance(value, float):
            return ast.Literal(start, token.end, DOUBLE, -value if minus is not None else value)
        assert isinstance(value, int)
        if token.kind == "uint":
            if value >= 2**64:
                raise _out_of_range("uint", start, token.end)
            return ast.Literal(start, token.end, UINT, value)
        signed = -value if minus is not None else value
        if not -(2**63) <= signed < 2**63:
            raise _out_of_range("int", start, token.end)
        return ast.Literal(start, token.end, INT, signed)

    def name(self, absolute: bool, start: int | None = None) -> ast.Expr:
        token = self.expect("name", "a name")
        name = str(token.value)
        if name in RESERVED:
            raise SyntaxProblem(
                f"`{name}` is a reserved word", token.start, token.end,
                INSTEAD.get(name),
            )  # fmt: skip
        begin = token.start if start is None else start
        if self.token.kind != "(":
            return ast.Ident(begin, token.end, name, absolute)
        args, end = self.arguments()
        if name == "has" and self._macros and not absolute and len(args) == 1:
            return _presence(args[0], begin, end)
        return ast.CallExpr(begin, end, f".{name}" if absolute else name, args, None, token.start)

    def members(self, node: ast.Expr) -> ast.Expr:
        while True:
            kind = self.token.kind
            if kind == ".":
                self.advance()
                node = self.selection(node)
            elif kind == "[":
                self.advance()
                optional = self.token.kind == "?" and bool(self.advance())
                index = self.expression()
                close = self.expect("]", "`]`")
                node = ast.IndexExpr(node.start, close.end, node, index, optional)
            elif kind == "{" and qualified_name(node) is not None:
                node = self.message_literal(node)
            else:
                return node

    def selection(self, operand: ast.Expr) -> ast.Expr:
        optional = self.token.kind == "?" and bool(self.advance())
        token = self.token
        if token.kind not in ("name", "quoted"):
            if token.kind in ("true", "false", "null", "in"):
                raise SyntaxProblem(
                    f"`{token.kind}` cannot be a field name", token.start, token.end,
                    f"write an index: `['{token.kind}']`",
                )  # fmt: skip
            raise self.unexpected("a field name")
        self.advance()
        field = str(token.value)
        if self.token.kind == "(" and token.kind == "name" and not optional:
            args, end = self.arguments()
            return ast.CallExpr(operand.start, end, field, args, operand, token.start)
        return ast.SelectExpr(operand.start, token.end, operand, field, token.start, optional)

    def arguments(self) -> tuple[tuple[ast.Expr, ...], int]:
        """The arguments in parentheses, and the offset behind the closing one."""
        self.advance()
        if self.token.kind == ")":
            return (), self.advance().end
        args = [self.expression()]
        while self.token.kind == ",":
            self.advance()
            args.append(self.expression())
        return tuple(args), self.expect(")", "`,` or `)`").end

    def list_literal(self) -> ast.Expr:
        start = self.advance().start
        elements: list[ast.Expr] = []
        optional: list[int] = []
        while self.token.kind != "]":
            if self.token.kind == "?":
                self.advance()
                optional.append(len(elements))
            elements.append(self.expression())
            if self.token.kind != ",":
                break
            self.advance()
        end = self.expect("]", "`,` or `]`").end
        return ast.ListLiteral(start, end, tuple(elements), frozenset(optional))

    def map_literal(self) -> ast.Expr:
        start = self.advance().start
        entries: list[tuple[ast.Expr, ast.Expr]] = []
        optional: list[int] = []
        while self.token.kind != "}":
            if self.token.kind == "?":
                self.advance()
                optional.append(len(entries))
            key = self.expression()
            self.expect(":", "`:` after the key")
            entries.append((key, self.expression()))
            if self.token.kind != ",":
                break
            self.advance()
        end = self.expect("}", "`,` or `}`").end
        return ast.MapLiteral(start, end, tuple(entries), frozenset(optional))

    def message_literal(self, name: ast.Expr) -> ast.Expr:
        self.advance()
        fields: list[tuple[str, ast.Expr]] = []
        while self.token.kind != "}":
            if self.token.kind not in ("name", "quoted"):
                raise self.unexpected("the name of a field")
            field = str(self.advance().value)
            self.expect(":", "`:` after the field")
            fields.append((field, self.expression()))
            if self.token.kind != ",":
                break
            self.advance()
        end = self.expect("}", "`,` or `}`").end
        return ast.MessageLiteral(name.start, end, name, tuple(fields))


_CONSTANTS = {"true": (BOOL, True), "false": (BOOL, False), "null": (NULL, None)}


def _presence(selection: ast.Expr, start: int, end: int) -> ast.Expr:
    if isinstance(selection, ast.Broken):
        return selection
    if not isinstance(selection, ast.SelectExpr) or selection.optional or selection.test:
        raise SyntaxProblem(
            "`has()` asks for a field", selection.start, selection.end,
            "write `has(a.b)`; for a key use `'b' in a`",
        )  # fmt: skip
    return replace(selection, start=start, end=end, test=True)


def _out_of_range(kind: str, start: int, end: int) -> SyntaxProblem:
    bounds = {"int": "-9223372036854775808 to 9223372036854775807", "uint": "0 to 18446744073709551615"}
    return SyntaxProblem(
        "the number does not fit 64 bits", start, end, f"{kind} runs from {bounds[kind]}", "KP210"
    )


def _too_large(message: str, start: int, end: int) -> SyntaxProblem:
    return SyntaxProblem(message, start, end, "move parts of it into variables or library functions", "KP211")


def limit_depth(tree: ast.Expr) -> None:
    """Raise SyntaxProblem (KP211) for a tree that is deeper than others can walk."""
    level = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.children(node)]
        if not level:
            return
    raise _too_large("the expression is nested too deeply", level[0].start, level[0].end)
