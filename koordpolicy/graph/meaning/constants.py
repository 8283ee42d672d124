"""Values that a decision may have whatever the input: constants of its rules, and of parameters they only pass on."""

from collections.abc import Iterator

from koordpolicy.graph.decide import parameter_key
from koordpolicy.graph.rules import Decision, Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.values import Optional


def constants_of(state: State, decision: Decision) -> Iterator[tuple[Rule, object]]:
    """Each constant with the rule that says it; nothing for what depends on facts. None is no value."""
    for rule in decision.rules:
        value = _unwrapped(rule.value)
        if isinstance(value, ir.Ref) and value.space == "parameters":
            parameter = state.decisions.get(parameter_key(rule.key, value.name))
            for inner in parameter.rules if parameter is not None else ():
                yield from _constant(inner)
        else:
            yield from _constant(rule)


def _unwrapped(node: ir.Node) -> ir.Node:
    """What a conversion to an optional or a double holds."""
    while isinstance(node, ir.Call) and len(node.args) == 1 and node.overload in _CONVERSIONS:
        node = node.args[0]
    return node


_CONVERSIONS = frozenset(("optional.of(T)", "double(int)", "double(uint)"))


def _constant(rule: Rule) -> Iterator[tuple[Rule, object]]:
    value = _unwrapped(rule.value)
    if isinstance(value, ir.Const):
        held = value.value.value if isinstance(value.value, Optional) else value.value
        if held is not None:
            yield rule, held
