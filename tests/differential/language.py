"""Random well-typed expressions of the whole language, from a grammar and from the table of functions.

`<int>` in a line stands for any expression of kind int, `$x` for a new variable of a macro, and `<int x:string>` for
an expression in which it may be used. A kind is a type under a short name, or a string that is read as something.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from koordpolicy.language.cel.functions import Function, Overload
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
from tests.differential.literals import LITERALS

KINDS: Mapping[str, Type] = {
    "int": INT, "uint": UINT, "double": DOUBLE, "bool": BOOL, "string": STRING, "bytes": BYTES_VALUE, "null": NULL,
    "timestamp": TIMESTAMP, "duration": DURATION, "dyn": DYN, "type": type_of(DYN), "ip": IP, "cidr": CIDR,
    "url": URL, "quantity": QUANTITY,
    "ints": list_of(INT), "uints": list_of(UINT), "doubles": list_of(DOUBLE), "bools": list_of(BOOL),
    "strings": list_of(STRING), "octets": list_of(BYTES_VALUE), "times": list_of(TIMESTAMP),
    "durations": list_of(DURATION), "dyns": list_of(DYN), "intss": list_of(list_of(INT)),
    "map": map_of(STRING, INT), "names": map_of(STRING, STRING), "numbered": map_of(INT, STRING),
    "lists": map_of(STRING, list_of(STRING)),
    "optint": optional_of(INT), "optstring": optional_of(STRING), "optdyn": optional_of(DYN),
    "optints": list_of(optional_of(INT)),
}  # fmt: skip

VARIABLES: Mapping[str, str] = {
    "i": "int", "j": "int", "u": "uint", "d": "double", "e": "double", "b": "bool", "c": "bool", "s": "string",
    "r": "string", "by": "bytes", "t": "timestamp", "du": "duration", "li": "ints", "ls": "strings", "ld": "doubles",
    "la": "dyns", "ll": "intss", "m": "map", "mn": "names", "mi": "numbered", "x": "dyn", "y": "dyn", "oi": "optint",
    "os": "optstring",
}  # fmt: skip
"""The variables that an expression may name, and their kinds; a row need not have them all."""

GRAMMAR: Mapping[str, str] = {
    "int": """
        (<int> + <int>)
        (<int> - <int>)
        (<int> * <int>)
        (<int> / <int>)
        (<int> % <int>)
        (-<int>)
        <map>['a']
        <map>.b
        <map>[<string>]
        <intss>[0][<int>]
        <ints>[<int>]
        <optint>.orValue(<int>)
        int(<dyn>)
        size(<dyn>)
        cel.bind($x, <intss>, <int x:intss>)
    """,
    "uint": """
        (<uint> + <uint>)
        (<uint> - <uint>)
        (<uint> * <uint>)
        (<uint> / <uint>)
        (<uint> % <uint>)
    """,
    "double": """
        (<double> + <double>)
        (<double> - <double>)
        (<double> * <double>)
        (<double> / <double>)
        (-<double>)
    """,
    "string": """
        (<string> + <string>)
        <names>.a
        <names>[<string>]
        <numbered>[<int>]
        <strings>[<int>]
        <formatted>
        string(<dyn>)
        <names>.?b.orValue(<string>)
    """,
    "bytes": """
        (<bytes> + <bytes>)
    """,
    "bool": """
        (<bool> && <bool>)
        (<bool> || <bool>)
        (<bool> && <bool> && <bool>)
        (<bool> || <bool> || <bool>)
        (!<bool>)
        (<int> < <int>)
        (<int> <= <double>)
        (<uint> > <int>)
        (<double> >= <uint>)
        (<double> < <double>)
        (<string> < <string>)
        (<bytes> >= <bytes>)
        (<bool> < <bool>)
        (<timestamp> < <timestamp>)
        (<duration> >= <duration>)
        (<int> == <int>)
        (<uint> != <uint>)
        (<double> == <double>)
        (<string> == <string>)
        (<bytes> == <bytes>)
        (<bool> != <bool>)
        (<timestamp> == <timestamp>)
        (<duration> != <duration>)
        (<ints> == <ints>)
        (<doubles> == <doubles>)
        (<dyns> == <dyns>)
        (<intss> != <intss>)
        (<map> == <map>)
        (<names> == <names>)
        (<optint> == <optint>)
        (<dyn> == <dyn>)
        (<dyn> != <dyn>)
        (<dyn> < <dyn>)
        (<dyn> >= <int>)
        (<dyn> == <string>)
        (<type> == <type>)
        (<ip> == <ip>)
        (<cidr> == <cidr>)
        (<dyn> && <bool>)
        (<bool> || <dyn>)
        (<int> in <ints>)
        (<double> in <doubles>)
        (<string> in <strings>)
        (<dyn> in <dyns>)
        (<dyn> in <dyn>)
        (<string> in <map>)
        (<int> in <numbered>)
        (<dyn> in <names>)
        (<ints> in <intss>)
        has(<map>.a)
        has(<names>.b)
        has(<dyn>.a)
        <ints>.all($x, <bool x:int>)
        <ints>.exists($x, <bool x:int>)
        <ints>.exists_one($x, <bool x:int>)
        <strings>.all($x, <bool x:string>)
        <dyns>.exists($x, <bool x:dyn>)
        <dyn>.all($x, <bool x:dyn>)
        <map>.all($x, <bool x:string>)
        <numbered>.exists($x, <bool x:int>)
        <intss>.exists_one($x, <bool x:ints>)
        <ints>.all($x, $y, <bool x:int y:int>)
        <map>.exists($x, $y, <bool x:string y:int>)
        <names>.existsOne($x, $y, <bool x:string y:string>)
        <optdyn>.hasValue()
    """,
    "timestamp": """
        (<timestamp> + <duration>)
        (<duration> + <timestamp>)
        (<timestamp> - <duration>)
    """,
    "duration": """
        (<timestamp> - <timestamp>)
        (<duration> + <duration>)
        (<duration> - <duration>)
    """,
    "dyn": """
        dyn(<int>)
        dyn(<uint>)
        dyn(<double>)
        dyn(<bool>)
        dyn(<string>)
        dyn(<bytes>)
        dyn(<timestamp>)
        dyn(<duration>)
        dyn(<ints>)
        dyn(<dyns>)
        dyn(<map>)
        dyn(<names>)
        dyn(<numbered>)
        dyn(<optint>)
        dyn(<type>)
        dyn(null)
        dyn({'a': <int>, 'b': <string>, 1: <double>, true: <dyn>})
        <dyns>[<int>]
        <dyn>.a
        <dyn>[<dyn>]
        <dyn>['a']
        (<dyn> + <dyn>)
        (<dyn> - <dyn>)
        (<dyn> * <dyn>)
        (<dyn> / <dyn>)
        (<dyn> % <dyn>)
        (-<dyn>)
        (<bool> ? dyn(<int>) : dyn(<string>))
        (<dyn> ? <dyn> : <dyn>)
        <dyn>.?a.orValue(<dyn>)
        <optdyn>.orValue(<dyn>)
        [<int>, <string>, <dyn>][<int>]
    """,
    "type": """
        type(<int>)
        type(<double>)
        type(<string>)
        type(<dyn>)
        type(<ints>)
        type(<optint>)
        type(<type>)
        type(<duration>)
        type(<ip>)
    """,
    "ints": """
        []
        [<int>]
        [<int>, <int>]
        [?<optint>, <int>]
        (<ints> + <ints>)
        <ints>.filter($x, <bool x:int>)
        <ints>.map($x, <int x:int>)
        <strings>.map($x, <int x:string>)
        <ints>.map($x, <bool x:int>, <int x:int>)
        <ints>.transformList($x, $y, <int x:int y:int>)
        <ints>.transformList($x, $y, <bool x:int y:int>, <int x:int y:int>)
        <map>.transformList($x, $y, <int x:string y:int>).sort()
        <ints>.sortBy($x, <int x:int>)
        <ints>.sortBy($x, <string x:int>)
        <intss>[<int>]
    """,
    "uints": """
        [<uint>, <uint>]
        (<uints> + <uints>)
    """,
    "doubles": """
        [<double>]
        [<double>, <double>, <double>]
        (<doubles> + <doubles>)
        <doubles>.map($x, <double x:double>)
        <doubles>.filter($x, <bool x:double>)
    """,
    "bools": """
        [<bool>, <bool>]
    """,
    "strings": """
        [<string>]
        [<string>, <string>]
        [?<optstring>, <string>]
        (<strings> + <strings>)
        <strings>.filter($x, <bool x:string>)
        <ints>.map($x, <string x:int>)
        <map>.map($x, <string x:string>).sort()
        <strings>.sortBy($x, size($x))
    """,
    "octets": """
        [<bytes>, <bytes>]
    """,
    "times": """
        [<timestamp>, <timestamp>]
    """,
    "durations": """
        [<duration>, <duration>]
    """,
    "dyns": """
        [<int>, <string>, <double>]
        [<dyn>, <dyn>]
        [<dyn>, <int>, null]
        (<dyns> + <dyns>)
        <dyns>.filter($x, <bool x:dyn>)
        <dyns>.map($x, <dyn x:dyn>)
    """,
    "intss": """
        [<ints>, <ints>]
        [<ints>]
        <ints>.map($x, [$x, <int x:int>])
    """,
    "map": """
        {}
        {'a': <int>}
        {'a': <int>, 'b': <int>}
        {<string>: <int>, <string>: <int>}
        {?'a': <optint>, 'c': <int>}
        {?<string>: <optint>}
        <map>.transformMap($x, $y, <int x:string y:int>)
        <map>.transformMap($x, $y, <bool x:string y:int>, <int x:string y:int>)
        <map>.transformMapEntry($x, $y, {$x + 'z': $y})
        <map>.transformMapEntry($x, $y, {<string x:string y:int>: <int y:int>})
        <strings>.transformMapEntry($x, $y, {$y: $x})
    """,
    "names": """
        {'a': <string>, 'b': <string>}
        {<string>: <string>}
        {?'a': <optstring>}
        <names>.transformMap($x, $y, <string x:string y:string>)
    """,
    "numbered": """
        {<int>: <string>}
        {<int>: <string>, 1: <string>}
        <strings>.transformMap($x, $y, <string x:int y:string>)
    """,
    "optint": """
        optional.none()
        <map>.?a
        <map>[?<string>]
        <ints>[?<int>]
        <optint>.or(<optint>)
        <optint>.optMap($x, <int x:int>)
        <optstring>.optMap($x, <int x:string>)
        <optint>.optFlatMap($x, <optint x:int>)
    """,
    "optstring": """
        <names>.?a
        <names>[?<string>]
        <numbered>[?<int>]
        <strings>[?<int>]
        <optstring>.or(<optstring>)
        <optint>.optMap($x, <string x:int>)
        <optstring>.optFlatMap($x, <optstring x:string>)
    """,
    "optdyn": """
        <dyn>.?a
        <dyn>[?<dyn>]
        <dyns>[?<int>]
        optional.of(<dyn>)
        <optdyn>.or(<optdyn>)
        <dyn>.?a.?b
        optional.of(<dyn>).?a
        <optdyn>.optMap($x, <dyn x:dyn>)
        <optdyn>[?<dyn>]
    """,
    "optints": """
        [<optint>, <optint>]
    """,
    "formatted": """
        <template>.format([<any>, <any>])
        <template>.format([<any>])
        '%s %s'.format([<any>, <any>])
        '%d %x'.format([<number>, <number>])
        '%b|%o|%X'.format([<int>, <uint>, <string>])
        '%.3f %e'.format([<double>, <double>])
        '%f %.0e'.format([<number>, <number>])
    """,
    "any": """
        <int>
        <uint>
        <double>
        <bool>
        <string>
        <bytes>
        <dyn>
        <ints>
        <doubles>
        <names>
        <numbered>
        <timestamp>
        <duration>
        <type>
        null
        <optint>
    """,
    "number": """
        <int>
        <uint>
        <double>
        <dyn>
    """,
}  # fmt: skip

READ_AS: Mapping[str, str] = {
    "matches": "pattern", "find": "pattern", "findAll": "pattern", "regex.replace": "pattern", "regex.extract": "pattern",
    "regex.extractAll": "pattern", "ip": "address", "isIP": "address", "ip.isCanonical": "address", "containsIP": "address",
    "cidr": "block", "isCIDR": "block", "containsCIDR": "block", "timestamp": "date", "duration": "span", "int": "numeral", "uint": "numeral",
    "double": "numeral", "bool": "numeral", "base64.decode": "base64", "format": "template", "url": "link", "isURL": "link",
    "quantity": "amount", "isQuantity": "amount",
}  # fmt: skip
"""What a function reads its text as: the second argument of those of regular expressions, else the last text."""

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
        if "ip" not in functions:  # a table without the network library
            for kind in ("bool", "type"):
                self._grammar[kind] = [one for one in self._grammar[kind] if not _names(one, ("ip", "cidr"))]

    def expression(self, depth: int = 3) -> str:
        """One of any kind."""
        chance = self._chance
        if chance.random() < 0.08:
            return chance.choice((self._wide, self._shared))(depth)
        kind = chance.choice(_ROOTS)
        return self._write(kind, dict(VARIABLES), depth, [0])

    def call(self, number: int) -> str:
        """A call of the overload at a place in `calls`, with arguments that are simple for the most part."""
        return self._fill(self.calls[number][1], dict(VARIABLES), self._chance.randrange(2), [0])

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
        return self._fill(_pieces(_LEAVES[kind]), scope, 0, count)

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
            hides = _HIDING[count[0] % len(_HIDING)] if self._chance.random() < 0.1 else None
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


_HIDING = ("math", "sets", "optional", "base64", "regex", "lists", "strings", "cel", "ip", "size", "i", "dyn")
"""Names of libraries, functions and variables that a variable of a macro may have as well."""

_LEAVES: Mapping[str, str] = {
    "ints": "[<int>]", "uints": "[1u, <uint>]", "doubles": "[<double>]", "bools": "[<bool>]", "strings": "[<string>]", "octets": "[<bytes>]",
    "times": "[<timestamp>]", "durations": "[<duration>]", "dyns": "[<int>, <string>]", "intss": "[[<int>]]", "map": "{'a': <int>}",
    "names": "{'a': <string>}", "numbered": "{1: <string>}", "lists": "{'a': [<string>]}", "optint": "optional.of(<int>)",
    "optstring": "optional.of(<string>)", "optdyn": "optional.of(dyn(<int>))", "optints": "[optional.of(<int>)]",
}  # fmt: skip
_ROOTS = (
    *("bool",) * 6, *("int",) * 3, *("string",) * 3, *("double",) * 2, "uint", "bytes", "timestamp", "duration", "dyn", "dyn", "type",
    "ints", "doubles", "strings", "dyns", "map", "names", "numbered", "optint", "optstring", "optdyn", "formatted",
)  # fmt: skip
