"""The texts that a place is compared with in the documents at hand: what it may well have been confused with."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from koordpolicy.graph.references import walk
from koordpolicy.language.cel import ast


@dataclass(frozen=True, slots=True)
class ValueDomains:
    """Texts by the name of what they are compared with: `band` of `p.band == 'batch'`, `pool` of `labels['pool']`."""

    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def other(self, name: str, text: str) -> str:
        """Another text that the same thing is compared with, else one that nothing is."""
        known = self.texts.get(name, ())
        if len(known) > 1 and text in known:
            return known[(known.index(text) + 1) % len(known)]
        others = [one for one in known if one != text]
        return others[0] if others else f"{text}-other" if text else "other"


def domains_of(trees: Iterable[ast.Expr]) -> ValueDomains:
    """What the expressions compare texts with."""
    found: dict[str, dict[str, None]] = {}
    for tree in trees:
        for node in walk(tree):
            for name, text in _comparisons(node):
                found.setdefault(name, {})[text] = None
    return ValueDomains({name: tuple(sorted(texts)) for name, texts in found.items()})


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
