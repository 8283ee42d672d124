"""Conflicts: two rules of equal rank that can meet, and rules that can never decide."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from koordpolicy.diagnostics import Note, Severity, Span
from koordpolicy.graph.analysis.example import Facts, example, show
from koordpolicy.graph.analysis.outcome import outcome
from koordpolicy.graph.analysis.region import Box, FactKey, boxes, meets
from koordpolicy.graph.analysis.run import holds
from koordpolicy.graph.decide import Expressions
from koordpolicy.graph.operations import operations_of, within_operations
from koordpolicy.graph.rules import Decision, Rule
from koordpolicy.graph.samples import fill
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import facts_of, refs_of
from koordpolicy.language.kinds import Combine

MAX_PAIRS = 200_000
"""Pairs examined for one decision; that there are more is said, and they are left unexamined rather than unbounded."""

MAX_ASKED = 40
"""Pairs of a revision that are asked about where regions leave it open whether both apply; of the others it is said that it is
open, in one finding."""

_MOST_NAMED = 5
"""Pairs that such a finding names."""

EXCLUSIVE = frozenset({Combine.OVERRIDE, Combine.LAYER})
"""Only where one rule must win is a tie a conflict; the others combine what they are given."""


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """A rule with its test, parameters resolved, and the region of inputs on which it applies.

    `pins` are the values that it admits for a place, where every box of it names them.
    """

    rule: Rule
    test: ir.Node | None
    region: list[Box]
    pins: Mapping[FactKey, frozenset[object]]


def conflicts(state: State) -> None:
    """Report KP301, KP303, KP304 and KP313 over all decisions, each document's match once."""
    expressions = state.expressions
    told: set[tuple[str, str, str]] = set()
    asking = _Asking(state)
    for decision in state.decisions.values():
        reaches = [_reach(state, expressions, rule) for rule in decision.rules]
        alive = [reach for reach in reaches if _can_hold(state, reach, told)]
        if len(alive) > 1 and decision.combine in EXCLUSIVE:
            _report_ties(state, decision, alive, told, asking)
            _report_shadowed(state, alive, told)
    asking.report_unasked()


def _reach(state: State, expressions: Expressions, rule: Rule) -> Reach:
    """A match without parameters reaches the same inputs in every revision it stands in."""
    if rule.parameters and rule.match.test is not None and refs_of(rule.match.test):
        return _found_reach(expressions, rule)
    return state.cache.get(("reach", rule), partial(_found_reach, expressions, rule))


def _found_reach(expressions: Expressions, rule: Rule) -> Reach:
    test = None if rule.match.test is None else fold(expressions.resolved(rule.match.test, rule.key))
    region = boxes(test)
    return Reach(rule, test, region, _pins(region))


def _pins(region: list[Box]) -> Mapping[FactKey, frozenset[object]]:
    """The places that every box gives a choice of values, with all of these."""
    first, *others = (
        {place: domain.choices for place, domain in box.domains.items() if domain.choices is not None}
        for box in region or (Box(),)
    )
    found: dict[FactKey, frozenset[object]] = {}
    for place, choices in first.items():
        if all(place in other for other in others):
            found[place] = frozenset(choices).union(*(other[place] for other in others))
    return found


def _can_hold(state: State, reach: Reach, told: set[tuple[str, str, str]]) -> bool:
    rule = reach.rule
    if reach.region and not _never_asked(state, reach):
        return True
    if (rule.document, "", "KP303") not in told:
        told.add((rule.document, "", "KP303"))
        place, help = _impossible(state, rule)
        selected = _selectors(state, rule)
        for one in list(state.found):
            if one.code == "KP214" and (place.holds(one.span) or (selected and selected.holds(one.span))):
                state.found.discard(one)  # the part of it that never holds
        state.found.add("KP303", place, f"the match of `{rule.document}` can never hold", help=help)
    return False


def _never_asked(state: State, reach: Reach) -> bool:
    """Whether the match holds in none of the requests that an AdmissionRule is asked of."""
    if reach.rule.key.kind != "AdmissionRule" or reach.test is None:
        return False
    return outcome(reach.test, sorted(operations_of(state.decisions, reach.rule.key))) is False


def _selectors(state: State, rule: Rule) -> Span | None:
    """Where the match of a rule's document stands, if it has one."""
    unit = next(
        (one for one in state.units if one.id == rule.document and one.layer_name == rule.layer), None
    )
    positions = None if unit is None else unit.document.positions
    return positions.value(("spec", "match")) if positions and positions.has(("spec", "match")) else None


