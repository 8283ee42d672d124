"""How each kind of node is written: one rule each; those of loops stand in `loops`."""

from functools import partial

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.casts import caster
from koordpolicy.language.cel.errors import InvalidArgument
from koordpolicy.language.cel.library.regex import beforehand, tester
from koordpolicy.language.cel.lower.body import Body
from koordpolicy.language.cel.lower.charging import SCALARS, TIMES, is_priced
from koordpolicy.language.cel.lower.dispatch import dispatcher
from koordpolicy.language.cel.lower.loops import comprehension
from koordpolicy.language.cel.lower.operators import OPERATORS, SPANS, Inline, specialise
from koordpolicy.language.cel.lower.source import Block, one_line
from koordpolicy.language.cel.prices import ABSORBED
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.language.cel.values_equality import LONG_TEXT

_HASHED = frozenset(("string", "int"))
_SHORT = 3
_MATCHES = frozenset(("matches(string,string)", ".matches(string,string)"))


def compute(body: Body, node: ir.Node, operands: tuple[int, ...]) -> str:
    """The text of a node's value; statements that it needs go ahead of it."""
    match node:
        case ir.Field():
            body.may_fail = True
            return f"{body.text(operands[0])}[{node.path!r}]"
        case ir.Call():
            return _call(body, node, operands)
        case ir.And() | ir.Or():
            return _logic(body, operands, "and" if isinstance(node, ir.And) else "or")
        case ir.Cond() | ir.Holds():
            return _condition(body, node, operands)
        case ir.HasField():
            return _has_field(body, node, operands[0])
        case ir.OptField():
            if node.base.type.name == "optional_type":
                return f"find_fact({body.text(operands[0])}, {node.path!r})"
            record = body.atom(operands[0])
            return f"(Optional({record}[{node.path!r}]) if {node.path!r} in {record} else NONE)"
        case ir.Select():
            return _select(body, node, operands[0])
        case ir.Index():
            return _index(body, node, operands)
        case ir.MakeList():
            return _make_list(body, node, operands)
        case ir.MakeMap():
            return _make_map(body, node, operands)
        case ir.OrElse():
            return _or_else(body, node, operands)
        case ir.Cast():
            body.may_fail = True
            check = body.program.constant(
                caster(node.type, node.permitted), ("cast", node.type, node.permitted)
            )
            return f"{check}({body.text(operands[0])}{', meter' if node.type.params else ''})"
        case ir.OptMap():
            return _opt_map(body, node, operands)
        case ir.Comprehension():
            return comprehension(body, node, operands)
    raise ValueError(f"{type(node).__name__} cannot be lowered")


def held(body: Body, n: int) -> str:
    """The text of a value in the form that columns hold: nanoseconds for durations and points in time."""
    node = body.node(n)
    if node.type.name not in TIMES:
        return body.text(n)
    if isinstance(node, ir.Const) and isinstance(node.value, (Duration, Timestamp)):
        return f"({node.value.ns})"
    # Whoever else needs the value needs all of it.
    if isinstance(node, ir.Call) and node.overload in SPANS and body.numbering.uses[n] == 1:
        return _inline(body, SPANS[node.overload], body.operands(n))
    return f"{body.text(n)}.ns"


# Calls


def _call(body: Body, node: ir.Call, operands: tuple[int, ...]) -> str:
    known = [body.node(n) for n in operands]
    if node.overload in ("_==_", "_!=_"):
        return _equality(body, operands, node.overload == "_!=_")
    if node.overload.startswith("@in("):
        special = _membership(body, known, operands)
        if special is not None:
            return special
    if node.overload in _MATCHES and isinstance(node.args[1], ir.Const):
        special = _match(body, node.args[1].value, operands[0])
        if special is not None:
            return special
    row = specialise(node.overload, known) or OPERATORS.get(node.overload)
    if row is not None:
        return _inline(body, row, operands)
    body.may_fail = True
    overload = body.program.overload(node.overload)
    if overload is None:
        metered = dispatcher(node.overload, body.program.functions)
    else:
        metered = None if is_priced(overload, node) else overload.metered
    if overload is None and metered is None:
        raise ValueError(f"no function has the overload `{node.overload}`")
    implementation = metered or (overload and overload.implementation)
    key = "unmetered" if overload and overload.metered and not metered else "function"
    name = body.program.constant(implementation, (key, node.overload))
    texts = [_pattern(body, node, at) or body.text(n) for at, n in enumerate(operands)]
    return f"{name}({', '.join(['meter', *texts] if metered else texts)})"


