"""From a graph to a picture: each rule with all that it reads, or an overview by documents."""

from collections.abc import Iterable
from enum import StrEnum

from koordpolicy.graph.decide import parameter_key
from koordpolicy.graph.describe.decision import (
    COMBINATIONS,
    condition_of,
    unit_of,
    value_text,
    variables_used,
)
from koordpolicy.graph.describe.layout import place
from koordpolicy.graph.drawing.mentions import Mentions, mentions
from koordpolicy.graph.drawing.picture import Arrow, Picture, PictureBox, Role
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.reads import fact_type
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.graph.selectors import in_words
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.facts import ROOTS, Component
from koordpolicy.language.kinds import type_name

MANY = 12
"""Beyond so many decisions a picture of every rule is no picture any more."""

_WIDEST = 52
_MOST_LINES = 7


class Detail(StrEnum):
    """How much is drawn: every rule with what it reads, or documents with what they decide about."""

    RULES = "rules"
    DOCUMENTS = "documents"


def picture_of(graph: RuleGraph, keys: Iterable[DecisionKey], detail: Detail | None = None) -> Picture:
    """The picture of some decisions of a graph. Without a `detail` their number says which is better."""
    chosen = [key for key in graph.decisions if key in frozenset(keys)]
    plain = [key for key in chosen if not key.field.startswith("parameters.")] or chosen
    if detail is None:
        detail = Detail.RULES if len(plain) <= MANY else Detail.DOCUMENTS
    drawing = _Drawing(graph)
    for key in plain:
        if detail is Detail.RULES:
            drawing.decision(graph.decisions[key])
        else:
            drawing.documents(graph.decisions[key])
    title = str(plain[0]) if len(plain) == 1 else f"{len(plain)} decisions"
    return drawing.picture(title)


