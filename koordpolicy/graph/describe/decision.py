"""A decision in words: what it is, how rules meet in it, and which rules it has, the winning one first."""

import re
from collections.abc import Iterator

from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.decide import parameter_key
from koordpolicy.graph.describe.layout import expression, labelled, paragraph, place, rows
from koordpolicy.graph.graph import RuleGraph, UnknownDecision
from koordpolicy.graph.notation import show
from koordpolicy.graph.rules import Decision, Rule
from koordpolicy.graph.selectors import in_words
from koordpolicy.graph.state import Unit
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.facts import FACTS, ROOTS
from koordpolicy.language.kinds import KINDS, Combine, PolicySpec, type_name
from koordpolicy.language.kinds.exceptions import PolicyExceptionSpec

COMBINATIONS = {
    Combine.OVERRIDE: "the first rule that applies decides",
    Combine.LAYER: "the first rule that applies decides, field by field",
    Combine.ALL: "the first rule that applies decides",
    Combine.WEIGHTED: "a weighted sum",
    Combine.ORDER: "sort keys, the first deciding first",
    Combine.TIGHTEST: "the most restrictive value holds",
}


_ENTRY = re.compile(r"\[[^\]]*\]")
_VARIABLE = re.compile(r"\bvariables\s*\.\s*([A-Za-z_]\w*)")


def describe(graph: RuleGraph, name: str, width: int = 80) -> str:
    """Text for a terminal. Raises `UnknownDecision`."""
    return "\n".join(_decision(graph, graph.decision(name), width)) + "\n"


def describe_subject(graph: RuleGraph, name: str, width: int = 80) -> str:
    """All decisions of a kind, or of one subject of it, with the value that holds where nothing special applies.

    Raises `UnknownDecision` where the graph has no decision of that name.
    """
    found = [key for key in graph.decisions if name in (key.kind, key.target)]
    if not found:
        close = _meant(graph, name)
        raise UnknownDecision(
            f"there is no decision, kind, fact or function `{name}`"
            + (f"; did you mean `{close}`?" if close else "")
        )
    lines = []
    for target in dict.fromkeys(key.target for key in found):
        keys = [key for key in found if key.target == target]
        lines += [
            target,
            *rows(((key.field, _brief(graph, graph.decisions[key])) for key in keys), width),
            "",
        ]
    return "\n".join(lines)


def _meant(graph: RuleGraph, name: str) -> str | None:
    """What a mistyped name most likely stood for: a fact where it begins as facts do, a decision, else a kind or function."""
    of_kind = _of_kind(graph, name)
    if of_kind is not None:
        return of_kind
    targets = sorted({key.target for key in graph.decisions} | {key.kind for key in graph.decisions})
    decisions = [*targets, *map(str, graph.decisions)]
    facts = [
        f"{root.name}.{fact.path}" for root in ROOTS.values() for fact in FACTS.leaves(root.type.record or "")
    ]
    first = [facts, decisions] if name.partition(".")[0] in ROOTS else [decisions, facts]
    found = (nearest(name, candidates) for candidates in (*first, list(KINDS), list(FUNCTIONS)))
    return next(filter(None, found), None)


def _of_kind(graph: RuleGraph, name: str) -> str | None:
    """The first subject's decision, where a field, or the beginning of one, is named by its kind alone."""
    kind, _, field = name.partition(".")
    if kind not in KINDS or not field:
        return None
    wanted = _generic(field)
    own = ((key, _generic(key.field)) for key in graph.decisions if key.kind == kind)
    return next(
        (str(key) for key, one in own if one == wanted or one.startswith((f"{wanted}.", f"{wanted}["))), None
    )


def _generic(field: str) -> str:
    return _ENTRY.sub("[*]", field)


def _brief(graph: RuleGraph, decision: Decision) -> str:
    """The rule that is asked first, what holds where it does not apply, and how many others there are."""
    if not decision.rules:
        return "not set"
    first = decision.rules[0]
    always = next((rule for rule in decision.rules if rule.match.test is None), None)
    others = sum(rule is not always and rule is not first for rule in decision.rules)
    more = f" (and {others} rule{'' if others == 1 else 's'} more)" if others else ""
    if always is first:
        return value_text(first) + more
    otherwise = "nothing that always holds" if always is None else value_text(always)
    return f"{value_text(first)} {_where(graph, first)}; otherwise {otherwise}{more}"


def _where(graph: RuleGraph, rule: Rule) -> str:
    """For what a rule applies, in a phrase."""
    until = f"until {rule.terms.until}" if rule.terms is not None else ""
    where, condition = in_words(rule.match.requirements), condition_of(graph, rule)
    words = [until, f"for {where}" if where else "", f"if {condition}" if condition else ""]
    return " ".join(filter(None, words)) or "where its entry applies"


def value_text(rule: Rule) -> str:
    """The value of a rule on one line: a constant as policies write it, an expression as it stands."""
    return (
        show(rule.value.type, rule.value.value)
        if isinstance(rule.value, ir.Const)
        else " ".join(rule.text.split())
    )


