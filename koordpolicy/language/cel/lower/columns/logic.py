"""`&&`, `||` and the conditional over columns.

CEL lets a decisive operand absorb the errors of the others, in any order, so operands may be
computed in the order that costs least: first what is one for all rows, then what is computed for all rows
at once, last what row programs must evaluate, and that only for the rows still undecided.
"""

from typing import TYPE_CHECKING

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.lower.columns.symbols import (
    BOOL,
    COUNTED,
    DOUBLE,
    DTYPES,
    STRING,
    Bounds,
    Need,
    NoColumnForm,
    Space,
    Symbol,
    Vec,
    kind_of,
)
from koordpolicy.language.cel.lower.columns.writer import OUT

if TYPE_CHECKING:
    from koordpolicy.language.cel.lower.columns.emitter import Emitter


def emit_junction(emitter: "Emitter", node: ir.And | ir.Or, need: Need | None) -> Vec:
    """`&&` or `||` of two or more operands."""
    writer = emitter.writer
    conjunction = isinstance(node, ir.And)
    fixed = [arg for arg in node.args if not emitter.varies(arg)]
    varying = [arg for arg in node.args if emitter.varies(arg)]
    if not fixed:
        return _combine(emitter, varying, conjunction, need)
    settled = [emitter.emit_vec(arg) for arg in fixed]
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
        writer.line(f"{value} = np.full({space.count}, {decided}); {failed} = None")
    return Vec(BOOL, value, space, failed)


def _combine(emitter: "Emitter", args: list[ir.Node], conjunction: bool, need: Need | None) -> Vec:
    """The operands that vary, those for row programs last."""
    writer = emitter.writer
    plain = [arg for arg in args if not emitter.is_partial(arg)]
    partial = [arg for arg in args if emitter.is_partial(arg)]
    if not plain:
        plain, partial = partial[:1], partial[1:]
    vecs = [emitter.emit_vec(arg, need) for arg in plain]
    # An operand that turned out to need row programs only now is as good as any.
    result = _fold(emitter, vecs, conjunction)
    for arg in partial:
        space = result.space
        assert space is not None
        value, failed = writer.name("v"), writer.name("e")
        undecided = result.values if conjunction else f"~{result.values}"
        wanted = emitter.narrow(need, undecided, space)
        writer.line(f"{value} = {result.values}; {failed} = {result.errors}")
        with writer.block(f"if np.count_nonzero({wanted.mask}):"):
            other = emitter.emit_vec(arg, wanted)
            both = _fold(emitter, [result, other], conjunction)
            writer.line(f"{value} = {both.values}; {failed} = {both.errors}")
        result = Vec(BOOL, value, space, failed)
    return result


def _fold(emitter: "Emitter", vecs: list[Vec], conjunction: bool) -> Vec:
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


def emit_conditional(emitter: "Emitter", node: ir.Cond, need: Need | None) -> Symbol:
    """`c ? a : b`: each branch counts where it is taken, and is skipped where none takes it."""
    condition = emitter.emit_vec(node.condition, need)
    if condition.space is None:
        return _one_branch(emitter, node, condition, need)
    writer = emitter.writer
    space = emitter.space_of_node(node)
    kind_then, kind_else = kind_of(node.then.type), kind_of(node.otherwise.type)
    if kind_then is None or kind_then != kind_else:
        raise NoColumnForm(node, "branches without a common column")
    chosen = emitter.values_in(condition, space)
    refused = writer.let("v", f"~{chosen}")
    branches: list[tuple[str, str, str, str]] = []
    for branch, mask in ((node.then, chosen), (node.otherwise, refused)):
        wanted = emitter.narrow(need, mask, space)
        if _is_leaf(branch):
            branches.append(_as_stated(emitter, branch, wanted, space, kind_then))
            continue
        names = (writer.name("v"), writer.name("e"), writer.name("l"), writer.name("h"))
        with writer.block(f"if np.count_nonzero({mask}):"):
            texts = _as_stated(emitter, branch, wanted, space, kind_then)
            writer.line("; ".join(f"{name} = {text}" for name, text in zip(names, texts, strict=True)))
        with writer.block("else:"):
            zero = "0.0" if kind_then == DOUBLE else "False" if kind_then == BOOL else "0"
            writer.line(f"{names[0]} = {zero}; {names[1]} = None; {names[2]} = {names[3]} = {zero}")
        branches.append(names)
    (v1, e1, l1, h1), (v2, e2, l2, h2) = branches
    if kind_then == BOOL:
        text = f"np.bitwise_or({chosen} & {v1}, {refused} & {v2}, {OUT})"
        value = emitter.array(BOOL, space, text, apart=True)
    elif kind_then == STRING:
        value = writer.let("v", f"np.asarray(np.where({chosen}, {v1}, {v2}), int32)")
    else:
        value = emitter.choose(chosen, v1, v2, kind_then, space)
    errors = emitter.errors_in(condition, space)
    failed = writer.name("e")
    writer.line(
        f"{failed} = {errors} if {e1} is {e2} is None else chosen_errors({chosen}, {errors}, {e1}, {e2})",
        (failed, errors),
    )
    numbers = kind_then in COUNTED or kind_then == DOUBLE

    def bounds() -> Bounds:
        return writer.let("l", f"min({l1}, {l2})"), writer.let("h", f"max({h1}, {h2})")

    return Vec(kind_then, value, space, failed, bounds if numbers else None, fresh=True)


def _is_leaf(node: ir.Node) -> bool:
    return isinstance(node, ir.Const) or (isinstance(node, ir.Field) and isinstance(node.base, ir.Var))


def _as_stated(
    emitter: "Emitter", node: ir.Node, need: Need | None, space: Space, kind: str
) -> tuple[str, str, str, str]:
    """Texts of a branch's values, errors and bounds."""
    vec = emitter.emit_vec(node, need)
    value = emitter.element_of(vec) if vec.space is None else emitter.values_in(vec, space)
    low, high = emitter.bounds_of(vec) if kind in COUNTED or kind == DOUBLE else ("0", "0")
    return value, str(emitter.errors_in(vec, space)), low, high


def _one_branch(emitter: "Emitter", node: ir.Cond, condition: Vec, need: Need | None) -> Vec:
    """The condition is one for all rows, so only one branch is computed."""
    writer = emitter.writer
    kind = kind_of(node.type)
    if kind is None:
        raise NoColumnForm(node, "branches without a common column")
    space = emitter.space_of_node(node)
    names = tuple(writer.name(prefix) for prefix in "velh")
    for head, branch in ((f"if {condition.values}:", node.then), ("else:", node.otherwise)):
        with writer.block(head):
            value, *rest = _as_stated(emitter, branch, need, space, kind)
            vec = emitter.emit_vec(branch, need)
            if vec.space is None:
                value = f"np.full({space.count}, {value}, {DTYPES[kind]!r})"
            writer.line(
                "; ".join(f"{name} = {text}" for name, text in zip(names, (value, *rest), strict=True))
            )
    value, failed, low, high = names
    if condition.errors is not None:
        writer.line(f"if {condition.errors}: {failed} = np.ones({space.count}, bool)")
    bounds = (lambda: (low, high)) if kind in COUNTED or kind == DOUBLE else None
    return Vec(kind, value, space, failed, bounds)
