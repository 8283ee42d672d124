"""KP215 to KP218: each place of the bundle's own documents that can fail, with the edit that mends it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from koordpolicy.diagnostics import Fix, Note, Severity, Span
from koordpolicy.graph.expressions import Vocabulary, typed
from koordpolicy.graph.foresight.asked import RevisionContext, awaits_facts
from koordpolicy.graph.foresight.mending import mended
from koordpolicy.graph.foresight.origins import Origins, SourceText, own_offsets, unplaced
from koordpolicy.graph.foresight.words import ALWAYS, Words, words
from koordpolicy.graph.rules import DecisionKey, Rule, RuleMatch
from koordpolicy.graph.scope import inline
from koordpolicy.graph.state import Draft, State, Unit
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.failing import FailureCause, PossibleFailure, TooManySteps, could_fail, failures
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.types import BOOL
from koordpolicy.language.documents.edits import replaced
from koordpolicy.language.kinds import Slot

MAX_RULES: Final = 5_000
"""Rules that are looked at; of larger bundles the rest is left to run time."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Something that can fail, in a text of a document."""

    text: SourceText
    failure: PossibleFailure
    words: Words
    alike: tuple[PossibleFailure, ...]
    condition: bool


def foresight(state: State) -> None:
    """Report what can fail in the rules of the bundle's own documents, each place once."""
    units = {(unit.layer_name, unit.id): unit for unit in state.units}
    drafts: dict[tuple[Unit, DecisionKey], Draft] = {}
    context = RevisionContext(state.decisions, state.constants)
    told: set[tuple[str, Span]] = set()
    wrong = {one.span for one in state.found if one.severity is Severity.ERROR}
    settled: set[tuple[object, ...]] = set()
    own = [rule for rule in state.rules if rule.layer == state.own.name and not _is_literal(rule)]
    for rule in own[:MAX_RULES]:
        unit = units[rule.layer, rule.document]
        behind = context.known(rule)
        literals = tuple(
            one
            for name in sorted(rule.parameters)
            for one in _rules_of(state, DecisionKey(rule.key.kind, rule.key.subject, f"parameters.{name}"))
        )
        looked = _Looked(context, rule, unit, state.matches.get(unit), settled)
        key = ("failures", rule, behind, literals, context.operations(rule))
        for found in state.cache.get(key, looked.found):
            place = _place(unit, found)
            if (found.words.code, place) in told or place in wrong:
                continue
            told.add((found.words.code, place))
            drafts = drafts or {(draft.unit, draft.key): draft for draft in state.drafts}
            draft = drafts.get((unit, rule.key))
            names = state.vocabulary_of(unit if draft is None else draft.home)
            mended = looked.mended(unit, found, names, limited=draft is not None and _is_limited(draft.slot))
            state.found.add(
                found.words.code,
                place,
                found.words.message,
                help=_help(found, mended),
                notes=_notes(rule, found),
                severity=found.words.severity,
                fix=None if mended is None else mended[0],
            )


def _help(found: _Found, mended: tuple[Fix | None, str] | None) -> str:
    """What to write instead, beside what is meant more often where the edit would be false for all that is created."""
    if mended is None:
        return found.words.help
    written = f"write `{mended[1]}`"
    return (
        f"{found.words.help}; or {written}, which is false then"
        if "CREATE" in found.words.message
        else written
    )


def _is_limited(slot: Slot) -> bool:
    """Whether a slot takes not every value of its type."""
    return bool(slot.choices or slot.pattern) or slot.minimum is not None or slot.maximum is not None


def _rules_of(state: State, key: DecisionKey) -> Sequence[Rule]:
    decision = state.decisions.get(key)
    return () if decision is None else decision.rules


def _is_literal(rule: Rule) -> bool:
    return isinstance(rule.value, ir.Const) and rule.match.condition_span is None


def _place(unit: Unit, found: _Found) -> Span:
    start, end = own_offsets(found.failure.node)
    return unit.document.positions.text_span(found.text.path, start, end)


def _notes(rule: Rule, found: _Found) -> tuple[Note, ...]:
    """What asks for it, if that stands elsewhere."""
    return (Note(f"`{rule.key}` needs it"),) if found.text.variable else ()


def _as_it_is(node: ir.Node) -> ir.Node:
    return node