def _decision(graph: RuleGraph, decision: Decision, width: int) -> Iterator[str]:
    yield str(decision.key)
    yield from paragraph(decision.meaning, width, 2)
    yield ""
    yield from labelled("type", type_name(decision.type), width)
    yield from labelled("asked by", ", ".join(sorted(decision.components)) or "the compiler", width)
    yield from labelled("may read", ", ".join(decision.roots) or "no facts", width)
    count = len(decision.rules)
    how = f"{count}; {COMBINATIONS[decision.combine]}" if count > 1 else str(count or "none")
    yield from labelled("rules", how, width)
    for at, rule in enumerate(decision.rules, start=1):
        yield ""
        yield from _rule(graph, at, rule, width)
    yield from _otherwise(decision)
    yield from _needs(graph, decision, width)


def _rule(graph: RuleGraph, at: int, rule: Rule, width: int) -> Iterator[str]:
    yield f"{at}. {rule.document} of {rule.layer}"
    yield f"   {place(rule.span)}"
    yield from applies(graph, rule, width)
    if isinstance(rule.value, ir.Const):
        yield from labelled("is", value_text(rule), width, 3, 14)
    else:
        yield from labelled("is", "", width, 3, 14)
        yield from expression(rule.text, width, 5)
        for name, text in variables_used(unit_of(graph, rule), rule.text).items():
            yield from labelled("where", f"variables.{name} =", width, 3, 14)
            yield from expression(text, width, 5)
    yield from _parameters(graph, rule, width)


def applies(graph: RuleGraph, rule: Rule, width: int) -> Iterator[str]:
    """When a rule applies: whose exception it is, precedence, selectors, condition; nothing where it always does."""
    if rule.terms is not None:
        yield from labelled("exception", f"of {rule.terms.owner}", width, 3, 14)
        yield from labelled("until", rule.terms.until, width, 3, 14)
        yield from labelled("because", " ".join(rule.terms.reason.split()), width, 3, 14)
    if rule.rank.precedence:
        yield from labelled("precedence", str(rule.rank.precedence), width, 3, 14)
    where = in_words(rule.match.requirements)
    if where is not None:
        yield from labelled("for", where, width, 3, 14)
    condition = condition_of(graph, rule)
    if condition is not None:
        yield from labelled("if", condition, width, 3, 14)
    if rule.match.test is not None and where is None and condition is None:
        yield from labelled("if", "the condition of its entry holds", width, 3, 14)


def condition_of(graph: RuleGraph, rule: Rule) -> str | None:
    """The condition of a rule's document, on one line."""
    unit = unit_of(graph, rule)
    spec = unit.spec if unit is not None else None
    match = spec.match if isinstance(spec, PolicySpec | PolicyExceptionSpec) else None
    condition = match.condition if match is not None else None
    return None if condition is None else " ".join(condition.split())


def unit_of(graph: RuleGraph, rule: Rule) -> Unit | None:
    """The document that a rule stands in."""
    return next((u for u in graph.units if u.id == rule.document and u.layer_name == rule.layer), None)


def variables_used(unit: Unit | None, text: str) -> dict[str, str]:
    """The variables that an expression of a document uses, and those that they use, with their texts."""
    if unit is None or not isinstance(unit.spec, PolicySpec):
        return {}
    known = {variable.name: variable.expression for variable in unit.spec.variables}
    used: dict[str, str] = {}
    waiting = [text]
    while waiting:
        for name in _VARIABLE.findall(waiting.pop(0)):
            if name in known and name not in used:
                used[name] = known[name]
                waiting.append(known[name])
    return used


def _parameters(graph: RuleGraph, rule: Rule, width: int) -> Iterator[str]:
    """The parameters that a rule uses, with each value they may have."""
    pairs = []
    for name in sorted(rule.parameters):
        decision = graph.decisions.get(parameter_key(rule.key, name))
        for inner in decision.rules if decision is not None else ():
            where, condition = in_words(inner.match.requirements), condition_of(graph, inner)
            value = f"{name} = {value_text(inner)}" + (f" for {where}" if where else "")
            value += f" if {condition}" if condition else ""
            pairs.append((value, place(inner.span)))
        if decision is not None and not decision.rules:
            pairs.append((f"{name} is not set", ""))
    label = "with"
    for left, right in pairs:
        beside = 14 + len(left) + 2 + len(right) <= width
        yield from labelled(label, left + (f"  {right}" if beside and right else ""), width, 3, 14)
        if right and not beside:
            yield f"{'':14}  {right}"
        label = ""


def _otherwise(decision: Decision) -> Iterator[str]:
    if any(rule.match.test is None for rule in decision.rules):
        return
    value = decision.default.value if isinstance(decision.default, ir.Const) else None
    yield ""
    yield "otherwise  " + (show(decision.type, value) if value is not None else "nothing is decided")


def _needs(graph: RuleGraph, decision: Decision, width: int) -> Iterator[str]:
    """The facts that the decision may read, whichever rule decides."""
    names = [
        f"{root}.{path}" if path else root
        for root, path in sorted(facts_of(graph.expression(str(decision.key))))
    ]
    own = [name for name in names if name.partition(".")[0] in decision.roots]
    inner = [name for name in names if name not in own]
    if own:
        yield ""
        yield from labelled("reads", ", ".join(own), width, 0, 13)
    if inner:
        yield from labelled("of elements", ", ".join(inner), width, 0, 13)
