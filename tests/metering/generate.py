"""Random well-typed expressions: every overload of the function table, operators, macros, shared structures."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from koordpolicy.language.cel.functions import Overload
from koordpolicy.language.cel.library import OVERLOADS
from koordpolicy.language.cel.types import (
    BOOL,
    BYTES_VALUE,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
)

_INTS, _TEXTS, _DOUBLES, _ANY = list_of(INT), list_of(STRING), list_of(DOUBLE), list_of(DYN)
_LISTS = list_of(_INTS)

LITERALS: Final[Mapping[Type, tuple[str, ...]]] = {
    INT: ("0", "3", "100", "i", "n", "big"),
    UINT: ("1u", "7u"),
    DOUBLE: ("1.5", "d", "1e300", "0.1"),
    BOOL: ("true", "false"),
    STRING: (
        "s", "same", "equal", "mixed", "wide", "pattern", "''", "'a'", "'abc'", "'%s %d %f %x'", "'%s'", "'a.{200}b'",
        "'[0-9]+'", "'(.*a){20}b'", "'2026-01-01T00:00:00Z'", "'1h30m'", "'10.0.0.1'", "'10.0.0.0/8'", "'1.5Gi'",
        "'https://example.com/a?b=c&d=e'", "'aGVsbG8='", "'America/New_York'", "'12345'",
    ),
    BYTES_VALUE: ("b'abc'", "bytes(same)", "bytes(wide)"),
    TIMESTAMP: ("now", "timestamp('2026-01-01T00:00:00Z')"),
    DURATION: ("duration('90s')", "duration('1h')"),
    DYN: ("any", "odd", "dyn(1)", "dyn(same)", "dyn(texts)", "dyn(labels)", "odd.text", "odd.list"),
    _INTS: ("numbers", "lists.range(n)", "lists.range(big)", "[1, 2, 3]", "numbers.reverse()"),
    _TEXTS: ("texts", "longs", "['a', 'b']", "[same, equal]", "mixed.split(',')", "labels.map(k, k)"),
    _DOUBLES: ("doubles", "[1.5, 2.5]"),
    _LISTS: ("nested", "[numbers, numbers]", "numbers.map(e, numbers)", "lists.range(n).map(e, [e, e])"),
    _ANY: ("any", "dyn(any)", "[dyn(1), dyn('a')]", "texts.map(e, dyn(e))"),
    map_of(STRING, STRING): ("labels", "{'a': same}", "texts.transformMapEntry(k, v, {string(k): v})"),
    map_of(INT, INT): ("counts", "{1: 2}", "numbers.transformMap(k, v, v + k)"),
}  # fmt: skip

BINARY: Final[Mapping[Type, tuple[str, ...]]] = {
    INT: ("<int> + <int> % 7", "<int> - <int>", "<int> * 2", "size(<texts>)", "size(<ints>)", "size(<string>)"),
    STRING: ("<string> + <string>", "<string> + s", "string(<int>)", "string(<double>)", "<texts>[<int>]"),
    BOOL: (
        "<string> == <string>", "<string> < <string>", "<ints> == <ints>", "<texts> == <texts>", "<lists> == <lists>",
        "<any> == <any>", "<dyn> == <dyn>", "<string> in <texts>", "<int> in <ints>", "<ints> in <lists>",
        "<dyn> in <any>", "<string> in <labels>", "<labels> == <labels>", "<int> < <double>", "<bool> && <bool>",
        "<bool> || <bool>", "<bool> ? <bool> : <bool>", "<ints>.all(v1, <bool>)", "<ints>.exists(v2, <bool>)",
        "<texts>.exists_one(v3, v3 == <string>)", "<texts>.all(v4, v4.contains(<string>))",
        "<ints>.all(v5, <ints>.exists(v6, v5 + v6 == <int>))", "<labels>.exists(k1, labels[k1] == <string>)",
        "<ints>.exists(v7, 1 / (v7 - v7) > 0 || <bool>)", "<dyn>.exists(v8, v8 == <dyn>)",
        "<texts>.all(v9, v9 < <string>)", "<texts>.exists(w1, w1 in labels)", "<ints>.all(w2, same == equal)",
        "<labels>.all(k2, v10, v10 != k2 + <string>)",
    ),
    _INTS: (
        "<ints> + <ints>", "<ints>.map(x1, x1 * 2)", "<ints>.filter(x2, x2 % 3 == 0)", "<ints>.map(x3, <int>)",
        "<texts>.map(x4, size(x4))", "<ints>.sortBy(x5, -x5)", "<lists>.flatten()", "<texts>.map(x6, x6.size())",
        "<ints>.transformList(a1, b1, a1 + b1)", "[<int>, <int>, <int>]",
    ),
    _TEXTS: (
        "<texts> + <texts>", "<ints>.map(y1, string(y1))", "<ints>.map(y2, <string>)", "<texts>.map(y3, y3 + <string>)",
        "<texts>.filter(y4, y4 != <string>)", "[<string>, <string>]", "<texts>.sortBy(y5, y5.reverse())",
        "<ints>.map(y6, '%s'.format([<dyn>]))", "<texts>.map(y7, y7.replace('a', 'bc'))",
        "<labels>.transformList(k3, v11, k3 + v11)",
    ),
    _LISTS: ("<ints>.map(z1, <ints>)", "[<ints>, <ints>]", "<lists> + <lists>", "<ints>.map(z2, [z2, z2, z2])"),
    _ANY: ("[dyn(<string>), dyn(<ints>)]", "<ints>.map(z3, dyn(<any>))", "<lists>.map(z4, dyn(z4))"),
    DYN: ("dyn(<ints>)", "dyn(<lists>)", "dyn(<string>)", "dyn(<labels>)", "dyn(<dyn>)", "<any>[<int>]"),
    DOUBLE: ("<double> * 2.0", "double(<int>)", "<doubles>.sum()"),
    map_of(STRING, STRING): ("<texts>.transformMapEntry(k4, v12, {v12 + string(k4): <string>})",),
}  # fmt: skip

_WORDS: Final[Mapping[str, Type]] = {
    "int": INT, "double": DOUBLE, "bool": BOOL, "string": STRING, "dyn": DYN, "ints": _INTS, "texts": _TEXTS,
    "doubles": _DOUBLES, "lists": _LISTS, "any": _ANY, "labels": map_of(STRING, STRING),
}  # fmt: skip


class Generator:
    """Draws expressions; the same seed draws the same."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._calls: dict[Type, list[Overload]] = {}
        for overload in OVERLOADS.values():
            self._calls.setdefault(_ground(overload.result), []).append(overload)

    def expression(self) -> str:
        """One expression of any type."""
        if self._random.random() < 0.1:
            return self._shared()
        if self._random.random() < 0.5:
            return self._call(self._random.choice(list(OVERLOADS.values())), self._random.randint(0, 2))
        kind = self._random.choice([*BINARY, BOOL, BOOL, _TEXTS])
        return self.of(kind, self._random.randint(1, 3))

    def of(self, kind: Type, depth: int) -> str:
        """An expression of a type, nested so deep at most."""
        lines = BINARY.get(kind, ())
        calls = self._calls.get(kind, [])
        if depth <= 0 or not (lines or calls):
            return self._leaf(kind)
        drawn = self._random.random()
        if drawn < 0.15:
            return self._leaf(kind)
        if calls and (drawn < 0.5 or not lines):
            return self._call(self._random.choice(calls), depth - 1)
        return f"({self._filled(self._random.choice(lines), depth - 1)})"

    def _leaf(self, kind: Type) -> str:
        if kind in LITERALS:
            return self._random.choice(LITERALS[kind])
        match kind.name:
            case "list":
                return f"[{self._leaf(kind.params[0])}]"
            case "optional_type":
                return f"optional.of({self._leaf(kind.params[0])})"
            case "map":
                return f"{{{self._leaf(kind.params[0])}: {self._leaf(kind.params[1])}}}"
            case "net.IP":
                return "ip('10.0.0.1')"
            case "net.CIDR":
                return "cidr('10.0.0.0/8')"
            case "kubernetes.Quantity":
                return "quantity('1.5Gi')"
            case "kubernetes.URL":
                return "url('https://example.com/a?b=c&d=e')"
            case "int":
                return "cpu('500m')"
            case "double":
                return "percent(65)"
        return "dyn(1)"

    def _filled(self, line: str, depth: int) -> str:
        for word, kind in _WORDS.items():
            while f"<{word}>" in line:
                line = line.replace(f"<{word}>", self.of(kind, depth), 1)
        return line

    def _call(self, overload: Overload, depth: int) -> str:
        name = overload.id.partition("(")[0].removeprefix(".")
        arguments = [self.of(_ground(kind), depth) for kind in overload.params]
        if overload.variadic:
            arguments += [
                self.of(_ground(overload.params[-1]), depth) for _ in range(self._random.randint(0, 3))
            ]
        if overload.receiver:
            return f"({arguments[0]}).{name}({', '.join(arguments[1:])})"
        return f"{name}({', '.join(arguments)})"

    def _shared(self) -> str:
        """Lists of lists of the same lists, or texts of texts, and something that unfolds them."""
        levels = self._random.randint(2, 40)
        start = self._random.choice(
            ("[1, 1]", "[same, equal]", "['a']", "[dyn(1), dyn('b')]", "{'a': 1}", "same")
        )
        join = self._random.choice(("[{0}, {0}]", "[{0}, {0}, {0}]", "[{0}]", "{0} + {0}"))
        if start == "{'a': 1}" or (start == "same" and join != "{0} + {0}"):
            join = "[{0}, {0}]"
        names = [f"q{at}" for at in range(levels)]
        values = [start, *(join.format(name) for name in names[:-1])]
        last, other = names[-1], names[max(0, levels - 2)]
        asked = self._random.choice(
            (
                "{0} == {0}", "'%s'.format([{0}])", "dyn({0}) == dyn({1})", "[{0}, {0}].distinct()", "{0} in [{0}]",
                "size({0})", "sets.contains([{0}], [{0}])", "[{0}].indexOf({0})", "dyn({0}) in [dyn({1})]",
                "[{0}] == [{0}]", "lists.range(50).all(v, {0} == {0})", "optional.of({0}) == optional.of({0})",
                "dyn([{0}]).flatten(30).size()", "{{'a': {0}}} == {{'a': {0}}}",
            )
        ).format(last, other)  # fmt: skip
        binds = "".join(f"cel.bind({name}, {value}, " for name, value in zip(names, values, strict=True))
        return binds + asked + ")" * levels


def _ground(kind: Type) -> Type:
    """A type without parameters: ints for most of them."""
    if kind.name == "param":
        return INT
    if kind.unit is not None:
        return kind
    return Type(kind.name, tuple(_ground(part) for part in kind.params), kind.unit, kind.record)


def expressions(seed: int) -> Iterator[str]:
    """Random expressions without end."""
    draw: Callable[[], str] = Generator(seed).expression
    while True:
        yield draw()
