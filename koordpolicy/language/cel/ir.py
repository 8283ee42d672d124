"""What was meant: the typed, resolved form that every back end lowers.

Nodes are immutable values compared by content, so equal subexpressions are equal nodes (positions
do not take part), which is what common-subexpression sharing needs. Errors are not values: a
back end gives each node CEL's error semantics. Which operands are lazy is said once, in
`walk.strict_children`; every `Call` is strict in all its arguments.
"""

from dataclasses import dataclass, field

from koordpolicy.language.cel.permitted import Permitted
from koordpolicy.language.cel.types import Type


@dataclass(frozen=True, slots=True)
class Node:
    """`start:end` are code-point offsets in the source, for messages only."""

    type: Type
    start: int = field(default=0, compare=False, kw_only=True)
    end: int = field(default=0, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Const(Node):
    """A constant as a run-time value (see `values`). `key` makes 1, 1.0 and true differ, and stands for the value in texts."""

    value: object = field(default=None, compare=False, repr=False)
    key: str = ""


@dataclass(frozen=True, slots=True)
class Var(Node):
    """A root (`node`, `pod`, `now`) or a comprehension's or bind's own variable.

    Local variables are renamed while checking: only equal comprehensions and binds share their names,
    which makes them equal nodes, and nothing meets its own names within itself.
    """

    name: str
    local: bool = False


@dataclass(frozen=True, slots=True)
class Ref(Node):
    """A value computed elsewhere in the rule graph: a variable, parameter or constant.

    `space` is "variables", "parameters" or "constants"; the graph replaces it by the expression or
    value it stands for before lowering.
    """

    space: str
    name: str


@dataclass(frozen=True, slots=True)
class Field(Node):
    """A declared fact of a record: `node.usage.prod.cpu` is Field(Var node, "usage.prod.cpu").

    Paths run through nested groups, so at run time a record is one flat mapping from path to
    value. An absent path is missing data: a `MissingFact` error, which absorbs like any error.
    """

    base: Node
    path: str


@dataclass(frozen=True, slots=True)
class HasField(Node):
    """Whether any of the paths is present: one path for a fact, its leaves for a group."""

    base: Node
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OptField(Node):
    """`node.?usage.cpu` as an optional: none where the path is absent. `base` may be optional."""

    base: Node
    path: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    """A key of a map with string keys, or of a dyn value. `optional` and `test` as in `ast`.

    With `optional`, or where the operand is an optional, the result is an optional.
    """

    operand: Node
    field: str
    optional: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True)
class Index(Node):
    """An element of a list, map, optional or dyn value."""

    operand: Node
    index: Node
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A strict function or operator; `overload` is its stable id in the function table.

    Ids of operators are `op(type,type)` of the operands' CEL names without units, such as
    `_+_(int,int)`, `_<_(int,double)`, `-_(double)`, `_==_`, `_!=_`, `@in(dyn,list)`, and with dyn for
    all operands where only run time can tell: `_+_(dyn,dyn)`. Quantities add the ids of `units`:
    `scale(int,double)` (quantity x ratio), `percent_of(int,double)` (quantity x percent),
    `quotient(int,int)` and `quotient(double,double)` (same units -> ratio), `divide(int,double)`
    (quantity / ratio). A percentage is compared with a ratio through a call `ratio(percent)`.

    A function whose overload only the values can tell is `name(dyn,..)`, a method `.name(dyn,..)`.
    In an unchecked expression `error(unbound)` and `error(no_such_overload)` fail when reached, with
    what is missing as a constant argument.
    """

    overload: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class And(Node):
    """Logical and over two or more operands, commutative in errors."""

    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """Logical or over two or more operands, commutative in errors."""

    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Cond(Node):
    """`condition ? then : otherwise`, branches lazy."""

    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Holds(Node):
    """The value of a condition, and where it fails, that of `otherwise`. A limit is no such failure.

    `clause` says whose condition it is, `FILE:LINE:COLUMN`, for whoever counts failures; without one nobody does. No text
    has this node: conditions in front of rules get it (see `graph.conditions`).
    """

    operand: Node
    otherwise: Node
    clause: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class OrElse(Node):
    """`operand.or(other)`, with `unwrap` `operand.orValue(other)`: `other` lazy, needed only of none.

    Either operand may be dyn; what turns out not to be an optional where one is wanted is an error.
    """

    operand: Node
    other: Node
    unwrap: bool = False


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """The operand's value, which is an error (`WrongType`) unless it is of this node's type, and (`NotPermitted`) unless
    its place takes it: see `casts`.
    """

    operand: Node
    permitted: Permitted | None = None


@dataclass(frozen=True, slots=True)
class MakeList(Node):
    """A list literal; elements at the positions in `optional` are left out when none."""

    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MakeMap(Node):
    """A map literal; duplicate keys are an error."""

    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Comprehension(Node):
    """A macro over a list or map.

    `macro` is one of all, exists, exists_one, map, filter, transformList, transformMap,
    transformMapEntry, sortBy. `variables` has one name, or two for (index, value) and (key, value);
    one name over a map walks its keys. `predicate` filters (all, exists, exists_one, filter, and the
    optional second argument of the others), `transform` is what map, transform... and sortBy compute
    (for transformMapEntry a map, as a rule a MakeMap with one entry, all of whose entries are put in).
    """

    macro: str
    range: Node
    variables: tuple[str, ...]
    predicate: Node | None = None
    transform: Node | None = None


@dataclass(frozen=True, slots=True)
class Bind(Node):
    """`cel.bind(x, init, body)`, and optMap/optFlatMap after resolution: lazy and computed once."""

    name: str
    init: Node
    body: Node


@dataclass(frozen=True, slots=True)
class OptMap(Node):
    """`o.optMap(x, t)`; with `flat` t gives an optional itself."""

    operand: Node
    name: str
    body: Node
    flat: bool = False
