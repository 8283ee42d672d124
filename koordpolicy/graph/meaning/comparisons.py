"""Texts that expressions compare with a band, a class or an operation: the other side must be able to be that."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from koordpolicy.graph.expressions import Path
from koordpolicy.graph.meaning.names import qos_values, report_unknown
from koordpolicy.graph.references import walk
from koordpolicy.graph.state import State, Unit, texts_of
from koordpolicy.language.cel import ast
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import SyntaxProblem
from koordpolicy.model.facts.pod_spec import VOLUME_SOURCES

_COMPARED = frozenset(("_==_", "_!=_", "@in"))
_KUBERNETES = ("Guaranteed", "Burstable", "BestEffort")
_OPERATIONS = ("CREATE", "UPDATE", "DELETE")
_ELEMENT = "*."
_OF_ELEMENTS = {
    f"{_ELEMENT}source": ("volume source", (*VOLUME_SOURCES, "")),
    f"{_ELEMENT}operator": ("operator of tolerations", ("Equal", "Exists", "Lt", "Gt")),
    f"{_ELEMENT}effect": ("effect of taints", ("NoSchedule", "PreferNoSchedule", "NoExecute", "")),
}
"""Facts of what stands in lists of pods."""
_OTHERS = frozenset(("parameters", "variables", "constants", "catalogue"))


def comparisons(state: State) -> None:
    """KP307 for a band, class or operation that does not exist, where an expression compares a fact with it."""
    bands = [*state.classes.bands, ""]
    values = [*qos_values(state), ""]
    known: dict[str, tuple[str, tuple[str, ...]]] = {
        "kubernetesQoS": ("Kubernetes QoS class", (*_KUBERNETES, "")),
        "operation": ("operation", _OPERATIONS),
        **_OF_ELEMENTS,
    }
    if state.classes.bands:
        known.update(dict.fromkeys(("band", "rawBand"), ("priority band", tuple(bands))))
    if state.classes.qos:
        known.update(dict.fromkeys(("qos", "qosLabel"), ("QoS class", tuple(values))))
    key = tuple(sorted(known.items()))
    for unit in state.units:
        strange = state.cache.get(("names", unit, key), partial(_strange, unit, known))
        for path, literal, what, names in strange:
            place = unit.document.positions.text_span(path, literal.start, literal.end)
            report_unknown(state, place, f"there is no {what} `{literal.value}`", str(literal.value), names)


Strange = tuple[Path, ast.Literal, str, tuple[str, ...]]


def _strange(unit: Unit, known: Mapping[str, tuple[str, tuple[str, ...]]]) -> list[Strange]:
    """The literals of a document that are compared with a fact which can never have that value."""
    found: list[Strange] = []
    for path, text in texts_of(unit):
        if '"' not in text and "'" not in text:
            continue  # it compares with no text: most do not, and need not be read again
        try:
            tree = parse(text)
        except SyntaxProblem:
            continue  # reported where it is checked
        for fact, literal in compared_texts(tree):
            what, names = known.get(fact, ("", ()))
            if names and literal.value not in names:
                found.append((path, literal, what, names))
    return found


def compared_texts(tree: ast.Expr) -> Iterator[tuple[str, ast.Literal]]:
    """Each text compared with a fact, with the last name of the fact; of `v.source` besides with `*.source`."""
    for node in walk(tree):
        if not isinstance(node, ast.CallExpr) or node.function not in _COMPARED or len(node.args) != 2:
            continue
        left, right = node.args
        for one, other in ((left, right), (right, left)):
            fact = _fact(one)
            for literal in _alternatives(other) if fact else ():
                if isinstance(literal, ast.Literal) and isinstance(literal.value, str):
                    yield fact, literal
                    if isinstance(one, ast.SelectExpr) and isinstance(one.operand, ast.Ident):
                        yield f"{_ELEMENT}{fact}", literal


def _alternatives(side: ast.Expr) -> Iterable[ast.Expr]:
    """The elements of a list that stands there, else the side itself."""
    return side.elements if isinstance(side, ast.ListLiteral) else (side,)


def _fact(node: ast.Expr) -> str:
    """The last name of a chain that is no parameter, variable or constant; empty for anything else."""
    if isinstance(node, ast.Ident):
        return node.name
    if isinstance(node, ast.SelectExpr) and not node.test:
        first = ast.root_of(node)
        return "" if isinstance(first, ast.Ident) and first.name in _OTHERS else node.field
    return ""
