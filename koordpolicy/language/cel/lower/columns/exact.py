"""Rules for whole numbers held as doubles, which are quicker to divide, round and compare than int64.

A double holds every whole number up to 2**53. A program is first compiled as if all numbers stayed within
that; where bounds tell otherwise, it gives up, and the general program takes its place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from koordpolicy.language.cel.lower.columns.arithmetic import RULES, reach
from koordpolicy.language.cel.lower.columns.emitter import Emitter, Rule
from koordpolicy.language.cel.lower.columns.operands import FUNCTIONS, Operands
from koordpolicy.language.cel.lower.columns.parts import SAME
from koordpolicy.language.cel.lower.columns.symbols import INT, WHOLE, Vec


def alike(emitter: Emitter, args: Sequence[Vec]) -> Sequence[Vec]:
    """The operands with all whole numbers as doubles if one of them is held so."""
    return [emitter.as_whole(arg) for arg in args] if any(arg.kind == WHOLE for arg in args) else args


def _arithmetic(operator: str) -> Rule:
    def rule(emitter: Emitter, args: Sequence[Vec]) -> Vec:
        operands = Operands(emitter, [emitter.as_whole(arg) for arg in args])
        low, high = reach(operator, operands)
        emitter.guard(low, high)
        made = operands.result(WHOLE, FUNCTIONS[operator], *operands.texts, bounds=lambda: (low, high))
        return replace(made, unsigned=operator != "*" and all(arg.unsigned for arg in operands.args))

    return rule


def _quotient_cut(emitter: Emitter, args: Sequence[Vec]) -> Vec:
    """`/` of int64, toward zero."""
    operands = Operands(emitter, [emitter.as_whole(arg) for arg in args])
    writer, (a, b), errors = operands.writer, operands.texts, operands.errors
    (la, ha), (lb, hb) = operands.bounds(0), operands.bounds(1)
    high = writer.let("h", f"max(abs({la}), abs({ha}))")
    low = writer.let("l", f"0 if {la} >= 0 and {lb} > 0 else -{high}")
    failed = writer.name("e")
    zeros = f"zero_divisors({b}, {errors}, {operands.space.count}) if {lb} <= 0 <= {hb} else {errors}"
    writer.line(f"{failed} = {zeros}", (failed, errors))
    half = _reciprocal(args[1])
    quotient = (
        operands.result(WHOLE, "np.multiply", a, half) if half else operands.result(WHOLE, "np.divide", a, b)
    )
    return operands.result(WHOLE, "np.trunc", quotient.values, errors=failed, bounds=lambda: (low, high))


def _reciprocal(divisor: Vec) -> str | None:
    """The reciprocal of a constant that doubles hold exactly: that of a power of two."""
    if divisor.space is not None or not divisor.values.isdigit():
        return None
    value = int(divisor.values)
    return repr(1.0 / value) if value > 0 and value & (value - 1) == 0 else None


def _of_doubles(id: str) -> Rule:
    """A rule for which doubles are as good."""

    def rule(emitter: Emitter, args: Sequence[Vec]) -> Vec:
        return RULES[id](emitter, alike(emitter, args))

    return rule


def _rows() -> Iterator[tuple[str, Rule]]:
    for operator in ("+", "-", "*"):
        yield f"_{operator}_(int,int)", _arithmetic(operator)
    yield "_/_(int,int)", _quotient_cut
    for id in RULES:
        if id in SAME or id in ("quotient(int,int)", "double(int)"):
            yield id, RULES[id]
    for operator in ("<", "<=", ">", ">="):
        for a, b in ((INT, INT), (INT, "double"), ("double", INT)):
            yield f"_{operator}_({a},{b})", _of_doubles(f"_{operator}_({a},{b})")


EXACT: Mapping[str, Rule] = MappingProxyType(dict(_rows()))
"""Overload id to the rule that takes the place of that in `RULES`."""