class _Drawing:
    """Boxes and arrows as they are found, each once."""

    def __init__(self, graph: RuleGraph) -> None:
        self.graph = graph
        self.boxes: dict[str, PictureBox] = {}
        self.arrows: dict[Arrow, None] = {}
        self.counts: dict[str, int] = {}

    def picture(self, title: str) -> Picture:
        return Picture(title, tuple(self.boxes.values()), tuple(self.arrows))

    def box(self, role: Role, name: str, title: str, lines: Iterable[str] = (), hint: str = "") -> str:
        id = f"{role}:{name}"
        self.boxes.setdefault(id, PictureBox(id, role, title, tuple(lines), hint))
        return id

    def arrow(self, source: str, target: str) -> None:
        self.arrows.setdefault(Arrow(source, target))

    # Every rule

    def decision(self, decision: Decision) -> None:
        name = str(decision.key)
        several = f"; {COMBINATIONS[decision.combine]}" if len(decision.rules) > 1 else ""
        lines = _wrapped(type_name(decision.type) + several)
        box = self.box(Role.DECISION, name, name, lines, decision.meaning)
        self.asked(box, decision)
        for at, rule in enumerate(decision.rules, start=1):
            number = f"{at}. " if len(decision.rules) > 1 else ""
            self.arrow(self.rule(rule, number), box)

    def asked(self, box: str, decision: Decision) -> None:
        every = decision.components == frozenset(Component)
        names = ["every component"] if every else sorted(decision.components)
        for name in names:
            self.arrow(box, self.box(Role.COMPONENT, name, name))

    def rule(self, rule: Rule, number: str) -> str:
        text = [value_text(rule)] if isinstance(rule.value, ir.Const) else rule.text.split("\n")
        lines = [*_when(self.graph, rule), *_shortened(text)]
        hint = f"{place(rule.span)}\n{rule.text}"
        box = self.box(Role.RULE, f"{rule.layer}/{rule.id}", number + rule.document, lines, hint)
        self.reads(box, rule, None if isinstance(rule.value, ir.Const) else rule.text)
        return box

    def reads(self, box: str, rule: Rule, text: str | None) -> None:
        """Arrows from everything that a rule's value and match mention."""
        for line in rule.match.requirements:
            self.arrow(self.fact(f"{line.root}.labels"), box)
        condition = condition_of(self.graph, rule)
        for part in (text, condition):
            found = mentions(part) if part is not None else None
            if found is not None:
                self.mentioned(box, rule, found)
        if (
            text is not None and mentions(text) is None
        ):  # several expressions in a list: what they read together
            for root, path in sorted(facts_of(rule.value)):
                if root in ROOTS:
                    self.arrow(self.fact(f"{root}.{path}" if path else root), box)

    def mentioned(self, box: str, rule: Rule, found: Mentions) -> None:
        for fact in found.facts:
            self.arrow(self.fact(fact), box)
        for name in found.parameters:
            decision = self.graph.decisions.get(parameter_key(rule.key, name))
            if decision is not None:
                self.arrow(self.parameter(name, decision), box)
        texts = variables_used(
            unit_of(self.graph, rule), " ".join(f"variables.{name}" for name in found.variables)
        )
        for name in found.variables:
            if name in texts:
                self.arrow(self.variable(rule, name, texts), box)

    def variable(self, rule: Rule, name: str, texts: dict[str, str]) -> str:
        id = f"{Role.VARIABLE}:{rule.layer}/{rule.document}/{name}"
        known = id in self.boxes
        text = texts[name]
        self.box(
            Role.VARIABLE,
            f"{rule.layer}/{rule.document}/{name}",
            name,
            _shortened(text.strip().split("\n")),
            text.strip(),
        )
        found = None if known else mentions(text)
        if found is not None:
            self.mentioned(id, rule, found)
        return id

    def parameter(self, name: str, decision: Decision) -> str:
        id = f"{Role.PARAMETER}:{decision.key}"
        known = id in self.boxes
        lines = []
        for inner in decision.rules:
            where = in_words(inner.match.requirements)
            lines.append(value_text(inner) + (f" for {where}" if where else ""))
        hint = "\n".join(place(inner.span) for inner in decision.rules)
        self.box(Role.PARAMETER, str(decision.key), name, _shortened(lines or ["not set"]), hint)
        for inner in () if known else decision.rules:
            self.reads(id, inner, None if isinstance(inner.value, ir.Const) else inner.text)
        return id

    def fact(self, name: str) -> str:
        return self.box(Role.FACT, name, name, [type_name(fact_type(name))])

    # An overview

    def documents(self, decision: Decision) -> None:
        """Groups of facts → documents → what they decide about → who asks."""
        target = decision.key.target
        box = self.box(Role.DECISION, target, target)
        self.asked(box, decision)
        rules = [*decision.rules]
        for name in sorted({name for rule in rules for name in rule.parameters}):
            parameter = self.graph.decisions.get(
                DecisionKey(decision.key.kind, decision.key.subject, f"parameters.{name}")
            )
            rules += parameter.rules if parameter is not None else ()
        for rule in rules:
            name = f"{rule.layer}/{rule.document}"
            document = self.box(Role.RULE, name, rule.document, [rule.span.file])
            self.arrow(document, box)
            nodes = [rule.value] if rule.match.test is None else [rule.value, rule.match.test]
            for root, path in sorted(facts_of(*nodes)):
                if root in decision.roots:
                    group = ".".join([root, *path.split(".")[:1]]) if path else root
                    self.arrow(self.box(Role.FACT, group, group), document)


def _when(graph: RuleGraph, rule: Rule) -> list[str]:
    where, condition = in_words(rule.match.requirements), condition_of(graph, rule)
    terms = rule.terms
    excepted = f"exception of {terms.owner} until {terms.until}" if terms is not None else ""
    return [
        *_wrapped(excepted),
        *_wrapped(f"for {where}" if where else ""),
        *_wrapped(f"if {condition}" if condition else "")[:3],
    ]


def _wrapped(text: str) -> list[str]:
    """Lines of at most `_WIDEST` characters, broken at spaces."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= _WIDEST:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…" for line in lines]


def _shortened(lines: list[str]) -> list[str]:
    """An author's lines, none too long and not too many."""
    parts: list[str] = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()))
        wrapped = _wrapped(line)
        parts += [indent[:8] + part for part in wrapped]
    if len(parts) > _MOST_LINES:
        parts[_MOST_LINES - 1 :] = ["…"]
    return parts
