"""What could stand at the cursor: keys, words, names, facts, functions."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from lsprotocol.types import CompletionItemKind as Sort

from koordpolicy.graph import Compilation, RuleGraph
from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.checker import FactGroup, NameSpace
from koordpolicy.language.cel.checker.macros import USAGE as MACROS
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.types import Type
from koordpolicy.language.documents.document import Path
from koordpolicy.language.facts import FACTS, ROOTS, Fact
from koordpolicy.language.kinds import API_VERSION, KINDS, type_name
from koordpolicy.language.kinds.plugins import PLUGINS
from koordpolicy.language_server.cursor import Cursor, documents_of, everything
from koordpolicy.language_server.expressions import Parts, environment_of, parts_of
from koordpolicy.runtime.policies.packs import BUILT_IN

MARK: Final = "koordpolicyCursor"
"""The word that is put where something is to be completed, so that the rest can be read."""

_WORD = re.compile(r"[\w.%/-]*\Z")
_CEL_WORD = re.compile(r"[A-Za-z_]\w*\Z|\Z")
_LINE = re.compile(r"[ ]*(?:- +)*\Z")
_SPACES: Final = ("variables", "parameters", "constants", "decisions", "before", "raised")


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that could stand there. `text` is what to insert, `detail` one line about it, `page` more."""

    name: str
    sort: Sort
    detail: str = ""
    page: str = ""
    text: str = ""

    @property
    def inserted(self) -> str:
        return self.text or self.name


@dataclass(frozen=True, slots=True)
class Offers:
    """All that could stand in the place of `start:end` of the text."""

    start: int
    end: int
    offers: tuple[Offer, ...]


def complete(
    file: str,
    text: str,
    offset: int,
    compilation: Compilation,
    graph: RuleGraph | None,
    enough: Callable[[], bool] = lambda: False,
) -> Offers | None:
    """What could stand at an offset of a file's text; `graph` has the decisions of the bundle. None, too, once there
    has been `enough` of it: the text is read again for each guess of what is meant.
    """
    for start, edited, as_key in _marked(text, offset):
        if enough():
            return None
        for document in documents_of(file, edited):
            for cursor in everything(document):
                here = cursor.start <= start <= cursor.end and MARK in edited[cursor.start : cursor.end]
                if not here or cursor.on_key != as_key:
                    continue
                found = tuple(_at(cursor, compilation, graph))
                if found:
                    return Offers(start, offset, found)
    return None


def _marked(text: str, offset: int) -> Iterator[tuple[int, str, bool]]:
    """Texts with the mark in place of the word before the cursor, where it stands, and whether as a key: the likeliest
    first.
    """
    line_start = text.rfind("\n", 0, offset) + 1
    line_end = text.find("\n", offset)
    after = text[offset : line_end if line_end >= 0 else len(text)]
    plain, cel = _WORD.search(text, line_start, offset), _CEL_WORD.search(text, line_start, offset)
    start, inner = (plain.start() if plain else offset), (cel.start() if cel else offset)
    if _LINE.fullmatch(text, line_start, start) and not after.strip():
        yield start, f"{text[:start]}{MARK}:{text[offset:]}", True
    yield inner, f"{text[:inner]}{MARK}{text[offset:]}", False
    yield start, f"{text[:start]}{MARK}{text[offset:]}", False
    yield start, f"{text[:start]}{MARK}{text[offset:]}", True
    yield start, f"{text[:start]}{MARK}: 0{text[offset:]}", True
    # What is still open at the cursor, in the expression or around it, is ended there.
    for ends in _ends(text[line_start:offset]):
        yield inner, f"{text[:inner]}{MARK}{ends}{text[offset:]}", False
        yield start, f"{text[:start]}{MARK}{ends}{text[offset:]}", False
        yield start, f"{text[:start]}{MARK}{ends}{text[offset:]}", True


def _ends(line: str) -> Iterator[str]:
    """What may end the quotes and brackets that are open after the beginning of a line, the least first."""
    quote, brackets = _open(line)
    around = dict.fromkeys(("", quote, quote + brackets))
    for within in ("", "'", '"'):
        if within != quote or not within:
            yield from (within + ends for ends in around if within + ends)