def _match(body: Body, pattern: object, operand: int) -> str | None:
    """`matches` with a constant pattern, compiled now; None for a pattern that has to fail later."""
    try:
        found = tester(pattern) if isinstance(pattern, str) else None
    except InvalidArgument:
        return None
    if found is None:
        return None
    body.may_fail = True  # a text that is no Unicode
    return f"{body.program.constant(found, ('pattern', pattern))}(meter, {body.text(operand)})"


def _pattern(body: Body, call: ir.Call, at: int) -> str | None:
    """The name of the compiled pattern that a call is given as a constant; None for any other operand."""
    node = call.args[at]
    if at != 1 or not isinstance(node, ir.Const):
        return None
    compiled = beforehand(call.overload, node.value)
    return None if compiled is None else body.program.constant(compiled, ("compiled", node.value))


def _inline(body: Body, row: Inline, operands: tuple[int, ...]) -> str:
    plain = partial(held, body) if row.held else body.text
    long = row.long if _of_any_length(body, operands) else ()
    texts = [
        _long(body, n) if at in long else body.atom(n) if at in row.atoms else plain(n)
        for at, n in enumerate(operands)
    ]
    body.may_fail = body.may_fail or row.fails
    return row.text.format(*texts, t=body.fresh() if "{t}" in row.text else "")


def _of_any_length(body: Body, operands: tuple[int, ...]) -> bool:
    """Whether comparing operands may take longer than the expression tells, again and again: none is constant."""
    return body.repeats and not any(isinstance(body.node(n), ir.Const) for n in operands)


def _long(body: Body, n: int) -> str:
    """The text of an operand that may be a long text, in a loop that pays for reading it."""
    text = body.atom(n)
    short = f"len({text}) < {LONG_TEXT}"
    if body.node(n).type.name == "dyn":
        short = f"type({text}) is not str or {short}"
    return f"({text} if {short} else long_text(meter, {text}))"


def _or_else(body: Body, node: ir.OrElse, operands: tuple[int, ...]) -> str:
    """`a.or(b)` and `a.orValue(b)`; b is evaluated only when a is none."""
    if node.unwrap and body.numbering.uses[operands[0]] == 1 and isinstance(node.other, ir.Const):
        found = _looked_up(body, operands[0])
        if found is not None:
            return f"{found[0]}.get({found[1]}, {body.text(operands[1])})"
    first, suffix = body.name(_optional(body, operands[0])), ".value" if node.unwrap else ""
    with body.branch() as inner:
        second = body.text(operands[1]) if node.unwrap else _optional(body, operands[1])
    if inner.is_empty:
        return f"({first}{suffix} if {first} is not NONE else {second})"
    result = body.fresh()
    inner.line(f"{result} = {second}")
    body.block.line(f"if {first} is not NONE:")
    body.block.nest(one_line(f"{result} = {first}{suffix}"))
    body.block.line("else:")
    body.block.nest(inner)
    return result


def _optional(body: Body, n: int) -> str:
    """The text of an optional, checked at run time where its static type is no optional."""
    text = body.text(n)
    if body.node(n).type.name == "optional_type":
        return text
    body.may_fail = True
    return f"as_optional({text})"


def _looked_up(body: Body, n: int) -> tuple[str, str] | None:
    """The texts of the dict and the key that an optional asks for; None for any other optional."""
    node, operands = body.node(n), body.operands(n)
    match node:
        case ir.OptField() if node.base.type.name != "optional_type":
            return body.text(operands[0]), repr(node.path)
        case ir.Select(optional=True, test=False) if node.operand.type.name == "map":
            return body.text(operands[0]), repr(node.field)
        case ir.Index(optional=True) if node.operand.type.name == "map" and _is_plain_key(node):
            container = body.text(operands[0])
            return container, body.text(operands[1])
    return None


def _is_plain_key(node: ir.Index) -> bool:
    """Whether the key stands in a dict as it is."""
    return node.index.type.name in _HASHED and node.operand.type.params[0].name in _HASHED


