"""What else may stand in a place: texts that it is compared with in the documents at hand, other numbers and amounts."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from koordpolicy.graph.mutation.operators import Operator
from koordpolicy.graph.mutation.scalars import more_numbers, other_amount, other_numbers
from koordpolicy.graph.references import walk
from koordpolicy.language.cel import ast


@dataclass(frozen=True, slots=True)
class ValueDomains:
    """Texts by the name of what they are compared with: `band` of `p.band == 'batch'`, `pool` of `labels['pool']`.

    `thorough` gives more values for a place than differ in the case that notices them.
    """

    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    thorough: bool = False

    def others(self, name: str, text: str) -> Iterator[str]:
        """Other texts in the place of one: one that the same thing is compared with; thoroughly, a longer one and none."""
        known = self.other(name, text)
        yield known
        if self.thorough:
            yield from (more for more in (f"{text}x", "") if more not in (text, known))

    def numbers(self, value: float, least: float | None = None, most: float | None = None) -> Iterator[float]:
        """Other numbers within bounds."""
        yield from other_numbers(value, least, most)
        if self.thorough:
            yield from more_numbers(value, least, most)

    def amounts(self, text: str, *, time: bool = False) -> Iterator[tuple[Operator, str]]:
        """Other amounts than that of a text; none where it is no amount."""
        yield from other_amount(text, time=time, thorough=self.thorough)

    def other(self, name: str, text: str) -> str:
        """Another text that the same thing is compared with, else one that nothing is."""
        known = self.texts.get(name, ())
        if len(known) > 1 and text in known:
            return known[(known.index(text) + 1) % len(known)]
        others = [one for one in known if one != text]
        return others[0] if others else f"{text}-other" if text else "other"


def domains_of(trees: Iterable[ast.Expr], *, thorough: bool = False) -> ValueDomains:
    """What the expressions compare texts with."""
    found: dict[str, dict[str, None]] = {}
    for tree in trees:
        for node in walk(tree):
            for name, text in _comparisons(node):
                found.setdefault(name, {})[text] = None
    return ValueDomains({name: tuple(sorted(texts)) for name, texts in found.items()}, thorough)


def _comparisons(node: ast.Expr) -> Iterator[tuple[str, str]]:
    match node:
        case ast.CallExpr(function="_==_" | "_!=_" | "@in", args=(left, right), target=None):
            for one, other in ((left, right), (right, left)):
                name = name_of(other)
                if name:
                    yield from ((name, text) for text in _texts(one))


def _texts(node: ast.Expr) -> Iterator[str]:
    match node:
        case ast.Literal(value=str() as text):
            yield text
        case ast.ListLiteral(elements=elements):
            for element in elements:
                if isinstance(element, ast.Literal) and isinstance(element.value, str):
                    yield element.value


def name_of(node: ast.Expr) -> str:
    """The name of what is compared: the last step of a selection, a literal key; empty for anything else."""
    match node:
        case ast.SelectExpr(field=field):
            return field
        case ast.IndexExpr(index=ast.Literal(value=str() as key)):
            return key
        case ast.CallExpr(function="orValue", target=ast.Expr() as target):
            return name_of(target)
    return ""
