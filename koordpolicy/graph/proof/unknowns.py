"""Records of which only the declarations are known, and how an answer of the solver becomes records again."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import z3

from koordpolicy.graph.analysis.facts import bounds_of, choices_of, is_above_zero, record_of
from koordpolicy.graph.neutral import element
from koordpolicy.graph.proof.doubles import Doubles
from koordpolicy.graph.proof.pools import is_missable, is_root_missable, value_type_of
from koordpolicy.graph.proof.terms import (
    FALSE,
    TRUE,
    Bool,
    Double,
    Formula,
    Keyed,
    Listed,
    Maybe,
    Record,
    Symbolic,
    Text,
    Thing,
    Unknown,
    Value,
    Whole,
    both,
    choose,
    either,
    fresh_name,
    fresh_thing,
    good,
    pick,
)
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import INT_MAX, UINT_MAX, Duration, Timestamp, UInt
from koordpolicy.language.cel.values_time import NANOS

LEAST_MOMENT: Final = -62_135_596_800 * NANOS
GREATEST_MOMENT: Final = 253_402_300_799 * NANOS + NANOS - 1
DURATION: Final = "google.protobuf.Duration"
TIMESTAMP: Final = "google.protobuf.Timestamp"
_GREATEST_DOUBLE: Final = Fraction(2**1023)
_LONGEST_LIST: Final = 1_000_000
_MOST_DEPTH: Final = 3

Read = Callable[[Any], Any]
"""Gives a plain value by the solver's model."""


@dataclass
class Known:
    """A record of symbols: which paths were asked for, and how each is read from a model."""

    root: str
    facts: dict[str, tuple[Formula, Value, Read]] = field(default_factory=dict)
    record: Record | None = None
    exists: Formula = TRUE