def _open(line: str) -> tuple[str, str]:
    """The YAML quote that is open at the end of a line, empty for none, and what ends its brackets, the inner first.

    Quotes and brackets within plain scalars are text: an expression such as `node.labels['a']`.
    """
    quote, before = "", "-"
    brackets: list[str] = []  # the outer first
    for at, character in enumerate(line):
        begins = before in ("{", "[", ",", "-") or (before == ":" and line[at - 1] == " ")
        if quote:
            if character == quote and not (quote == '"' and line[at - 1] == "\\"):
                quote = ""
        elif character in "'\"" and begins:
            quote = character
        elif character in "{[" and (begins or brackets):
            brackets.append("}" if character == "{" else "]")
        elif brackets and character == brackets[-1]:
            brackets.pop()
        if not character.isspace():
            before = character
    return quote, "".join(reversed(brackets))


def _at(cursor: Cursor, compilation: Compilation, graph: RuleGraph | None) -> Iterator[Offer]:
    expression = cursor.expression
    if expression is not None:
        yield from _in_expression(cursor, expression.value, compilation, graph)
    elif cursor.on_key and MARK in str(cursor.path[-1]):
        yield from _keys(cursor, compilation, graph)
    elif not cursor.on_key:
        if cursor.document.kind == "Invariant" and cursor.path[:2] == ("spec", "decisions"):
            yield from (replace(one, text=one.name) for one in _decisions(graph, set()))
            return
        yield from _values(cursor, compilation)


# --- documents --------------------------------------------------------------------------------------


def _keys(cursor: Cursor, compilation: Compilation, graph: RuleGraph | None) -> Iterator[Offer]:
    path, document = cursor.path[:-1], cursor.document
    above = Cursor(document, path, True, 0, 0).shape
    there = _data(document.data, path)
    taken = set(there) if isinstance(there, dict) else set()
    if "given" in path and document.kind == "PolicyTest":
        yield from _given(path, taken)
        return
    if path and path[-1] in ("expect", "tolerance", "overrides"):
        yield from _decisions(graph, taken)
        return
    if path and path[-1] == "parameters":
        yield from _parameters(cursor, path, compilation, taken)
    for name, detail in {"apiVersion": API_VERSION, "kind": "kind"}.items() if not path else ():
        if name not in taken:
            text = f"{name}: {API_VERSION}" if name == "apiVersion" else f"{name}: "
            yield Offer(name, Sort.Property, f"required, {detail}", "", text)
    for key in above.keys if above is not None else ():
        if key.name not in taken and not (not path and key.name in ("apiVersion", "kind")):
            need = "required, " if key.required else ""
            yield Offer(key.name, Sort.Property, f"{need}{key.form}", key.meaning, f"{key.name}: ")


def _given(path: Path, taken: set[str]) -> Iterator[Offer]:
    steps = [str(step) for step in path[path.index("given") + 1 :] if isinstance(step, str)]
    if not steps:
        for root in ROOTS.values():
            if root.name not in taken:
                yield Offer(root.name, Sort.Field, type_name(root.type), root.meaning, f"{root.name}: ")
        return
    record = ROOTS[steps[0]].type.record if steps[0] in ROOTS else None
    if record is not None:
        for offer in _members(record, ".".join(steps[1:])):
            if offer.name not in taken:
                yield Offer(offer.name, offer.sort, offer.detail, offer.page, f"{offer.name}: ")


def _decisions(graph: RuleGraph | None, taken: set[str]) -> Iterator[Offer]:
    for key, decision in graph.decisions.items() if graph is not None else ():
        if str(key) not in taken:
            yield Offer(str(key), Sort.Value, type_name(decision.type), decision.meaning, f"{key}: ")


