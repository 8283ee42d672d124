"""What was written: the untyped tree of an expression.

Every node carries the half-open stretch `start:end` of code-point offsets in its source. Macros
are not expanded here: `all(x, p)` is a `CallExpr` with a target until the checker resolves it, except
that `has(e.f)` is a `SelectExpr` with `test` set.
"""

from dataclasses import dataclass

from koordpolicy.language.cel.types import Type


@dataclass(frozen=True, slots=True)
class Expr:
    """Any node."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant; `type` is one of null, bool, int, uint, double, string, bytes.

    `value` is the Python value (for uint a plain non-negative int).
    """

    type: Type
    value: object


@dataclass(frozen=True, slots=True)
class Ident(Expr):
    """A name. `absolute` for `.x`, which always means the root scope."""

    name: str
    absolute: bool = False


@dataclass(frozen=True, slots=True)
class SelectExpr(Expr):
    """`operand.field`, `operand.?field` (optional), or `has(operand.field)` (test)."""

    operand: Expr
    field: str
    field_start: int
    optional: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True)
class IndexExpr(Expr):
    """`operand[index]` or `operand[?index]`."""

    operand: Expr
    index: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class CallExpr(Expr):
    """`function(args)` or `target.function(args)`.

    Operators are calls by their CEL names: `_+_ _-_ _*_ _/_ _%_ -_ !_ _&&_ _||_ _?_:_ _==_ _!=_
    _<_ _<=_ _>_ _>=_ @in`.
    """

    function: str
    args: tuple[Expr, ...]
    target: Expr | None = None
    name_start: int = 0


@dataclass(frozen=True, slots=True)
class ListLiteral(Expr):
    """`[a, ?b]`; `optional` holds the positions of the elements with a question mark."""

    elements: tuple[Expr, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MapLiteral(Expr):
    """`{k: v, ?k: v}`; `optional` holds the positions of the entries with a question mark."""

    entries: tuple[tuple[Expr, Expr], ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MessageLiteral(Expr):
    """`google.protobuf.Int32Value{value: 1}`; `name` is a chain of plain names."""

    name: Expr
    fields: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Broken(Expr):
    """What cannot be read, which has been reported: `parts` of it can, `mentions` are what else may be named in it.

    Only trees of `recovery.parse_all` hold one.
    """

    parts: tuple[Expr, ...] = ()
    mentions: tuple[Expr, ...] = ()


def children(node: Expr) -> tuple[Expr, ...]:
    """The subexpressions of a node, from left to right."""
    match node:
        case CallExpr(args=args, target=None):
            return args
        case CallExpr(args=args, target=Expr() as target):
            return (target, *args)
        case SelectExpr(operand=operand):
            return (operand,)
        case IndexExpr(operand=operand, index=index):
            return (operand, index)
        case ListLiteral(elements=elements):
            return elements
        case MapLiteral(entries=entries):
            return tuple(part for entry in entries for part in entry)
        case MessageLiteral(fields=fields):
            return tuple(value for _, value in fields)
        case Broken(parts=parts):
            return parts
    return ()


def qualified_name(node: Expr) -> str | None:
    """`a.b.c` when the node is such a chain of plain names."""
    parts: list[str] = []
    while isinstance(node, SelectExpr) and not (node.optional or node.test):
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    parts.append(node.name)
    return ".".join(reversed(parts))


def root_of(node: Expr) -> Expr:
    """What a chain of selections begins with."""
    while isinstance(node, SelectExpr):
        node = node.operand
    return node