def _impossible(state: State, rule: Rule) -> tuple[Span, str]:
    """Where a match is that never holds, and what to do about it."""
    condition = rule.match.condition_span
    if condition is not None and not rule.match.requirements:
        return condition, "it contradicts itself, or what facts can be; loosen one of its parts"
    unit = next(one for one in state.units if one.id == rule.document and one.layer_name == rule.layer)
    what = "its selectors" if condition is None else "its selectors and its condition"
    return unit.document.positions.key(("spec", "match")), f"{what} exclude each other; loosen one of them"


class _Asking:
    """Asks whether the matches of two rules can hold at once where regions leave it open; so many pairs of a revision."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._left = MAX_ASKED
        self._unasked: list[tuple[Decision, Rule, Rule]] = []

    def of(self, decision: Decision, left: Reach, right: Reach) -> tuple[str, str]:
        """What comes of two matches: `together` with the facts of an input on which both hold, `apart`, or `open` and why.

        Of those that are not asked any more `apart` is said here, and what they are by `report_unasked`.
        """
        tests = [reach.test for reach in (left, right) if reach.test is not None]
        if decision.key.kind == "AdmissionRule":
            tests.append(within_operations(self._state.decisions, decision.key))
        self._left -= 1
        if self._left < 0:
            self._unasked.append((decision, left.rule, right.rule))
            return "apart", ""
        # Loaded where something is asked alone: what searches for inputs is no part of a compiler's start.
        from koordpolicy.graph.proof.examples import texts_named_by  # noqa: PLC0415
        from koordpolicy.graph.proof.together import held_together  # noqa: PLC0415

        named = texts_named_by(self._state.classes.resolver)
        return self._state.cache.get(
            ("together", *tests, *named.items()), partial(held_together, tests, named)
        )

    def report_unasked(self) -> None:
        """KP313 for all pairs that were left, at the first of them."""
        if not self._unasked:
            return
        decision, left, right = self._unasked[0]
        earlier, later = sorted((left, right), key=lambda rule: rule.span)
        others = list(dict.fromkeys(f"`{a.document}` and `{b.document}`" for _, a, b in self._unasked[1:]))
        named = "; ".join(others[:_MOST_NAMED]) + ("; ..." if len(others) > _MOST_NAMED else "")
        notes = [
            Note(f"`{earlier.document}` decides it here", earlier.span),
            Note(
                f"whether both ever apply is open: {MAX_ASKED} pairs of rules were asked about before; no others are"
            ),
        ]
        if others:
            notes.append(Note(f"so it is of {len(self._unasked) - 1:,} more, such as {named}"))
        self._state.found.add(
            "KP313",
            later.span,
            f"`{later.document}` and `{earlier.document}` may both decide `{decision.key}`",
            notes=tuple(notes),
            help="give one a higher `precedence`, or make their matches exclude each other",
            severity=Severity.WARNING,
        )


def _report_ties(
    state: State, decision: Decision, reaches: list[Reach], told: set[tuple[str, str, str]], asking: _Asking
) -> None:
    for at, (left, right) in enumerate(_pairs(reaches)):
        if at == MAX_PAIRS:
            _report_unpaired(state, decision, reaches)
            return
        if left.rule.rank != right.rule.rank or left.rule.value == right.rule.value:
            continue
        if left.rule.terms and right.rule.terms and not left.rule.terms.meets(right.rule.terms):
            continue  # exceptions that follow each other
        later = max(left.rule, right.rule, key=lambda rule: rule.span)
        if (later.document, later.layer, decision.key.field) in told:
            continue  # it meets several others; one of them is enough to see it
        found = state.cache.get(("common input", left, right), partial(_common_input, decision, left, right))
        answer = ("together", show(found)) if found is not None else None
        if answer is None and meets(left.region, right.region):
            answer = asking.of(decision, left, right)
        if answer is None or answer[0] == "apart":
            continue
        told.add((later.document, later.layer, decision.key.field))
        earlier = left.rule if later is right.rule else right.rule
        both = answer[0] == "together"
        what = "both decide" if both else "may both decide"
        state.found.add(
            "KP301" if both else "KP313",
            later.span,
            f"`{later.document}` and `{earlier.document}` {what} `{decision.key}`",
            notes=(
                Note(f"`{earlier.document}` decides it here", earlier.span),
                Note(
                    f"both apply to: {answer[1]}" if both else f"whether both ever apply is open: {answer[1]}"
                ),
            ),
            help="give one a higher `precedence`, or make their matches exclude each other",
            severity=Severity.ERROR if both else Severity.WARNING,
        )


def _report_unpaired(state: State, decision: Decision, reaches: list[Reach]) -> None:
    """KP313 where there are more pairs than are looked at."""
    last = max((reach.rule for reach in reaches), key=lambda rule: (rule.layer == state.own.name, rule.span))
    state.found.add(
        "KP313",
        last.span,
        f"`{decision.key}` has {len(reaches):,} rules, too many to look at all pairs of them",
        notes=(Note(f"{MAX_PAIRS:,} pairs were looked at; whether others decide at once is open"),),
        help="let all of them name one label with a value of their own, which keeps them apart, or write fewer",
        severity=Severity.WARNING,
    )


def _common_input(decision: Decision, left: Reach, right: Reach) -> Facts | None:
    """Facts on which both rules apply, proved by running both tests; None when none was found."""
    tests = [reach.test for reach in (left, right) if reach.test is not None]
    reads = frozenset(read for test in tests for read in facts_of(test))
    for box in meets(left.region, right.region):
        facts = example(box, reads, fill)
        if facts is not None and all(holds(test, decision.roots, facts) for test in tests):
            return facts
    return None


def _report_shadowed(state: State, reaches: list[Reach], told: set[tuple[str, str, str]]) -> None:
    """A rule below one that applies wherever it does; overriding a lower layer is what layers are for, and whoever is
    overridden by a lower one says too little by his `precedence`.

    An exception ends, so it leaves an ordinary rule its time; only another exception may outlast it.
    """
    if all(reach.rule.rank == reaches[0].rule.rank and reach.rule.terms is None for reach in reaches):
        return  # none outranks another
    winners: dict[ir.Node | None, Reach] = {}
    for reach in reaches:
        rule = reach.rule
        if rule.terms is not None:
            _report_outlasted(state, reaches, reach, told)
            continue
        winner = winners.get(None) or winners.get(reach.test)
        if winner is not None and winner.rule.rank > rule.rank and _says_too_little(state, rule, winner.rule):
            names = (rule.document, winner.rule.document, rule.key.field)
            if names not in told:
                told.add(names)
                state.found.add(
                    "KP304",
                    rule.span,
                    f"this rule of `{rule.document}` for `{rule.key}` is never reached",
                    notes=(Note(f"`{winner.rule.document}` outranks it everywhere", winner.rule.span),),
                    help="remove it, or give it a higher `precedence`",
                    severity=Severity.ERROR,
                )
        winners.setdefault(reach.test, reach)


def _says_too_little(state: State, rule: Rule, winner: Rule) -> bool:
    """Whether a rule that another one outranks everywhere was meant to apply: not one of a layer below the winner's."""
    if rule.layer == winner.layer:
        return True
    return rule.layer == state.own.name and (state.above is None or winner.layer != state.above.name)