def _parameters(cursor: Cursor, path: Path, compilation: Compilation, taken: set[str]) -> Iterator[Offer]:
    """The parameters that expressions of the target read; those of its plugin for a filter or score."""
    if path == ("spec", "parameters"):
        environment = environment_of(cursor.document, ("spec", "match", "condition"), compilation)
        for name, type in sorted(environment.refs.get("parameters", {}).items()):
            if name not in taken and MARK not in name:
                yield Offer(name, Sort.Property, type_name(type), "", f"{name}: ")
        return
    item = _data(cursor.document.data, path[:-1])
    named = item.get("plugin", item.get("name")) if isinstance(item, dict) else None
    plugin = PLUGINS.get(named) if isinstance(named, str) else None
    for name, meaning in plugin.parameters.items() if plugin is not None else ():
        if name not in taken:
            yield Offer(name, Sort.Property, "parameter", meaning, f"{name}: ")


def _values(cursor: Cursor, compilation: Compilation) -> Iterator[Offer]:
    path, shape = cursor.path, cursor.shape
    if path == ("kind",):
        for kind in KINDS.values():
            yield Offer(kind.name, Sort.Class, "kind", kind.summary)
        return
    if path == ("apiVersion",):
        yield Offer(API_VERSION, Sort.Constant)
        return
    field = next((step for step in reversed(path) if isinstance(step, str)), "")
    yield from _named(field, path, compilation)
    if shape is None:
        return
    for choice in shape.choices:
        yield Offer(choice, Sort.EnumMember, shape.meaning.partition(".")[0])
    if shape.slot is not None and shape.in_slot is None:
        yield Offer(
            "cel", Sort.Snippet, f"an expression that gives {type_name(shape.slot.type)}", "", "{cel: }"
        )
    elif shape.slot is None and shape.keys:
        yield from (
            Offer(key.name, Sort.Property, key.form, key.meaning, f"{key.name}: ") for key in shape.keys
        )


def _named(field: str, path: Path, compilation: Compilation) -> Iterator[Offer]:
    """Names of bands, classes, packs and plugins where a field takes them."""
    if field == "extends":
        yield Offer(BUILT_IN, Sort.Module, "the built-in pack")
    bands = [unit for unit in compilation.units if unit.kind.name == "PriorityBand"]
    classes = [unit for unit in compilation.units if unit.kind.name == "QoSClass"]
    if field in ("permittedBands", "defaultBand", "band"):
        yield from (
            Offer(name, Sort.Reference, "priority band") for name in sorted({one.subject for one in bands})
        )
    elif field == "qosClass":
        yield from (
            Offer(name, Sort.Reference, "QoS class") for name in sorted({one.subject for one in classes})
        )
    elif field in ("name", "plugin") and len(path) >= 3 and path[1] in ("filters", "scores"):
        for plugin in PLUGINS.values():
            if plugin.filters if path[1] == "filters" else plugin.scores:
                yield Offer(plugin.name, Sort.Module, "plugin", plugin.meaning)


def _data(data: object, path: Path) -> object:
    for step in path:
        if isinstance(data, dict) and isinstance(step, str):
            data = data.get(step)
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        else:
            return None
    return data


# --- expressions ------------------------------------------------------------------------------------


def _in_expression(
    cursor: Cursor, text: str, compilation: Compilation, graph: RuleGraph | None
) -> Iterator[Offer]:
    parts = parts_of(text, environment_of(cursor.document, cursor.path, compilation, graph))
    at = text.find(MARK)
    for node in reversed(parts.at(at) if parts is not None else []):
        assert parts is not None
        match node:
            case ast.SelectExpr(operand=operand, field=field) if MARK in field:
                yield from _after_dot(parts, operand)
                return
            case ast.CallExpr(function=function, target=ast.Expr() as operand) if MARK in function:
                yield from _after_dot(parts, operand)
                return
            case ast.Ident(name=name) if MARK in name:
                yield from _names(parts, node, cursor)
                return
            case ast.Literal(value=str(value)) if MARK in value:
                yield from _texts(compilation)
                return


def _texts(compilation: Compilation) -> Iterator[Offer]:
    """What a text that is compared may well be: a band or a class."""
    for unit in compilation.units:
        if unit.kind.name in ("PriorityBand", "QoSClass"):
            yield Offer(unit.subject, Sort.Reference, unit.kind.name)


