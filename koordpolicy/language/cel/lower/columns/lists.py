"""Lists over columns: macros over list facts as operations on segments, and loops over the pod's lists.

A list fact of all rows is one long sequence of elements, so that a macro's body is computed for all
elements of all rows at once, in the space of elements, and the results are brought together row by
row. A list or map that is one for all rows (the pod's containers) becomes a loop over its elements,
each pass of which treats all rows.
"""

from collections.abc import Callable, Mapping

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.lower.columns import picked
from koordpolicy.language.cel.lower.columns.arithmetic import RULES
from koordpolicy.language.cel.lower.columns.emitter import Emitter
from koordpolicy.language.cel.lower.columns.schema import DEPTH
from koordpolicy.language.cel.lower.columns.symbols import (
    BOOL,
    COUNTED,
    DOUBLE,
    INT,
    STRING,
    EntrySpace,
    ListVec,
    Need,
    NoColumnForm,
    PickedVec,
    RecordVec,
    Symbol,
    ThingVec,
    Vec,
    kind_of,
)
from koordpolicy.language.cel.lower.columns.writer import SPACE


def emit_list_fact(emitter: Emitter, node: ir.Field, record: RecordVec) -> ListVec:
    """A list of records, or of plain values, that each row has."""
    element = node.type.params[0]
    kind = kind_of(element)
    if (kind is None and element.record is None) or record.space.depth == DEPTH:
        raise NoColumnForm(node, f"`{node.path}` of type {node.type} has no column")
    key = ("list", record.store, node.path)
    found = emitter.writer.recall(key)
    if found is None:
        found = _read(emitter, record, node.path, kind)
        emitter.writer.remember(key, found)
    assert isinstance(found, ListVec)
    return found


def _read(emitter: Emitter, outer: RecordVec, path: str, kind: str | None) -> ListVec:
    writer = emitter.writer
    emitter.uses_lists = True
    segments = writer.let("s", f"{outer.store}.segments({path!r})")
    store = writer.let("t", f"{outer.store}.elements({path!r})")
    count, owners = writer.let("n", f"{segments}.size"), writer.let("o", f"{segments}.owners")
    space = EntrySpace(count, emitter.new_space(), outer.space, owners, segments)
    writer.line(f"{SPACE} {space.number} {space.count}")
    writer.line(f"charge(meter, {emitter.price_of_all(space.count)})")
    live = writer.let("e", f"{segments}.live")
    absent = writer.let("e", f"{segments}.absent")
    record = RecordVec(space, store)
    element: Symbol = record if kind is None else emitter.column(record, "column('')", kind)
    return ListVec(space, element, live, absent, whole=True)


# --- macros over list facts ------------------------------------------------------------------------


def emit_comprehension(emitter: Emitter, node: ir.Comprehension, need: Need | None) -> Symbol:
    """A macro whose range or body differs from row to row."""
    source = emitter.emit(node.range, need)
    if isinstance(source, ThingVec):
        return _loop(emitter, node, source, need)
    if not isinstance(source, ListVec):
        raise NoColumnForm(node, "a macro over this range has no column form")
    writer = _WRITERS.get(node.macro)
    if writer is None:
        raise NoColumnForm(node, f"`{node.macro}` has no column form")
    _bind(emitter, node, source)
    return writer(emitter, node, source)


def _bind(emitter: Emitter, node: ir.Comprehension, source: ListVec) -> None:
    """Give the macro's variables their meaning: the element, or its position and the element."""
    numbering = emitter.numbering
    for body in (node.predicate, node.transform):
        names = numbering.free[numbering.of(body)].difference(node.variables) if body is not None else ()
        spaces = [space for name in names if (space := emitter.local_space(name)) is not None]
        # Elements of a list around this one are known here; any others, of this list too, are not.
        if not all(source.space.within(space) and space is not source.space for space in spaces):
            raise NoColumnForm(node, "a macro that names the elements of two lists")
    *index, value = node.variables
    emitter.local[value] = source.element
    if index:
        if not source.whole:
            raise NoColumnForm(node, "positions within a filtered list")
        text = f"positions({source.space.segments})"
        emitter.local[index[0]] = Vec(INT, emitter.once("v", text), source.space)


def _in_space(emitter: Emitter, node: ir.Node | None, space: EntrySpace) -> tuple[Vec, str | None]:
    """A body in the space of elements: its symbol, and its errors there."""
    assert node is not None
    vec = emitter.emit_vec(node)
    return vec, emitter.errors_in(vec, space)


