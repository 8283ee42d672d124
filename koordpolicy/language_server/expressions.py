"""Expressions as an editor sees them: what each part is, broken or not."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from koordpolicy.graph import Compilation, RuleGraph
from koordpolicy.graph.compiler import BASE
from koordpolicy.graph.references import walk
from koordpolicy.graph.slots import nameable_roots
from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.checker import FactGroup, NameSpace, watched
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.recovery import parse_all
from koordpolicy.language.cel.types import ERROR, Type
from koordpolicy.language.documents import Document
from koordpolicy.language.documents.document import Path
from koordpolicy.language.facts import ROOTS
from koordpolicy.language.kinds import KINDS
from koordpolicy.language.kinds.typenames import parse_type
from koordpolicy.language_server.shapes import shape_at

_ROUNDS = 3
"""How often variables are looked at: each may stand before those it needs."""

Meaning = ir.Node | FactGroup | NameSpace


@dataclass(slots=True)
class Parts:
    """The parts of one expression with what they turned out to be, and the local names that each saw."""

    text: str
    tree: ast.Expr
    environment: Environment
    meanings: dict[int, Meaning] = field(default_factory=dict)
    scopes: dict[int, Mapping[str, ir.Var]] = field(default_factory=dict)

    def meaning(self, node: ast.Expr) -> Meaning | None:
        return self.meanings.get(id(node))

    def type(self, node: ast.Expr) -> Type | None:
        """The type of a part that is a value."""
        found = self.meaning(node)
        return found.type if isinstance(found, ir.Node) and found.type != ERROR else None

    def scope(self, node: ast.Expr) -> Mapping[str, ir.Var]:
        return self.scopes.get(id(node), {})

    def at(self, index: int) -> list[ast.Expr]:
        """The parts that an index lies in or just behind, the innermost last."""
        found = [node for node in walk(self.tree) if node.start <= index <= node.end]
        return sorted(found, key=lambda node: node.start - node.end)


def parts_of(text: str, environment: Environment) -> Parts | None:
    """The parts of a text; None where no sense can be made of it."""
    tree = parse_all(text).tree
    if tree is None:
        return None
    parts = Parts(text, tree, environment)

    def watch(node: ast.Expr, found: object, scope: Mapping[str, ir.Var]) -> None:
        known = parts.meanings.get(id(node))
        better = known is None or (isinstance(known, ir.Node) and known.type == ERROR)
        if better and isinstance(found, ir.Node | FactGroup | NameSpace):
            parts.meanings[id(node)] = found
        parts.scopes[id(node)] = scope

    watched(tree, environment, text, watch)
    return parts


def environment_of(
    document: Document, path: Path, compilation: Compilation, graph: RuleGraph | None = None
) -> Environment:
    """What the expression at a path of a document may name, its variables included; `graph` knows decisions."""
    kind = KINDS.get(document.kind)
    if kind is None:
        return BASE
    base = compilation.names.get(_target(document, compilation)) or _of_kind(kind.name, compilation)
    found = shape_at(document.kind, path)
    named = found.cel.roots if found is not None and found.cel is not None else None
    roots = nameable_roots(kind) if named is None or document.kind == "Library" else named
    environment = base.extended({name: ROOTS[name].type for name in ROOTS if name in roots})
    if document.kind == "Invariant":
        return _of_invariant(document, environment, graph or compilation.graph)
    if document.kind == "Library":
        return environment.extended(_function_parameters(document, path))
    return environment.extended(refs={"variables": _variables(document, environment)})


def _of_invariant(document: Document, environment: Environment, graph: RuleGraph | None) -> Environment:
    """The decisions that an invariant names, with the records that may be named beside them."""
    spec = document.data.get("spec")
    written = spec.get("decisions") if isinstance(spec, dict) else None
    said = (
        {name: one for name, one in written.items() if isinstance(one, str)}
        if isinstance(written, dict)
        else {}
    )
    found = {name: graph.decision(one) for name, one in said.items() if graph is not None and one in graph}
    kinds = {KINDS[one.key.kind] for one in found.values() if one.key.kind in KINDS}
    roots = {name for kind in kinds for name in nameable_roots(kind)}
    types = dict.fromkeys(said, ERROR) | {name: one.type for name, one in found.items()}
    raised = {"raised": types} if isinstance(spec, dict) and spec.get("raised") else {}
    return environment.extended(
        {name: ROOTS[name].type for name in ROOTS if name in roots},
        refs={"decisions": types, "before": types, **raised},
    )


def _target(document: Document, compilation: Compilation) -> str:
    """`Kind/subject` of what a document speaks of, as it was when it last made sense."""
    for unit in compilation.units:
        same = unit.document.file == document.file and unit.document.index == document.index
        if same and unit.kind.name == document.kind:
            return unit.target
    return f"{document.kind}/{document.name}"


def _of_kind(kind: str, compilation: Compilation) -> Environment:
    for target, environment in compilation.names.items():
        if target.partition("/")[0] == kind:
            return environment
    return BASE


def _variables(document: Document, environment: Environment) -> dict[str, Type]:
    spec = document.data.get("spec")
    written = spec.get("variables") if isinstance(spec, dict) else None
    texts: dict[str, str] = {}
    for one in written if isinstance(written, list) else []:
        if (
            isinstance(one, dict)
            and isinstance(name := one.get("name"), str)
            and isinstance(one.get("expression"), str)
        ):
            texts.setdefault(name, str(one["expression"]))
    types: dict[str, Type] = dict.fromkeys(texts, ERROR)
    for _ in range(_ROUNDS):
        for name, text in texts.items():
            if types[name] == ERROR:
                parts = parts_of(text, environment.extended(refs={"variables": types}))
                types[name] = (parts and parts.type(parts.tree)) or ERROR
    return types


def _function_parameters(document: Document, path: Path) -> dict[str, Type]:
    """The parameters of the Library function whose expression stands at the path."""
    value: object = document.data
    for step in path[:3]:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
    written = value.get("parameters") if isinstance(value, dict) else None
    types: dict[str, Type] = {}
    for one in written if isinstance(written, list) else []:
        if isinstance(one, dict) and isinstance(one.get("name"), str) and isinstance(one.get("type"), str):
            types[str(one["name"])] = parse_type(str(one["type"])) or ERROR
    return types


def expressions_of(document: Document) -> Iterator[tuple[Path, str]]:
    """Path and text of every expression of a document, whether the rest of it makes sense or not."""
    waiting: list[tuple[object, Path]] = [(document.data, ())]
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, dict):
            waiting.extend((one, (*path, key)) for key, one in value.items())
        elif isinstance(value, list):
            waiting.extend((one, (*path, at)) for at, one in enumerate(value))
        elif isinstance(value, str):
            found = shape_at(document.kind, path)
            if found is not None and found.cel is not None:
                yield path, value
