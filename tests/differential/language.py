"""Random well-typed expressions of the whole language, from `grammar` and from the table of functions."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.types import DOUBLE, DYN, INT, STRING, Type
from tests.differential.grammar import GRAMMAR, HIDING, KINDS, LEAVES, READ_AS, ROOTS, VARIABLES
from tests.differential.literals import LITERALS

_FREE = (INT, STRING, DOUBLE, DYN)
"""What a type parameter of a function stands for."""


def _short(kind: Type) -> str | None:
    return next((name for name, known in KINDS.items() if known == kind), None)


def lines_of(functions: Mapping[str, Function]) -> Iterator[tuple[str, str, str]]:
    """Each overload of a table with the kinds of its parameters: (kind of the result, line, id of the overload)."""
    for function in functions.values():
        for overload in function.overloads:
            yield from _lines(function.name, overload)


def _lines(name: str, overload: Overload) -> Iterator[tuple[str, str, str]]:
    letters = sorted({letter for kind in (*overload.params, overload.result) for letter in _letters(kind)})
    for chosen in product(_FREE, repeat=len(letters)):
        stands = dict(zip(letters, chosen, strict=True))
        params = [_short(_filled(kind, stands)) for kind in overload.params]
        result = _short(_filled(overload.result, stands))
        if result is None or None in params:
            continue
        places = [f"<{_read_as(name, at, str(kind))}>" for at, kind in enumerate(params)]
        if overload.variadic:
            places = places * 3
        if overload.receiver:
            yield result, f"{places[0]}.{name}({', '.join(places[1:])})", overload.id
        else:
            yield result, f"{name}({', '.join(places)})", overload.id


def _read_as(name: str, at: int, kind: str) -> str:
    if kind != "string":
        return kind
    if name.startswith("get"):
        return "zone"
    if name == "regex.replace" and at == 2:
        return "replacement"
    reads = READ_AS.get(name, kind)
    return "string" if reads == "pattern" and at != 1 else reads


def _letters(kind: Type) -> Iterator[str]:
    if kind.name == "param":
        yield str(kind.record)
    for inner in kind.params:
        yield from _letters(inner)


def _filled(kind: Type, stands: Mapping[str, Type]) -> Type:
    if kind.name == "param":
        return stands[str(kind.record)]
    return Type(kind.name, tuple(_filled(inner, stands) for inner in kind.params), kind.unit, kind.record)


# --- writing -----------------------------------------------------------------------------------------

_PLACE = re.compile(r"<(\w+)((?: \w+:\w+)*)>|\$(\w)")
_STRINGS = frozenset(
    ("pattern", "replacement", "template", "zone", "numeral", "date", "span", "base64", "address", "block", "link", "amount")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Hole:
    kind: str
    bound: tuple[tuple[str, str], ...]


Piece = str | _Hole | tuple[str]
"""Text, a place for an expression, or the letter of a new variable."""


def _pieces(line: str) -> tuple[Piece, ...]:
    found: list[Piece] = []
    position = 0
    for place in _PLACE.finditer(line):
        if place.start() > position:
            found.append(line[position : place.start()])
        position = place.end()
        kind, bound, letter = place.groups()
        if letter:
            found.append((letter,))
        else:
            pairs = (pair.split(":") for pair in (bound or "").split())
            found.append(_Hole(kind, tuple((name, held) for name, held in pairs)))
    if position < len(line):
        found.append(line[position:])
    return tuple(found)


class Writer:
    """Writes random expressions that may use the functions of a table."""

    def __init__(self, chance: Random, functions: Mapping[str, Function]) -> None:
        self._chance = chance
        self._grammar: dict[str, list[tuple[Piece, ...]]] = {
            kind: [_pieces(line.strip()) for line in text.strip().splitlines()]
            for kind, text in GRAMMAR.items()
        }
        for kind in (*KINDS, *_STRINGS):
            self._grammar.setdefault(kind, [])
        self.calls: list[tuple[str, tuple[Piece, ...]]] = []
        """Every overload of the table: its id, and how it is called."""
        for kind, line, overload in lines_of(functions):
            pieces = _pieces(line)
            self._grammar[kind].append(pieces)
            self.calls.append((overload, pieces))
        self._members = [
            (space, member)
            for space, _, member in (name.partition(".") for name in functions)
            if space in HIDING and member in functions
        ]
        if "ip" not in functions:  # a table without the network library
            for kind in ("bool", "type"):
                self._grammar[kind] = [one for one in self._grammar[kind] if not _names(one, ("ip", "cidr"))]

    def expression(self, depth: int = 3) -> str:
        """One of any kind."""
        chance = self._chance
        if chance.random() < 0.08:
            return chance.choice((self._wide, self._shared))(depth)
        return self._readable(lambda: self._write(chance.choice(ROOTS), dict(VARIABLES), depth, [0]))

    def call(self, number: int) -> str:
        """A call of the overload at a place in `calls`, with arguments that are simple for the most part."""
        pieces = self.calls[number][1]
        return self._readable(lambda: self._fill(pieces, dict(VARIABLES), self._chance.randrange(2), [0]))

    def _readable(self, write: Callable[[], str]) -> str:
        """What is written, again where it calls a method of a variable that hides a library with a function so named.

        `regex.replace(...)` is the library's function whatever a macro calls `regex`.
        """
        while True:
            text = write()
            if not any(
                f"{space}.{member}(" in text and re.search(rf"[(,] ?{space}, ", text)
                for space, member in self._members
            ):
                return text

    def _write(self, kind: str, scope: Mapping[str, str], depth: int, count: list[int]) -> str:
        chance = self._chance
        if kind in _STRINGS:
            if chance.random() < 0.85:
                return LITERALS[kind](chance)
            kind = "string"
        lines = self._grammar[kind]
        if lines and (depth > 0 or kind in ("any", "number", "formatted")) and chance.random() < 0.85:
            if kind in KINDS and chance.random() < 0.06:
                return self._general(kind, scope, depth - 1, count)
            return self._fill(chance.choice(lines), scope, depth - 1, count)
        named = [name for name, held in scope.items() if held == kind]
        if named and chance.random() < 0.7:
            return chance.choice(named[-2:] if chance.random() < 0.5 else named)
        return self._leaf(kind, scope, count)

    def _leaf(self, kind: str, scope: Mapping[str, str], count: list[int]) -> str:
        chance = self._chance
        if kind in LITERALS:
            return LITERALS[kind](chance)
        if kind == "dyn":
            return f"dyn({self._leaf(chance.choice(('int', 'double', 'string', 'bool', 'uint', 'ints', 'map')), scope, count)})"
        if kind in ("any", "number"):
            return self._leaf("int", scope, count)
        if kind == "formatted":
            return "'%s'.format([1])"
        return self._fill(_pieces(LEAVES[kind]), scope, 0, count)

    def _general(self, kind: str, scope: Mapping[str, str], depth: int, count: list[int]) -> str:
        """Forms that there are for every kind."""
        any_kind = self._chance.choice(("int", "string", "ints", "dyn", "double", "map", "optint"))
        line = self._chance.choice(
            (
                f"(<bool> ? <{kind}> : <{kind}>)",
                f"cel.bind($x, <{any_kind}>, <{kind} x:{any_kind}>)",
                f"[<{kind}>, <{kind}>][<int>]",
                f"{{'a': <{kind}>}}[<string>]",
                f"[<{kind}>][?0].orValue(<{kind}>)",
                f"optional.of(<{kind}>).value()",
                f"[<{kind}>].filter($x, true)[0]",
            )
        )
        return self._fill(_pieces(line), scope, depth, count)

    def _fill(self, pieces: Sequence[Piece], scope: Mapping[str, str], depth: int, count: list[int]) -> str:
        fresh: dict[str, str] = {}
        written: list[str] = []
        for piece in pieces:
            if isinstance(piece, str):
                written.append(piece)
            elif isinstance(piece, tuple):
                written.append(self._name(piece[0], fresh, count))
            else:
                inner = dict(scope)
                for letter, held in piece.bound:
                    inner[self._name(letter, fresh, count)] = held
                written.append(self._write(piece.kind, inner, depth, count))
        return "".join(written)

    def _name(self, letter: str, fresh: dict[str, str], count: list[int]) -> str:
        if letter not in fresh:
            count[0] += 1
            hides = HIDING[count[0] % len(HIDING)] if self._chance.random() < 0.1 else None
            fresh[letter] = f"{hides}" if hides and hides not in fresh.values() else f"v{count[0]}"
        return fresh[letter]

    # --- shapes

    def _wide(self, depth: int) -> str:
        """A long chain of one operator, or a long literal."""
        chance, scope, count = self._chance, dict(VARIABLES), [0]
        kind, before, between, after = chance.choice(
            (
                ("bool", "", " && ", ""), ("bool", "", " || ", ""), ("int", "", " + ", ""), ("string", "", " + ", ""),
                ("ints", "", " + ", ""), ("int", "[", ", ", "]"), ("dyn", "[", ", ", "].size()"), ("double", "[", ", ", "].sort()"),
                ("optint", "", "", ""),
            )
        )  # fmt: skip
        parts = [
            self._write(kind, scope, chance.randrange(2), count) for _ in range(chance.randrange(10, 60))
        ]
        if kind == "optint":
            return parts[0] + "".join(f".or({part})" for part in parts[1:12])
        if between == " && " and chance.random() < 0.5:
            return " ? 1 : ".join(f"({part})" for part in parts) + " ? 2 : 3"
        return before + between.join(parts) + after

    def _shared(self, depth: int) -> str:
        """A chain of binds, each of which uses the one before twice."""
        chance, scope, count = self._chance, dict(VARIABLES), [0]
        kind, twice, last = chance.choice(
            (
                ("ints", "{0} + {0}", "{0}.size()"), ("ints", "{0} + {0}", "{0} == {0}"), ("ints", "{0} + {0}", "{0}.distinct()"),
                ("dyn", "dyn([{0}, {0}])", "{0} == {0}"), ("dyn", "dyn([{0}, {0}])", "{0}"), ("dyn", "dyn({{'a': {0}, 'b': {0}}})", "{0}.a == {0}.b"),
                ("string", "{0} + {0}", "{0}"), ("int", "{0} + {0}", "{0}"), ("bool", "{0} && ({0} || !{0})", "{0}"),
                ("optint", "{0}.or({0})", "{0}"), ("double", "{0} * {0}", "{0} < {0}"),
            )
        )  # fmt: skip
        steps = chance.randrange(2, 8)
        text = last.format(f"w{steps}")
        for step in range(steps, 0, -1):
            text = f"cel.bind(w{step}, {twice.format(f'w{step - 1}')}, {text})"
        return f"cel.bind(w0, {self._write(kind, scope, min(depth, 2), count)}, {text})"


def _names(pieces: Sequence[Piece], kinds: Sequence[str]) -> bool:
    return any(isinstance(piece, _Hole) and piece.kind in kinds for piece in pieces)
