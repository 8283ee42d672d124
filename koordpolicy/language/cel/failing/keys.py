"""Numbers for expressions: equal ones have one, so that what is known of one is known of the other."""

from typing import Final

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import text_of
from koordpolicy.language.cel.ir_walk import own_parts, walk
from koordpolicy.language.cel.walk import children

SAME: Final = frozenset(
    (
        "int(int)", "uint(uint)", "double(double)", "bool(bool)", "string(string)", "bytes(bytes)", "number(int)",
        "number(double)", "amount(int)", "millicores(int)", "bytesOf(int)", "percent(double)", "dyn(A)", "dyn(dyn)",
        "duration(google.protobuf.Duration)", "timestamp(google.protobuf.Timestamp)",
    )
)  # fmt: skip
"""Calls that give their argument back."""

SIZES: Final = frozenset(
    f"{dot}size({kind})" for dot in ("", ".") for kind in ("string", "bytes", "list(A)", "map(A,B)")
)
"""Calls that give the size of their argument."""


class Keys:
    """Numbers of expressions. Which of two ways of writing the same was taken makes no difference."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        self._alive: list[ir.Node] = []
        self._numbers: dict[tuple[object, ...], int] = {}

    def of(self, node: ir.Node) -> int:
        """The number of an expression."""
        found = self._known.get(id(node))
        if found is None:
            self._alive.append(node)  # an identity is given away again when its node is gone
            for part in walk(node):
                if id(part) not in self._known:
                    self._known[id(part)] = self._number(part)
            found = self._known[id(node)]
        return found

    def text(self, value: str) -> int:
        """The number of a constant text."""
        return self._intern(("const", "string", text_of(value)))

    def size(self, node: ir.Node) -> int:
        """The number of `size(node)`."""
        return self._intern(("size", self.of(node)))

    def _number(self, node: ir.Node) -> int:
        below = tuple(self._known[id(part)] for part in children(node))
        match node:
            case ir.Const(value=value):
                return self._intern(("const", node.type.name, text_of(value)))
            case ir.Call(overload=overload) if overload in SAME:
                return below[0]
            case ir.Call(overload=overload) if overload in SIZES:
                return self._intern(("size", below[0]))
            case ir.Select(field=field, test=False):
                return self._intern(("entry", node.optional, below[0], self.text(field)))
            case ir.Index(optional=optional):
                return self._intern(("entry", optional, *below))
        return self._intern((type(node).__name__, own_parts(node), *below))

    def _intern(self, key: tuple[object, ...]) -> int:
        return self._numbers.setdefault(key, len(self._numbers))
