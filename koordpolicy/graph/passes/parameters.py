"""Parameters: each gets one type for all documents that set it, and their drafts that type."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from koordpolicy.diagnostics import Diagnostics, Note
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.cache import Cache
from koordpolicy.graph.expressions import Path, Texts, literal_fix
from koordpolicy.graph.needs import NEEDS
from koordpolicy.graph.references import referenced
from koordpolicy.graph.state import Draft, State, Unit, texts_of
from koordpolicy.language.cel.types import (
    BOOL,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    PERCENT,
    STRING,
    Type,
    list_of,
    map_of,
    optional_of,
)
from koordpolicy.language.kinds import (
    Expression,
    Parameter,
    PolicySpec,
    literal_problem,
    type_name,
)
from koordpolicy.language.kinds.upstream import argument_help

PREFIX = "parameters."
"""How the fields of parameter decisions begin."""
_MOST_MEANT = 100
"""Unread parameters of one target that names are looked for: each is compared with all that are read."""


def parameters(state: State) -> None:
    """Fill `parameters`, and give the drafts of parameters their types."""
    declared: dict[str, dict[str, tuple[Unit, Parameter]]] = defaultdict(dict)
    for unit in state.units:  # the lowest layer comes first, so that packs declare and bundles set
        if isinstance(unit.spec, PolicySpec):
            for name, parameter in unit.spec.parameters.items():
                known = declared[unit.target].get(name)
                if known is None or (known[1].type is None and parameter.type is not None):
                    declared[unit.target][name] = (unit, parameter)
    for target, names in declared.items():
        state.parameters[target] = {
            name: _type(state, unit, name, parameter) for name, (unit, parameter) in names.items()
        }
    state.drafts = [
        typed
        for draft in state.drafts
        if (typed := _typed(state, draft, declared) if draft.key.field.startswith(PREFIX) else draft)
        is not None
    ]
    _report_unread(state, declared)


def _type(state: State, unit: Unit, name: str, parameter: Parameter) -> Type:
    """The declared type, else what the literal shows; `ERROR`, which silences expressions, after a finding."""
    kind = parameter.type
    if kind is None and parameter.value is not None and not isinstance(parameter.value, Expression):
        kind = shown_type(parameter.value)
    if kind is None:
        state.found.add(
            "KP306",
            unit.document.positions.value(_path(name)),
            f"the type of the parameter `{name}` is not said",
            help="write `{type: percent, value: {cel: ...}}` with the type that it has",
        )
        return ERROR
    return optional_of(kind) if parameter.optional else kind


def shown_type(literal: object) -> Type:
    """The type that a bare literal has on its own: `60%` is a percent, other texts are strings."""
    if isinstance(literal, bool):
        return BOOL
    if isinstance(literal, int):
        return INT
    if isinstance(literal, float):
        return DOUBLE
    if isinstance(literal, str):
        return PERCENT if literal_problem(PERCENT, literal) is None else STRING
    if isinstance(literal, list):
        return list_of(_common([shown_type(item) for item in literal]))
    if isinstance(literal, dict):
        return map_of(STRING, _common([shown_type(item) for item in literal.values()]))
    return DYN


def _common(types: list[Type]) -> Type:
    return types[0] if types and all(other == types[0] for other in types) else DYN


def _typed(
    state: State, draft: Draft, declared: dict[str, dict[str, tuple[Unit, Parameter]]]
) -> Draft | None:
    """A parameter's draft with the parameter's type; None after KP306."""
    name = draft.key.field.removeprefix(PREFIX)
    kind = state.parameters[draft.home.target][name]
    if kind == ERROR:
        return None
    inner = kind.params[0] if kind.name == "optional_type" else kind
    first, _ = declared[draft.home.target][name]
    said = draft.slot.type if draft.slot.type != DYN else None
    fix = None
    if said not in (None, inner):
        problem = f"`{name}` is a `{type_name(inner)}`, here it is called a `{type_name(said)}`"
        help = "leave the type to the document that declares the parameter"
    elif typed := _kept_with_type(state, draft, kind, inner):
        return typed
    else:
        refusal = literal_problem(inner, draft.raw)
        problem = f"`{name}` is a `{type_name(inner)}`: {refusal.message if refusal else ''}"
        help = refusal.help if refusal and refusal.help else f"write a `{type_name(inner)}`"
        fix = literal_fix(refusal, draft.unit.document, draft.path) if refusal else None
    notes = (Note("declared here", first.document.positions.key(_path(name))),)
    place = draft.unit.document.positions.value(draft.path)
    state.found.add("KP306", place, problem, help=help, notes=() if first is draft.unit else notes, fix=fix)
    return None


def _kept_with_type(state: State, draft: Draft, kind: Type, inner: Type) -> Draft | None:
    """The same draft as in the last revision, so that its rules are, too; those of an exception are made anew for each."""
    make = partial(_with_type, draft, kind, inner)
    return make() if draft.terms is not None else state.cache.get(("typed", draft, kind), make)


def _with_type(draft: Draft, kind: Type, inner: Type) -> Draft | None:
    """The draft of a value of that type; None where it is none."""
    if isinstance(draft.raw, Expression) or literal_problem(inner, draft.raw) is None:
        return replace(draft, slot=replace(draft.slot, type=kind))
    return None


def _report_unread(state: State, declared: dict[str, dict[str, tuple[Unit, Parameter]]]) -> None:
    """A parameter that no expression of its target reads changes nothing: most likely a slip."""
    read: dict[str, set[str]] = defaultdict(set)
    for unit in state.units:
        if unit.target in declared:
            mentioned = state.cache.get(("mentions", unit), partial(_mentions, state.cache, unit))
            read[unit.target].update(mentioned)
    others: dict[str, list[str]] = defaultdict(list)
    for target in sorted(read):
        for name in read[target]:
            others[name].append(target)
    drafted = {(draft.key.target, draft.key.field) for draft in state.drafts}
    for target, names in declared.items():
        needs = NEEDS.get(target.partition("/")[0], ())
        if needs and not any((target, field) in drafted for field in needs):
            continue  # it has no formula at all, which is told
        unread, known = 0, sorted(read[target])
        unknown = [other for other in known if other not in names]
        for name, (unit, _) in names.items():
            if name in read[target]:
                continue
            unread += 1
            if unread <= _MOST_MEANT and nearest(name, unknown):
                continue  # it is what a name meant that nobody declares, which is told where it is read
            state.found.add(
                "KP305",
                unit.document.positions.key(_path(name)),
                f"no expression of `{target}` reads the parameter `{name}`",
                help=_meant(unit, name, known if unread <= _MOST_MEANT else (), others[name]),
            )


def _meant(unit: Unit, name: str, read: Iterable[str], others: Iterable[str]) -> str:
    """The parameter of those that are `read`, or of the targets the other one, that was probably meant."""
    known = argument_help(unit.kind.name, name)
    if known is not None:
        return known
    close = nearest(name, read)
    if close:
        return f"did you mean `{close}`?"
    like = [other for other in others if other.startswith(unit.kind.name + "/")]
    if like:
        return " and ".join(f"`{other}`" for other in like) + " has a parameter of that name"
    return f"remove it, or use `parameters.{name}`"


def _mentions(cache: Cache, unit: Unit) -> frozenset[str]:
    """The parameters that a document's expressions read; what does not parse is reported later."""
    texts = Texts(cache, Diagnostics())
    trees = (texts.parse(text, unit.document, path) for path, text in texts_of(unit))
    return frozenset(name for tree in trees if tree is not None for name in referenced(tree, "parameters"))


def _path(name: str) -> Path:
    return ("spec", "parameters", name)