def _names(parts: Parts, node: ast.Expr, cursor: Cursor) -> Iterator[Offer]:
    environment, shape = parts.environment, cursor.shape
    for name, local in parts.scope(node).items():
        yield Offer(name, Sort.Variable, type_name(local.type))
    roots = None
    # What an invariant may name depends on its decisions, and its environment has no more than that.
    if shape is not None and shape.cel is not None and cursor.document.kind != "Invariant":
        roots = shape.cel.roots
    for name, type in environment.variables.items():
        if MARK not in name and (roots is None or name in roots or name not in ROOTS):
            meaning = ROOTS[name].meaning if name in ROOTS else ""
            yield Offer(name, Sort.Variable, type_name(type), meaning)
    for space in _SPACES:
        if environment.refs.get(space):
            yield Offer(
                space, Sort.Module, "", ", ".join(f"`{name}`" for name in sorted(environment.refs[space]))
            )
    for own in environment.user_functions.values():
        arguments = ", ".join(f"{name}: {type_name(type)}" for name, type in own.params)
        yield Offer(own.name, Sort.Function, f"({arguments}) -> {type_name(own.result)}", "", f"{own.name}(")
    heads = set()
    for function in environment.functions.values():
        head, dot, _ = function.name.partition(".")
        if dot:
            heads.add(head)
        elif any(not overload.receiver for overload in function.overloads) and function.name[0].isalpha():
            yield _function(function)
    yield from (Offer(head, Sort.Module, "functions") for head in sorted(heads))
    yield Offer("has", Sort.Keyword, "whether a fact is there", f"`{MACROS['has']}`", "has(")
    yield from (Offer(word, Sort.Keyword) for word in ("true", "false", "null"))


def _after_dot(parts: Parts, operand: ast.Expr) -> Iterator[Offer]:
    meaning = parts.meaning(operand)
    if isinstance(meaning, FactGroup):
        yield from _members(meaning.record, meaning.path)
        return
    if isinstance(meaning, NameSpace):
        for name, type in sorted(parts.environment.refs.get(meaning.name, {}).items()):
            yield Offer(name, Sort.Constant, type_name(type))
        return
    if isinstance(operand, ast.Ident):
        prefix = f"{operand.name}."
        for function in parts.environment.functions.values():
            if function.name.startswith(prefix):
                yield _function(function, function.name.removeprefix(prefix))
    if not isinstance(meaning, ir.Node):
        return
    type = meaning.type
    inner = type.params[0] if type.name == "optional_type" and type.params else type
    if inner.record is not None and inner.name == "record":
        yield from _members(inner.record, "")
    yield from _methods(parts, type)


def _members(record: str, path: str) -> Iterator[Offer]:
    for name in FACTS.children(record, path):
        found = FACTS.resolve(record, f"{path}.{name}" if path else name)
        if isinstance(found, Fact):
            missing = ", may be missing" if found.may_be_missing else ""
            yield Offer(name, Sort.Field, type_name(found.type) + missing, found.meaning)
        else:
            yield Offer(name, Sort.Module, "group of facts")


def _methods(parts: Parts, type: Type) -> Iterator[Offer]:
    for function in parts.environment.functions.values():
        if any(one.receiver and _takes(one.params[0], type) for one in function.overloads):
            yield _function(function)
    walked = type.name in ("list", "map", "dyn")
    for name, usage in MACROS.items():
        if (usage.startswith(("list.", "map.")) and walked) or (
            usage.startswith("optional.") and type.name == "optional_type"
        ):
            yield Offer(name, Sort.Method, usage, "", f"{name}(")


def _takes(wanted: Type, given: Type) -> bool:
    if wanted.name in ("param", "dyn") or given.name == "dyn":
        return True
    if wanted.name != given.name:
        return False
    return wanted.unit is None or given.unit is None or wanted.unit == given.unit


def _function(function: Function, name: str = "") -> Offer:
    overload = function.overloads[0]
    inputs = [type_name(one) for one in overload.params[1 if overload.receiver else 0 :]]
    detail = f"({', '.join(inputs)}) -> {type_name(overload.result)}"
    page = function.summary + (f"\n\n`{function.example}`" if function.example else "")
    shown = name or function.name
    return Offer(shown, Sort.Method if overload.receiver else Sort.Function, detail, page, f"{shown}(")
