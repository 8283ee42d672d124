"""Rules: each draft gets its meaning and its match, and becomes a rule for its decision."""

from dataclasses import dataclass, replace
from functools import partial

from koordpolicy.diagnostics import Diagnostics, Severity
from koordpolicy.graph.bounds import permitted_of
from koordpolicy.graph.expressions import Path, Texts, Vocabulary, literal_fix
from koordpolicy.graph.fits import fitted
from koordpolicy.graph.passes.exceptions import report_broad
from koordpolicy.graph.references import referenced
from koordpolicy.graph.rules import Rule, RuleMatch
from koordpolicy.graph.scope import Scope, conjunction, inline, match_of, scope_of, true_or_false
from koordpolicy.graph.state import Draft, State, Unit, texts_of
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.casts import limited
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.ir_walk import refs_of
from koordpolicy.language.cel.types import DYN, Type, list_of
from koordpolicy.language.cel.values import Optional
from koordpolicy.language.kinds import BadLiteral, Expression, PolicySpec, literal_value
from koordpolicy.language.kinds.exceptions import PolicyExceptionSpec


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What one document comes to: its match, its rules, and what is wrong with it."""

    found: Diagnostics
    match: RuleMatch | None
    rules: tuple[Rule, ...]


def rules(state: State) -> None:
    """Fill `rules` and `matches`. A draft whose text or match is wrong is reported and yields no rule."""
    drafts: dict[tuple[Unit, str], list[Draft]] = {(unit, unit.target): [] for unit in state.units}
    for draft in state.drafts:  # those of an exception are grouped by whose decisions they override
        drafts.setdefault((draft.unit, draft.home.target), []).append(draft)
    lowest: dict[str, int] = {}
    for unit in state.units:
        lowest[unit.target] = min(unit.layer, lowest.get(unit.target, unit.layer))
    for (unit, _), own in drafts.items():
        state.progress(f"{unit.document.file} got its meaning")
        base = state.vocabulary_of(own[0].home if own else unit)
        # Whatever else can change what a document means shows in its vocabulary, or in the slots it sets.
        introduces = unit.layer == lowest[unit.target]
        # Drafts of a document are made once; those of an exception anew for each revision.
        slots = tuple([draft if draft.terms is None else (draft.key, draft.slot.type) for draft in own])
        key = ("rules", unit, base.key, slots, introduces)
        outcome = state.cache.get(key, partial(_outcome, state, unit, own, base, introduces=introduces))
        state.found.extend(outcome.found)
        if unit.document.mended:
            continue  # it is checked as far as it can be read, but decides nothing
        state.rules += outcome.rules
        if outcome.match is not None and isinstance(unit.spec, PolicySpec):
            state.matches[unit] = outcome.match


def _outcome(
    state: State, unit: Unit, drafts: list[Draft], base: Vocabulary, *, introduces: bool
) -> _Outcome:
    texts = Texts(state.cache, Diagnostics(), state.probe)
    scope = _narrow(unit, base, texts) if drafts and drafts[0].terms else scope_of(unit, base, texts)
    _report_unused(unit, texts)
    always = replace(scope, match=scope.match and RuleMatch())
    made = [_rule(draft, always if introduces and _is_fixed(draft) else scope, texts) for draft in drafts]
    return _Outcome(texts.found, scope.match, tuple(rule for rule in made if rule is not None))


def _narrow(unit: Unit, base: Vocabulary, texts: Texts) -> Scope:
    """The scope of an exception, in the names of the target that it overrides; its match must say something."""
    assert isinstance(unit.spec, PolicyExceptionSpec)
    scope = Scope(base, {}, None)
    match = match_of(unit, unit.spec.match, scope, texts)
    if match is not None and match.test is None:
        report_broad(unit, texts.found)
        return scope
    return replace(scope, match=match)


def _is_fixed(draft: Draft) -> bool:
    """Whether a slot reads nothing, for it says what its subject is: which requests a rule checks, say.

    In the document that introduces the subject it holds whatever that applies to, as with an item's condition below.
    """
    return draft.slot.roots == frozenset() and not draft.terms


def _rule(draft: Draft, scope: Scope, texts: Texts) -> Rule | None:
    value = _value(draft, scope, texts)
    match = _narrowed(draft, scope, texts)
    if value is None or match is None:
        return None
    return Rule(
        key=draft.key,
        rank=draft.unit.rank,
        document=draft.unit.id,
        layer=draft.unit.layer_name,
        span=draft.unit.document.positions.value(draft.path),
        match=match,
        value=value,
        text=_written(draft.raw),
        parameters=frozenset(
            name
            for space, name in refs_of(value, *([match.test] if match.test else []))
            if space == "parameters"
        ),
        variables=scope.variables,
        terms=draft.terms,
    )


def _written(raw: object) -> str:
    if isinstance(raw, Expression):
        return raw.text.strip()
    return ", ".join(map(_written, raw)) if isinstance(raw, tuple) else str(raw)


def _narrowed(draft: Draft, scope: Scope, texts: Texts) -> RuleMatch | None:
    """The document's match with the conditions of the list items around the slot.

    An item's condition says when the item has an effect; what the item is (its plugin, weight) does
    not depend on it, and those slots could not read what the condition reads.
    """
    match = scope.match
    for path in draft.conditions if draft.slot.roots is None else ():
        test = true_or_false(draft.unit, texts, scope, path)
        if test is None or match is None:
            return None
        span = draft.unit.document.positions.value(path)
        match = replace(match, condition_span=span, test=conjunction(match.test, test))
    return match


def _value(draft: Draft, scope: Scope, texts: Texts) -> ir.Node | None:
    """The typed value of a slot; for one with `many`, a list of the values."""
    slot = draft.slot
    if not isinstance(draft.raw, tuple):
        return _one(draft, draft.raw, draft.path, scope, texts)
    parts = [_one(draft, raw, (*draft.path, at), scope, texts) for at, raw in enumerate(draft.raw)]
    if any(part is None for part in parts):
        return None
    return ir.MakeList(list_of(slot.type), tuple(part for part in parts if part is not None))


def _one(draft: Draft, raw: object, path: Path, scope: Scope, texts: Texts) -> ir.Node | None:
    slot, document = draft.slot, draft.unit.document
    optional = slot.type.name == "optional_type"
    wanted = slot.type.params[0] if optional else slot.type
    if not isinstance(raw, Expression):
        try:
            value = literal_value(wanted, raw)
        except BadLiteral as bad:
            problem = bad.problem
            place = document.positions.value((*path, *problem.path))
            fix = literal_fix(problem, document, path)
            texts.found.add("KP107", place, problem.message, help=problem.help, fix=fix)
            return None
        return constant(slot.type, Optional(value) if optional else value)
    node = texts.check(raw.text, scope.vocabulary, document, (*path, "cel"))
    if node is None:
        return None
    fitting = fitted(node, slot.type, slot.also) or _wrapped(node, wanted, slot.type)
    if fitting is None:  # the checker knows more ways to fit, and how to say that there is none
        fitting = texts.check(raw.text, scope.vocabulary, document, (*path, "cel"), wanted)
        fitting = fitting if fitting is None or not optional else _wrapped(fitting, wanted, slot.type)
    if fitting is None:
        return None
    inlined, permitted = inline(fitting, scope.variables), permitted_of(draft.key, slot)
    return inlined if permitted is None else limited(inlined, permitted)


def _wrapped(node: ir.Node, wanted: Type, whole: Type) -> ir.Node | None:
    """A plain value where an optional is asked for."""
    if whole.name != "optional_type" or fitted(node, wanted) is None or node.type == DYN:
        return None
    return ir.Call(whole, "optional.of(T)", (node,), start=node.start, end=node.end)


def _report_unused(unit: Unit, texts: Texts) -> None:
    """A variable that nothing in its document mentions is most likely a slip."""
    if not isinstance(unit.spec, PolicySpec) or not unit.spec.variables:
        return
    used: set[str] = set()
    for path, text in texts_of(unit):
        tree = texts.parse(text, unit.document, path)
        if tree is not None:
            used.update(referenced(tree, "variables"))
    for at, variable in enumerate(unit.spec.variables):
        if variable.name not in used:
            texts.found.add(
                "KP308",
                unit.document.positions.value(("spec", "variables", at, "name")),
                f"the variable `{variable.name}` is never used",
                help="remove it",
                severity=Severity.WARNING,
            )
