"""Names of a bundle: where each is defined, and every place that means it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from koordpolicy.diagnostics import Span
from koordpolicy.graph.meaning.comparisons import compared_texts
from koordpolicy.graph.references import walk
from koordpolicy.graph.state import Unit
from koordpolicy.language.cel import ast
from koordpolicy.language.cel.recovery import parse_all
from koordpolicy.language.documents.document import Path
from koordpolicy.language.kinds import PolicySpec
from koordpolicy.language.kinds.bundle import LibrarySpec, PolicyTestSpec
from koordpolicy.language.kinds.exceptions import PolicyExceptionSpec
from koordpolicy.language.kinds.invariants import InvariantSpec
from koordpolicy.language.kinds.scheduling import SchedulingProfileSpec
from koordpolicy.language_server.expressions import expressions_of

_BANDS = frozenset(("permittedBands", "defaultBand", "band"))
_CLASSES = frozenset(("qosClass",))
_BAND_FACTS = frozenset(("band", "rawBand"))
_CLASS_FACTS = frozenset(("qos", "qosLabel"))


@dataclass(frozen=True, slots=True)
class Name:
    """What a name stands for. `space` is `parameter`, `variable`, `constant`, `function`, `document`, `item` (of a list),
    `named` (a decision, by an invariant) or `decision`; `of` is the kind of a document, else the target or document whose name it is, empty for what the
    whole bundle shares.
    """

    space: str
    of: str
    name: str


@dataclass(frozen=True, slots=True)
class Mention:
    """A place that means a name; a definition is one that says what it is. `unit` is the document that it stands in."""

    name: Name
    span: Span
    definition: bool
    unit: Unit


def mentions(units: tuple[Unit, ...]) -> Iterator[Mention]:
    """Every mention of every name in the documents, packs included."""
    functions = {
        function.name
        for unit in units
        if isinstance(unit.spec, LibrarySpec)
        for function in unit.spec.functions
    }
    targets = {unit.target: unit.subject == unit.document.name for unit in units if unit.kind.components}
    values = {_value_of(unit): unit.subject for unit in units if unit.kind.name == "QoSClass"}
    for unit in units:
        yield from _declared(unit)
        yield from _named_values(unit, values)
        yield from _decisions(unit, targets)
        for path, text in expressions_of(unit.document):
            yield from _expression(unit, path, text, functions, values)


def _value_of(unit: Unit) -> str:
    spec = unit.document.data.get("spec")
    value = spec.get("value") if isinstance(spec, dict) else None
    return value if isinstance(value, str) else unit.subject


def _declared(unit: Unit) -> Iterator[Mention]:
    positions, spec = unit.document.positions, unit.spec
    name = positions.value(("metadata", "name"))
    yield Mention(Name("document", unit.kind.name, unit.document.name), name, True, unit)
    if isinstance(spec, PolicySpec):
        for parameter in spec.parameters:
            place = positions.key(("spec", "parameters", parameter))
            yield Mention(Name("parameter", unit.target, parameter), place, True, unit)
        for at, variable in enumerate(spec.variables):
            place = positions.value(("spec", "variables", at, "name"))
            yield Mention(Name("variable", unit.id, variable.name), place, True, unit)
    if isinstance(spec, LibrarySpec):
        for constant in spec.constants:
            yield Mention(
                Name("constant", "", constant), positions.key(("spec", "constants", constant)), True, unit
            )
        for at, function in enumerate(spec.functions):
            place = positions.value(("spec", "functions", at, "name"))
            yield Mention(Name("function", "", function.name), place, True, unit)
    if isinstance(spec, SchedulingProfileSpec):
        for field in ("filters", "scores"):
            for at, item in enumerate(getattr(spec, field) or ()):
                place = positions.value(("spec", field, at, "name"))
                yield Mention(Name("item", f"{unit.target}.{field}", item.name), place, True, unit)


def _named_values(unit: Unit, classes: dict[str, str]) -> Iterator[Mention]:
    """Bands and classes that fields name as plain values."""
    spec = unit.document.data.get("spec")
    for field, value in spec.items() if isinstance(spec, dict) else ():
        elements = [((), value)] if isinstance(value, str) else list(_indexed(value))
        for step, name in elements:
            place = unit.document.positions.value(("spec", field, *step))
            if field in _BANDS and unit.kind.name != "PriorityBand":
                yield Mention(Name("document", "PriorityBand", name), place, False, unit)
            elif field in _CLASSES:
                yield Mention(Name("document", "QoSClass", classes.get(name, name)), place, False, unit)


def _indexed(value: object) -> Iterator[tuple[Path, str]]:
    if isinstance(value, list):
        yield from (((at,), one) for at, one in enumerate(value) if isinstance(one, str))


def _decisions(unit: Unit, targets: Mapping[str, bool]) -> Iterator[Mention]:
    """Decisions that tests expect and exceptions override: `Overcommit/batch.parameters.x`, each part by itself."""
    spec = unit.spec
    places: list[tuple[Path, str]] = []
    if isinstance(spec, PolicyTestSpec):
        for at, case in enumerate(spec.cases):
            places += [(("spec", "cases", at, "expect", name), name) for name in case.expect]
            places += [(("spec", "cases", at, "tolerance", name), name) for name in case.tolerance]
            for parameter in case.parameters:
                for target in sorted({name.partition(".")[0] for name in case.expect} & targets.keys()):
                    place = unit.document.positions.key(("spec", "cases", at, "parameters", parameter))
                    yield Mention(Name("parameter", target, parameter), place, False, unit)
    elif isinstance(spec, PolicyExceptionSpec):
        places = [(("spec", "overrides", name), name) for name in spec.overrides]
    for path, name in places:
        yield from _decision(unit, unit.document.positions.key(path), name, targets)
    if isinstance(spec, InvariantSpec):
        for short, name in spec.decisions.items():
            path = ("spec", "decisions", short)
            yield Mention(Name("named", unit.id, short), unit.document.positions.key(path), True, unit)
            yield from _decision(unit, unit.document.positions.value(path), name, targets)


def _decision(unit: Unit, whole: Span, name: str, targets: Mapping[str, bool]) -> Iterator[Mention]:
    target = max((one for one in targets if name.startswith(f"{one}.")), key=len, default=None)
    if target is None:
        return
    kind, _, subject = target.partition("/")
    yield Mention(Name("decision", "", name), whole, False, unit)
    if targets[target]:
        place = _within(whole, len(kind) + 1, len(subject))
        yield Mention(Name("document", kind, subject), place, False, unit)
    rest = name[len(target) + 1 :]
    if rest.startswith("parameters."):
        parameter = rest.removeprefix("parameters.")
        at = len(name) - len(parameter)
        yield Mention(Name("parameter", target, parameter), _within(whole, at, len(parameter)), False, unit)
    elif rest.startswith(("filters[", "scores[")) and "]" in rest:
        field, _, item = rest.partition("]")[0].partition("[")
        at = len(target) + 1 + len(field) + 1
        yield Mention(Name("item", f"{target}.{field}", item), _within(whole, at, len(item)), False, unit)


def _within(whole: Span, at: int, length: int) -> Span:
    """A part of a key on one line; a quoted key begins with its quote."""
    width = whole.end.column - whole.start.column
    quoted = 1 if width > at + length and width - 2 >= at + length else 0
    return Span.at(whole.file, whole.start.line, whole.start.column + at + quoted, length)


_SPACES = {
    "parameters": "parameter",
    "variables": "variable",
    "constants": "constant",
    "decisions": "named",
    "before": "named",
    "raised": "named",
}


def _expression(
    unit: Unit, path: Path, text: str, functions: set[str], classes: dict[str, str]
) -> Iterator[Mention]:
    tree = parse_all(text).tree
    if tree is None:
        return
    positions = unit.document.positions
    for node in walk(tree):
        match node:
            case ast.SelectExpr(operand=ast.Ident(name=space), field=name) if space in _SPACES:
                of = {"parameters": unit.target, "constants": ""}.get(space, unit.id)
                place = positions.text_span(path, node.field_start, node.field_start + len(name))
                yield Mention(Name(_SPACES[space], of, name), place, False, unit)
            case ast.CallExpr(function=name, target=None) if name in functions:
                place = positions.text_span(path, node.name_start, node.name_start + len(name))
                yield Mention(Name("function", "", name), place, False, unit)
    for fact, literal in compared_texts(tree):
        value = str(literal.value)
        place = positions.text_span(path, literal.start + 1, literal.end - 1)
        if fact in _BAND_FACTS:
            yield Mention(Name("document", "PriorityBand", value), place, False, unit)
        elif fact in _CLASS_FACTS and value in classes:
            yield Mention(Name("document", "QoSClass", classes[value]), place, False, unit)


def mention_at(found: list[Mention], file: str, line: int, column: int) -> Mention | None:
    """The mention at a place, or just before it; the shortest of several."""
    here = [
        one
        for one in found
        if one.span.file == file
        and one.span.start.line == line == one.span.end.line
        and one.span.start.column <= column <= one.span.end.column
    ]
    return min(here, key=lambda one: one.span.end.column - one.span.start.column, default=None)
