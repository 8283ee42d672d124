"""Macros over lists and maps: element by element where these are known, by name where they are of any length."""

from collections.abc import Callable, Mapping
from typing import Protocol

import z3

from koordpolicy.graph.proof.terms import (
    FALSE,
    TRUE,
    Bool,
    Formula,
    Keyed,
    Listed,
    Symbolic,
    Text,
    Unknown,
    Value,
    Whole,
    both,
    either,
    fresh_thing,
    good,
    no,
    pick,
    unlike,
)
from koordpolicy.graph.proof.unknowns import Unknowns
from koordpolicy.graph.proof.work import Work
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import Type

Locals = Mapping[str, Symbolic]
Proves = Callable[[list[Formula], Formula], bool]
"""Whether a formula can never hold together with others."""


class Encodes(Protocol):
    """What loops need of the encoder that they are part of."""

    facts: list[Formula]
    unknowns: Unknowns
    work: Work

    def encode(self, node: ir.Node, env: Locals) -> Symbolic: ...

    def opaque(self, node: ir.Node, what: str) -> Symbolic: ...

    def keyed(self, entries: tuple[tuple[Formula, Value, Symbolic], ...], kind: Type) -> Keyed: ...

    def say(self, fact: Formula) -> None: ...

    def gap(self, what: str) -> None: ...


class Loops:
    """The macros of one encoder."""

    def __init__(self, encoder: Encodes, proves: Proves) -> None:
        self._encoder = encoder
        self._proves = proves
        self._loops: list[tuple[ir.Comprehension, Locals, Symbolic, Symbolic]] = []
        self._bound: dict[int, Symbolic] = {}  # by the identity of the value, which it keeps

    def comprehension(self, node: ir.Comprehension, env: Locals) -> Symbolic:
        walked = self._encoder.encode(node.range, env)
        items = self._items(walked.value, len(node.variables))
        if items is None:
            return self._any_length(node, env, walked)
        rows: list[tuple[Formula, Locals, tuple[Value, ...]]] = []
        for guard, bound in items:
            local = {**env, **dict(zip(node.variables, map(self._of, bound), strict=True))}
            rows.append((guard, local, bound))
        made = self._loop(node, rows)
        if made is None:
            return self._encoder.opaque(node, f"`{node.macro}`")
        return Symbolic(either(walked.err, made.err), made.value, made.null)

    def _of(self, value: Value) -> Symbolic:
        """An element as an outcome, the same one in all loops over its list: what stands in them is then encoded once."""
        return self._bound.setdefault(id(value), good(value))

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
            test = good(Bool(TRUE)) if node.predicate is None else self._encoder.encode(node.predicate, local)
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
        made = [self._encoder.encode(node.transform, local) for _, local, _ in rows]
        errors = either(failed, *(both(keep, one.err) for keep, one in zip(kept, made, strict=True)))
        parts = [(keep, Symbolic(FALSE, one.value, one.null)) for keep, one in zip(kept, made, strict=True)]
        if node.macro in ("map", "transformList"):
            return Symbolic(errors, Listed(tuple(parts), fresh_thing()))
        if node.macro == "transformMap":
            keyed = tuple(
                (keep, bound[0], one) for (keep, one), (_, _, bound) in zip(parts, rows, strict=True)
            )
            return Symbolic(errors, self._encoder.keyed(keyed, node.type))
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
            return Symbolic(errors, self._encoder.keyed(tuple(entries), node.type))
        return None

    def _any_length(self, node: ir.Comprehension, env: Locals, walked: Symbolic) -> Symbolic:
        """A macro over a list of any length: known by name, the same for the same list and an equal body."""
        for other, known, other_walked, outcome in self._loops:
            if self._is_alike(node, env, walked, other, known, other_walked):
                return outcome
        self._encoder.gap(f"`{node.macro}` over a list of any length")
        made = self._encoder.unknowns.anything(node.type)
        if isinstance(walked.value, Unknown) and len(node.variables) == 1:
            element = walked.value
            local = {**env, node.variables[0]: element.element}
            if node.macro == "filter" and node.predicate is not None:
                test = self._encoder.encode(node.predicate, local)
                if isinstance(test.value, Bool):
                    holds = both(element.holds, no(test.err), test.value.term)
                    made = Symbolic(made.err, Unknown(fresh_thing(), element.element, holds))
                    self._shorter(made.value, walked.value)
            elif node.macro == "map" and node.transform is not None and node.predicate is None:
                part = self._encoder.encode(node.transform, local)
                given = Symbolic(FALSE, part.value, part.null)
                made = Symbolic(made.err, Unknown(fresh_thing(), given, both(element.holds, no(part.err))))
                self._encoder.say(
                    self._encoder.work.size(made.value) == self._encoder.work.size(walked.value)
                )
        made = Symbolic(either(walked.err, made.err), made.value, made.null)
        self._loops.append((node, env, walked, made))
        return made

    def _shorter(self, made: Value, walked: Value) -> None:
        self._encoder.say(self._encoder.work.size(made) <= self._encoder.work.size(walked))

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
            apart = unlike(self._encoder.encode(one, mine), self._encoder.encode(two, yours))
            if not self._proves([*self._encoder.facts, walked.value.holds], apart):
                return False
        return True