def _decide(emitter: Emitter, node: ir.Comprehension, source: ListVec) -> Vec:
    """all and exists: one decisive element forgives the errors of the others."""
    body, errors = _in_space(emitter, node.predicate, source.space)
    value, failed = emitter.writer.name("v"), emitter.writer.name("e")
    emitter.writer.line(
        f"{value}, {failed} = {node.macro}_rows({emitter.values_in(body, source.space)}, {errors}, "
        f"{source.chosen}, {source.space.owners}, {source.outer.count}, {source.errors})"
    )
    return Vec(BOOL, value, source.outer, failed)


def _exists_one(emitter: Emitter, node: ir.Comprehension, source: ListVec) -> Vec:
    chosen = _filter(emitter, node, source)
    count = emitter.writer.let(
        "v", f"count_rows({chosen.chosen}, {source.space.segments}, {source.outer.count})"
    )
    return Vec(BOOL, emitter.writer.let("v", f"{count} == 1"), source.outer, chosen.errors)


def _filter(emitter: Emitter, node: ir.Comprehension, source: ListVec) -> ListVec:
    """The elements for which the predicate holds; an error of any is one of the list."""
    body, errors = _in_space(emitter, node.predicate, source.space)
    writer, space = emitter.writer, source.space
    chosen, failed = writer.name("m"), writer.name("e")
    writer.line(
        f"{chosen}, {failed} = choose({emitter.values_in(body, space)}, {errors}, {source.chosen}, "
        f"{space.owners}, {source.outer.count}, {source.errors})"
    )
    return ListVec(space, source.element, chosen, failed, whole=False)


def _map(emitter: Emitter, node: ir.Comprehension, source: ListVec) -> ListVec:
    """Each element's value; an error of any is one of the list."""
    if node.predicate is not None:
        source = _filter(emitter, node, source)
    body, errors = _in_space(emitter, node.transform, source.space)
    space = source.space
    failed = source.errors
    if errors is not None:
        failed = emitter.writer.let(
            "e",
            f"list_errors({errors}, {source.chosen}, {space.owners}, {source.outer.count}, {source.errors})",
        )
    if body.space is None:
        element = Vec(body.kind, emitter.spread(body, space), space, None, body.bounds)
    else:
        element = Vec(body.kind, body.values, body.space, None, body.bounds)
    return ListVec(space, element, source.chosen, failed, source.whole)


_WRITERS: Mapping[str, Callable[[Emitter, ir.Comprehension, ListVec], Symbol]] = {
    "all": _decide,
    "exists": _decide,
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
}


# --- what lists are asked --------------------------------------------------------------------------


def emit_of_list(emitter: Emitter, node: ir.Call, source: ListVec) -> Vec:
    """A function of one list that each row has: size, sum, min, max. Raises NoColumnForm."""
    name = node.overload.removeprefix(".").partition("(")[0]
    space = source.space
    if name == "size":
        count = (
            f"{space.segments}.lengths"
            if source.whole
            else f"count_rows({source.chosen}, {space.segments}, {source.outer.count})"
        )
        return Vec(INT, emitter.once("v", count), source.outer, source.errors, lambda: ("0", space.count))
    element = source.element
    if not isinstance(element, Vec) or element.kind not in COUNTED | {DOUBLE}:
        raise NoColumnForm(node, f"`{name}` of this list has no column form")
    kernel = _KERNELS.get((name, element.kind == DOUBLE))
    if kernel is None:
        raise NoColumnForm(node, f"`{name}` of a list has no column form")
    writer = emitter.writer
    values = emitter.spread(element, space)
    value, failed = writer.name("v"), writer.name("e")
    limits = ""
    bounds: Callable[[], tuple[str, str]] | None = None
    low, high = emitter.bounds_of(element)
    if name == "sum" and element.kind != DOUBLE:
        least, most = (
            writer.let("l", f"min({low}, 0) * {space.count}"),
            writer.let("h", f"max({high}, 0) * {space.count}"),
        )
        limits = f", {least}, {most}"
        low, high = f"max({least}, {-(2**63)})", f"min({most}, {2**63 - 1})"
    if element.kind != DOUBLE:
        bounds = lambda: (writer.let("l", low), writer.let("h", high))  # noqa: E731 the names differ by case
    arguments = f"{values}, {source.chosen}, {space.segments}, {source.outer.count}, {source.errors}{limits}"
    writer.line(f"{value}, {failed} = {kernel}({arguments})")
    return Vec(element.kind, value, source.outer, failed, bounds)


