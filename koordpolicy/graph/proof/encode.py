"""Expressions as terms of the solver, node by node, errors and laziness as the language has them."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from typing import Final

import z3

from koordpolicy.graph.proof.calls import CALLS
from koordpolicy.graph.proof.doubles import Doubles
from koordpolicy.graph.proof.loops import Locals, Loops, Proves
from koordpolicy.graph.proof.patterns import pattern_of
from koordpolicy.graph.proof.terms import (
    FALSE,
    TRUE,
    Bool,
    Double,
    Formula,
    Keyed,
    Listed,
    Maybe,
    Null,
    Record,
    Symbolic,
    Text,
    Thing,
    Value,
    Whole,
    both,
    choose,
    either,
    fresh_thing,
    good,
    no,
    pick,
    unlike,
)
from koordpolicy.graph.proof.unknowns import DURATION, TIMESTAMP, Unknowns
from koordpolicy.graph.proof.work import Work
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import Numbering
from koordpolicy.language.cel.permitted import Permitted
from koordpolicy.language.cel.types import BOOL, Type
from koordpolicy.language.cel.values import Duration, Optional, Timestamp, UInt, key_value

MOST_NODES: Final = 20_000
"""Nodes that are encoded for one question: what is unrolled multiplies them."""


class TooLarge(Exception):
    """The question has more parts than are encoded."""


class Encoder:
    """Expressions of one numbering as outcomes over the same unknown facts.

    `gaps` are the constructs that are known by name alone; where there is one, an answer of the solver may be wrong.
    Of nodes with a number in `hidden` it is not looked at what they come to, only that it is the same each time.
    """

    def __init__(
        self,
        table: Numbering,
        keys: tuple[str, ...],
        elements: int | None,
        proves: Proves,
        hidden: AbstractSet[int] = frozenset(),
    ) -> None:
        self.facts: list[Formula] = []
        self.gaps: dict[str, None] = {}
        self.table = table
        self._hidden = hidden
        self.doubles = Doubles(self.say)
        self.unknowns = Unknowns(self.say, self.doubles, keys, elements)
        self.work = Work(
            self.unknowns, self.doubles, self.say, self.gap, lambda formula: proves(self.facts, formula)
        )
        self._done: dict[tuple[int, tuple[int, ...]], Symbolic] = {}
        self._kept: list[Locals] = []  # so that no identity in a key of `_done` is given away twice
        self._count = 0
        self._rules: Mapping[type[ir.Node], Callable[..., Symbolic]] = {
            ir.Field: self._field,
            ir.OptField: self._optional_field,
            ir.HasField: self._has,
            ir.Call: self._call,
            ir.Cond: self._condition,
            ir.Holds: self._holds,
            ir.OrElse: self._or_else,
            ir.Cast: self._cast,
            ir.MakeList: self._make_list,
            ir.MakeMap: self._make_map,
            ir.OptMap: self._opt_map,
            ir.Comprehension: Loops(self, proves).comprehension,
        }

    def say(self, fact: Formula) -> None:
        """Something that is true."""
        if not fact.eq(TRUE):
            self.facts.append(fact)

    def gap(self, what: str) -> None:
        """Remember a construct that is known by name alone."""
        self.gaps[what] = None

    def outcome(self, root: ir.Node) -> Symbolic:
        """What a whole expression comes to."""
        return self.encode(root, {})

    def encode(self, node: ir.Node, env: Locals) -> Symbolic:
        """What a node comes to, with the local variables that it needs."""
        n = self.table.of(node)
        free = self.table.free[n]
        key = (n, tuple(id(env[name]) for name in sorted(free)))
        known = self._done.get(key)
        if known is None:
            self._count += 1
            if self._count > MOST_NODES:
                raise TooLarge
            known = self._done[key] = (
                self.unknowns.anything(node.type) if n in self._hidden else self._node(node, env)
            )
            if free:
                self._kept.append(env)
        return known

    def _node(self, node: ir.Node, env: Locals) -> Symbolic:
        match node:
            case ir.Const():
                return self.constant(node.value, node.type)
            case ir.Var(name=name, local=True):
                return env[name]
            case ir.Var(name=name):
                return good(self.unknowns.root(name, node.type))
            case ir.Select():
                key = good(Text(z3.StringVal(node.field)))
                return self._find(
                    self.encode(node.operand, env), key, node.type, node.optional, node.test, node
                )
            case ir.Index():
                operand, key = self.encode(node.operand, env), self.encode(node.index, env)
                return self._find(operand, key, node.type, node.optional, False, node)
            case ir.And() | ir.Or():
                return self._logic(
                    [self.encode(arg, env) for arg in node.args], decides=isinstance(node, ir.Or)
                )
            case ir.Bind(name=name, init=init, body=body):
                return self.encode(body, {**env, name: self.encode(init, env)})
        rule = self._rules.get(type(node))
        return self.opaque(node, type(node).__name__) if rule is None else rule(node, env)

    def opaque(self, node: ir.Node, what: str) -> Symbolic:
        """A node that is known by itself alone: equal nodes come to the same."""
        self.gap(what)
        return self.unknowns.anything(node.type)

    # Constants

    def constant(self, value: object, kind: Type) -> Symbolic:
        """A run-time value."""
        if value is None:
            return Symbolic(FALSE, Null(), TRUE)
        return good(self._plain(value, kind))

    def _plain(self, value: object, kind: Type) -> Value:
        inner = kind.params[-1] if kind.params else Type("dyn")
        match value:
            case bool():
                return Bool(TRUE if value else FALSE)
            case UInt():
                return Whole(z3.IntVal(int(value)), int(value), int(value), "uint")
            case int():
                return Whole(z3.IntVal(value), value, value)
            case float():
                return self.doubles.constant(value)
            case str():
                return Text(z3.StringVal(value))
            case Duration(ns=ns):
                return Whole(z3.IntVal(ns), ns, ns, DURATION)
            case Timestamp(ns=ns):
                return Whole(z3.IntVal(ns), ns, ns, TIMESTAMP)
            case Optional():
                if value.value is None:
                    return Maybe(FALSE, self.unknowns.some(inner))
                return Maybe(TRUE, self._plain(value.value, inner))
            case list() | tuple():
                return Listed(tuple((TRUE, self.constant(item, inner)) for item in value), fresh_thing())
            case dict():
                return self.keyed(
                    tuple(
                        (TRUE, self._plain(key_value(key), Type("dyn")), self.constant(held, inner))
                        for key, held in value.items()
                    ),
                    kind,
                )
        self.gap(type(value).__name__)
        return Thing(fresh_thing())

    def keyed(self, entries: tuple[tuple[Formula, Value, Symbolic], ...], kind: Type) -> Keyed:
        """A map of known entries, whose keys are not the same."""
        values = kind.params[1] if len(kind.params) == 2 else Type("dyn")
        nothing: list[Symbolic] = []

        def find(key: Value) -> tuple[Formula, Symbolic]:
            if not nothing:
                # Where there is no such key, what is found does not count: any value of the kind will do.
                nothing.append(entries[0][2] if entries else good(self.unknowns.some(values)))
            has, found = FALSE, nothing[0]
            for guard, known, outcome in entries:
                same = both(guard, self.work.equal(known, key))
                has, found = either(has, same), choose(same, outcome, found)
            return has, found

        counts = [pick(guard, z3.IntVal(1), z3.IntVal(0)) for guard, _, _ in entries]
        return Keyed(fresh_thing(), entries, find, z3.Sum(counts) if counts else z3.IntVal(0))

    # Facts and parts of values

    def _field(self, node: ir.Field, env: Locals) -> Symbolic:
        base = self.encode(node.base, env)
        if not isinstance(base.value, Record):
            return self.opaque(node, "a fact of an unknown record")
        present, value = base.value.get(node.path)
        return Symbolic(either(base.err, no(present)), value)

    def _optional_field(self, node: ir.OptField, env: Locals) -> Symbolic:
        base = self.encode(node.base, env)
        record, there = base.value, TRUE
        if isinstance(record, Maybe):
            there, record = record.has, record.value
        if not isinstance(record, Record):
            return self.opaque(node, "an optional fact of an unknown record")
        present, value = record.get(node.path)
        return Symbolic(base.err, Maybe(both(there, present), value))

    def _has(self, node: ir.HasField, env: Locals) -> Symbolic:
        base = self.encode(node.base, env)
        if not isinstance(base.value, Record):
            return self.opaque(node, "a fact of an unknown record")
        record = base.value
        return Symbolic(base.err, Bool(either(*(record.get(path)[0] for path in node.paths))))

    def _find(
        self, operand: Symbolic, key: Symbolic, kind: Type, optional: bool, test: bool, node: ir.Node
    ) -> Symbolic:
        held, there = operand.value, TRUE
        if isinstance(held, Maybe):
            there, optional, held = held.has, True, held.value
        if isinstance(held, Keyed):
            has, found = held.find(key.value)
        elif isinstance(held, Listed) and isinstance(key.value, Whole):
            has, found = self._element(held, key.value, kind)
        else:
            return self.opaque(node, "an element of an unknown value")
        err = either(operand.err, key.err)
        if test:
            return Symbolic(err, Bool(both(there, has)))
        if optional:
            if isinstance(found.value, Null):
                return self.opaque(node, "an optional null")
            return Symbolic(err, Maybe(both(there, has), found.value))
        return Symbolic(either(err, no(has), found.err), found.value, found.null)

    def _element(self, held: Listed, at: Whole, kind: Type) -> tuple[Formula, Symbolic]:
        wanted = kind.params[0] if kind.name == "optional_type" else kind
        has, found = FALSE, held.items[0][1] if held.items else good(self.unknowns.some(wanted))
        before = z3.IntVal(0)
        for guard, item in held.items:
            here = both(guard, before == at.term)
            has, found = either(has, here), choose(here, item, found)
            before = before + pick(guard, z3.IntVal(1), z3.IntVal(0))
        return has, found

    # Calls, logic and choices

    def _call(self, node: ir.Call, env: Locals) -> Symbolic:
        args = [self.encode(arg, env) for arg in node.args]
        name = node.overload.partition("(")[0].removeprefix(".")
        if name == "error":
            return Symbolic(TRUE, self.unknowns.some(node.type))
        rule = CALLS.get(node.overload) or CALLS.get(name)
        made = None
        if rule is not None and not any(isinstance(arg.value, Null) for arg in args):
            made = rule(self.work, node, [arg.value for arg in args])
        if made is None:
            if name in ("_==_", "_!=_"):
                made = self._null_equality(args, negative=name == "_!=_")
            if made is None:
                made = self.work.named(node, [arg.value for arg in args])
        err = either(made.err, *(arg.err for arg in args))
        return Symbolic(err, made.value, made.null)

    def _null_equality(self, args: list[Symbolic], *, negative: bool) -> Symbolic | None:
        one, other = args
        if one.null.eq(FALSE) and other.null.eq(FALSE):
            return None
        same = no(unlike(Symbolic(FALSE, one.value, one.null), Symbolic(FALSE, other.value, other.null)))
        if not (isinstance(one.value, Null) or isinstance(other.value, Null)):
            return None
        return good(Bool(no(same) if negative else same))

    def _logic(self, args: list[Symbolic], *, decides: bool) -> Symbolic:
        """`&&` (false decides) or `||`: a decisive operand absorbs the errors of the others."""
        decided, failed = [], []
        for given in args:
            arg = given
            if not isinstance(given.value, Bool):
                arg = self.unknowns.anything(BOOL)
                self.gap("logic of an unknown type")
            assert isinstance(arg.value, Bool)
            holds = arg.value.term if decides else no(arg.value.term)
            decided.append(both(no(arg.err), holds))
            failed.append(arg.err)
        any_decided = either(*decided)
        return Symbolic(
            both(no(any_decided), either(*failed)), Bool(any_decided if decides else no(any_decided))
        )

    def _condition(self, node: ir.Cond, env: Locals) -> Symbolic:
        # Decisions are long chains of conditions: walked, not recursed into.
        chain: list[tuple[Symbolic, Symbolic]] = []
        rest: ir.Node = node
        while isinstance(rest, ir.Cond):
            chain.append((self.encode(rest.condition, env), self.encode(rest.then, env)))
            rest = rest.otherwise
        made = self.encode(rest, env)
        for condition, then in reversed(chain):
            if not isinstance(condition.value, Bool):
                return self.opaque(node, "a condition of an unknown type")
            chosen = choose(condition.value.term, then, made)
            made = Symbolic(either(condition.err, chosen.err), chosen.value, chosen.null)
        return made

    def _holds(self, node: ir.Holds, env: Locals) -> Symbolic:
        operand, other = self.encode(node.operand, env), self.encode(node.otherwise, env)
        if operand.err.eq(FALSE):
            return operand
        if not isinstance(operand.value, Bool) or not isinstance(other.value, Bool):
            return self.opaque(node, "a condition of an unknown type")
        chosen = choose(operand.err, other, Symbolic(FALSE, operand.value, operand.null))
        return Symbolic(both(operand.err, other.err), chosen.value, chosen.null)

    def _or_else(self, node: ir.OrElse, env: Locals) -> Symbolic:
        operand, other = self.encode(node.operand, env), self.encode(node.other, env)
        if not isinstance(operand.value, Maybe):
            return self.opaque(node, "an optional of an unknown type")
        held = operand.value
        if node.unwrap:
            made = choose(held.has, good(held.value), other)
        elif isinstance(other.value, Maybe):
            value = choose(held.has, good(held.value), good(other.value.value)).value
            has = either(held.has, other.value.has)
            made = Symbolic(both(no(held.has), other.err), Maybe(has, value))
        else:
            return self.opaque(node, "an optional of an unknown type")
        return Symbolic(either(operand.err, made.err), made.value, made.null)

    def _cast(self, node: ir.Cast, env: Locals) -> Symbolic:
        operand = self.encode(node.operand, env)
        value = operand.value
        fits = (
            (isinstance(value, Bool) and node.type.name == "bool")
            or (isinstance(value, Text) and node.type.name == "string")
            or (isinstance(value, Double) and node.type.name == "double")
            or (isinstance(value, Whole) and value.kind == node.type.name)
            or (isinstance(value, Listed) and node.operand.type == node.type)
        )
        refused = self._refused(operand, node.permitted) if fits else None
        if refused is None:
            return self.opaque(node, "a cast")
        return Symbolic(either(operand.err, both(no(operand.null), refused)), value, operand.null)

    def _refused(self, one: Symbolic, permitted: Permitted | None) -> Formula | None:
        """Whether a place does not take a value; None where that is not known."""
        if permitted is None:
            return FALSE
        match one.value:
            case Listed(items=items):
                found = [self._refused(item, permitted) for _, item in items]
                if any(refused is None for refused in found):
                    return None
                return either(
                    *(both(guard, refused) for (guard, _), refused in zip(items, found, strict=True))
                )
            case Text(term):
                return _refused_text(term, permitted)
            case Whole() | Double(tag=None) as number:
                return no(both(*_bounds(number.term, permitted)))
            case Bool():
                return FALSE
        return None

    def _opt_map(self, node: ir.OptMap, env: Locals) -> Symbolic:
        operand = self.encode(node.operand, env)
        if not isinstance(operand.value, Maybe):
            return self.opaque(node, "an optional of an unknown type")
        held = operand.value
        body = self.encode(node.body, {**env, node.name: good(held.value)})
        err = either(operand.err, both(held.has, body.err))
        if node.flat:
            if not isinstance(body.value, Maybe):
                return self.opaque(node, "an optional of an unknown type")
            return Symbolic(err, Maybe(both(held.has, body.value.has), body.value.value))
        return Symbolic(err, Maybe(held.has, body.value))

    def _make_list(self, node: ir.MakeList, env: Locals) -> Symbolic:
        items, errors = [], []
        for at, part in enumerate(node.elements):
            made = self.encode(part, env)
            errors.append(made.err)
            if at in node.optional:
                if not isinstance(made.value, Maybe):
                    return self.opaque(node, "an optional of an unknown type")
                items.append((made.value.has, good(made.value.value)))
            else:
                items.append((TRUE, Symbolic(FALSE, made.value, made.null)))
        return Symbolic(either(*errors), Listed(tuple(items), fresh_thing()))

    def _make_map(self, node: ir.MakeMap, env: Locals) -> Symbolic:
        entries, errors = [], []
        for at, (key, part) in enumerate(node.entries):
            name, made = self.encode(key, env), self.encode(part, env)
            errors += [name.err, made.err]
            if at in node.optional:
                if not isinstance(made.value, Maybe):
                    return self.opaque(node, "an optional of an unknown type")
                entries.append((made.value.has, name.value, good(made.value.value)))
            else:
                entries.append((TRUE, name.value, Symbolic(FALSE, made.value, made.null)))
        for (_, one, _), (_, other, _) in pairwise(entries):
            errors.append(self.work.equal(one, other))
        if len(entries) > 2:
            errors += [
                self.work.equal(one[1], other[1])
                for at, one in enumerate(entries)
                for other in entries[at + 2 :]
            ]
        return Symbolic(either(*errors), self.keyed(tuple(entries), node.type))


def _refused_text(term: Formula, permitted: Permitted) -> Formula | None:
    refused = FALSE
    if permitted.choices:
        refused = no(either(*(term == z3.StringVal(choice) for choice in permitted.choices)))
    if permitted.pattern:
        found = pattern_of(permitted.pattern, python=True)
        if found is None:
            return None
        refused = either(refused, no(z3.InRe(term, found)))
    return refused


def _bounds(term: Formula, permitted: Permitted) -> Iterator[Formula]:
    """What holds of a number that a place takes."""
    if isfinite(permitted.low):
        low = z3.RealVal(str(Fraction(permitted.low)))
        yield term >= low if permitted.low_fits else term > low
    if isfinite(permitted.high):
        yield term <= z3.RealVal(str(Fraction(permitted.high)))