def _report_outlasted(
    state: State, reaches: list[Reach], reach: Reach, told: set[tuple[str, str, str]]
) -> None:
    """KP304 for an exception that another one of higher rank and equal match covers for all of its time."""
    rule = reach.rule
    for other in reaches:
        above = other.rule
        if above.terms is None or rule.terms is None or not above.terms.covers(rule.terms):
            continue
        names = (rule.document, above.document, rule.key.field)
        if other.test == reach.test and above.rank > rule.rank and names not in told:
            told.add(names)
            state.found.add(
                "KP304",
                rule.span,
                f"this rule of `{rule.document}` for `{rule.key}` is never reached",
                notes=(Note(f"`{above.document}` outranks it for all of its time", above.span),),
                help="remove it, or give it a higher `precedence`",
            )


def _pairs(reaches: list[Reach]) -> Iterator[tuple[Reach, Reach]]:
    """Pairs that may meet: those pinned to different values of the same place are never paired."""
    place = _most_pinned(reaches)
    buckets: dict[object, list[Reach]] = defaultdict(list)
    loose: list[Reach] = []
    for reach in reaches:
        choices = reach.pins.get(place) if place else None
        for choice in choices or ():
            buckets[choice].append(reach)
        if choices is None:
            loose.append(reach)
    groups = [*buckets.values(), loose]
    for group in groups:
        others = [] if group is loose else loose
        for at, left in enumerate(group):
            for right in [*group[at + 1 :], *others]:
                yield left, right


def _most_pinned(reaches: list[Reach]) -> FactKey | None:
    counts: dict[FactKey, int] = defaultdict(int)
    for reach in reaches:
        for place in reach.pins:
            counts[place] += 1
    return max(counts, key=lambda place: (counts[place], place.path, place.key or ""), default=None)
