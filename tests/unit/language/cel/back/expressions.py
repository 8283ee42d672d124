"""Random well-typed expressions and values for them.

`PRODUCTIONS` is a grammar by type: `{int}` is a place for an int expression, `{bool|x:int}` one in which
a variable x of type int may be used (`$x` writes its name). `STANDARD` has what every implementation of
the language knows; `EXTENDED` adds libraries, optionals, facts and units.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.checker import Problem, check
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.types import (
    BOOL,
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
    record,
)
from koordpolicy.language.cel.values import Duration, Timestamp, UInt
from koordpolicy.language.facts import FACTS

Grammar = Mapping[str, tuple[str, ...]]
Choose = Callable[[Sequence[str]], str]
"""Picks one of several lines of a grammar."""

VARIABLES: dict[str, tuple[str, Type]] = {
    "i": ("int", INT), "j": ("int", INT), "u": ("uint", UINT), "d": ("double", DOUBLE), "b": ("bool", BOOL),
    "s": ("string", STRING), "li": ("ints", list_of(INT)), "ls": ("strings", list_of(STRING)),
    "m": ("map", map_of(STRING, INT)), "t": ("timestamp", TIMESTAMP), "du": ("duration", DURATION),
}  # fmt: skip
RECORDS = {"node": record("node"), "pod": record("pod"), "x": DYN}

LEAVES: Grammar = {
    "int": (
        "0",
        "1",
        "(-1)",
        "2",
        "7",
        "9223372036854775807",
        "(-9223372036854775808)",
        "4611686018427387904",
    ),
    "uint": ("0u", "1u", "5u", "18446744073709551615u"),
    "double": ("0.0", "1.0", "-1.5", "2.5e10", "9007199254740993.0", "1e308", "-0.0"),
    "bool": ("true", "false"),
    "string": ("''", "'a'", "'ab'", "'b'", "'é€'", "'10'", "'1.5'"),
    "ints": ("[1].filter(e, false)", "[1]", "[1, 2, 3]", "[3, -1, 2]"),
    "strings": ("['a']", "['a', 'b', 'ab']"),
    "map": ("{'a': 1}", "{'a': 1, 'b': 0}"),
    "timestamp": (
        "timestamp('2009-02-13T23:31:30Z')",
        "timestamp(0)",
        "timestamp(253402300799)",
        "timestamp(-62135596800)",
    ),
    "duration": ("duration('90s')", "duration('-1ns')", "duration('2000000h')"),
}

STANDARD: Grammar = {
    "int": (
        "({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} / {int})", "({int} % {int})",
        "(-{int})", "({bool} ? {int} : {int})", "size({string})", "size({ints})", "int({double})", "int({uint})",
        "{ints}[{int}]", "{map}['a']", "{map}[{string}]", "int({timestamp})", "{duration}.getSeconds()",
    ),
    "uint": ("({uint} + {uint})", "({uint} - {uint})", "({uint} * {uint})", "({uint} / {uint})", "({uint} % {uint})",
             "uint({int})", "({bool} ? {uint} : {uint})"),
    "double": ("({double} + {double})", "({double} - {double})", "({double} * {double})", "({double} / {double})",
               "(-{double})", "double({int})", "({bool} ? {double} : {double})"),
    "bool": (
        "({bool} && {bool})", "({bool} || {bool})", "({bool} && {bool} && {bool})", "({bool} || {bool} || {bool})",
        "(!{bool})", "({bool} ? {bool} : {bool})",
        "({int} < {int})", "({int} == {int})", "({int} >= {int})", "({double} < {double})", "({double} == {double})",
        "({double} != {double})", "({uint} <= {uint})", "({string} == {string})", "({string} < {string})",
        "({bool} == {bool})", "({timestamp} < {timestamp})", "({duration} >= {duration})",
        "({int} in {ints})", "({string} in {map})", "({string} in {strings})", "has({map}.b)",
        "{ints}.all($x, {bool|x:int})", "{ints}.exists($x, {bool|x:int})", "{ints}.exists_one($x, {bool|x:int})",
        "{map}.all($x, {bool|x:string})", "{map}.exists($x, {bool|x:string})",
        "{string}.startsWith({string})", "{string}.endsWith({string})", "{string}.contains({string})",
        "({ints} == {ints})",
    ),
    "string": ("({string} + {string})", "({bool} ? {string} : {string})", "{strings}[{int}]", "string({int})"),
    "ints": ("[{int}, {int}]", "({ints} + {ints})", "{ints}.filter($x, {bool|x:int})", "{ints}.map($x, {int|x:int})",
             "{ints}.map($x, {bool|x:int}, {int|x:int})"),
    "strings": ("[{string}, {string}]", "{strings}.filter($x, {bool|x:string})"),
    "map": ("{{'a': {int}, 'b': {int}}}", "({bool} ? {map} : {map})"),
    "timestamp": ("({timestamp} + {duration})", "({timestamp} - {duration})"),
    "duration": ("({timestamp} - {timestamp})", "({duration} + {duration})", "({duration} - {duration})"),
}  # fmt: skip

_MORE: Grammar = {
    "int": (
        "math.greatest({int}, {int})", "min({int}, {int})", "max({int}, {int}, {int})", "{ints}.sum()", "{ints}.min()",
        "{optint}.orValue({int})", "{optint}.value()", "cel.bind($x, {int}, {int|x:int})", "{string}.indexOf({string})",
        "math.bitAnd({int}, {int})", "math.bitShiftLeft({int}, {int})", "math.abs({int})", "{strings}.map($x, size($x)).sum()",
        "number({cpu})", "int(x)", "int(dyn({int}) + x)", "{ints}.indexOf({int})", "cel.bind($x, {ints}, {int|x:ints})",
    ),
    "double": ("math.ceil({double})", "math.round({double})", "({cpu} / {cpu})", "({memory} / {memory})", "ratio({percent})",
               "math.least({double}, {double})", "double({percent})"),
    "bool": (
        "({cpu} <= {cpu})", "({memory} > {memory})", "({percent} >= {percent})", "(dyn({int}) == {double})",
        "(dyn({double}) < {uint})", "(x == {int})", "(dyn({int}) < x)", "(x && {bool})", "({bool} || x)", "{optint}.hasValue()",
        "{ints}.all($x, $y, {bool|x:int|y:int})", "{map}.exists($x, $y, {bool|x:string|y:int})", "sets.contains({ints}, {ints})",
        "({optint} == {optint})", "has(node.usage.prod.cpu)", "has(node.labels.a)", "('a' in node.labels)",
        "(node.labels['a'] == {string})", "node.pods.all($x, {bool|x:pod})", "node.pods.exists($x, {bool|x:pod})",
        "{pod}.labels.all($x, {bool|x:string})", "({string} == {pod}.qos)", "{ints}.isSorted()", "(x in {ints})",
        "{string}.matches('^[ab]+$')", "[{bool}, {bool}].all($x, $x)", "optional.of({bool}).orValue(false)",
    ),
    "string": (
        "{string}.substring({int}, {int})", "{string}.upperAscii()", "{strings}.join(',')", "'%s|%d'.format([{string}, {int}])",
        "node.labels['a']", "{pod}.qos", "string({duration})", "{string}.replace({string}, {string})", "string({double})",
        "node.labels.?a.orValue({string})", "{string}.charAt({int})",
    ),
    "ints": (
        "{ints}.sort()", "{ints}.distinct()", "{ints}.reverse()", "{ints}.slice({int}, {int})", "lists.range(4)", "[?{optint}, {int}]",
        "{ints}.transformList($x, $y, {int|x:int|y:int})", "{ints}.sortBy($x, {int|x:int})",
    ),
    "strings": ("{string}.split(',')", "{map}.map($x, $x)", "{strings}.sort()", "node.pods.map($x, {string|x:pod})"),
    "map": ("{{?'a': {optint}, 'c': {int}}}", "{map}.transformMap($x, $y, {int|x:string|y:int})",
            "{map}.transformMapEntry($x, $y, {{$x + 'z': $y}})", "{map}.transformMap($x, $y, {bool|x:string|y:int}, $y)"),
    "optint": (
        "optional.of({int})", "{map}.?a", "{map}[?{string}]", "{ints}[?{int}]", "{optint}.or({optint})",
        "{optint}.optMap($x, {int|x:int})", "{optint}.optFlatMap($x, {optint|x:int})", "optional.ofNonZeroValue({int})",
        "{ints}.first()",
    ),
    "cpu": (
        "node.capacity.cpu", "node.usage.prod.cpu", "node.usage.system.cpu", "node.reserved.cpu", "cpu('1500m')", "cpu('4')",
        "({cpu} + {cpu})", "({cpu} - {cpu})", "({cpu} * {percent})", "({cpu} * {double})", "max({cpu}, {cpu})", "({cpu} / {int})",
        "({cpu} * {int})", "({bool} ? {cpu} : {cpu})", "node.pods.map($x, $x.request.cpu).sum()", "({cpu} / {double})", "(-{cpu})",
        "cel.bind($x, {cpu}, $x + $x)", "{pod}.request.cpu",
    ),
    "memory": ("node.capacity.memory", "memory('1.5Gi')", "({memory} - {memory})", "({memory} * {percent})",
               "({memory} + {memory})"),
    "percent": ("percent(65)", "percent(12.5)", "({percent} + {percent})", "({percent} - {percent})", "percent({int})"),
    "pod": ("pod",),
}  # fmt: skip
_EXTENDED_LEAVES: Grammar = {
    "optint": ("optional.of(1)", "{'a': 1}.?z"),
    "cpu": ("node.capacity.cpu", "node.usage.prod.cpu", "cpu('250m')"),
    "memory": ("node.capacity.memory", "memory('1Gi')"),
    "percent": ("percent(40)", "percent(0.1)"),
    "pod": ("pod",),
}

EXTENDED: Grammar = {kind: STANDARD.get(kind, ()) + _MORE.get(kind, ()) for kind in {**STANDARD, **_MORE}}
ALL_LEAVES: Grammar = {**LEAVES, **_EXTENDED_LEAVES}

_PLACE = re.compile(r"\{(\w+)((?:\|\w+:\w+)*)\}")
_NAME = re.compile(r"\$(\w+)")


@st.composite
def texts(draw: st.DrawFn, kind: str, grammar: Grammar = EXTENDED, depth: int = 4) -> str:
    """An expression of a type (a key of the grammar)."""
    return write(lambda options: draw(st.sampled_from(options)), kind, grammar, depth)


def write(choose: Choose, kind: str, grammar: Grammar = EXTENDED, depth: int = 4) -> str:
    """An expression of a type, by whoever chooses."""
    variables = {name: held for name, (held, _) in VARIABLES.items()}
    return _text(choose, kind, grammar, depth, variables, [0])


def _text(
    choose: Choose, kind: str, grammar: Grammar, depth: int, variables: Mapping[str, str], count: list[int]
) -> str:
    named = [name for name, held in variables.items() if held == kind]
    leaves = (*named, *named, *ALL_LEAVES[kind])
    if depth <= 0 or not grammar.get(kind):
        return choose(leaves)
    template = choose((*grammar[kind], *leaves[:3]))
    fresh: dict[str, str] = {}

    def name(short: str) -> str:
        if short not in fresh:
            count[0] += 1
            fresh[short] = f"v{count[0]}"
        return fresh[short]

    pieces: list[str] = []
    position = 0
    for place in _PLACE.finditer(template):
        pieces.append(_NAME.sub(lambda found: name(found.group(1)), template[position : place.start()]))
        position = place.end()
        inner = dict(variables)
        for short, held in (pair.split(":") for pair in place.group(2).split("|") if pair):
            inner[name(short)] = held
        pieces.append(_text(choose, place.group(1), grammar, depth - 1, inner, count))
    pieces.append(_NAME.sub(lambda found: name(found.group(1)), template[position:]))
    return "".join(pieces).replace("{{", "{").replace("}}", "}")


# Values

_INTS = st.sampled_from((0, 1, -1, 3, 10, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))) | st.integers(
    -20, 20
)
_DOUBLES = st.sampled_from((0.0, -0.0, 0.5, 1.0, 1e18, 2.0**63, float("inf"), float("nan"))) | st.floats(
    -9, 9
)
_STRINGS = st.sampled_from(("", "a", "b", "ab", "a,b", "é€", "10", "A b"))
_CPUS = st.sampled_from((0, 1, 500, 4000, 96_000, 2**62, 2**63 - 1))
_POD: dict[str, Any] = {
    "qos": _STRINGS,
    "priority": _INTS,
    "request.cpu": _CPUS,
    "labels": st.dictionaries(_STRINGS, _STRINGS, max_size=2),
}
_PODS = st.fixed_dictionaries({}, optional=_POD)
_NODE = st.fixed_dictionaries(
    {},
    optional={
        "capacity.cpu": _CPUS,
        "capacity.memory": st.sampled_from((0, 1, 2**30, 2**38 + 1)),
        "usage.prod.cpu": _CPUS,
        "usage.system.cpu": _CPUS,
        "reserved.cpu": _CPUS,
        "labels": st.dictionaries(st.sampled_from(("a", "b")), _STRINGS, max_size=2),
        "pods": st.lists(_PODS, max_size=3),
    },
)
_BY_KIND: dict[str, st.SearchStrategy[Any]] = {
    "int": _INTS,
    "uint": st.sampled_from((0, 1, 9, 2**63, 2**64 - 1)).map(UInt),
    "double": _DOUBLES,
    "bool": st.booleans(),
    "string": _STRINGS,
    "ints": st.lists(_INTS, max_size=4),
    "strings": st.lists(_STRINGS, max_size=3),
    "map": st.dictionaries(_STRINGS, _INTS, max_size=3),
    "timestamp": st.sampled_from((0, 1_234_567_890_123_456_000, -62_000_000_000 * 10**9)).map(Timestamp),
    "duration": st.sampled_from((0, 1_000, -(10**9), 5_400 * 10**9, 10**18)).map(Duration),
}
PLAIN_VALUES = st.fixed_dictionaries({name: _BY_KIND[kind] for name, (kind, _) in VARIABLES.items()})
ALL_VALUES = st.fixed_dictionaries(
    {name: _BY_KIND[kind] for name, (kind, _) in VARIABLES.items()}
    | {"node": _NODE, "pod": _PODS, "x": st.one_of(_INTS, _DOUBLES, _STRINGS, st.booleans(), st.none())}
)

ENVIRONMENT = Environment(
    variables={**{name: kind for name, (_, kind) in VARIABLES.items()}, **RECORDS},
    functions=FUNCTIONS,
    facts=FACTS,
)


def typed(text: str, environment: Environment = ENVIRONMENT) -> ir.Node:
    """The checked form of an expression that has to be right."""
    problems: list[Problem] = []
    node = check(parse(text), environment, problems, text)
    assert not problems, (text, problems)
    return node