class Unknowns:
    """Makes symbols for facts as they are asked for.

    With `elements` lists have up to so many elements, each a symbol; without, they are of any length. `keys` are the
    texts that maps are asked for by name.
    """

    def __init__(
        self, say: Callable[[Formula], None], doubles: Doubles, keys: Iterable[str], elements: int | None
    ) -> None:
        self._say = say
        self._doubles = doubles
        self.keys = tuple(keys)
        self.elements = elements
        self.roots: dict[str, Known] = {}
        self.plain: dict[str, tuple[Value, Read]] = {}
        self._by_record: dict[int, Known] = {}

    def root(self, name: str, kind: Type) -> Value:
        """A root: a record, or a fact by itself."""
        if kind.record is None:
            if name not in self.plain:
                declared = value_type_of(name, "") or kind
                self.plain[name] = self.value(declared, name, "", 0)
            return self.plain[name][0]
        known = self.roots.get(name)
        if known is None:
            known = self.roots[name] = self.known(name, 0)
        assert known.record is not None
        return known.record

    def known(self, root: str, depth: int) -> Known:
        """A record with symbols for its facts."""
        known = Known(root)
        if is_root_missable(root):
            known.exists = z3.Bool(fresh_name(f"has {root}"))

        def get(path: str) -> tuple[Formula, Value]:
            held = known.facts.get(path)
            if held is None:
                kind = value_type_of(root, path)
                present = z3.Bool(fresh_name(f"has {root}.{path}")) if is_missable(root, path) else TRUE
                made = (
                    (Thing(fresh_thing()), _nothing) if kind is None else self.value(kind, root, path, depth)
                )
                held = known.facts[path] = (both(known.exists, present), *made)
            return held[0], held[1]

        known.record = Record(fresh_thing(), get)
        self._by_record[id(known.record)] = known
        return known

    def paths(self, record: Record) -> list[str]:
        """The facts that were asked of a record of symbols."""
        known = self._by_record.get(id(record))
        return [] if known is None else list(known.facts)

    def value(self, kind: Type, root: str, path: str, depth: int) -> tuple[Value, Read]:
        """A symbol of a type, for the fact at a place, and how it is read."""
        name = fresh_name(f"{root}.{path}")
        match kind.name:
            case "bool":
                term = z3.Bool(name)
                return Bool(term), lambda model: z3.is_true(model.eval(term, model_completion=True))
            case "int" | "uint" | "google.protobuf.Duration" | "google.protobuf.Timestamp":
                return self._whole(kind, root, path, name)
            case "double":
                low, high = (Fraction(bound) for bound in bounds_of(root, path, kind))
                low = -_GREATEST_DOUBLE if low < -(2**60) else low
                high = _GREATEST_DOUBLE if high > 2**60 else high
                real = z3.Real(name)
                least = real > 0 if is_above_zero(root, path) else real >= z3.RealVal(str(low))
                self._say(both(least, real <= z3.RealVal(str(high))))
                return Double(real, None, low, high), lambda model: _double(model, real)
            case "string":
                text = z3.String(name)
                choices = choices_of(root, path)
                if choices:
                    self._say(either(*(text == z3.StringVal(choice) for choice in choices)))
                return Text(text), lambda model: _text(model.eval(text, model_completion=True))
            case "list":
                return self._list(kind.params[0], root, path, depth)
            case "map":
                return self._map(kind, root, path, depth)
            case "record":
                inner = self.known(kind.record or "", depth + 1)
                assert inner.record is not None
                return inner.record, lambda model: _record(model, inner)
        return Thing(fresh_thing()), _nothing

    def anything(self, kind: Type) -> Symbolic:
        """An outcome of a type, of which nothing more is known."""
        err = z3.Bool(fresh_name("fails"))
        return Symbolic(err, self.some(kind))

    def some(self, kind: Type) -> Value:
        """A value of a type, of which nothing more is known."""
        match kind.name:
            case "bool":
                return Bool(z3.Bool(fresh_name("some")))
            case "int" | "uint" | "google.protobuf.Duration" | "google.protobuf.Timestamp":
                low, high = limits_of(kind.name)
                term = z3.Int(fresh_name("some"))
                self._say(both(term >= low, term <= high))
                return Whole(term, low, high, kind.name)
            case "double":
                greatest = Fraction(2**1024 - 2**970)
                term, tag = z3.Real(fresh_name("some")), self._doubles.any_tag(fresh_name("tag"))
                self._say(both(term >= z3.RealVal(str(-greatest)), term <= z3.RealVal(str(greatest))))
                return Double(term, tag, -greatest, greatest)
            case "string":
                return Text(z3.String(fresh_name("some")))
            case "optional_type":
                inner = self.some(kind.params[0]) if kind.params else Thing(fresh_thing())
                return Maybe(z3.Bool(fresh_name("has")), inner)
            case "list":
                inner = self.some(kind.params[0]) if kind.params else Thing(fresh_thing())
                return Unknown(fresh_thing(), good(inner), TRUE)
            case "map":
                return self.some_map(kind)
            case "record":
                known = self.known(kind.record or "", _MOST_DEPTH)
                assert known.record is not None
                return known.record
        return Thing(fresh_thing())

    def some_map(self, kind: Type) -> Keyed:
        """A map of which nothing is known: presence and value for any key, the same for the same one."""
        values = kind.params[1] if len(kind.params) == 2 else Type("dyn")
        found: list[tuple[Value, Formula, Symbolic]] = []

        def find(key: Value) -> tuple[Formula, Symbolic]:
            for known, has, outcome in found:
                if known is key or (
                    isinstance(key, Text) and isinstance(known, Text) and known.term.eq(key.term)
                ):
                    return has, outcome
            made = (key, z3.Bool(fresh_name("has key")), good(self.some(values)))
            found.append(made)
            return made[1], made[2]

        size = z3.Int(fresh_name("size"))
        self._say(size >= 0)
        return Keyed(fresh_thing(), None, find, size)

    def _whole(self, kind: Type, root: str, path: str, name: str) -> tuple[Value, Read]:
        low, high = limits_of(kind.name)
        if kind.name != TIMESTAMP:
            least, most = bounds_of(root, path, kind)
            low, high = max(low, least), min(high, most)
        term = z3.Int(name)
        self._say(both(term >= low, term <= high))
        made = {"uint": UInt, DURATION: Duration, TIMESTAMP: Timestamp}.get(kind.name, int)
        return (
            Whole(term, low, high, kind.name),
            lambda model: made(model.eval(term, model_completion=True).as_long()),
        )

    def _list(self, kind: Type, root: str, path: str, depth: int) -> tuple[Value, Read]:
        thing = fresh_thing()
        if self.elements is None or depth >= _MOST_DEPTH:
            value, _ = self._element(kind, root, path, depth)
            return Unknown(thing, good(value), TRUE), lambda model: []
        length = z3.Int(fresh_name(f"size of {root}.{path}"))
        self._say(both(length >= 0, length <= self.elements))
        items, reads = [], []
        for at in range(self.elements):
            value, read = self._element(kind, root, path, depth)
            items.append((length > at, good(value)))
            reads.append(read)

        def plain(model: Any) -> list[Any]:
            count = model.eval(length, model_completion=True).as_long()
            return [read(model) for read in reads[:count]]

        return Listed(tuple(items), thing), plain

    def _element(self, kind: Type, root: str, path: str, depth: int) -> tuple[Value, Read]:
        if kind.record is None:
            return self.value(kind, root, path, depth + 1)
        known = self.known(kind.record, depth + 1)
        assert known.record is not None
        return known.record, lambda model: _record(model, known)

    def _map(self, kind: Type, root: str, path: str, depth: int) -> tuple[Value, Read]:
        entries: dict[str, tuple[Formula, Value, Read]] = {}
        for key in self.keys:
            value, read = self.value(kind.params[1], root, path, depth + 1)
            entries[key] = (z3.Bool(fresh_name(f"{root}.{path}[{key}]?")), value, read)
        others: list[tuple[Formula, Formula, Symbolic, Read]] = []
        size = z3.Int(fresh_name(f"size of {root}.{path}"))
        named = [pick(has, z3.IntVal(1), z3.IntVal(0)) for has, _, _ in entries.values()]
        self._say(both(size >= (z3.Sum(named) if named else 0), size <= _LONGEST_LIST))

        def find(key: Value) -> tuple[Formula, Symbolic]:
            if not isinstance(key, Text):
                return FALSE, good(self.some(kind.params[1]))
            if z3.is_string_value(key.term):
                known = entries.get(_text(key.term))
                if known is not None:
                    return known[0], good(known[1])
            has, outcome = self._other(others, key.term, kind, root, path, depth)
            for text, (present, value, _) in entries.items():
                same = key.term == z3.StringVal(text)
                has, outcome = pick(same, present, has), choose(same, good(value), outcome)
            return has, outcome

        def plain(model: Any) -> dict[str, Any]:
            made = {
                key: read(model)
                for key, (has, _, read) in entries.items()
                if z3.is_true(model.eval(has, model_completion=True))
            }
            for key, has, _, read in others:
                text = _text(model.eval(key, model_completion=True))
                if text not in entries and z3.is_true(model.eval(has, model_completion=True)):
                    made.setdefault(text, read(model))
            wanted = min(model.eval(size, model_completion=True).as_long(), 300)
            for at in range(wanted - len(made)):
                made[f"key-{at}"] = _filler(kind.params[1])
            return made

        return Keyed(fresh_thing(), None, find, size), plain

    def _other(
        self, others: list[Any], key: Formula, kind: Type, root: str, path: str, depth: int
    ) -> tuple[Formula, Symbolic]:
        """What a map has for a key that only run time knows."""
        for known, has, outcome, _ in others:
            if known.eq(key):
                return has, outcome
        value, read = self.value(kind.params[1], root, path, depth + 1)
        has = z3.Bool(fresh_name("has key"))
        others.append((key, has, good(value), read))
        return has, good(value)

    def records(self, model: Any, base: dict[str, Any]) -> dict[str, Any]:
        """The records of a model, over those of `base`."""
        made = dict(base)
        for name, (_, read) in self.plain.items():
            made[name] = read(model)
        for name, known in self.roots.items():
            if not z3.is_true(model.eval(known.exists, model_completion=True)):
                made[name] = {}
                continue
            usual = base.get(name)
            record = dict(usual) if usual else element(record_of(name), {})
            for path, (present, _, read) in known.facts.items():
                if z3.is_true(model.eval(present, model_completion=True)):
                    record[path] = read(model)
                else:
                    record.pop(path, None)
            made[name] = record
        return made


