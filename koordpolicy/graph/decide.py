"""A decision as one expression: the rules by rank, parameters resolved, ready to be lowered."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from koordpolicy.graph.cache import Cache
from koordpolicy.graph.conditions import TRUE, concerned, required, settled
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import refs_of, substitute
from koordpolicy.language.cel.types import DOUBLE, INT

T = TypeVar("T")

NO_RULE = -1
"""The index that stands for "no rule matched" in the expression of the deciding rule."""


def parameter_key(key: DecisionKey, name: str) -> DecisionKey:
    """The decision behind `parameters.name` in an expression of `key`'s target."""
    return DecisionKey(key.kind, key.subject, f"parameters.{name}")


def parameters_of(node: ir.Node, key: DecisionKey) -> list[DecisionKey]:
    """The parameter decisions that an expression refers to, sorted."""
    return _parameters(refs_of(node), key)


def _parameters(refs: Iterable[tuple[str, str]], key: DecisionKey) -> list[DecisionKey]:
    return [
        parameter_key(key, name) for name in sorted(name for space, name in refs if space == "parameters")
    ]


def rules_behind(parameters: Iterable[DecisionKey], decisions: Mapping[DecisionKey, Decision]) -> list[Rule]:
    """The rules of these parameters, and of all parameters that those use; each once."""
    found: dict[Rule, None] = {}
    waiting = list(parameters)
    while waiting:
        parameter = decisions.get(waiting.pop())
        for rule in parameter.rules if parameter is not None else ():
            if rule not in found:
                found[rule] = None
                waiting.extend(parameter_key(rule.key, name) for name in rule.parameters)
    return list(found)


class Expressions:
    """Resolves decisions of one graph into expressions, each once.

    Parameter references are replaced by the expressions of their decisions; the compiler has
    rejected cycles, so this ends. With the `cache` of a compiler, what did not change since the last revision is not made anew.
    """

    def __init__(
        self,
        decisions: Mapping[DecisionKey, Decision],
        constants: Mapping[tuple[str, str], ir.Node],
        cache: Cache | None = None,
    ) -> None:
        self._decisions = decisions
        self._constants = constants
        self._cache = cache
        self._values: dict[DecisionKey, ir.Node] = {}
        self._tests: dict[tuple[str, int], tuple[ir.Node, bool]] = {}

    def value(self, decision: Decision) -> ir.Node:
        """The expression of the decision's value: `test1 ? value1 : test2 ? value2 : default`."""
        known = self._values.get(decision.key)
        if known is None:
            values = [self.resolved(rule.value, rule.key) for rule in decision.rules]
            tests = [self.test(rule)[0] for rule in decision.rules]
            parts = (*decision.rules, decision.default, *values, *tests)
            make = partial(self._value, decision, values)
            known = self._values[decision.key] = self._same(("value", decision.key), parts, make)
        return known

    def _same(self, what: Hashable, parts: tuple[object, ...], make: Callable[[], T]) -> T:
        return make() if self._cache is None else self._cache.same(what, parts, make)

    def _value(self, decision: Decision, values: Sequence[ir.Node]) -> ir.Node:
        *alike, nothing = _alike([*values, decision.default])
        return self._chain(decision, alike, nothing)

    def index(self, decision: Decision) -> ir.Node:
        """The expression of the deciding rule's position in `decision.rules`, or `NO_RULE`."""
        places = [constant(INT, at) for at in range(len(decision.rules))]
        return self._chain(decision, places, constant(INT, NO_RULE), index=True)

    def resolved(self, node: ir.Node, key: DecisionKey) -> ir.Node:
        """The expression with every parameter replaced by its decision, every constant by its value.

        What that makes constant is folded, so that a literal parameter costs nothing at run time.
        """
        refs = self._same("refs", (node,), partial(refs_of, node))
        if not refs:
            return node
        values = {ref: self._constants[ref] for ref in refs if ref in self._constants}
        for used in _parameters(refs, key):
            decision = self._decisions.get(used)
            if decision is not None:
                values["parameters", used.field.removeprefix("parameters.")] = self.value(decision)
        if not values:
            return node
        # In one order for one set of references, which is that of the node.
        parts = (node, *(values.get(ref) for ref in refs))
        return self._same("resolved", parts, lambda: fold(substitute(node, values)))

    def _chain(
        self, decision: Decision, values: Sequence[ir.Node], nothing: ir.Node, *, index: bool = False
    ) -> ir.Node:
        """The rules by rank, each with its condition; see `conditions` for one that can fail."""
        tests = [self.test(rule) for rule in decision.rules]
        requires = decision.is_requirement
        if requires and not index and any(fails for _, fails in tests):
            nothing = _or_true(nothing)
        chain = nothing
        for rule, value, (test, fails) in reversed(list(zip(decision.rules, values, tests, strict=True))):
            if test is None:
                chain = value
            elif not fails:
                chain = ir.Cond(value.type, test, value, chain)
            elif index:
                applies = concerned(test) if requires else settled(test, "")
                chain = ir.Cond(value.type, applies, value, chain)
            elif requires:
                chain = required(test, rule.match.place, value, chain)
            else:
                chain = ir.Cond(value.type, settled(test, rule.match.place), value, chain)
        return chain

    def test(self, rule: Rule) -> tuple[ir.Node | None, bool]:
        """What a rule's match comes to, None for one that always applies, and whether it can fail."""
        if rule.match.test is None:
            return None, False
        key = (rule.key.target, id(rule.match.test))  # of two targets the parameters differ
        known = self._tests.get(key)
        if known is None:
            test = self.resolved(rule.match.test, rule.key)
            fails = self._same("can fail", (rule.match, test), partial(rule.match.can_fail, test))
            known = self._tests[key] = (test, fails)
        return known


def _or_true(nothing: ir.Node) -> ir.Node:
    """What a requirement is where no rule speaks of it."""
    return TRUE if isinstance(nothing, ir.Const) and nothing.value is None else nothing


def _alike(values: Sequence[ir.Node]) -> Sequence[ir.Node]:
    """Values of one type, whichever of them decides: whole numbers become doubles where others are doubles.

    Only a slot that takes both has both; a default that is whole goes with ints.
    """
    *given, default = values
    whole = isinstance(default, ir.Const) and isinstance(default.value, float) and default.value.is_integer()
    if whole and default.type == DOUBLE and {value.type for value in given} == {INT}:
        return [*given, constant(INT, int(default.value))]  # type: ignore[attr-defined]
    return (
        [_as_double(value) for value in values]
        if {value.type for value in values} == {INT, DOUBLE}
        else values
    )


def _as_double(value: ir.Node) -> ir.Node:
    if value.type != INT:
        return value
    if isinstance(value, ir.Const) and isinstance(value.value, int):
        return constant(DOUBLE, float(value.value), value.start, value.end)
    return ir.Call(DOUBLE, "double(int)", (value,), start=value.start, end=value.end)
