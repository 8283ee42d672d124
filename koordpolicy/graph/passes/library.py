"""Library: shared constants and functions become part of the vocabulary of every expression."""

from dataclasses import replace
from functools import partial

from koordpolicy.diagnostics import Note
from koordpolicy.graph.expressions import Path, Texts, literal_fix
from koordpolicy.graph.fits import fitted
from koordpolicy.graph.passes.parameters import shown_type
from koordpolicy.graph.references import walk
from koordpolicy.graph.state import State, Unit
from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.environment import UserFunction
from koordpolicy.language.cel.ir_walk import rewrite
from koordpolicy.language.cel.types import Type
from koordpolicy.language.kinds import (
    BadLiteral,
    Expression,
    literal_value,
    parse_type,
    type_name,
)
from koordpolicy.language.kinds.bundle import LibraryFunction, LibrarySpec

CONSTANTS = "constants"
"""The space in which expressions read the constants of libraries."""


def library(state: State) -> None:
    """Fill `constants`, and extend the vocabulary. Higher layers replace names of lower ones."""
    texts = Texts(state.cache, state.found, state.probe)
    units = [unit for unit in state.units if isinstance(unit.spec, LibrarySpec)]
    for unit in units:
        _constants(state, unit, texts)
    types = {name: node.type for (space, name), node in state.constants.items() if space == CONSTANTS}
    before, constants = state.vocabulary, tuple(state.constants.values())
    state.vocabulary = state.cache.same(
        ("constants", *types), (before, *constants), lambda: before.extended(constants=types)
    )
    _functions(state, units, texts)


def _constants(state: State, unit: Unit, texts: Texts) -> None:
    """Each constant may use those above it in its document, and those of lower layers."""
    assert isinstance(unit.spec, LibrarySpec)
    for name, parameter in unit.spec.constants.items():
        path: Path = ("spec", "constants", name, *(("value",) if parameter.typed else ()))
        node: ir.Node | None
        if isinstance(parameter.value, Expression):
            known = {n: node.type for (space, n), node in state.constants.items() if space == CONSTANTS}
            names = state.vocabulary.extended(constants=known)
            node = texts.check(parameter.value.text, names, unit.document, (*path, "cel"), parameter.type)
        else:
            kind = parameter.type or shown_type(parameter.value)
            try:
                node = state.cache.same(
                    ("constant", name, kind), (parameter,), partial(_literal, kind, parameter.value)
                )
            except BadLiteral as bad:
                problem = bad.problem
                place = unit.document.positions.value((*path, *problem.path))
                fix = literal_fix(problem, unit.document, path)
                state.found.add("KP107", place, problem.message, help=problem.help, fix=fix)
                continue
        if node is not None:
            state.constants[CONSTANTS, name] = state.resolve_constants(node)


def _literal(kind: Type, value: object) -> ir.Node:
    return constant(kind, literal_value(kind, value))


def _functions(state: State, units: list[Unit], texts: Texts) -> None:
    """Check each function after those it calls; recursion has no place here and is reported."""
    declared: dict[str, tuple[Unit, int, LibraryFunction]] = {}
    for unit in units:
        assert isinstance(unit.spec, LibrarySpec)
        for at, function in enumerate(unit.spec.functions):
            known = declared.get(function.name)
            if known is not None and known[0].layer == unit.layer:
                _report_twin(state, unit, at, function, known)
                continue
            if function.name in state.vocabulary.environment.functions:
                state.found.add(
                    "KP309",
                    unit.document.positions.value(("spec", "functions", at, "name")),
                    f"`{function.name}` is a function of the language",
                    help="give yours another name",
                )
                continue
            declared[function.name] = (unit, at, function)
    done: set[str] = set()
    for name in declared:
        _define(state, declared, name, [], done, texts)


def _report_twin(
    state: State, unit: Unit, at: int, function: LibraryFunction, known: tuple[Unit, int, LibraryFunction]
) -> None:
    other = known[0].document.positions.value(("spec", "functions", known[1], "name"))
    state.found.add(
        "KP309",
        unit.document.positions.value(("spec", "functions", at, "name")),
        f"the function `{function.name}` is defined twice",
        notes=(Note("the other one", other),),
        help="give one of them another name",
    )


def _define(
    state: State,
    declared: dict[str, tuple[Unit, int, LibraryFunction]],
    name: str,
    trail: list[str],
    done: set[str],
    texts: Texts,
) -> None:
    if name in done:
        return
    unit, at, function = declared[name]
    path: Path = ("spec", "functions", at, "expression")
    if name in trail:
        cycle = [*trail[trail.index(name) :], name]
        state.found.add(
            "KP310",
            unit.document.positions.value(("spec", "functions", at, "name")),
            "functions call each other in a circle: " + " → ".join(f"`{step}`" for step in cycle),
            help="an expression always ends, so a function cannot call itself; use a comprehension",
        )
        done.update(cycle)
        return
    tree = texts.parse(function.expression, unit.document, path)
    if tree is None:
        return
    trail.append(name)
    for called in sorted({node.function for node in walk(tree) if isinstance(node, ast.CallExpr)}):
        if called in declared:
            _define(state, declared, called, trail, done, texts)
    trail.pop()
    if name in done:
        return
    done.add(name)
    defined = _checked(state, unit, path, function, texts)
    if defined is not None:
        before = state.vocabulary
        state.vocabulary = state.cache.same(
            ("function", name), (before, defined), lambda: before.extended(functions={name: defined})
        )


def _checked(
    state: State, unit: Unit, path: Path, function: LibraryFunction, texts: Texts
) -> UserFunction | None:
    params: list[tuple[str, Type]] = []
    for parameter in function.parameters:
        kind = parse_type(parameter.type)
        if kind is None:
            return None  # the schema has reported it
        params.append((parameter.name, kind))
    before = state.vocabulary
    names = state.cache.same(("arguments", *params), (before,), lambda: before.extended(roots=dict(params)))
    wanted = parse_type(function.result) if function.result else None
    body = checked = texts.check(function.expression, names, unit.document, path)
    if body is None:
        return None
    if wanted is not None:
        body_fitting = fitted(body, wanted)
        if body_fitting is None:
            state.found.add(
                "KP208",
                unit.document.positions.value(path),
                f"`{function.name}` is to give a `{type_name(wanted)}`, the expression gives `{type_name(body.type)}`",
                help="mend the expression, or the `result`",
            )
            return None
        body = body_fitting
    whole = body
    return state.cache.same(
        ("body", function.name, wanted, *params),
        (checked, *state.constants.values()),
        lambda: UserFunction(
            function.name, tuple(params), _as_locals(state.resolve_constants(whole), dict(params))
        ),
    )


def _as_locals(body: ir.Node, params: dict[str, Type]) -> ir.Node:
    """The body with its parameters as local variables, for the checker to bind at each call."""

    def change(node: ir.Node) -> ir.Node:
        return replace(node, local=True) if isinstance(node, ir.Var) and node.name in params else node

    return rewrite(body, change)
