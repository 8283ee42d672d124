"""Which text of a document each node of a rule comes from.

A rule's value has its variables inlined, so that nodes of several texts stand in one tree. While it is analysed, the
offsets of each text lie in a stretch of their own; what stands in none comes from elsewhere, such as a parameter.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from koordpolicy.graph.expressions import Path
from koordpolicy.graph.rules import Rule, RuleMatch
from koordpolicy.graph.state import Unit, texts_of
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.cel.walk import with_children
from koordpolicy.language.kinds import PolicySpec

_STRETCH: Final = 1_000_000
"""Offsets of each text: no expression is as long."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text of a document, and where it stands."""

    path: Path
    text: str
    variable: str = ""
    """The name of the variable that it defines."""


class Origins:
    """The texts behind the nodes of one rule."""

    def __init__(self, unit: Unit, rule: Rule, match: RuleMatch | None) -> None:
        self._texts: list[SourceText] = []
        self._of: dict[int, int] = {}
        self._placed: dict[int, tuple[ir.Node, ir.Node]] = {}
        """By the identity of nodes, which are kept so that no other one gets it: each of several questions asks for all again."""
        known = dict(texts_of(unit))
        if isinstance(unit.spec, PolicySpec):
            places = {variable.name: at for at, variable in enumerate(unit.spec.variables)}
            for name, value in rule.variables.items():  # each after those it uses, whose nodes are theirs
                path: Path = ("spec", "variables", places.get(name, -1), "expression")
                if path in known:
                    self._add(SourceText(path, known[path], name), [value])
        positions = unit.document.positions
        if match is not None and match.test is not None and match.condition_span is not None:
            self._condition(known, positions.value, match, [match.test])
        if rule.match.test is not None and rule.match.condition_span is not None:
            self._condition(known, positions.value, rule.match, [rule.match.test])
        own = [
            (path, text)
            for path, text in known.items()
            if rule.span in (positions.value(path[:-1]), positions.value(path[:-2]))
        ]
        if isinstance(rule.value, ir.MakeList) and len(own) != 1:
            for path, text in own:
                at = path[-2]
                if isinstance(at, int) and at < len(rule.value.elements):
                    self._add(SourceText(path, text), [rule.value.elements[at]])
        elif own:
            self._add(SourceText(*own[0]), [rule.value])

    def _condition(
        self, known: Mapping[Path, str], span_of: object, match: RuleMatch, roots: list[ir.Node]
    ) -> None:
        assert callable(span_of)
        found = next((path for path in known if span_of(path) == match.condition_span), None)
        if found is not None:
            self._add(SourceText(found, known[found]), roots)

    def _add(self, text: SourceText, roots: Iterable[ir.Node]) -> None:
        self._texts.append(text)
        for node in walk(*roots):
            self._of.setdefault(id(node), len(self._texts))

    def placed(self, root: ir.Node) -> ir.Node:
        """The expression with offsets in the stretches of its texts."""
        done = self._placed
        if id(root) not in done:
            for node in walk(root):
                if id(node) not in done:
                    changed = with_children(node, lambda part: done[id(part)][1])
                    base = self._of.get(id(node), 0) * _STRETCH
                    done[id(node)] = node, replace(changed, start=base + node.start, end=base + node.end)
        return done[id(root)][1]

    def text_of(self, node: ir.Node) -> SourceText | None:
        """The text that a node, once placed, comes from."""
        at = node.start // _STRETCH
        return self._texts[at - 1] if at else None


def own_offsets(node: ir.Node) -> tuple[int, int]:
    """Where a placed node stands in its text."""
    base = node.start // _STRETCH * _STRETCH
    return node.start - base, node.end - base


def of_one_text(one: ir.Node, other: ir.Node) -> bool:
    """Whether two placed nodes stand in the same text."""
    return one.start // _STRETCH == other.start // _STRETCH


def unplaced(root: ir.Node) -> ir.Node:
    """A placed expression with the offsets of its texts again."""
    done: dict[int, ir.Node] = {}
    for node in walk(root):
        changed = with_children(node, lambda part: done[id(part)])
        start, end = own_offsets(node)
        done[id(node)] = replace(changed, start=start, end=end)
    return done[id(root)]