class _Looked:
    """One rule, looked at. `settled` are the matches in which nothing fails: the rules of a document share theirs."""

    def __init__(
        self,
        context: RevisionContext,
        rule: Rule,
        unit: Unit,
        matched: RuleMatch | None,
        settled: set[tuple[object, ...]],
    ) -> None:
        self._context = context
        self._rule = rule
        self._unit = unit
        self._matched = matched
        self._settled = settled

    @cached_property
    def _origins(self) -> Origins:
        """Asked for only where a rule is looked at anew: of most, what was found is remembered."""
        return Origins(self._unit, self._rule, self._matched)

    def found(self) -> tuple[_Found, ...]:
        """What can fail in the match and the value, as often as it is written."""
        rule = self._rule
        try:
            condition = self._match_failures()
            value = self._failures(rule.value, condition=False)
        except TooManySteps:
            return ()
        found = [*((one, True) for one in condition), *((one, False) for one in value)]
        if not found:
            return ()
        roots = [rule.value] if rule.match.test is None else [rule.match.test, rule.value]
        return tuple(self._placed(found, [self._origins.placed(root) for root in roots]))

    def _match_failures(self) -> Sequence[PossibleFailure]:
        test, key = self._rule.match.test, self._rule.key
        # By identity: the rules of a document, which live as long as this look, have one and the same test.
        asked = id(test), key.kind, key.subject, self._context.operations(self._rule)
        if test is None or asked in self._settled:
            return ()
        found = self._failures(test, condition=True)
        if not found:
            self._settled.add(asked)
        return found

    def _failures(self, node: ir.Node, *, condition: bool) -> Sequence[PossibleFailure]:
        """Of most expressions nothing can fail: whether any does is asked first, and only then where each node stands."""
        meant = () if condition or not awaits_facts(self._rule.key) else (FailureCause.FACT,)
        _, presence = self._context.known(self._rule)
        if could_fail(self._context.resolved(node, self._rule), presence) <= set(meant):
            return ()

        def found(place: Callable[[ir.Node], ir.Node]) -> list[PossibleFailure]:
            whole = self._context.resolved(place(node), self._rule)
            given = self._context.given(self._rule, place, matched=not condition)
            return [one for one in failures(whole, presence, given) if one.cause not in meant]

        return found(_as_it_is) and found(self._origins.placed)

    def _placed(
        self, found: Sequence[tuple[PossibleFailure, bool]], trees: Sequence[ir.Node]
    ) -> Iterator[_Found]:
        """One for each cause in each text: the others of its kind go with it, and what is written again."""
        groups: dict[tuple[object, ...], list[tuple[PossibleFailure, bool]]] = defaultdict(list)
        for failure, condition in found:
            text = self._origins.text_of(failure.node)
            if text is not None:
                written = text.text[slice(*own_offsets(failure.node))]
                groups[text.path, failure.cause, written, failure.certain].append((failure, condition))
        for group in groups.values():
            (first, condition), text = group[0], self._origins.text_of(group[0][0].node)
            assert text is not None
            alike = {own_offsets(failure.node): failure for failure, _ in group}
            for node in walk(*trees):
                if node == first.node and self._origins.text_of(node) == text:
                    alike.setdefault(own_offsets(node), replace(first, node=node))
            said = words(
                first,
                text.text,
                is_test=condition or self._rule.value.type == BOOL,
                only_created=self._context.operations(self._rule) == ("CREATE",),
            )
            yield _Found(text, first, said, tuple(alike.values()), condition)

    # Edits

    def mended(
        self, unit: Unit, found: _Found, names: Vocabulary, *, limited: bool
    ) -> tuple[Fix | None, str] | None:
        """What to write, if it takes the failures away and brings no others, and the edit where the file can hold it.

        A slot that is `limited` need not take the empty value that an edit would bring.
        """
        text = unit.document.positions.text(found.text.path)
        own = found.text.path[-1] == "cel"
        if text is None or found.words.code == ALWAYS or (limited and own):
            return None
        types = {name: value.type for name, value in self._rule.variables.items()}
        environment = names.extended(variables=types).environment
        before, _ = typed(found.text.text, environment)
        if before is None:
            return None
        edit = mended(found.text.text, parse(found.text.text), found.alike, is_test=before.type == BOOL)
        if edit is None:
            return None
        edited = found.text.text[: edit.start] + edit.replacement + found.text.text[edit.end :]
        after, problems = typed(edited, environment)
        if (
            after is None
            or after.type != before.type
            or problems
            or not self._is_better(found, before, after)
        ):
            return None
        written = replaced(text, edit.start, edit.end, edit.replacement)
        description = f"write `{' '.join(edited.split())}`"
        return None if written is None else Fix(description, *written), " ".join(edit.shown.split())

    def _is_better(self, found: _Found, before: ir.Node, after: ir.Node) -> bool:
        """Whether what failed does no more, and nothing fails that did not."""
        rule = self._rule
        given = self._context.given(rule, self._origins.placed, matched=not found.condition)
        given = [(unplaced(test), truth) for test, truth in given]
        _, presence = self._context.known(rule)

        def left(node: ir.Node) -> tuple[Counter[FailureCause], set[ir.Node]]:
            whole = self._context.resolved(inline(node, rule.variables), rule)
            failing = failures(whole, presence, given)
            return Counter(one.cause for one in failing), {one.node for one in failing}

        try:
            (many, _), (few, nodes) = left(before), left(after)
        except TooManySteps:
            return False
        cause = found.failure.cause
        return few <= many and few[cause] < many[cause] and not nodes & {one.node for one in found.alike}
