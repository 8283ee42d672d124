"""What an expression may name: variables, facts, functions, and how strictly it is read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.types import (
    BOOL,
    BYTES_VALUE,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    NULL,
    QUANTITY,
    STRING,
    TIMESTAMP,
    UINT,
    URL,
    Type,
    list_of,
    map_of,
    optional_of,
    type_of,
)


class DeclaredFact(Protocol):
    """A declared fact, as far as the checker needs to know it."""

    @property
    def path(self) -> str: ...

    @property
    def type(self) -> Type: ...


class Facts(Protocol):
    """Records of facts, looked up by record name and dotted path."""

    def resolve(self, record: str, path: str) -> object | None:
        """A fact (it has a `type`), a group of facts (it has none), or None."""

    def children(self, record: str, prefix: str = "") -> tuple[str, ...]:
        """The names that may follow a prefix."""

    def leaves(self, record: str, prefix: str = "") -> tuple[DeclaredFact, ...]:
        """All facts below a prefix."""


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function of a Library: `body` is checked, with the parameters as local variables."""

    name: str
    params: tuple[tuple[str, Type], ...]
    body: ir.Node

    @property
    def result(self) -> Type:
        return self.body.type


TYPE_NAMES: Mapping[str, Type] = {
    str(named): named for named in (
        BOOL, BYTES_VALUE, CIDR, DOUBLE, DURATION, INT, IP, NULL, QUANTITY, STRING, TIMESTAMP, UINT, URL,
    )
} | {
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "type": type_of(DYN),
    "optional_type": optional_of(DYN),
}  # fmt: skip
"""Names that stand for types, as values: `type(x) == int`."""

_TYPE_HEADS = frozenset(name.partition(".")[0] for name in TYPE_NAMES if "." in name)


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything a check depends on besides the expression.

    `variables` are roots (`node`, `now`) and may have qualified names (`a.b.c`), which are looked up in
    `container` first. `refs` are the graph's own names by space: `refs["variables"]["reserve"]`.
    With `homogeneous_literals` the elements of a list or map must be of one type; with
    `literal_checks` constant arguments are tried out (KP209, KP212, KP214): policies want both, plain
    CEL neither. `unchecked` reads an expression without types: what does not fit fails at run time.
    """

    variables: Mapping[str, Type] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    facts: Facts | None = None
    container: str = ""
    refs: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    user_functions: Mapping[str, UserFunction] = field(default_factory=dict)
    homogeneous_literals: bool = False
    literal_checks: bool = False
    macros: bool = True
    unchecked: bool = False
    heads: frozenset[str] = field(init=False)
    """First parts of qualified names: other names need no search for a longest prefix."""

    def __post_init__(self) -> None:
        heads = {name.partition(".")[0] for name in self.variables if "." in name}
        object.__setattr__(self, "heads", _TYPE_HEADS | heads)

    def extended(
        self,
        variables: Mapping[str, Type] | None = None,
        refs: Mapping[str, Mapping[str, Type]] | None = None,
        user_functions: Mapping[str, UserFunction] | None = None,
    ) -> "Environment":
        """The same with more names; a new name hides an old one, space by space."""
        merged = dict(self.refs)
        for space, names in (refs or {}).items():
            merged[space] = {**merged.get(space, {}), **names}
        return replace(
            self,
            variables={**self.variables, **(variables or {})},
            refs=merged,
            user_functions={**self.user_functions, **(user_functions or {})},
        )

    def candidates(self, name: str) -> Iterator[str]:
        """The full names that `name` may stand for in the container, innermost first."""
        prefix = self.container
        while prefix:
            yield f"{prefix}.{name}"
            prefix = prefix.rpartition(".")[0]
        yield name

    def function(self, name: str) -> Function | None:
        """The function of that name, seen from the container. A leading dot means the root."""
        if name[0] == ".":
            return self.functions.get(name[1:])
        if not self.container:
            return self.functions.get(name)
        return next((self.functions[full] for full in self.candidates(name) if full in self.functions), None)

    def fact_type(self, record: str, path: str) -> Type | None:
        """The type of a fact; None for a group or an unknown path."""
        found = self.facts.resolve(record, path) if self.facts is not None else None
        declared = getattr(found, "type", None)
        return declared if isinstance(declared, Type) else None

    def fact_children(self, record: str, prefix: str) -> tuple[str, ...]:
        return self.facts.children(record, prefix) if self.facts is not None else ()

    def fact_leaves(self, record: str, prefix: str) -> tuple[str, ...]:
        """The paths of all facts below a group."""
        return (
            tuple(fact.path for fact in self.facts.leaves(record, prefix)) if self.facts is not None else ()
        )
