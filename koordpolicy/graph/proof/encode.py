"""Expressions as terms of the solver, node by node, errors and laziness as the language has them."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

import z3

from koordpolicy.graph.proof.calls import CALLS
from koordpolicy.graph.proof.doubles import Doubles
from koordpolicy.graph.proof.terms import (
    FALSE,
    TRUE,
    Bool,
    Formula,
    Keyed,
    Listed,
    Maybe,
    Null,
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
from koordpolicy.language.cel.types import BOOL, Type
from koordpolicy.language.cel.values import Duration, Optional, Timestamp, UInt, key_value

Locals = Mapping[str, Symbolic]
Proves = Callable[[list[Formula], Formula], bool]
"""Whether a formula can never hold together with others."""

MOST_NODES: Final = 20_000
"""Nodes that are encoded for one question: what is unrolled multiplies them."""


class TooLarge(Exception):
    """The question has more parts than are encoded."""


class Encoder:
    """Expressions of one numbering as outcomes over the same unknown facts.

    `gaps` are the constructs that are known by name alone; where there is one, an answer of the solver may be wrong.
    """

    def __init__(self, table: Numbering, keys: tuple[str, ...], elements: int | None, proves: Proves) -> None:
        self.facts: list[Formula] = []
        self.gaps: dict[str, None] = {}
        self.table = table
        self.doubles = Doubles(self.say)
        self.unknowns = Unknowns(self.say, self.doubles, keys, elements)
        self._work = Work(self.unknowns, self.doubles, self.say, self.gap)
        self._proves = proves
        self._done: dict[tuple[int, tuple[int, ...]], Symbolic] = {}
        self._kept: list[Locals] = []  # so that no identity in a key of `_done` is given away twice
        self._loops: list[tuple[ir.Comprehension, Locals, Symbolic, Symbolic]] = []
        self._count = 0
        self._rules: Mapping[type[ir.Node], Callable[..., Symbolic]] = {
            ir.Field: self._field,
            ir.OptField: self._optional_field,
            ir.HasField: self._has,
            ir.Call: self._call,
            ir.Cond: self._condition,
            ir.OrElse: self._or_else,
            ir.Cast: self._cast,
            ir.MakeList: self._make_list,
            ir.MakeMap: self._make_map,
            ir.OptMap: self._opt_map,
            ir.Comprehension: self._comprehension,
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
            known = self._done[key] = self._node(node, env)
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
        return self._opaque(node, type(node).__name__) if rule is None else rule(node, env)

    def _opaque(self, node: ir.Node, what: str) -> Symbolic:
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
                return self._keyed(
                    tuple(
                        (TRUE, self._plain(key_value(key), Type("dyn")), self.constant(held, inner))
                        for key, held in value.items()
                    ),
                    kind,
                )
        self.gap(type(value).__name__)
        return Thing(fresh_thing())

    def _keyed(self, entries: tuple[tuple[Formula, Value, Symbolic], ...], kind: Type) -> Keyed:
        """A map of known entries, whose keys are not the same."""
        values = kind.params[1] if len(kind.params) == 2 else Type("dyn")
        nothing: list[Symbolic] = []

        def find(key: Value) -> tuple[Formula, Symbolic]:
            if not nothing:
                nothing.append(good(self.unknowns.some(values)))
            has, found = FALSE, nothing[0]
            for guard, known, outcome in entries:
                same = both(guard, self._work.equal(known, key))
                has, found = either(has, same), choose(same, outcome, found)
            return has, found

        counts = [pick(guard, z3.IntVal(1), z3.IntVal(0)) for guard, _, _ in entries]
        return Keyed(fresh_thing(), entries, find, z3.Sum(counts) if counts else z3.IntVal(0))

    # Facts and parts of values

    def _field(self, node: ir.Field, env: Locals) -> Symbolic:
        base = self.encode(node.base, env)
        if not isinstance(base.value, Record):
            return self._opaque(node, "a fact of an unknown record")
        present, value = base.value.get(node.path)
        return Symbolic(either(base.err, no(present)), value)

    def _optional_field(self, node: ir.OptField, env: Locals) -> Symbolic:
        base = self.encode(node.base, env)
        record, there = base.value, TRUE
        if isinstance(record, Maybe):
            there, record = record.has, record.value
        if not isinstance(record, Record):
            return self._opaque(node, "an optional fact of an unknown record")
        present, value = record.get(node.path)
        return Symbolic(base.err, Maybe(both(there, present), value))

    def _has(self, node: ir.HasField, env: Locals) -> Symbolic:
        base = self.encode(node.base, env)
        if not isinstance(base.value, Record):
            return self._opaque(node, "a fact of an unknown record")
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
            return self._opaque(node, "an element of an unknown value")
        err = either(operand.err, key.err)
        if test:
            return Symbolic(err, Bool(both(there, has)))
        if optional:
            if isinstance(found.value, Null):
                return self._opaque(node, "an optional null")
            return Symbolic(err, Maybe(both(there, has), found.value))
        return Symbolic(either(err, no(has), found.err), found.value, found.null)

    def _element(self, held: Listed, at: Whole, kind: Type) -> tuple[Formula, Symbolic]:
        has, found = FALSE, good(self.unknowns.some(kind if kind.name != "optional_type" else kind.params[0]))
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
            made = rule(self._work, node, [arg.value for arg in args])
        if made is None:
            if name in ("_==_", "_!=_"):
                made = self._null_equality(args, negative=name == "_!=_")
            if made is None:
                made = self._work.named(node, [arg.value for arg in args])
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
                return self._opaque(node, "a condition of an unknown type")
            chosen = choose(condition.value.term, then, made)
            made = Symbolic(either(condition.err, chosen.err), chosen.value, chosen.null)
        return made

    def _or_else(self, node: ir.OrElse, env: Locals) -> Symbolic:
        operand, other = self.encode(node.operand, env), self.encode(node.other, env)
        if not isinstance(operand.value, Maybe):
            return self._opaque(node, "an optional of an unknown type")
        held = operand.value
        if node.unwrap:
            made = choose(held.has, good(held.value), other)
        elif isinstance(other.value, Maybe):
            value = choose(held.has, good(held.value), good(other.value.value)).value
            has = either(held.has, other.value.has)
            made = Symbolic(both(no(held.has), other.err), Maybe(has, value))
        else:
            return self._opaque(node, "an optional of an unknown type")
        return Symbolic(either(operand.err, made.err), made.value, made.null)

    def _cast(self, node: ir.Cast, env: Locals) -> Symbolic:
        operand = self.encode(node.operand, env)
        value = operand.value
        fits = {"bool": Bool, "string": Text}.get(node.type.name)
        if (fits is not None and isinstance(value, fits)) or (
            isinstance(value, Whole) and value.kind == node.type.name
        ):
            return operand
        if isinstance(value, Listed | Keyed) and node.type.name in ("list", "map"):
            self.gap("the type of a list's or map's parts")
            return Symbolic(either(operand.err, self.unknowns.anything(node.type).err), value)
        return self._opaque(node, "a cast")

    def _opt_map(self, node: ir.OptMap, env: Locals) -> Symbolic:
        operand = self.encode(node.operand, env)
        if not isinstance(operand.value, Maybe):
            return self._opaque(node, "an optional of an unknown type")
        held = operand.value
        body = self.encode(node.body, {**env, node.name: good(held.value)})
        err = either(operand.err, both(held.has, body.err))
        if node.flat:
            if not isinstance(body.value, Maybe):
                return self._opaque(node, "an optional of an unknown type")
            return Symbolic(err, Maybe(both(held.has, body.value.has), body.value.value))
        return Symbolic(err, Maybe(held.has, body.value))

    def _make_list(self, node: ir.MakeList, env: Locals) -> Symbolic:
        items, errors = [], []
        for at, part in enumerate(node.elements):
            made = self.encode(part, env)
            errors.append(made.err)
            if at in node.optional:
                if not isinstance(made.value, Maybe):
                    return self._opaque(node, "an optional of an unknown type")
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
                    return self._opaque(node, "an optional of an unknown type")
                entries.append((made.value.has, name.value, good(made.value.value)))
            else:
                entries.append((TRUE, name.value, Symbolic(FALSE, made.value, made.null)))
        for (_, one, _), (_, other, _) in pairwise(entries):
            errors.append(self._work.equal(one, other))
        if len(entries) > 2:
            errors += [
                self._work.equal(one[1], other[1])
                for at, one in enumerate(entries)
                for other in entries[at + 2 :]
            ]
        return Symbolic(either(*errors), self._keyed(tuple(entries), node.type))

    # Loops

    def _comprehension(self, node: ir.Comprehension, env: Locals) -> Symbolic:
        walked = self.encode(node.range, env)
        items = self._items(walked.value, len(node.variables))
        if items is None:
            return self._any_length(node, env, walked)
        rows: list[tuple[Formula, Locals, tuple[Value, ...]]] = []
        for guard, bound in items:
            local = {**env, **dict(zip(node.variables, map(good, bound), strict=True))}
            rows.append((guard, local, bound))
        made = self._loop(node, rows)
        if made is None:
            return self._opaque(node, f"`{node.macro}`")
        return Symbolic(either(walked.err, made.err), made.value, made.null)

    def _items(self, value: Value, names: int) -> list[tuple[Formula, tuple[Value, ...]]] | None:
        """What the variables of a loop are bound to, with guards; None where that is not known one by one."""
        if isinstance(value, Listed):
            if any(not (item.err.eq(FALSE) and item.null.eq(FALSE)) for _, item in value.items):
                return None
            if names == 1:
                return [(guard, (item.value,)) for guard, item in value.items]
            if not value.is_plain:
                return None
            return [
                (guard, (Whole(z3.IntVal(at), at, at), item.value))
                for at, (guard, item) in enumerate(value.items)
            ]
        if isinstance(value, Keyed) and value.entries is not None:
            if names == 1:
                return [(guard, (key,)) for guard, key, _ in value.entries]
            return [(guard, (key, held.value)) for guard, key, held in value.entries]
        return None

    def _loop(
        self, node: ir.Comprehension, rows: list[tuple[Formula, Locals, tuple[Value, ...]]]
    ) -> Symbolic | None:
        """A macro over elements that are known one by one."""
        tests: list[Symbolic] = []
        for _, local, _ in rows:
            test = good(Bool(TRUE)) if node.predicate is None else self.encode(node.predicate, local)
            if not isinstance(test.value, Bool):
                return None
            tests.append(test)
        guards = [guard for guard, _, _ in rows]
        holds = [test.value.term for test in tests if isinstance(test.value, Bool)]
        match node.macro:
            case "all" | "exists":
                decides = node.macro == "exists"
                decided = either(
                    *(
                        both(guard, no(test.err), held if decides else no(held))
                        for guard, test, held in zip(guards, tests, holds, strict=True)
                    )
                )
                failed = either(*(both(g, test.err) for g, test in zip(guards, tests, strict=True)))
                return Symbolic(both(no(decided), failed), Bool(decided if decides else no(decided)))
            case "exists_one":
                counts = [
                    pick(both(g, h), z3.IntVal(1), z3.IntVal(0)) for g, h in zip(guards, holds, strict=True)
                ]
                failed = either(*(both(g, test.err) for g, test in zip(guards, tests, strict=True)))
                return Symbolic(failed, Bool((z3.Sum(counts) if counts else z3.IntVal(0)) == 1))
        failed = either(*(both(g, test.err) for g, test in zip(guards, tests, strict=True)))
        kept = [both(g, no(t.err), h) for g, t, h in zip(guards, tests, holds, strict=True)]
        if node.macro == "filter":
            walked = [(keep, good(bound[-1])) for keep, (_, _, bound) in zip(kept, rows, strict=True)]
            return Symbolic(failed, Listed(tuple(walked), fresh_thing()))
        return self._transformed(node, rows, kept, failed)

    def _transformed(
        self,
        node: ir.Comprehension,
        rows: list[tuple[Formula, Locals, tuple[Value, ...]]],
        kept: list[Formula],
        failed: Formula,
    ) -> Symbolic | None:
        if node.transform is None:
            return None
        made = [self.encode(node.transform, local) for _, local, _ in rows]
        errors = either(failed, *(both(keep, one.err) for keep, one in zip(kept, made, strict=True)))
        parts = [(keep, Symbolic(FALSE, one.value, one.null)) for keep, one in zip(kept, made, strict=True)]
        if node.macro in ("map", "transformList"):
            return Symbolic(errors, Listed(tuple(parts), fresh_thing()))
        if node.macro == "transformMap":
            keyed = tuple(
                (keep, bound[0], one) for (keep, one), (_, _, bound) in zip(parts, rows, strict=True)
            )
            return Symbolic(errors, self._keyed(keyed, node.type))
        if node.macro == "transformMapEntry":
            entries: list[tuple[Formula, Value, Symbolic]] = []
            for keep, one in parts:
                if not isinstance(one.value, Keyed) or one.value.entries is None:
                    return None
                entries += [(both(keep, guard), key, held) for guard, key, held in one.value.entries]
            keys = [z3.simplify(key.term) for _, key, _ in entries if isinstance(key, Text)]
            if len(keys) != len(entries) or len({key.get_id() for key in keys}) != len(keys):
                return None
            if not all(z3.is_string_value(key) for key in keys):
                return None
            return Symbolic(errors, self._keyed(tuple(entries), node.type))
        return None

    def _any_length(self, node: ir.Comprehension, env: Locals, walked: Symbolic) -> Symbolic:
        """A macro over a list of any length: known by name, the same for the same list and an equal body."""
        for other, known, other_walked, outcome in self._loops:
            if self._is_alike(node, env, walked, other, known, other_walked):
                return outcome
        self.gap(f"`{node.macro}` over a list of any length")
        made = self.unknowns.anything(node.type)
        if isinstance(walked.value, Unknown) and len(node.variables) == 1:
            element = walked.value
            local = {**env, node.variables[0]: element.element}
            if node.macro == "filter" and node.predicate is not None:
                test = self.encode(node.predicate, local)
                if isinstance(test.value, Bool):
                    holds = both(element.holds, no(test.err), test.value.term)
                    made = Symbolic(made.err, Unknown(fresh_thing(), element.element, holds))
                    self._shorter(made.value, walked.value)
            elif node.macro == "map" and node.transform is not None and node.predicate is None:
                part = self.encode(node.transform, local)
                given = Symbolic(FALSE, part.value, part.null)
                made = Symbolic(made.err, Unknown(fresh_thing(), given, both(element.holds, no(part.err))))
                self.say(self._work.size(made.value) == self._work.size(walked.value))
        made = Symbolic(either(walked.err, made.err), made.value, made.null)
        self._loops.append((node, env, walked, made))
        return made

    def _shorter(self, made: Value, walked: Value) -> None:
        self.say(self._work.size(made) <= self._work.size(walked))

    def _is_alike(
        self,
        node: ir.Comprehension,
        env: Locals,
        walked: Symbolic,
        other: ir.Comprehension,
        known: Locals,
        other_walked: Symbolic,
    ) -> bool:
        """Whether two loops surely come to the same: over the same list, with bodies that are equal for any element."""
        same_list = (
            isinstance(walked.value, Unknown)
            and isinstance(other_walked.value, Unknown)
            and walked.value.thing.eq(other_walked.value.thing)
            and walked.err.eq(other_walked.err)
        )
        if (
            not same_list
            or node.macro != other.macro
            or node.type != other.type
            or len(node.variables) != 1
            or len(other.variables) != 1
        ):
            return False
        assert isinstance(walked.value, Unknown)
        element = walked.value.element
        mine = {**env, node.variables[0]: element}
        yours = {**known, other.variables[0]: element}
        for one, two in ((node.predicate, other.predicate), (node.transform, other.transform)):
            if (one is None) != (two is None):
                return False
            if one is None or two is None:
                continue
            apart = unlike(self.encode(one, mine), self.encode(two, yours))
            if not self._proves([*self.facts, walked.value.holds], apart):
                return False
        return True
