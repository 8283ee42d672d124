"""Asking the solver: first for a proof over lists of any length, then for an example over short ones."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import z3

from koordpolicy.graph.proof.encode import Encoder, TooLarge
from koordpolicy.graph.proof.goal import Fails, Goal, Valued
from koordpolicy.graph.proof.implied import with_implied
from koordpolicy.graph.proof.merging import merged
from koordpolicy.graph.proof.reads import reads_of
from koordpolicy.graph.proof.search import Search
from koordpolicy.graph.proof.terms import Bool, Formula, both, either, good, no, unlike
from koordpolicy.graph.proof.validity import is_valid
from koordpolicy.graph.proof.verdict import Counterexample, GaveUp, ProofBudget, Proved, Verdict
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_change import renamed_locals
from koordpolicy.language.cel.ir_walk import inline_binds, number, walk

_MOST_MODELS: Final = 4
_LEMMA: Final = 200_000
_NEAR: Final = 150
_LABORIOUS: Final = frozenset(
    (
        "_*_",
        "_/_",
        "_%_",
        "scale",
        "percent_of",
        "quotient",
        "divide",
        "math.round",
        "math.floor",
        "math.ceil",
    )
)
_SECONDS: Final = 60
"""A last resort, far beyond what the budget of work takes."""

_Pairs: TypeAlias = list[tuple[ir.Node, ir.Node]]


def solve(goal: Goal, budget: ProofBudget, search: Search) -> Verdict:
    """A proof that no input meets the goal, or an input that the engine confirms."""
    pairs = [(_in_order(_settled(left)), _in_order(_settled(right))) for left, right in goal.pairs]
    if all(left == right for left, right in pairs):
        return Proved()
    try:
        pairs = [(left, merged(left, right, _are_alike)) for left, right in pairs]
        if all(left is right for left, right in pairs):
            return Proved()
        if _is_refuted_by_parts(goal, pairs, budget):
            return Proved()
        with_any = _Question(goal, pairs, None)
        # Most proofs need no arithmetic of products, which keeps the solver busy where there are any.
        if with_any.is_refuted_plainly(budget.work // 4):
            return Proved()
        answer = with_any.ask(budget.work)
        if answer == z3.unsat:
            return Proved()
        if answer == z3.sat and not with_any.encoder.gaps:
            found = _confirmed(goal, with_any, search, budget)
            if found is not None:
                return found
        with_few = _Question(goal, pairs, budget.elements)
        answer = with_few.ask(budget.work)
        if answer == z3.sat:
            found = _confirmed(goal, with_few, search, budget)
            if found is not None:
                return found
        return GaveUp(_why(with_any, with_few, answer, budget))
    except TooLarge:
        return GaveUp(f"the expressions have too many parts for the solver ({budget.words})")
    except (RecursionError, z3.Z3Exception) as error:
        return GaveUp(f"the solver could not take the expressions ({type(error).__name__})")


def _is_refuted_by_parts(goal: Goal, pairs: _Pairs, budget: ProofBudget) -> bool:
    """Whether no input can meet the goal whatever the arithmetic comes to that both sides have."""
    common = [node for left, right in pairs for node in _in_both(left, right)]
    return bool(common) and _Question(goal, pairs, None, common).is_refuted_plainly(budget.work // 4)


def _are_alike(left: ir.Node, right: ir.Node) -> bool:
    """Whether two parts of expressions come to the same, whatever the local variables are and what both have comes to."""
    table = number([left, right])
    hidden = frozenset(map(table.of, _in_both(left, right)))
    keys = tuple(reads_of([left, right]).keys)
    encoder = Encoder(table, keys, None, _never, hidden)
    env = {
        node.name: good(encoder.unknowns.some(node.type))
        for node in table.nodes
        if isinstance(node, ir.Var) and node.local
    }
    apart = unlike(encoder.encode(left, env), encoder.encode(right, env))
    return _never(encoder.facts, apart)


def _never(facts: Sequence[Formula], formula: Formula) -> bool:
    """Whether a formula can never hold, by a little work.

    What is simple is refuted in a thousandth of the work without the preparations that the rest is worth.
    """
    for solver in (z3.SimpleSolver(), z3.Solver()):
        solver.set("rlimit", _LEMMA)
        solver.set("timeout", _SECONDS * 1000)
        solver.add(*facts, formula)
        if solver.check() == z3.unsat:
            return True
    return False


def _in_both(left: ir.Node, right: ir.Node) -> Iterator[ir.Node]:
    """Products, quotients and the like that both sides have: what keeps the solver busy."""
    table = number([left, right])
    mine, yours = ({table.of(node) for node in walk(side)} for side in (left, right))
    for at in sorted(mine & yours):
        match table.nodes[at]:
            case ir.Call(overload=overload) as node if overload.partition("(")[0] in _LABORIOUS:
                yield node


def _settled(node: ir.Node) -> ir.Node:
    return with_implied(inline_binds(node))


def _in_order(node: ir.Node) -> ir.Node:
    """The expression with local variables named in the order in which they come: their names tell what they went through."""
    names: dict[str, str] = {}
    return renamed_locals(node, lambda name: names.setdefault(name, f"{len(names)}"))


def _why(with_any: "_Question", with_few: "_Question", answer: Any, budget: ProofBudget) -> str:
    gaps = list(dict.fromkeys((*with_any.encoder.gaps, *with_few.encoder.gaps)))
    if answer == z3.unsat:
        return f"no difference for lists of up to {budget.elements} elements, none proved for longer ones"
    if gaps:
        named = ", ".join(gaps[:3]) + (f" and {len(gaps) - 3} more" if len(gaps) > 3 else "")
        return f"the solver knows too little of {named} ({budget.words})"
    return f"the budget was spent ({budget.words})"


class _Question:
    """A goal as a formula: satisfiable where an input may meet it."""

    def __init__(
        self, goal: Goal, pairs: _Pairs, elements: int | None, hidden: Sequence[ir.Node] = ()
    ) -> None:
        trees = [side for pair in pairs for side in pair]
        given = None if goal.given is None else inline_binds(goal.given)
        if given is not None:
            trees.append(given)
        valued, given_valued = (goal.valued, goal.given_valued) if isinstance(goal, Fails) else (None, None)
        plain = {
            id(one): [inline_binds(tree) for tree in (one.usual, *one.parts)]
            for one in (valued, given_valued)
            if one is not None
        }
        trees += (tree for one in plain.values() for tree in one)
        self._plain = plain
        reads = reads_of(trees)
        table = number(trees)
        numbers = frozenset(table.of(node) for node in hidden)
        self.encoder = Encoder(table, tuple(reads.keys), elements, _never, numbers)
        self.solver = z3.Solver()
        self.solver.set("random_seed", 1)
        self.solver.set("timeout", _SECONDS * 1000)
        wanted = [self._wanted(goal, left, right) for left, right in pairs]
        self.formula = either(*wanted)
        if given is not None:
            held = self.encoder.outcome(given)
            if isinstance(held.value, Bool):
                self.formula = both(self.formula, no(held.err), no(held.null), held.value.term)
            if given_valued is not None:
                self.formula = either(self.formula, both(held.err, self._counts(given_valued)))
        self.solver.add(*self.encoder.facts, self.formula)

    def _wanted(self, goal: Goal, left: ir.Node, right: ir.Node) -> Formula:
        outcome = self.encoder.outcome(left)
        if isinstance(goal, Fails):
            if not isinstance(outcome.value, Bool):
                self.encoder.gap("a condition of an unknown type")
                return no(outcome.err)
            false = both(no(outcome.err), no(outcome.null), no(outcome.value.term))
            if goal.valued is None:
                return false
            return either(false, both(outcome.err, self._counts(goal.valued)))
        return unlike(outcome, self.encoder.outcome(right))

    def _counts(self, valued: Valued) -> Formula:
        """That all parts have values, and amounts are usual."""
        usual, *parts = map(self.encoder.outcome, self._plain[id(valued)])
        known = usual.value.term if isinstance(usual.value, Bool) else no(usual.err)
        return both(no(usual.err), known, *(no(part.err) for part in parts))

    def is_refuted_plainly(self, work: int) -> bool:
        """Whether the formula can never hold, whatever products of unknowns come to."""
        for solver in (z3.SimpleSolver(), z3.Solver()):
            solver.set("rlimit", work)
            solver.set("timeout", _SECONDS * 1000)
            solver.set("smt.arith.nl", False)
            solver.add(*self.encoder.facts, self.formula)
            if solver.check() == z3.unsat:
                return True
        return False

    def ask(self, work: int) -> Any:
        """Whether the formula can hold, by so much work."""
        self.solver.set("rlimit", work)
        return self.solver.check()

    def models(self, work: int) -> Iterator[Any]:
        """Models, each with other facts than those before."""
        for _ in range(_MOST_MODELS):
            model = self.solver.model()
            yield model
            told = [
                symbol() != model[symbol]
                for symbol in model.decls()
                if symbol.arity() == 0 and _is_plain(symbol)
            ]
            if not told:
                return
            self.solver.add(z3.Or(*told))
            if self.ask(work) != z3.sat:
                return


def _is_plain(symbol: Any) -> bool:
    return symbol.range().kind() in (z3.Z3_BOOL_SORT, z3.Z3_INT_SORT, z3.Z3_REAL_SORT)


def _confirmed(goal: Goal, question: _Question, search: Search, budget: ProofBudget) -> Counterexample | None:
    """An input made of the solver's models, or near to one, that the engine confirms."""
    for model in question.models(budget.work // 4):
        for situation in search.situations[:2]:
            try:
                records = question.encoder.unknowns.records(model, situation.records)
            except (ValueError, OverflowError, z3.Z3Exception):
                continue
            if goal.met(records) and is_valid(records, situation.records):
                return Counterexample(records)
            near = search.stepped(_NEAR, [records]) or search.near(records, _NEAR)
            if near is not None:
                return Counterexample(near)
    return None
