"""One rule a class of typed nodes: facts, maps, logic, conditionals, optionals, calls."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.lower.apply import implementation
from koordpolicy.language.cel.lower.columns import conditional, lists, literals, logic, picked
from koordpolicy.language.cel.lower.columns.arithmetic import RULES, equality, extremes
from koordpolicy.language.cel.lower.columns.emitter import Emitter
from koordpolicy.language.cel.lower.columns.exact import EXACT, alike
from koordpolicy.language.cel.lower.columns.strings import Memo
from koordpolicy.language.cel.lower.columns.symbols import (
    BOOL,
    DOUBLE,
    INT,
    NUMBERS,
    STRING,
    WHOLE,
    EntrySpace,
    ListVec,
    LiteralVec,
    MapVec,
    Need,
    NoColumnForm,
    OptionalVec,
    PickedVec,
    RecordVec,
    Symbol,
    ThingVec,
    Vec,
    kind_of,
)


def emit_node(emitter: Emitter, node: ir.Node, need: Need | None) -> Symbol:
    """Write a node that varies from row to row. Raises NoColumnForm."""
    match node:
        case ir.Var():
            return _variable(emitter, node)
        case ir.Field():
            return _fact(emitter, node, need)
        case ir.HasField():
            return _has(emitter, node, need)
        case ir.OptField():
            return _optional_fact(emitter, node, need)
        case ir.Select():
            key = Vec(STRING, emitter.writer.constant("K", node.field))
            return _entry(emitter, node, emitter.emit(node.operand, need), key, node.optional, node.test)
        case ir.Index():
            return _index(emitter, node, need)
        case ir.And() | ir.Or():
            return logic.emit_junction(emitter, node, need)
        case ir.Holds():
            return logic.emit_holds(emitter, node, need)
        case ir.Cond():
            return conditional.emit_conditional(emitter, node, need)
        case ir.OrElse():
            return _or_else(emitter, node, need)
        case ir.OptMap():
            return _mapped_optional(emitter, node, need)
        case ir.MakeList():
            return literals.emit_literal(emitter, node, need)
        case ir.Comprehension():
            return lists.emit_comprehension(emitter, node, need)
        case ir.Call():
            return _call(emitter, node, need)
    raise NoColumnForm(node, f"{_WORDS.get(type(node), 'this expression')} has no column form")


_WORDS: dict[type[ir.Node], str] = {
    ir.MakeMap: "a map literal with facts of the row",
}


def _variable(emitter: Emitter, node: ir.Var) -> Symbol:
    if node.local:
        return emitter.local[node.name]
    return RecordVec(emitter.rows, "table")


def _record(emitter: Emitter, node: ir.Node, need: Need | None) -> RecordVec:
    base = emitter.emit(node, need)
    if not isinstance(base, RecordVec):
        raise NoColumnForm(node, "a fact of a computed record")
    return base


def _fact(emitter: Emitter, node: ir.Field, need: Need | None) -> Symbol:
    record = _record(emitter, node.base, need)
    kind = kind_of(node.type)
    if kind is not None:
        return emitter.column(record, f"column({node.path!r})", kind)
    if node.type.name == "map" and node.type.params[0].name == "string":
        return MapVec(record, node.path, kind_of(node.type.params[1]))
    if node.type.name == "list":
        return lists.emit_list_fact(emitter, node, record)
    raise NoColumnForm(node, f"`{node.path}` of type {node.type} has no column")


def _has(emitter: Emitter, node: ir.HasField, need: Need | None, kernel: str = "present_any") -> Vec:
    record = _record(emitter, node.base, need)
    masks = [f"{emitter.read(record, f'presence({path!r})')}.absent" for path in node.paths]
    value = emitter.new("v", f"{kernel}({record.space.count}, {', '.join(masks)})")
    return Vec(BOOL, value, record.space)


def _optional_fact(emitter: Emitter, node: ir.OptField, need: Need | None) -> OptionalVec:
    record = _record(emitter, node.base, need)
    kind = kind_of(node.type.params[0])
    if kind is None:
        raise NoColumnForm(node, f"an optional of type {node.type.params[0]} has no column")
    column = emitter.column(record, f"column({node.path!r})", kind)
    return OptionalVec(replace(column, errors=None), column.errors)


# --- maps -------------------------------------------------------------------------------------------


def _index(emitter: Emitter, node: ir.Index, need: Need | None) -> Symbol:
    key = emitter.emit(node.index, need)
    container = emitter.emit(node.operand, need)
    if isinstance(container, PickedVec) and isinstance(key, Vec):
        return picked.element(emitter, node, container, key)
    if isinstance(container, LiteralVec):
        return literals.element(emitter, node, container)
    if not isinstance(key, Vec) or key.space is not None or key.kind != STRING:
        raise NoColumnForm(node, "an index that differs from row to row")
    return _entry(emitter, node, container, key, node.optional, False)


def _entry(
    emitter: Emitter, node: ir.Node, container: Symbol, key: Vec, optional: bool, test: bool
) -> Vec | OptionalVec:
    """A key of a map fact: its value, an optional of it, or whether it is there."""
    if not isinstance(container, MapVec):
        raise NoColumnForm(node, "a key of a computed map")
    record, space = container.record, container.record.space
    lacking = f"{emitter.read(record, f'presence({container.path!r})')}.absent"
    missing = emitter.join(emitter.once("e", lacking), emitter.errors_in(key, space), space)
    if test and container.values is None:
        raise NoColumnForm(node, "a map whose values have no column")
    if container.values is None:
        raise NoColumnForm(node, "a map whose values have no column")
    text = f"entry({container.path!r}, {key.values})"
    entry = emitter.column(record, text, container.values)
    if test:
        value = emitter.new("v", f"present_any({space.count}, {entry.errors})")
        return Vec(BOOL, value, space, missing)
    failed_key = emitter.errors_in(key, space)
    if optional:
        return OptionalVec(replace(entry, errors=missing), entry.errors)
    return replace(entry, errors=emitter.join(entry.errors, failed_key, space))


# --- optionals --------------------------------------------------------------------------------------


def _optional(emitter: Emitter, node: ir.Node, need: Need | None) -> OptionalVec:
    found = emitter.emit(node, need)
    if not isinstance(found, OptionalVec):
        raise NoColumnForm(node, "a computed optional")
    return found


def _mapped_optional(emitter: Emitter, node: ir.OptMap, need: Need | None) -> OptionalVec:
    if node.flat:
        raise NoColumnForm(node, "optFlatMap has no column form")
    operand = _optional(emitter, node.operand, need)
    held = operand.value
    emitter.local[node.name] = Vec(held.kind, held.values, held.space, None, held.bounds)
    body = emitter.emit_vec(node.body, need)
    space = emitter.space_of_node(node)
    none = _none_in(emitter, operand, space)
    failed = emitter.writer.let(
        "e",
        f"errors_unless({none}, {emitter.errors_in(operand.value, space)}, {emitter.errors_in(body, space)})",
    )
    return OptionalVec(Vec(body.kind, emitter.spread(body, space), space, failed, body.bounds), none)


def _none_in(emitter: Emitter, operand: OptionalVec, space: EntrySpace) -> str | None:
    """The mask of entries without value, in a space."""
    return emitter.errors_in(Vec(BOOL, "", operand.value.space, operand.none), space)


def _or_else(emitter: Emitter, node: ir.OrElse, need: Need | None) -> Vec:
    if not node.unwrap:  # where a value is taken in the end, `simplify` has taken it here
        raise NoColumnForm(node, "`or` has no column form")
    writer = emitter.writer
    operand = _optional(emitter, node.operand, need)
    found = operand.value
    if not found.kind == kind_of(node.type) == kind_of(node.other.type):
        raise NoColumnForm(node, "values of unlike types")
    if operand.none is None:
        return found
    if emitter.exact:
        found = emitter.as_whole(found)
    space = emitter.space_of_node(node)
    none = _none_in(emitter, operand, space)
    own = emitter.values_in(found, space)
    value, failed = writer.name("v"), writer.name("e")
    low, high = writer.name("l"), writer.name("h")
    least, most = emitter.bounds_of(found)
    errors = emitter.errors_in(found, space)
    writer.line(f"{value} = {own}; {failed} = {errors}; {low} = {least}; {high} = {most}")
    with writer.block(f"if {none} is not None:"):
        partial = emitter.is_partial(node.other)
        wanted = emitter.narrow(need, str(none), space) if partial else None
        other = emitter.emit_number(node.other, wanted)
        other = emitter.as_whole(other) if found.kind == WHOLE else emitter.as_int(other)
        text = emitter.element_of(other) if other.space is None else emitter.values_in(other, space)
        if found.kind in (BOOL, STRING):
            writer.line(f"{value} = np.where({none}, {text}, {own})")
        else:
            writer.line(f"{value} = {emitter.choose(str(none), text, own, found.kind, space)}")
        writer.line(f"{failed} = errors_where({none}, {emitter.errors_in(other, space)}, {errors})")
        least, most = emitter.bounds_of(other)
        writer.line(f"{low} = min({low}, {least}); {high} = max({high}, {most})")
    bounds = (lambda: (low, high)) if found.kind in NUMBERS else None
    unsigned = found.unsigned and other.unsigned
    return Vec(found.kind, value, space, failed, bounds, unsigned=unsigned)


def _value(emitter: Emitter, node: ir.Call, need: Need | None) -> Vec:
    operand = _optional(emitter, node.args[0], need)
    found = operand.value
    failed = emitter.join(emitter.errors_in(found, found.space), operand.none, found.space)
    return Vec(found.kind, found.values, found.space, failed, found.bounds)


def _has_value(emitter: Emitter, node: ir.Call, need: Need | None) -> Vec:
    operand = _optional(emitter, node.args[0], need)
    space = operand.value.space
    assert space is not None
    value = emitter.new("v", f"present_any({space.count}, {operand.none})")
    return Vec(BOOL, value, space, emitter.errors_in(operand.value, space))


def _optional_of(emitter: Emitter, node: ir.Call, need: Need | None) -> OptionalVec:
    return OptionalVec(emitter.emit_vec(node.args[0], need), None)


_OPTIONALS: Mapping[str, Callable[[Emitter, ir.Call, Need | None], Symbol]] = {
    "optional.of(T)": _optional_of,
    "hasValue(optional_type(T))": _has_value,
    "value(optional_type(T))": _value,
}


# --- calls ------------------------------------------------------------------------------------------


def _call(emitter: Emitter, node: ir.Call, need: Need | None) -> Symbol:
    id = node.overload
    if id == "!_(bool)" and isinstance(operand := node.args[0], ir.HasField):
        return _has(emitter, operand, need, "absent_all")
    if id in _OPTIONALS:
        return _OPTIONALS[id](emitter, node, need)
    if id.startswith("@in("):
        return _membership(emitter, node, need)
    loop = lists.emit_of_loop(emitter, node, need)
    if loop is not None:
        return loop
    name = id.partition("(")[0]
    rule, emit = RULES.get(id), emitter.emit
    if emitter.exact and (id in EXACT or id in ("_==_", "_!=_") or name in _EXTREMES):
        rule, emit = EXACT.get(id, rule), emitter.emit_held
    args = [emit(arg, need) for arg in node.args]
    if len(args) == 1 and isinstance(args[0], LiteralVec):
        return literals.emit_of_literal(emitter, node, args[0])
    if len(args) == 1 and isinstance(args[0], ListVec):
        return lists.emit_of_list(emitter, node, args[0])
    if name.removeprefix(".") == "percentile" and isinstance(args[0], ListVec):
        return lists.emit_percentile(emitter, node, args[0])
    if len(args) == 1 and isinstance(args[0], PickedVec) and name.removeprefix(".") == "size":
        return picked.size(emitter, args[0])
    vectors = [arg for arg in args if isinstance(arg, Vec)]
    if len(vectors) < len(args):
        raise NoColumnForm(node, f"`{id}` of this operand has no column form")
    vectors = list(alike(emitter, vectors)) if id not in EXACT else vectors
    kinds = {vec.kind for vec in vectors}
    if id in ("_==_", "_!=_"):
        if len(kinds) > 1 and not kinds <= {INT, WHOLE, DOUBLE}:
            raise NoColumnForm(node, f"`{id}` of unlike types")
        return equality(id[1:-1])(emitter, vectors)
    if name in _EXTREMES and len(kinds) == 1 and not id.endswith("(dyn)"):
        rule = extremes(_EXTREMES[name])
    if rule is not None:
        return rule(emitter, vectors)
    if STRING in kinds:
        return _of_strings(emitter, node, vectors)
    raise NoColumnForm(node, f"`{id}` has no column form")


_EXTREMES = {"min": "<", "math.least": "<", "max": ">", "math.greatest": ">"}


def _membership(emitter: Emitter, node: ir.Call, need: Need | None) -> Vec:
    container = emitter.emit(node.args[1], need)
    sought = emitter.emit_vec(node.args[0], need)
    if isinstance(container, MapVec):
        if sought.space is not None or sought.kind != STRING:
            raise NoColumnForm(node, "a key that differs from row to row")
        found = _entry(emitter, node, container, sought, False, True)
        assert isinstance(found, Vec)
        return found
    if isinstance(container, LiteralVec):
        return literals.emit_in_literal(emitter, node, sought, container)
    if isinstance(container, ListVec):
        return lists.emit_in_list(emitter, node, sought, container)
    if not isinstance(container, ThingVec) or sought.space is None:
        raise NoColumnForm(node, "membership in a computed list")
    if container.type.name not in ("list", "map") or (container.type.name == "map" and sought.kind != STRING):
        raise NoColumnForm(node, "membership of this kind")
    writer, space = emitter.writer, sought.space
    items = f"() if {container.errors} else {container.values}" if container.errors else container.values
    value = writer.let("v", f"is_among({sought.values}, {sought.kind!r}, {items}, strings)")
    failed = emitter.errors_in(Vec(BOOL, "", None, container.errors), space)
    return Vec(BOOL, value, space, emitter.join(emitter.errors_in(sought, space), failed, space), fresh=True)


_CONCATENATION = "_+_(string,string)"
"""The operator of strings, which has no row in the table of functions."""


def _of_strings(emitter: Emitter, node: ir.Call, args: list[Vec]) -> Vec:
    """A function of one column of strings: computed once for each string that occurs."""
    kind = kind_of(node.type)
    varying = [at for at, arg in enumerate(args) if arg.space is not None]
    subject = args[varying[0]]
    fixed = [arg for arg in args if arg.space is None]
    constant = all(arg.errors is None for arg in fixed)
    overload = emitter.overloads.get(node.overload)
    # Of one of a few strings; a column may bring ever new ones, whose results would all be kept.
    joined = subject.few and node.overload == _CONCATENATION
    function = implementation(node.overload, FUNCTIONS) if overload is not None or joined else None
    if (
        len(varying) != 1 or subject.kind != STRING or kind is None or function is None
        # New strings for ever new arguments would fill the table of strings.
        or (kind == STRING and not constant)
        or any(arg.kind not in (STRING, INT, DOUBLE, BOOL) for arg in fixed)
    ):  # fmt: skip
        raise NoColumnForm(node, f"`{node.overload}` has no column form")
    memo = emitter.writer.constant("M", Memo(function, varying[0], kind))
    arguments = ", ".join(arg.values for arg in fixed)
    value, failed = emitter.writer.name("v"), emitter.writer.name("e")
    emitter.writer.line(
        f"{value}, {failed} = {memo}.look_up({subject.values}, strings, meter, ({arguments}{',' if arguments else ''}))"
    )
    errors = emitter.join(emitter.join_errors(args, subject.space), failed, subject.space)
    return Vec(kind, value, subject.space, errors, few=subject.few)