_KERNELS: Mapping[tuple[str, bool], str] = {
    ("sum", False): "sum_ints",
    ("sum", True): "sum_doubles",
    ("min", False): "least_ints",
    ("math.least", False): "least_ints",
    ("max", False): "greatest_ints",
    ("math.greatest", False): "greatest_ints",
    ("min", True): "least_doubles",
    ("math.least", True): "least_doubles",
    ("max", True): "greatest_doubles",
    ("math.greatest", True): "greatest_doubles",
}


def emit_percentile(emitter: Emitter, node: ir.Call, source: ListVec) -> Vec:
    """A percentile, the same for all rows, of a list that each row has. Raises NoColumnForm."""
    points = node.args[1]
    element = source.element
    if not isinstance(points, ir.Const) or not isinstance(points.value, int | float):
        raise NoColumnForm(node, "a percentile that differs from row to row")
    if not isinstance(element, Vec) or element.kind not in COUNTED | {DOUBLE}:
        raise NoColumnForm(node, "`percentile` of this list has no column form")
    writer, space = emitter.writer, source.space
    value, failed = writer.name("v"), writer.name("e")
    arguments = f"{emitter.spread(element, space)}, {source.chosen}, {space.segments}, {source.outer.count}"
    writer.line(f"{value}, {failed} = percentiles({arguments}, {source.errors}, {points.value!r})")
    bounds: Callable[[], tuple[str, str]] | None = None
    if element.kind != DOUBLE:
        low, high = emitter.bounds_of(element)
        bounds = lambda: (writer.let("l", f"min({low}, 0)"), writer.let("h", f"max({high}, 0)"))  # noqa: E731 the names differ by case
    return Vec(element.kind, value, source.outer, failed, bounds)


def emit_in_list(emitter: Emitter, node: ir.Call, sought: Vec, source: ListVec) -> Vec:
    """Whether a value is among the elements."""
    element = source.element
    if not isinstance(element, Vec) or (
        element.kind != sought.kind and {element.kind, sought.kind} != {INT, DOUBLE}
    ):
        raise NoColumnForm(node, "membership of unlike types")
    space = source.space
    if sought.space is not None and not source.outer.within(sought.space):
        raise NoColumnForm(node, "a macro that names the elements of two lists")
    one = (
        emitter.code_of(sought)
        if sought.kind == STRING and sought.space is None
        else emitter.values_in(sought, space)
    )
    found = emitter.writer.let("v", f"{emitter.spread(element, space)} == {one}")
    value, failed = emitter.writer.name("v"), emitter.writer.name("e")
    errors = emitter.join(source.errors, emitter.errors_in(sought, source.outer), source.outer)
    arguments = f"{found}, None, {source.chosen}, {space.owners}, {source.outer.count}, {errors}"
    emitter.writer.line(f"{value}, {failed} = exists_rows({arguments})")
    return Vec(BOOL, value, source.outer, failed)


# --- loops over what is one for all rows -----------------------------------------------------------


def _loop(emitter: Emitter, node: ir.Comprehension, source: ThingVec, need: Need | None) -> Vec | PickedVec:
    """all, exists and filter over a list or map of the pod's, with a body about the row."""
    if node.macro == "filter":
        return _pick(emitter, node, source, need)
    if node.macro not in ("all", "exists"):
        raise NoColumnForm(node, f"`{node.macro}` over a list that is one for all rows")
    assert node.predicate is not None
    writer, space = emitter.writer, emitter.space_of_node(node)
    conjunction = node.macro == "all"
    value = writer.let("v", f"np.full({space.count}, {conjunction})")
    failed = writer.let("e", "None")
    head, names = _head(emitter, node, source)
    for variable, name in zip(node.variables, names, strict=True):
        emitter.lanes[variable] = name
    with writer.block(head):
        body = emitter.emit_bool(node.predicate, need)
        kernel = "all_of" if conjunction else "any_of"
        if body.space is None:
            raise NoColumnForm(node, "a body that is one for all rows")
        writer.line(
            f"{value}, {failed} = {kernel}(({value}, {emitter.values_in(body, space)}), "
            f"({failed}, {emitter.errors_in(body, space)}))"
        )
    if source.errors is not None:
        writer.line(f"if {source.errors}: {failed} = np.ones({space.count}, bool)")
    return Vec(BOOL, value, space, failed)


