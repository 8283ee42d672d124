"""What something means, as Markdown: keys and values of documents, parts of expressions."""

from collections.abc import Iterator

from koordpolicy.graph import Compilation
from koordpolicy.graph.describe.declaration import suppliers
from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.checker import FactGroup, NameSpace
from koordpolicy.language.cel.checker.macros import macro_usage
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.types import ERROR, Type
from koordpolicy.language.facts import FACTS, ROOTS, Fact, Group
from koordpolicy.language.kinds import KINDS, PolicySpec, type_name
from koordpolicy.language.kinds.bundle import LibrarySpec
from koordpolicy.language.kinds.plugins import PLUGINS
from koordpolicy.language.kinds.signatures import signatures
from koordpolicy.language_server.cursor import Cursor, index_in
from koordpolicy.language_server.expressions import Parts, environment_of, parts_of
from koordpolicy.language_server.values import Values

_SHOWN = 60
_MOST_SIGNATURES = 8


def hover(
    cursor: Cursor, offset: int, compilation: Compilation, values: Values
) -> tuple[str, int, int] | None:
    """Markdown for what stands under the cursor, with the offsets it is about; None where nothing is known."""
    text = cursor.expression
    if text is not None:
        index = index_in(text, offset)
        parts = parts_of(text.value, environment_of(cursor.document, cursor.path, compilation))
        if index is None or parts is None:
            return None
        for node in reversed(parts.at(index)):
            said = "\n\n".join(_part(parts, node, cursor, compilation, values))
            if said:
                start, end = _named(node)
                return said, text.offset(start), text.offset(max(end - 1, start)) + 1
        return None
    said = "\n\n".join(_key(cursor, compilation, values))
    return (said, cursor.start, cursor.end) if said else None


def _named(node: ast.Expr) -> tuple[int, int]:
    """Where the name of a call stands; all of any other part."""
    if isinstance(node, ast.CallExpr):
        return node.name_start, node.name_start + len(node.function)
    return node.start, node.end


# --- keys and values --------------------------------------------------------------------------------


def _key(cursor: Cursor, compilation: Compilation, values: Values) -> Iterator[str]:
    path, shape = cursor.path, cursor.shape
    if path == ("kind",) and cursor.document.kind in KINDS:
        kind = KINDS[cursor.document.kind]
        yield f"**{kind.name}**"
        yield kind.summary
        return
    if not cursor.on_key:
        value = cursor.document.positions.text(path)
        plugin = PLUGINS.get(value.value) if value is not None else None
        if plugin is not None and path[-1] in ("name", "plugin"):
            yield f"**{plugin.name}** · plugin"
            yield plugin.meaning
            if plugin.parameters:
                yield "\n".join(f"- `{name}`: {meaning}" for name, meaning in plugin.parameters.items())
            return
    if _facts_stand(path):
        yield from _fact_key(path)
        return
    if shape is None:
        return
    name = next((str(step) for step in reversed(path) if isinstance(step, str)), cursor.document.kind)
    yield f"**{name}** · {shape.form}" if shape.form else f"**{name}**"
    if shape.meaning:
        yield shape.meaning
    if shape.slot is not None and shape.slot.default is not None:
        yield f"Default: `{shape.slot.default}`"
    yield from _examples(values.of_decision(_decision(cursor, compilation)))


def _facts_stand(path: tuple[str | int, ...]) -> bool:
    return "given" in path[:4] and path[:1] == ("spec",)


def _fact_key(path: tuple[str | int, ...]) -> Iterator[str]:
    """A fact that a PolicyTest gives."""
    steps = [str(step) for step in path[path.index("given") + 1 :] if isinstance(step, str)]
    if steps and steps[0] in ROOTS:
        record = ROOTS[steps[0]].type.record
        found = FACTS.resolve(record, ".".join(steps[1:])) if record and steps[1:] else None
        if isinstance(found, Fact):
            yield from _fact(".".join(steps), found)
        elif len(steps) == 1:
            yield from _root(steps[0])
        elif isinstance(found, Group):
            yield f"**{'.'.join(steps)}** · group of facts"


def _decision(cursor: Cursor, compilation: Compilation) -> str:
    """The decision that the value at a path is a rule of: its name, empty for none."""
    path = [step for step in cursor.path[1:] if step != "cel"]
    for unit in compilation.units:
        if unit.document.file == cursor.document.file and unit.document.index == cursor.document.index:
            return f"{unit.target}.{'.'.join(str(step) for step in path)}"
    return ""


# --- parts of expressions ---------------------------------------------------------------------------