def _equality(body: Body, operands: tuple[int, ...], negated: bool) -> str:
    a, b = (body.node(n).type.name for n in operands)
    sign = "!=" if negated else "=="
    if a == b and a in SCALARS:
        long = a in ("string", "bytes") and _of_any_length(body, operands)
        first = _long(body, operands[0]) if long else body.text(operands[0])
        return f"({first} {sign} {body.text(operands[1])})"
    if a == b and a in TIMES:
        return f"({held(body, operands[0])} {sign} {held(body, operands[1])})"
    for at, kind in enumerate((a, b)):
        if kind == "null_type":
            other = body.name(body.text(operands[1 - at]))  # a name, for Python warns at `1 is None`
            return f"({other} is {'not ' if negated else ''}None)"
    call = f"equal({body.text(operands[0])}, {body.text(operands[1])}, meter)"
    return f"(not {call})" if negated else call


def _membership(body: Body, known: list[ir.Node], operands: tuple[int, ...]) -> str | None:
    """`in` by Python's own, where hashes or equality of the static types permit it."""
    needle, container = known
    kind = needle.type.name
    if container.type.name == "map" and kind in ("string", "int", "uint", "double"):
        long = kind == "string" and _of_any_length(body, operands)
        return f"({_long(body, operands[0]) if long else body.text(operands[0])} in {body.text(operands[1])})"
    element = container.type.params[0].name if container.type.name == "list" else ""
    if element != kind or kind not in ("string", "int", "bool"):
        return None
    values = _constant_elements(container)
    if values is not None and kind in _HASHED and len(values) > _SHORT:
        return f"({body.text(operands[0])} in {body.program.constant(frozenset(values))})"
    if values is not None:
        return f"({body.text(operands[0])} in {body.text(operands[1])})"
    function = "among_texts" if kind == "string" else "among_numbers"
    return f"{function}(meter, {body.text(operands[0])}, {body.text(operands[1])})"


def _constant_elements(container: ir.Node) -> list[object] | None:
    if isinstance(container, ir.Const) and isinstance(container.value, (list, tuple)):
        return list(container.value)
    if isinstance(container, ir.MakeList) and not container.optional:
        values = [e.value for e in container.elements if isinstance(e, ir.Const)]
        return values if len(values) == len(container.elements) else None
    return None


# Logic


def _logic(body: Body, operands: tuple[int, ...], word: str) -> str:
    """And, or: an operand that fails is forgiven when a later one decides.

    An error of the last operand needs no care: if it fails, nothing can decide any more.
    """
    parts: list[tuple[Block, str, bool]] = []
    for n in operands:
        with body.branch() as inner, body.watch() as seen:
            text = body.truth(n)
        parts.append((inner, text, seen.may_fail))
    forgiving = any(fails for _, _, fails in parts[:-1])
    if not forgiving and all(inner.is_empty for inner, _, _ in parts):
        return f"({f' {word} '.join(text for _, text, _ in parts)})"
    goes_on, neutral = ("{0}", "True") if word == "and" else ("not {0}", "False")
    result = body.fresh()
    pending = body.fresh() if forgiving else ""
    if forgiving:
        body.block.line(f"{pending} = None")
    for at, (inner, text, fails) in enumerate(parts):
        step = Block()
        inner.line(f"{result} = {text}")
        if fails and at < len(parts) - 1:
            step.line("try:")
            step.nest(inner)
            step.line("except Exception as error:")
            paid = (f"charge(meter, {ABSORBED})",) if body.repeats else ()
            step.nest(one_line(*paid, f"{pending} = absorbed(error, {pending})", f"{result} = {neutral}"))
        else:
            step.append(inner)
        if at == 0:
            body.block.append(step)
        else:
            body.block.line(f"if {goes_on.format(result)}:")
            body.block.nest(step)
    if forgiving:
        body.block.line(f"if {pending} is not None and {goes_on.format(result)}:")
        body.block.nest(one_line(f"raise {pending}"))
    return result


def _holds(body: Body, node: ir.Holds, operands: tuple[int, ...]) -> str:
    with body.branch() as inner, body.watch() as seen:
        text = body.truth(operands[0])
    if not seen.may_fail:
        body.block.append(inner)
        return text
    result = body.fresh()
    inner.line(f"{result} = {text}")
    body.block.line("try:")
    body.block.nest(inner)
    body.block.line("except Exception as error:")
    paid = (f"charge(meter, {ABSORBED})",) if body.repeats else ()
    body.block.nest(one_line(*paid, f"unheld(error, {node.clause!r})", f"{result} = None"))
    with body.branch() as instead:
        other = body.truth(operands[1])
    instead.line(f"{result} = {other}")
    body.block.line(f"if {result} is None:")
    body.block.nest(instead)
    return result


