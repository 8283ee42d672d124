"""What was written: the untyped tree of an expression.

Every node carries the half-open stretch `start:end` of code-point offsets in its source. Macros
are not expanded here: `all(x, p)` is a `Call` with a target until the checker resolves it, except
that `has(e.f)` is a `Select` with `test` set.
"""

from dataclasses import dataclass

from koordpolicy.language.cel.types import Type


@dataclass(frozen=True, slots=True)
class Node:
    """Any node."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant; `type` is one of null, bool, int, uint, double, string, bytes.

    `value` is the Python value (for uint a plain non-negative int).
    """

    type: Type
    value: object


@dataclass(frozen=True, slots=True)
class Ident(Node):
    """A name. `absolute` for `.x`, which always means the root scope."""

    name: str
    absolute: bool = False


@dataclass(frozen=True, slots=True)
class Select(Node):
    """`operand.field`, `operand.?field` (optional), or `has(operand.field)` (test)."""

    operand: Node
    field: str
    field_start: int
    optional: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`operand[index]` or `operand[?index]`."""

    operand: Node
    index: Node
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`function(args)` or `target.function(args)`.

    Operators are calls by their CEL names: `_+_ _-_ _*_ _/_ _%_ -_ !_ _&&_ _||_ _?_:_ _==_ _!=_
    _<_ _<=_ _>_ _>=_ @in`.
    """

    function: str
    args: tuple[Node, ...]
    target: Node | None = None
    name_start: int = 0


@dataclass(frozen=True, slots=True)
class ListLiteral(Node):
    """`[a, ?b]`; `optional` holds the positions of the elements with a question mark."""

    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MapLiteral(Node):
    """`{k: v, ?k: v}`; `optional` holds the positions of the entries with a question mark."""

    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MessageLiteral(Node):
    """`google.protobuf.Int32Value{value: 1}`; `name` is a chain of plain names."""

    name: Node
    fields: tuple[tuple[str, Node], ...]


def children(node: Node) -> tuple[Node, ...]:
    """The subexpressions of a node, from left to right."""
    match node:
        case Call(args=args, target=None):
            return args
        case Call(args=args, target=Node() as target):
            return (target, *args)
        case Select(operand=operand):
            return (operand,)
        case Index(operand=operand, index=index):
            return (operand, index)
        case ListLiteral(elements=elements):
            return elements
        case MapLiteral(entries=entries):
            return tuple(part for entry in entries for part in entry)
        case MessageLiteral(fields=fields):
            return tuple(value for _, value in fields)
    return ()


def qualified_name(node: Node) -> str | None:
    """`a.b.c` when the node is such a chain of plain names."""
    parts: list[str] = []
    while isinstance(node, Select) and not (node.optional or node.test):
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    parts.append(node.name)
    return ".".join(reversed(parts))


def root_of(node: Node) -> Node:
    """What a chain of selections begins with."""
    while isinstance(node, Select):
        node = node.operand
    return node
