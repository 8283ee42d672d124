"""List literals with facts of the row: a few vectors side by side, and what is asked of them.

Macros over constant lists arrive in this form (see `simplify`): a filter is a literal whose elements
are there on a condition.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.lower.columns.arithmetic import RULES, equality, extremes
from koordpolicy.language.cel.lower.columns.emitter import Emitter
from koordpolicy.language.cel.lower.columns.exact import EXACT, alike
from koordpolicy.language.cel.lower.columns.symbols import (
    BOOL,
    COUNTED,
    DOUBLE,
    INT,
    NUMBERS,
    STRING,
    WHOLE,
    Bounds,
    EntrySpace,
    LiteralVec,
    Need,
    NoColumnForm,
    PickedVec,
    Vec,
    kind_of,
)
from koordpolicy.language.cel.values import NONE, Optional


def emit_literal(emitter: Emitter, node: ir.MakeList, need: Need | None) -> LiteralVec | PickedVec:
    """A list literal; constants that are there on a condition make a list to pick from."""
    space = emitter.space_of_node(node)
    kind = kind_of(node.type.params[0])
    if kind is None:
        raise NoColumnForm(node, f"a list of {node.type.params[0]} has no column")
    elements: list[tuple[Vec, str | None]] = []
    errors: str | None = None
    for at, part in enumerate(node.elements):
        value, mask = part, None
        if at in node.optional:
            held, condition = _on_condition(part)
            if held is None:
                continue
            value = held
            if condition is not None:
                test = emitter.emit_bool(condition, need)
                errors = emitter.join(errors, emitter.errors_in(test, space), space)
                mask = emitter.spread(test, space)
        vec = emitter.constant(value) if isinstance(value, ir.Const) else emitter.emit_number(value, need)
        if not isinstance(vec, Vec) or kind != (INT if vec.kind == WHOLE else vec.kind):
            raise NoColumnForm(node, "a list of unlike elements")
        errors = emitter.join(errors, _taken_errors(emitter, vec, mask, space), space)
        elements.append((replace(vec, errors=None), mask))
    literal = LiteralVec(space, tuple(elements), errors)
    return _as_picked(emitter, literal, kind) if _is_picked(literal) else literal


def _on_condition(part: ir.Node) -> tuple[ir.Node | None, ir.Node | None]:
    """What an optional element holds, and on which condition; no element at all for none."""
    condition: ir.Node | None = None
    if isinstance(part, ir.Cond):
        condition, otherwise = part.condition, part.otherwise
        if not isinstance(otherwise, ir.Const) or otherwise.value is not NONE:
            raise NoColumnForm(part, "an optional element of this form")
        part = part.then
    if isinstance(part, ir.Const) and isinstance(part.value, Optional):
        if part.value is NONE:
            return None, None
        kind, held = part.type.params[0], part.value.value
        return constant(kind, held), condition
    if isinstance(part, ir.Call) and part.overload == "optional.of(T)":
        return part.args[0], condition
    raise NoColumnForm(part, "an optional element of this form")


def _taken_errors(emitter: Emitter, vec: Vec, mask: str | None, space: EntrySpace) -> str | None:
    errors = emitter.errors_in(vec, space)
    if errors is None or mask is None:
        return errors
    return emitter.new("e", f"None if {errors} is None else {errors} & {mask}")


def _is_picked(literal: LiteralVec) -> bool:
    return bool(literal.elements) and all(
        vec.space is None and mask is not None for vec, mask in literal.elements
    )


def _as_picked(emitter: Emitter, literal: LiteralVec, kind: str) -> PickedVec:
    writer = emitter.writer
    walked = writer.let("i", f"({''.join(f'{vec.values}, ' for vec, _ in literal.elements)})")
    masks = writer.let("k", f"[{', '.join(str(mask) for _, mask in literal.elements)}]")
    errors = literal.errors or emitter.once("e", "None")
    return PickedVec(literal.space, kind, walked, masks, errors, held=True)


# --- what literals are asked -----------------------------------------------------------------------


def emit_of_literal(emitter: Emitter, node: ir.Call, source: LiteralVec) -> Vec:
    """A function of one list literal: size, sum, min, max. Raises NoColumnForm."""
    name = node.overload.removeprefix(".").partition("(")[0]
    rule = _QUESTIONS.get(name)
    if rule is None:
        raise NoColumnForm(node, f"`{name}` of a list literal has no column form")
    vec = rule(emitter, node, source)
    values = emitter.spread(vec, source.space)
    errors = emitter.join(source.errors, emitter.errors_in(vec, source.space), source.space)
    return replace(vec, values=values, space=source.space, errors=errors, fresh=False, column=None)


def _size(emitter: Emitter, node: ir.Call, source: LiteralVec) -> Vec:
    masks = [mask for _, mask in source.elements if mask is not None]
    always = len(source.elements) - len(masks)
    if not masks:
        return Vec(INT, str(always), None, None, lambda: (str(always), str(always)))
    text = f"count_picked([{', '.join(masks)}], {source.space.count}) + {always}"
    return Vec(INT, emitter.new("v", text), source.space, None, lambda: ("0", str(len(source.elements))))


def _sum(emitter: Emitter, node: ir.Call, source: LiteralVec) -> Vec:
    kind = kind_of(node.type)
    if kind not in COUNTED | {DOUBLE}:
        raise NoColumnForm(node, "the sum of a list literal of this type")
    zero = "0.0" if kind == DOUBLE else "0"
    total = Vec(kind, zero, None, None, lambda: (zero, zero))
    rule = RULES["_+_(double,double)" if kind == DOUBLE else "_+_(int,int)"]
    if emitter.exact and kind == INT:
        rule, kind = EXACT["_+_(int,int)"], WHOLE
    for vec, mask in source.elements:
        term = emitter.as_whole(vec) if kind == WHOLE else vec
        if mask is not None:
            value = emitter.choose(mask, emitter.values_in(term, source.space), zero, kind, source.space)
            low, high = emitter.bounds_of(vec)
            pair = emitter.writer.let("l", f"min({low}, 0)"), emitter.writer.let("h", f"max({high}, 0)")
            bounds: Callable[[], Bounds] = lambda pair=pair: pair  # type: ignore[misc]  # noqa: E731
            term = Vec(kind, value, source.space, None, bounds, unsigned=term.unsigned)
        if total.values == zero and kind != DOUBLE:
            total = term
        elif total.space is None and term.space is None:
            raise NoColumnForm(node, "the sum of what is one for all rows")
        else:
            added = rule(emitter, [total, term])
            total = added
    return total


def _extreme(sign: str) -> Callable[[Emitter, ir.Call, LiteralVec], Vec]:
    def rule(emitter: Emitter, node: ir.Call, source: LiteralVec) -> Vec:
        vecs = [vec for vec, _ in source.elements]
        plain = all(mask is None for _, mask in source.elements)
        if not plain or not vecs or vecs[0].kind not in NUMBERS:
            raise NoColumnForm(node, "the least or greatest of this list literal")
        if all(vec.space is None for vec in vecs):
            raise NoColumnForm(node, "the least or greatest of what is one for all rows")
        return extremes(sign)(emitter, alike(emitter, vecs))

    return rule


_QUESTIONS: Mapping[str, Callable[[Emitter, ir.Call, LiteralVec], Vec]] = {
    "size": _size,
    "sum": _sum,
    "min": _extreme("<"),
    "math.least": _extreme("<"),
    "max": _extreme(">"),
    "math.greatest": _extreme(">"),
}


def emit_in_literal(emitter: Emitter, node: ir.Call, sought: Vec, source: LiteralVec) -> Vec:
    """Whether a value is among the elements; an element that fails fails the list."""
    space = emitter.space_of_node(node)
    found: str | None = None
    for held, mask in source.elements:
        vec = emitter.as_int(held)
        if vec.kind != sought.kind and {vec.kind, sought.kind} != {INT, DOUBLE}:
            raise NoColumnForm(node, "membership of unlike types")
        plain = Vec(sought.kind, sought.values, sought.space, None)
        if vec.space is None and sought.space is None:
            if vec.kind != sought.kind:
                raise NoColumnForm(node, "membership of unlike types")
            equal = emitter.new("v", f"np.full({space.count}, {vec.values} == {sought.values})")
        else:
            equal = emitter.values_in(equality("==")(emitter, [plain, vec]), space)
        if mask is not None:
            there = emitter.values_in(Vec(BOOL, mask, source.space), space)
            equal = emitter.new("v", f"{equal} & {there}")
        found = equal if found is None else emitter.new("v", f"{found} | {equal}")
    value = found or emitter.new("v", f"np.zeros({space.count}, bool)")
    listed = emitter.errors_in(Vec(BOOL, "", source.space, source.errors), space)
    return Vec(BOOL, value, space, emitter.join(listed, emitter.errors_in(sought, space), space))


def element(emitter: Emitter, node: ir.Index, source: LiteralVec) -> Vec:
    """The element at a constant position."""
    at = node.index.value if isinstance(node.index, ir.Const) else None
    if type(at) is not int or node.optional or any(mask is not None for _, mask in source.elements):
        raise NoColumnForm(node, "an index of a list literal")
    if not 0 <= at < len(source.elements):
        raise NoColumnForm(node, "an index outside a list literal")
    vec = emitter.as_int(source.elements[at][0])
    if vec.kind == STRING and vec.space is None:
        raise NoColumnForm(node, "a constant element of a list literal")
    errors = emitter.join(source.errors, emitter.errors_in(vec, source.space), source.space)
    return Vec(vec.kind, emitter.spread(vec, source.space), source.space, errors, vec.bounds)