def _condition(body: Body, node: ir.Cond | ir.Holds, operands: tuple[int, ...]) -> str:
    if isinstance(node, ir.Holds):
        return _holds(body, node, operands)
    condition = body.truth(operands[0])
    with body.branch() as then:
        yes = body.text(operands[1])
    with body.branch() as otherwise:
        no = body.text(operands[2])
    if then.is_empty and otherwise.is_empty:
        return f"({yes} if {condition} else {no})"
    result = body.fresh()
    then.line(f"{result} = {yes}")
    otherwise.line(f"{result} = {no}")
    body.block.line(f"if {condition}:")
    body.block.nest(then)
    body.block.line("else:")
    body.block.nest(otherwise)
    return result


# Selection


def _has_field(body: Body, node: ir.HasField, base: int) -> str:
    if not isinstance(node.base, ir.Var):
        body.may_fail = True  # it may be null
    if node.base.type.name == "optional_type":
        return f"has_fact({body.text(base)}, {node.paths!r})"
    if len(node.paths) == 1:
        return f"({node.paths[0]!r} in {body.text(base)})"
    record = body.atom(base)
    return f"({' or '.join(f'{path!r} in {record}' for path in node.paths)})"


def _select(body: Body, node: ir.Select, operand: int) -> str:
    text = body.text(operand)
    is_map = node.operand.type.name == "map"
    if node.test:
        if is_map:
            return f"({node.field!r} in {text})"
        body.may_fail = True
        return f"has_key({text}, {node.field!r})"
    if is_map and node.optional:
        return f"find_key({text}, {node.field!r})"
    body.may_fail = True
    if is_map:
        return _entry(body, text, node.field)
    return f"{'find_select' if node.optional else 'select'}({text}, {node.field!r})"


def _entry(body: Body, container: str, key: object) -> str:
    """An entry by a constant key. A KeyError would be taken for a missing fact of the same name."""
    if key in body.program.fact_names:
        return f"get_key({container}, {key!r})"
    return f"{container}[{key!r}]"


def _index(body: Body, node: ir.Index, operands: tuple[int, ...]) -> str:
    container, at = node.operand.type.name, node.index
    first = body.text(operands[0])
    if container == "map" and not node.optional and isinstance(at, ir.Const) and at.type.name in _HASHED:
        body.may_fail = True
        return _entry(body, first, at.value)
    texts = at.type.name in ("string", "bytes", "dyn")
    second = _long(body, operands[1]) if texts and _of_any_length(body, operands) else body.text(operands[1])
    if node.optional:
        body.may_fail = True
        return f"{'find_key' if container == 'map' else 'find'}({first}, {second})"
    body.may_fail = True
    names = {"map": "get_key", "list": "get_element"}
    return f"{names.get(container, 'index')}({first}, {second})"


# Literals


def _make_list(body: Body, node: ir.MakeList, operands: tuple[int, ...]) -> str:
    body.may_fail = body.may_fail or bool(node.optional)
    texts = [
        f"*spread({body.text(n)})" if at in node.optional else body.text(n) for at, n in enumerate(operands)
    ]
    return f"[{', '.join(texts)}]"


def _make_map(body: Body, node: ir.MakeMap, operands: tuple[int, ...]) -> str:
    texts = [body.text(n) for n in operands]
    keys = [key for key, _ in node.entries]
    plain = all(isinstance(key, ir.Const) and key.type.name == "string" for key in keys)
    if plain and not node.optional and len(set(texts[::2])) == len(keys):
        return "{" + ", ".join(f"{k}: {v}" for k, v in zip(texts[::2], texts[1::2], strict=True)) + "}"
    body.may_fail = True
    pairs = "".join(f"({k}, {v}), " for k, v in zip(texts[::2], texts[1::2], strict=True))
    if node.optional:
        return f"make_map_with_optionals(({pairs}), {body.program.constant(node.optional)})"
    return f"make_map({pairs.rstrip(', ')})"


def _opt_map(body: Body, node: ir.OptMap, operands: tuple[int, ...]) -> str:
    optional = body.name(_optional(body, operands[0]))
    result, value = body.fresh(), body.fresh()
    with body.loop({node.name: value}) as inner:
        inner.line(f"{value} = {optional}.value")
        inner.line(
            f"{result} = {_optional(body, operands[1]) if node.flat else f'Optional({body.text(operands[1])})'}"
        )
    body.block.line(f"if {optional} is NONE:")
    body.block.nest(one_line(f"{result} = NONE"))
    body.block.line("else:")
    body.block.nest(inner)
    return result