def _pick(emitter: Emitter, node: ir.Comprehension, source: ThingVec, need: Need | None) -> PickedVec:
    """filter: the rows that keep each element; an error of any is one of the row's whole list."""
    assert node.predicate is not None
    writer, space = emitter.writer, emitter.space_of_node(node)
    walked, masks = picked.begin(emitter, node, source)
    failed = writer.let("e", f"np.ones({space.count}, bool) if {source.errors} else None")
    (variable,) = node.variables
    emitter.lanes[variable] = writer.name("x")
    with writer.block(f"for {emitter.lanes[variable]} in {walked}:"):
        body = emitter.emit_bool(node.predicate, need)
        if body.space is None:
            raise NoColumnForm(node, "a body that is one for all rows")
        writer.line(f"{masks}.append({emitter.values_in(body, space)})")
        writer.line(f"{failed} = join({failed}, {emitter.errors_in(body, space)})")
    return picked.picked(node, space, walked, masks, failed)


def _head(emitter: Emitter, node: ir.Comprehension, source: ThingVec) -> tuple[str, list[str]]:
    names = [emitter.writer.name("x") for _ in node.variables]
    walk = "pairs" if len(names) == 2 else "items"
    values = f"() if {source.errors} else {source.values}" if source.errors else source.values
    return f"for {', '.join(names)} in {walk}({values}, meter, {emitter.price_of_pass(node)}):", names


def emit_of_loop(emitter: Emitter, node: ir.Call, need: Need | None) -> Vec | None:
    """`pod.list.map(x, ...)` that is summed up, or asked for its least or greatest; None for others."""
    name = node.overload.removeprefix(".").partition("(")[0]
    inner = node.args[0] if len(node.args) == 1 else None
    if not isinstance(inner, ir.Comprehension) or inner.macro != "map" or emitter.varies(inner.range):
        return None
    kind = kind_of(node.type)
    if name != "sum" or inner.transform is None or kind not in COUNTED | {DOUBLE}:
        return None
    source = emitter.emit(inner.range, need)
    if not isinstance(source, ThingVec):
        return None
    return _sum_loop(emitter, node, inner, source, need)


def _sum_loop(
    emitter: Emitter, node: ir.Call, inner: ir.Comprehension, source: ThingVec, need: Need | None
) -> Vec:
    writer, space, kind = emitter.writer, emitter.space_of_node(node), kind_of(node.type)
    assert kind is not None and inner.transform is not None
    dtype = "float64" if kind == DOUBLE else "int64"
    value, failed = writer.let("v", f"np.zeros({space.count}, {dtype})"), writer.let("e", "None")
    low, high = writer.let("l", "0"), writer.let("h", "0")
    head, names = _head(emitter, inner, source)
    for variable, name in zip(inner.variables, names, strict=True):
        emitter.lanes[variable] = name
    with writer.block(head):
        term = emitter.emit_vec(inner.transform, need)
        if inner.predicate is not None:
            term = _where(emitter, inner.predicate, term, space, need)
        total = Vec(kind, value, space, failed, lambda: (low, high))
        rule = RULES["_+_(double,double)" if kind == DOUBLE else "_+_(int,int)"]
        added = rule(emitter, [total, term])
        texts = emitter.values_in(added, space), str(emitter.errors_in(added, space))
        if kind != DOUBLE:
            least, most = emitter.bounds_of(added)
            writer.line(f"{low} = {least}; {high} = {most}")
        writer.line(f"{value} = {texts[0]}; {failed} = {texts[1]}")
    if source.errors is not None:
        writer.line(f"if {source.errors}: {failed} = np.ones({space.count}, bool)")
    return Vec(kind, value, space, failed, (lambda: (low, high)) if kind != DOUBLE else None)


def _where(emitter: Emitter, predicate: ir.Node, term: Vec, space: EntrySpace, need: Need | None) -> Vec:
    """The term where the predicate holds, else zero."""
    condition = emitter.emit_bool(predicate, need)
    writer = emitter.writer
    zero = "0.0" if term.kind == DOUBLE else "0"
    chosen = emitter.spread(condition, space)
    value = emitter.choose(chosen, emitter.values_in(term, space), zero, term.kind, space)
    errors = emitter.errors_in(term, space)
    failed = writer.let(
        "e", f"chosen_errors({chosen}, {emitter.errors_in(condition, space)}, {errors}, None)"
    )
    low, high = emitter.bounds_of(term)
    return Vec(term.kind, value, space, failed, lambda: (f"min({low}, 0)", f"max({high}, 0)"))