def _part(
    parts: Parts, node: ast.Expr, cursor: Cursor, compilation: Compilation, values: Values
) -> Iterator[str]:
    meaning = parts.meaning(node)
    match node:
        case ast.CallExpr(function=name) if name[:1] not in "_@-!" or name.startswith("."):
            yield from _call(parts, node, compilation)
            return
        case ast.Literal() | ast.ListLiteral() | ast.MapLiteral():
            return
    if isinstance(meaning, FactGroup):
        yield (
            f"**{meaning.record}.{meaning.path}** · group of facts"
            if meaning.path
            else f"**{meaning.record}**"
        )
        children = FACTS.children(meaning.record, meaning.path)
        yield "Has " + ", ".join(f"`{child}`" for child in children)
        return
    if isinstance(meaning, NameSpace):
        yield f"**{meaning.name}**"
        yield ", ".join(f"`{name}`" for name in sorted(parts.environment.refs.get(meaning.name, ())))
        return
    if meaning is None or meaning.type == ERROR:
        return
    match meaning:
        case ir.Field(base=base, path=path) | ir.OptField(base=base, path=path):
            record = base.type.record or (base.type.params[0].record if base.type.params else "")
            found = FACTS.resolve(record or "", path)
            name = f"{_text(parts, base)}.{path}" if isinstance(base, ir.Var) else f"{record}.{path}"
            if isinstance(found, Fact):
                yield from _fact(name, found)
                yield from _examples(values.of_fact(name))
                return
        case ir.Var(name=name, local=False) if name in ROOTS:
            yield from _root(name)
            return
        case ir.Ref(space=space, name=name):
            yield from _reference(space, name, meaning.type, cursor, compilation, values)
            return
    shown = " ".join(parts.text[node.start : node.end].split())
    yield f"**{shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + '...'}** · {type_name(meaning.type)}"


def _text(parts: Parts, node: ir.Node) -> str:
    return node.name if isinstance(node, ir.Var) and not node.local else parts.text[node.start : node.end]


def _fact(name: str, fact: Fact) -> Iterator[str]:
    yield f"**{name}** · {type_name(fact.type)}"
    yield fact.meaning
    yield f"Supplied by {suppliers(fact.suppliers)}."
    if fact.may_be_missing:
        prefix, _, last = name.rpartition(".")
        yield f"May be missing: guard it with `has({name})` or `{prefix}.?{last}.orValue(..)`."


def _root(name: str) -> Iterator[str]:
    root = ROOTS[name]
    yield f"**{name}** · {type_name(root.type)}"
    yield root.meaning


def _reference(
    space: str, name: str, type: Type, cursor: Cursor, compilation: Compilation, values: Values
) -> Iterator[str]:
    yield f"**{space}.{name}** · {type_name(type)}"
    target = _target(cursor, compilation)
    for unit in reversed(compilation.units):
        spec = unit.spec
        if space == "constants" and isinstance(spec, LibrarySpec) and name in spec.constants:
            yield from filter(None, [spec.constants[name].description])
            return
        if not isinstance(spec, PolicySpec) or unit.target != target:
            continue
        if space == "parameters" and name in spec.parameters:
            parameter = spec.parameters[name]
            yield from filter(None, [parameter.description])
            yield f"Set in `{unit.id}` of {unit.layer_name}: `{_written(parameter.value)}`"
            yield from _examples(values.of_decision(f"{target}.parameters.{name}"))
            return
        if space == "variables" and unit.document.file == cursor.document.file:
            for variable in spec.variables:
                if variable.name == name:
                    yield from filter(None, [variable.description])
                    yield f"```cel\n{variable.expression.strip()}\n```"
                    return


def _target(cursor: Cursor, compilation: Compilation) -> str:
    for unit in compilation.units:
        if unit.document.file == cursor.document.file and unit.document.index == cursor.document.index:
            return unit.target
    return cursor.document.kind


def _written(value: object) -> str:
    return f"{{cel: {text.strip()}}}" if isinstance(text := getattr(value, "text", None), str) else str(value)


def _call(parts: Parts, node: ast.CallExpr, compilation: Compilation) -> Iterator[str]:
    type = parts.type(node)
    gives = f" · gives {type_name(type)}" if type is not None else ""
    usage = macro_usage(node.function)
    if usage is not None and node.target is not None:
        yield f"**{node.function}**{gives}"
        yield f"`{usage}`"
        return
    for unit in compilation.units:
        for own in unit.spec.functions if isinstance(unit.spec, LibrarySpec) else ():
            if own.name == node.function:
                arguments = ", ".join(f"{one.name}: {one.type}" for one in own.parameters)
                yield f"**{own.name}({arguments})**{gives}"
                yield from filter(None, [own.description])
                return
    qualified = f"{node.target.name}.{node.function}" if isinstance(node.target, ast.Ident) else ""
    declared = parts.environment.function(qualified) if qualified else None
    declared = declared or parts.environment.function(node.function)
    if declared is not None:
        yield f"**{declared.name}**{gives}"
        yield from function_page(declared)


def function_page(function: Function) -> Iterator[str]:
    """Meaning, signatures and example of a function."""
    yield function.summary
    lines, meant = signatures(function)
    yield "```\n" + "\n".join(lines[:_MOST_SIGNATURES]) + "\n```"
    yield from filter(None, [meant])
    if function.example:
        yield f"`{function.example}`"


def _examples(values: list[tuple[str, str]]) -> Iterator[str]:
    if values:
        yield "\n".join(f"- `{shown}` in *{case}*" for case, shown in values)
