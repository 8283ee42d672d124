"""What the expressions of one document may name, and the meaning of its own variables and match."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from koordpolicy.diagnostics import Note
from koordpolicy.graph.expressions import Path, Texts, Vocabulary
from koordpolicy.graph.references import referenced
from koordpolicy.graph.rules import Requirement, RuleMatch
from koordpolicy.graph.selectors import ROOT_OF, as_cel, requirements
from koordpolicy.graph.state import Unit
from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.casts import cast
from koordpolicy.language.cel.ir_walk import substitute
from koordpolicy.language.cel.types import BOOL, DYN, ERROR, Type
from koordpolicy.language.kinds import Match, PolicySpec, type_name


@dataclass(frozen=True, slots=True)
class Scope:
    """A document's names. `variables` are inlined: they refer to facts and parameters only.

    `match` is None when the match is wrong, so that none of the document's rules can stand.
    """

    vocabulary: Vocabulary
    variables: Mapping[str, ir.Node]
    match: RuleMatch | None


def scope_of(unit: Unit, base: Vocabulary, texts: Texts) -> Scope:
    """Check the variables in the order they need each other, then the match.

    `base` has the roots of the kind and the parameters of the unit's target.
    """
    if not isinstance(unit.spec, PolicySpec):
        return Scope(base, {}, RuleMatch())
    inlined: dict[str, ir.Node] = {}
    types: dict[str, Type] = {variable.name: ERROR for variable in unit.spec.variables}
    for at, name in _in_order(unit, texts):
        path = ("spec", "variables", at, "expression")
        text = unit.spec.variables[at].expression
        node = texts.check(text, base.extended(variables=types), unit.document, path)
        types[name] = ERROR if node is None else node.type
        if node is not None:
            inlined[name] = inline(node, inlined)
    scope = Scope(base.extended(variables=types), inlined, None)
    return replace(scope, match=match_of(unit, unit.spec.match, scope, texts))


def inline(node: ir.Node, variables: Mapping[str, ir.Node]) -> ir.Node:
    """The expression with `variables.x` replaced by what x stands for."""
    return substitute(node, {("variables", name): value for name, value in variables.items()})


def _in_order(unit: Unit, texts: Texts) -> Iterator[tuple[int, str]]:
    """Positions and names of the variables, each after those it needs; cycles are reported."""
    assert isinstance(unit.spec, PolicySpec)
    trees: dict[str, tuple[int, ast.Expr]] = {}
    for at, variable in enumerate(unit.spec.variables):
        path = ("spec", "variables", at, "name")
        if variable.name in trees:
            first = unit.document.positions.value(("spec", "variables", trees[variable.name][0], "name"))
            texts.found.add(
                "KP309",
                unit.document.positions.value(path),
                f"the variable `{variable.name}` is defined twice",
                notes=(Note("the other one", first),),
                help="give one of them another name",
            )
            continue
        tree = texts.parse(variable.expression, unit.document, ("spec", "variables", at, "expression"))
        if tree is not None:
            trees[variable.name] = (at, tree)
    done: set[str] = set()
    for name in trees:
        yield from _after_needs(unit, texts, trees, name, [], done)


def _after_needs(
    unit: Unit,
    texts: Texts,
    trees: Mapping[str, tuple[int, ast.Expr]],
    name: str,
    trail: list[str],
    done: set[str],
) -> Iterator[tuple[int, str]]:
    if name in done:
        return
    at, tree = trees[name]
    if name in trail:
        cycle = [*trail[trail.index(name) :], name]
        texts.found.add(
            "KP302",
            unit.document.positions.value(("spec", "variables", at, "name")),
            "these variables need each other: " + " → ".join(f"`{step}`" for step in cycle),
            help="break the circle: one of them needs an expression of its own",
        )
        done.update(cycle)
        return
    trail.append(name)
    for needed in referenced(tree, "variables"):
        if needed in trees:
            yield from _after_needs(unit, texts, trees, needed, trail, done)
    trail.pop()
    if name not in done:
        done.add(name)
        yield at, name


def match_of(unit: Unit, match: Match | None, scope: Scope, texts: Texts) -> RuleMatch | None:
    """The selectors and the condition of a document's match as one test; None after findings."""
    lines = requirements(match)
    if _selects_strangers(unit, lines, scope, texts):
        return None
    test: ir.Node | None = None
    source = as_cel(lines)
    if source is not None:
        test = texts.check(source, scope.vocabulary, unit.document, ("spec", "match"))
        if test is None:
            return None
    if match is None or match.condition is None:
        return RuleMatch(lines, None, test)
    path = ("spec", "match", "condition")
    condition = true_or_false(unit, texts, scope, path)
    if condition is None:
        return None
    return RuleMatch(lines, unit.document.positions.value(path), conjunction(test, condition))


def _selects_strangers(unit: Unit, lines: tuple[Requirement, ...], scope: Scope, texts: Texts) -> bool:
    """Whether the match has a selector of objects that no decision here knows, which is reported as KP104."""
    known = scope.vocabulary.environment.variables
    selectors = [field for field, root in ROOT_OF.items() if root in known]
    asked = {line.root for line in lines}
    unknown = [field for field, root in ROOT_OF.items() if root in asked and root not in known]
    for field in unknown:
        able = " and ".join(f"`match.{one}`" for one in selectors)
        texts.found.add(
            "KP104",
            unit.document.positions.key(("spec", "match", field)),
            f"`match.{field}` says nothing here: no {field} are looked at",
            help=f"select by {able}" if able else "select by `match.condition`",
        )
    return bool(unknown)


def true_or_false(unit: Unit, texts: Texts, scope: Scope, path: Path) -> ir.Node | None:
    """The condition whose text stands at `path`, variables inlined; None after findings."""
    condition = texts.check(_text_at(unit, path), scope.vocabulary, unit.document, path)
    if condition is None:
        return None
    if condition.type not in (BOOL, DYN):
        texts.found.add(
            "KP208",
            unit.document.positions.value(path),
            f"a condition is true or false, this is `{type_name(condition.type)}`",
            help="compare it with something",
        )
        return None
    return inline(cast(condition, BOOL), scope.variables)


def _text_at(unit: Unit, path: Path) -> str:
    """The string at a path that the schema has found to be one."""
    value: Any = unit.document.data
    for step in path:
        value = value[step]
    return str(value)


def conjunction(left: ir.Node | None, right: ir.Node) -> ir.Node | None:
    """Both tests as one; None stands for a test that always holds."""
    if isinstance(right, ir.Const) and right.value is True:
        return left
    if left is None:
        return right
    lefts = left.args if isinstance(left, ir.And) else (left,)
    rights = right.args if isinstance(right, ir.And) else (right,)
    return ir.And(BOOL, (*lefts, *rights))
