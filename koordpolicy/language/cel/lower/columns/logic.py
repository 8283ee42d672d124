"""`&&` and `||` over columns.

CEL lets a decisive operand absorb the errors of the others, in any order, so operands may be
computed in the order that costs least: first what is one for all rows, then what is computed for all rows
at once, last what row programs must evaluate, and that only for the rows still undecided.
"""

from typing import Final

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.lower.columns.emitter import Emitter
from koordpolicy.language.cel.lower.columns.symbols import (
    BOOL,
    Need,
    Vec,
)
from koordpolicy.language.cel.lower.columns.writer import OUT


def emit_junction(emitter: Emitter, node: ir.And | ir.Or, need: Need | None) -> Vec:
    """`&&` or `||` of two or more operands."""
    writer = emitter.writer
    conjunction = isinstance(node, ir.And)
    fixed = [arg for arg in node.args if not emitter.varies(arg)]
    varying = [arg for arg in node.args if emitter.varies(arg)]
    if not fixed:
        return _combine(emitter, varying, conjunction, need)
    settled = [emitter.emit_bool(arg) for arg in fixed]
    value, failed = writer.name("v"), writer.name("e")
    space = emitter.space_of_node(node)
    sure = [arg.values if arg.errors is None else f"({arg.values} and not {arg.errors})" for arg in settled]
    if conjunction:
        sure = [arg.values if arg.errors is None else f"({arg.values} or {arg.errors})" for arg in settled]
        open_, decided = " and ".join(sure), "False"
    else:
        open_, decided = f"not ({' or '.join(sure)})", "True"
    with writer.block(f"if {open_}:"):
        rest = _combine(emitter, varying, conjunction, need)
        writer.line(
            f"{value} = {emitter.values_in(rest, space)}; {failed} = {emitter.errors_in(rest, space)}"
        )
        broken = [arg.errors for arg in settled if arg.errors is not None]
        if broken:
            kernel = "fail_undecided_all" if conjunction else "fail_undecided_any"
            writer.line(f"if {' or '.join(broken)}: {failed} = {kernel}({value}, {failed})")
    with writer.block("else:"):
        writer.line(f"{value} = settled({space.count}, {decided}); {failed} = None")
    return Vec(BOOL, value, space, failed)


def emit_holds(emitter: Emitter, node: ir.Holds, need: Need | None) -> Vec:
    """A condition, and where it fails another. The failures are counted."""
    found = emitter.emit_bool(node.operand, need)
    if found.errors is None:
        return found
    writer, space = emitter.writer, emitter.space_of_node(node)
    value, failed = writer.name("v"), writer.name("e")
    own, errors = emitter.values_in(found, space), emitter.errors_in(found, space)
    writer.line(f"{value} = {own}; {failed} = {errors}")
    with writer.block(f"if {failed} is not None:"):
        wanted = emitter.narrow(need, failed, space) if emitter.is_partial(node.otherwise) else None
        other = emitter.emit_bool(node.otherwise, wanted)
        clause = writer.constant("K", node.clause)
        instead = emitter.element_of(other) if other.space is None else emitter.values_in(other, space)
        writer.line(f"count_unheld({failed}, {clause})")
        writer.line(f"{value} = np.where({failed}, {instead}, {own})")
        writer.line(f"{failed} = errors_where({failed}, {emitter.errors_in(other, space)}, None)")
    return Vec(BOOL, value, space, failed)


def _combine(emitter: Emitter, args: list[ir.Node], conjunction: bool, need: Need | None) -> Vec:
    """The operands that vary, those for row programs last."""
    writer = emitter.writer
    plain = [arg for arg in args if not emitter.is_partial(arg)]
    partial = [arg for arg in args if emitter.is_partial(arg)]
    if not plain:
        plain, partial = partial[:1], partial[1:]
    vecs = [emitter.emit_bool(arg, need) for arg in plain]
    # An operand that turned out to need row programs only now is as good as any.
    result = _fold(emitter, vecs, conjunction)
    if partial and len(vecs) == 1:
        result = _settled(emitter, result, conjunction)
    for arg in partial:
        space = result.space
        assert space is not None
        value, failed = writer.name("v"), writer.name("e")
        undecided = result.values if conjunction else f"~{result.values}"
        wanted = emitter.narrow(need, undecided, space)
        writer.line(f"{value} = {result.values}; {failed} = {result.errors}")
        with writer.block(f"if np.count_nonzero({wanted.mask}):"):
            other = emitter.emit_bool(arg, wanted)
            both = _fold(emitter, [result, other], conjunction)
            writer.line(f"{value} = {both.values}; {failed} = {both.errors}")
        result = Vec(BOOL, value, space, failed)
    return result


def _settled(emitter: Emitter, vec: Vec, conjunction: bool) -> Vec:
    """A single operand with its errors counted as undecided: a later operand may absorb them."""
    if vec.errors is None:
        return vec
    space = vec.space
    assert space is not None
    writer = emitter.writer
    value, failed = writer.name("v"), writer.name("e")
    kernel = "all_of" if conjunction else "any_of"
    # Where there are no errors at run time, the kernel gives the operand itself back.
    writer.line(f"{value}, {failed} = {kernel}(({vec.values},), ({vec.errors},))")
    return Vec(BOOL, value, space, failed)


_AT_ONCE: Final = 50
"""Operands of one statement: Python's parser takes 200 parentheses within each other."""


def _fold(emitter: Emitter, vecs: list[Vec], conjunction: bool) -> Vec:
    """All operands as one; errors absorb in any order, so that groups of them may come first."""
    while len(vecs) > _AT_ONCE:
        groups = [vecs[at : at + _AT_ONCE] for at in range(0, len(vecs), _AT_ONCE)]
        vecs = [
            _settled(emitter, group[0], conjunction)
            if len(group) == 1
            else _fold(emitter, group, conjunction)
            for group in groups
        ]
    if len(vecs) == 1:
        return vecs[0]
    writer = emitter.writer
    space = emitter.space_of(vecs)
    assert space is not None
    values = [emitter.values_in(vec, space) for vec in vecs]
    errors = [emitter.errors_in(vec, space) for vec in vecs]
    failing = [error for error in errors if error is not None]
    function = "np.bitwise_and" if conjunction else "np.bitwise_or"
    text = values[0]
    for value in values[1:]:
        text = f"{function}({text}, {value}, {OUT})"
    apart = len(values) > 2
    if not failing:
        return Vec(BOOL, emitter.array(BOOL, space, text, apart), space, fresh=True)
    name, failed = writer.name("v"), writer.name("e")
    with writer.block(f"if {' is '.join([*failing, 'None'])}:"):
        emitter.array(BOOL, space, text, apart, name)
        writer.line(f"{failed} = None")
    kernel = "all_of" if conjunction else "any_of"
    with writer.block("else:"):
        operands = f"({', '.join(values)}), ({', '.join(map(str, errors))})"
        writer.line(f"{name}, {failed} = {kernel}({operands})", ())
    return Vec(BOOL, name, space, failed, fresh=True)