def limits_of(name: str) -> tuple[int, int]:
    """The least and the greatest value of a type that is held as an integer."""
    if name == "uint":
        return 0, UINT_MAX
    if name == TIMESTAMP:
        return LEAST_MOMENT, GREATEST_MOMENT
    return -INT_MAX - 1, INT_MAX


def _record(model: Any, known: Known) -> dict[str, Any]:
    said = {
        path: read(model)
        for path, (present, _, read) in known.facts.items()
        if z3.is_true(model.eval(present, model_completion=True))
    }
    made = element(known.root, said)
    for path in known.facts:
        if path not in said:
            made.pop(path, None)
    return made


def _double(model: Any, term: Formula) -> float:
    value = model.eval(term, model_completion=True)
    if z3.is_algebraic_value(value):
        value = value.approx(20)
    return float(Fraction(value.numerator_as_long(), value.denominator_as_long()))


def _text(term: Formula) -> str:
    """The text of a constant of the solver, which writes what is not plain ASCII by its number."""
    text: str = term.as_string() if z3.is_string_value(term) else ""
    made, at = [], 0
    while at < len(text):
        if text.startswith("\\u{", at):
            end = text.index("}", at)
            made.append(chr(int(text[at + 3 : end], 16)))
            at = end
        else:
            made.append(text[at])
        at += 1
    return "".join(made)


def _filler(kind: Type) -> Any:
    plain = {"string": "any", "double": 0.0, "bool": False}
    return plain.get(kind.name, 0)


def _nothing(model: Any) -> Any:
    return None
