"""How operators and the plainest functions are written in generated Python.

One table from overload id to a template over the operands' texts. `{0}`, `{1}` are operands, `{t}` a
fresh name. Names in a template are functions of `runtime` and of `values_equality` (see `GLOBALS`).
Whatever has no row here is called through the function table.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from koordpolicy.language.cel import ir, values_equality
from koordpolicy.language.cel.library.convert import int_from_double
from koordpolicy.language.cel.library.standard import value_type
from koordpolicy.language.cel.lower import runtime
from koordpolicy.language.cel.meter import charge, stop
from koordpolicy.language.cel.values import NONE, Optional
from koordpolicy.language.cel.values_equality import LONG_TEXT
from koordpolicy.language.cel.values_time import make_duration

EITHER: Final = "@either(bool,bool)"
"""The overload of a strict "or", of which no error is absorbed. No expression says it."""

_LOW, _HIGH = "-9223372036854775808", "9223372036854775807"


@dataclass(frozen=True, slots=True)
class Inline:
    """A template. `fails`: it may raise. `atoms`: operands that it repeats, so they must be names.
    `held`: operands are durations and points in time as nanoseconds. `long`: operands that may be long texts, whose
    reading a loop pays for. A template may name the `meter`.
    """

    text: str
    fails: bool = True
    atoms: tuple[int, ...] = ()
    held: bool = False
    long: tuple[int, ...] = ()

    @property
    def charges(self) -> bool:
        """Whether it takes the meter."""
        return "meter" in self.text


def _checked(operation: str) -> Inline:
    """An int operation whose result must fit int64."""
    return Inline(f"({{t}} if {_LOW} <= ({{t}} := {operation}) <= {_HIGH} else overflow())")


def _safe(text: str) -> Inline:
    return Inline(text, fails=False)


def _whole(operation: str) -> Inline:
    """A double operation cut to a whole quantity."""
    bounds = "-9.223372036854775e18 < ({t} := " + operation + ") < 9.223372036854775e18"
    return Inline("(int({t}) if " + bounds + " else whole({t}))")


def _comparisons() -> Iterator[tuple[str, Inline]]:
    named = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
    for operator, function in named.items():
        for kind in ("bool", "int", "uint", "double", "string", "bytes"):
            long = (0,) if kind in ("string", "bytes") else ()
            yield f"_{operator}_({kind},{kind})", Inline(f"({{0}} {operator} {{1}})", fails=False, long=long)
        for kind in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            yield f"_{operator}_({kind},{kind})", Inline(f"({{0}} {operator} {{1}})", fails=False, held=True)
        for a, b in (("int", "uint"), ("uint", "int")):
            yield f"_{operator}_({a},{b})", _safe(f"({{0}} {operator} {{1}})")
        for a, b in (("int", "double"), ("double", "int"), ("uint", "double"), ("double", "uint")):
            yield f"_{operator}_({a},{b})", _safe(f"{function}({{0}}, {{1}})")
        yield f"_{operator}_(dyn,dyn)", Inline(f"{function}({{0}}, {{1}}, meter)")


def _pairs(operator: str, word: str) -> Iterator[tuple[str, Inline]]:
    for kind in ("uint",):
        yield f"_{operator}_({kind},{kind})", Inline(f"{kind}_{word}({{0}}, {{1}})")
    meter = ", meter" if operator == "+" else ""
    yield f"_{operator}_(dyn,dyn)", Inline(f"{word}({{0}}, {{1}}{meter})")


_TIMESTAMP, _DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
_ROWS: tuple[tuple[str, Inline], ...] = (
    # Arithmetic
    ("_+_(int,int)", _checked("{0} + {1}")),
    ("_-_(int,int)", _checked("{0} - {1}")),
    ("_*_(int,int)", _checked("{0} * {1}")),
    ("_/_(int,int)", Inline("({0} // {1} if {0} >= 0 and {1} > 0 else int_divide({0}, {1}))", atoms=(0, 1))),
    ("_%_(int,int)", Inline("({0} % {1} if {0} >= 0 and {1} > 0 else int_modulo({0}, {1}))", atoms=(0, 1))),
    ("-_(int)", Inline("negate_int({0})")),
    ("_+_(double,double)", _safe("({0} + {1})")),
    ("_-_(double,double)", _safe("({0} - {1})")),
    ("_*_(double,double)", _safe("({0} * {1})")),
    ("_/_(double,double)", Inline("({0} / {1} if {1} else divide_by_zero({0}, {1}))", fails=False, atoms=(0, 1))),
    ("-_(double)", _safe("(-{0})")),
    ("_+_(string,string)", Inline("join_texts({0}, {1}, meter)")),
    ("_+_(bytes,bytes)", Inline("join_bytes({0}, {1}, meter)")),
    ("_+_(list,list)", Inline("join_lists({0}, {1}, meter)")),
    (f"_+_({_TIMESTAMP},{_DURATION})", Inline("shift({0}, {1})")),
    (f"_+_({_DURATION},{_TIMESTAMP})", Inline("shift({1}, {0})")),
    (f"_+_({_DURATION},{_DURATION})", Inline("longer({0}, {1})")),
    (f"_-_({_TIMESTAMP},{_DURATION})", Inline("shift_back({0}, {1})")),
    (f"_-_({_TIMESTAMP},{_TIMESTAMP})", Inline("between({0}, {1})")),
    (f"_-_({_DURATION},{_DURATION})", Inline("shorter({0}, {1})")),
    *_pairs("+", "add"),
    *_pairs("-", "subtract"),
    *_pairs("*", "multiply"),
    *_pairs("/", "divide"),
    *_pairs("%", "modulo"),
    ("-_(dyn)", Inline("negate({0})")),
    # Quantities
    ("scale(int,double)", _whole("{0} * {1}")),
    ("percent_of(int,double)", _whole("{0} * {1} / 100.0")),
    ("divide(int,double)", Inline("(whole({0} / {1}) if {1} else zero_divisor())", atoms=(1,))),
    # `* 1.0` rounds a long integer to a double first; Python's own int / int would not.
    ("quotient(int,int)", Inline("({0} * 1.0 / {1} if {1} else zero_divisor())", atoms=(1,))),
    ("quotient(double,double)", Inline("({0} / {1} if {1} else zero_divisor())", atoms=(1,))),
    # Logic, comparison, membership
    ("!_(bool)", _safe("(not {0})")),
    (EITHER, _safe("({0} | {1})")),
    ("!_(dyn)", Inline("(not as_bool({0}))")),
    *_comparisons(),
    ("@in(dyn,list)", Inline("in_list({0}, {1}, meter)")),
    ("@in(dyn,map)", _safe("in_map({0}, {1})")),
    ("@in(dyn,dyn)", Inline("contains({0}, {1}, meter)")),
    # The plainest functions
    ("dyn(dyn)", _safe("{0}")),
    ("dyn(A)", _safe("{0}")),
    ("type(dyn)", _safe("value_type({0})")),
    ("type(A)", _safe("value_type({0})")),
    *(
        (f"{dot}size({kind})", _safe("len({0})"))
        for dot in ("", ".")
        for kind in ("string", "bytes", "list(A)", "map(A,B)")
    ),
    ("startsWith(string,string)", Inline("{0}.startswith({1})", fails=False, long=(1,))),
    ("endsWith(string,string)", Inline("{0}.endswith({1})", fails=False, long=(1,))),
    (
        "contains(string,string)",
        Inline(f"({{1}} in {{0}} if len({{0}}) < {LONG_TEXT} else text_within({{0}}, {{1}}, meter))", atoms=(0, 1)),
    ),
    ("double(int)", _safe("({0} * 1.0)")),
    ("ratio(percent)", _safe("({0} / 100.0)")),
    ("percent(int)", _safe("({0} * 1.0)")),
    ("millicores(double)", Inline("int_from_double({0})")),
    ("bytesOf(double)", Inline("int_from_double({0})")),
    *(
        (id, _safe("{0}"))
        for id in (
            "int(int)", "uint(uint)", "double(double)", "string(string)", "bool(bool)", "bytes(bytes)",
            "number(int)", "number(double)", "amount(int)", "millicores(int)", "bytesOf(int)", "percent(double)",
        )
    ),
    # Optionals
    ("optional.of(T)", _safe("Optional({0})")),
    ("optional.none()", _safe("NONE")),
    ("hasValue(optional_type(T))", _safe("({0} is not NONE)")),
    # What only an unchecked expression holds
    ("error(unbound)", Inline("unbound({0})")),
    ("error(no_such_overload)", Inline("no_overload({0})")),
)  # fmt: skip

OPERATORS: Mapping[str, Inline] = MappingProxyType(dict(_ROWS))

_SPAN = f"({{t}} if {_LOW} <= ({{t}} := {{0}} %s {{1}}) <= {_HIGH} else make_duration({{t}}).ns)"

SPANS: Mapping[str, Inline] = MappingProxyType(
    {
        f"_-_({_TIMESTAMP},{_TIMESTAMP})": Inline(_SPAN % "-", held=True),
        f"_-_({_DURATION},{_DURATION})": Inline(_SPAN % "-", held=True),
        f"_+_({_DURATION},{_DURATION})": Inline(_SPAN % "+", held=True),
    }
)
"""Durations as nanoseconds, where nothing but these is asked for."""

_BY_CONSTANT: Mapping[str, Inline] = MappingProxyType(
    {
        "_/_(int,int)": Inline("({0} // {1} if {0} >= 0 else -(-{0} // {1}))", fails=False, atoms=(0,)),
        "_%_(int,int)": Inline("({0} % {1} if {0} >= 0 else -(-{0} % {1}))", fails=False, atoms=(0,)),
        "_/_(double,double)": _safe("({0} / {1})"),
        "quotient(int,int)": _safe("({0} * 1.0 / {1})"),
        "quotient(double,double)": _safe("({0} / {1})"),
        "divide(int,double)": _whole("{0} / {1}"),
    }
)
"""Shorter forms where the second operand is a positive constant."""

_OF_TWO: Mapping[str, Inline] = MappingProxyType(
    {
        f"{name}({kind})": Inline(f"({{1}} if {{1}} {sign} {{0}} else {{0}})", fails=False, atoms=(0, 1))
        for kind in ("int", "uint", "double")
        for name, sign in (("max", ">"), ("min", "<"), ("math.greatest", ">"), ("math.least", "<"))
    }
)
"""Functions of any number of arguments, called with two."""

_EXACT = 2**53


def specialise(overload: str, operands: Sequence[ir.Node]) -> Inline | None:
    """A shorter form of a call, where constant operands or their number permit one."""
    if len(operands) != 2:
        return None
    last = operands[1]
    if not isinstance(last, ir.Const):
        return _OF_TWO.get(overload)
    value = last.value
    if overload in _OF_TWO:
        return _OF_TWO[overload]
    if overload in _BY_CONSTANT:
        return _BY_CONSTANT[overload] if isinstance(value, (int, float)) and value > 0 else None
    # Python compares an int with a double exactly, CEL by the int's nearest double: the same for ints
    # that a double can hold.
    operator, _, kinds = overload[1:].partition("_")
    if kinds == "(double,int)" and operator in _SIGNS and isinstance(value, int) and abs(value) <= _EXACT:
        return _safe(f"({{0}} {operator} {{1}})")
    return None


_SIGNS = frozenset(("<", "<=", ">", ">="))

_RUNTIME = (
    "add", "as_bool", "as_optional", "between", "divide", "divide_by_zero", "find", "find_fact", "find_in",
    "find_key", "find_select", "get_element", "get_key", "has_fact", "has_key", "index", "int_divide",
    "int_modulo", "iterate", "iterate_pairs", "join_bytes", "join_lists", "join_texts", "longer", "make_map",
    "make_map_with_optionals", "map_pairs", "merge", "modulo", "multiply", "negate", "negate_int",
    "long_text", "no_overload", "overflow", "put", "select", "shift", "shift_back", "shorter", "sorted_keys",
    "spread", "subtract", "text_within", "uint_add", "uint_divide", "uint_modulo", "uint_multiply",
    "uint_subtract", "unbound", "whole", "zero_divisor",
)  # fmt: skip
_EQUALITY = (
    "among_numbers",
    "among_texts",
    "contains",
    "equal",
    "greater",
    "greater_equal",
    "in_list",
    "in_map",
    "less",
    "less_equal",
)

GLOBALS: Mapping[str, object] = MappingProxyType(
    {
        **{name: getattr(runtime, name) for name in _RUNTIME},
        **{name: getattr(values_equality, name) for name in _EQUALITY},
        "charge": charge,
        "stop": stop,
        "Optional": Optional,
        "NONE": NONE,
        "int_from_double": int_from_double,
        "make_duration": make_duration,
        "value_type": value_type,
    }
)
"""The names that templates and generated statements may use."""
