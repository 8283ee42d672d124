"""The conditional over columns: each branch counts where it is taken, and is skipped where none takes it."""

from dataclasses import dataclass

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.lower.columns.emitter import Emitter
from koordpolicy.language.cel.lower.columns.symbols import (
    BOOL,
    DOUBLE,
    DTYPES,
    INT,
    NUMBERS,
    STRING,
    WHOLE,
    Bounds,
    EntrySpace,
    Need,
    NoColumnForm,
    Vec,
    kind_of,
)
from koordpolicy.language.cel.lower.columns.writer import OUT


@dataclass(frozen=True, slots=True)
class _Branch:
    """Texts of a branch's values, errors and bounds; whether the values are an array, if computed, whether they are
    few, and whether unsigned.
    """

    value: str
    errors: str
    low: str
    high: str
    is_array: bool
    few: bool
    unsigned: bool


def emit_conditional(emitter: Emitter, node: ir.Cond, need: Need | None) -> Vec:
    """`c ? a : b`. Raises NoColumnForm where the branches are of kinds without a common column."""
    kind = kind_of(node.type)
    if kind is None or kind_of(node.then.type) != kind or kind_of(node.otherwise.type) != kind:
        raise NoColumnForm(node, "branches without a common column")
    if kind == INT and emitter.exact:
        kind = WHOLE
    condition = emitter.emit_bool(node.condition, need)
    space = emitter.space_of_node(node)
    if condition.space is None:
        return _one_branch(emitter, node, kind, condition, need)
    writer = emitter.writer
    chosen = emitter.values_in(condition, space)
    taken = emitter.once("n", f"np.count_nonzero({chosen})")
    then = _branch(emitter, node.then, f"if {taken}:", chosen, space, kind, need)
    otherwise = _branch(
        emitter, node.otherwise, f"if {taken} < {space.count}:", f"~{chosen}", space, kind, need
    )
    merge = _merged_bools if kind == BOOL else _merged
    value = merge(emitter, chosen, taken, (then, otherwise), space, kind)
    errors, failed = emitter.errors_in(condition, space), writer.name("e")
    text = f"chosen_errors({chosen}, {errors}, {then.errors}, {otherwise.errors})"
    writer.line(
        f"{failed} = {errors} if {then.errors} is {otherwise.errors} is None else {text}", (failed, errors)
    )

    def bounds() -> Bounds:
        return (
            writer.let("l", f"min({then.low}, {otherwise.low})"),
            writer.let("h", f"max({then.high}, {otherwise.high})"),
        )

    few, unsigned = then.few and otherwise.few, then.unsigned and otherwise.unsigned
    return Vec(kind, value, space, failed, bounds if kind in NUMBERS else None, few=few, unsigned=unsigned)


def _branch(
    emitter: Emitter, node: ir.Node, head: str, mask: str, space: EntrySpace, kind: str, need: Need | None
) -> _Branch:
    # Only row programs care which rows need the branch.
    wanted = emitter.narrow(need, mask, space) if emitter.is_partial(node) else None
    if isinstance(node, ir.Const) or (isinstance(node, ir.Field) and isinstance(node.base, ir.Var)):
        return _stated(emitter, node, wanted, space, kind)
    writer = emitter.writer
    names = (writer.name("v"), writer.name("e"), writer.name("l"), writer.name("h"))
    with writer.block(head):
        found = _stated(emitter, node, wanted, space, kind)
        texts = (found.value, found.errors, found.low, found.high)
        writer.line("; ".join(f"{name} = {text}" for name, text in zip(names, texts, strict=True)))
    with writer.block("else:"):
        zero = "0.0" if kind in (DOUBLE, WHOLE) else "False" if kind == BOOL else "0"
        writer.line(f"{names[0]} = {zero}; {names[1]} = None; {names[2]} = {names[3]} = {zero}")
    return _Branch(*names, found.is_array, found.few, found.unsigned)


def _stated(emitter: Emitter, node: ir.Node, need: Need | None, space: EntrySpace, kind: str) -> _Branch:
    vec = emitter.as_whole(emitter.emit_number(node, need)) if kind == WHOLE else emitter.emit_vec(node, need)
    value = emitter.element_of(vec) if vec.space is None else emitter.values_in(vec, space)
    low, high = emitter.bounds_of(vec) if kind in NUMBERS else ("0", "0")
    errors, few = str(emitter.errors_in(vec, space)), vec.few or vec.space is None
    return _Branch(value, errors, low, high, vec.space is not None, few, vec.unsigned)


def _merged(
    emitter: Emitter, chosen: str, taken: str, branches: tuple[_Branch, _Branch], space: EntrySpace, kind: str
) -> str:
    """The values of each entry's branch; where all take one, those of the branch as they are."""
    writer, (then, otherwise) = emitter.writer, branches
    value = writer.name("v")
    for head, branch, test in (
        ("if", otherwise, f"{taken} == 0 < {space.count}"),
        ("elif", then, f"0 < {taken} == {space.count}"),
    ):
        with writer.block(f"{head} {test}:"):
            one = f"same({branch.value}, {DTYPES[kind]!r}, {space.count})"
            writer.line(f"{value} = {branch.value if branch.is_array else one}")
    with writer.block("else:"):
        if kind == STRING:
            writer.line(f"{value} = np.asarray(np.where({chosen}, {then.value}, {otherwise.value}), int32)")
        else:
            emitter.choose(chosen, then.value, otherwise.value, kind, space, value)
    return value


def _merged_bools(
    emitter: Emitter, chosen: str, taken: str, branches: tuple[_Branch, _Branch], space: EntrySpace, kind: str
) -> str:
    then, otherwise = branches
    match then.value, otherwise.value:
        case "True", other:
            text = f"np.bitwise_or({chosen}, {other}, {OUT})"
        case "False", other:
            text = f"np.less({chosen}, {other}, {OUT})"
        case other, "True":
            text = f"np.less_equal({chosen}, {other}, {OUT})"
        case other, "False":
            text = f"np.bitwise_and({chosen}, {other}, {OUT})"
        case _:
            text = f"np.bitwise_or({chosen} & {then.value}, ~{chosen} & {otherwise.value}, {OUT})"
            return emitter.array(BOOL, space, text, apart=True)
    return emitter.array(BOOL, space, text)


def _one_branch(emitter: Emitter, node: ir.Cond, kind: str, condition: Vec, need: Need | None) -> Vec:
    """The condition is one for all rows, so only one branch is computed."""
    writer, space = emitter.writer, emitter.space_of_node(node)
    names = (writer.name("v"), writer.name("e"), writer.name("l"), writer.name("h"))
    few = unsigned = True
    for head, branch in ((f"if {condition.values}:", node.then), ("else:", node.otherwise)):
        with writer.block(head):
            found = _stated(emitter, branch, need, space, kind)
            value, few, unsigned = found.value, few and found.few, unsigned and found.unsigned
            if not found.is_array:
                value = f"np.full({space.count}, {value}, {DTYPES[kind]!r})"
            texts = (value, found.errors, found.low, found.high)
            writer.line("; ".join(f"{name} = {text}" for name, text in zip(names, texts, strict=True)))
    value, failed, low, high = names
    if condition.errors is not None:
        writer.line(f"if {condition.errors}: {failed} = np.ones({space.count}, bool)")
    bounds = (lambda: (low, high)) if kind in NUMBERS else None
    return Vec(kind, value, space, failed, bounds, few=few, unsigned=unsigned)
