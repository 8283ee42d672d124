"""Deciding a question: the search, then the solver, each within the budget."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

from koordpolicy.graph.proof.draws import Draws
from koordpolicy.graph.proof.everyday import fits_its_node, is_ordinary
from koordpolicy.graph.proof.goal import Differ, Goal
from koordpolicy.graph.proof.pools import Pools
from koordpolicy.graph.proof.reads import Reads, differing_parts, reads_of
from koordpolicy.graph.proof.search import Search
from koordpolicy.graph.proof.smaller import smaller
from koordpolicy.graph.proof.validity import Seen, is_valid
from koordpolicy.graph.proof.verdict import Counterexample, GaveUp, ProofBudget, Proved, Records, Verdict
from koordpolicy.language.cel.constants import text_of

Named = Mapping[tuple[str, str], Iterable[str]]
"""Texts that facts are known to have, by record and path: the names of classes and bands."""

_ORDINARY: Final = 600
"""Inputs of everyday size that are drawn before all others."""

_FIRST: Final = 1_000
"""Inputs that are drawn before the solver is asked."""


def decide(
    goal: Goal,
    named: Named,
    budget: ProofBudget,
    *,
    everyday: bool = True,
    moment: int | None = None,
    simple: bool = True,
) -> Verdict:
    """An input that meets the goal, the proof that there is none, or why neither was found.

    The same question has the same answer: what is drawn follows from the expressions. Without `everyday` inputs the
    caller has tried these already. They take place at `moment`, in nanoseconds since 1970. Without `simple` an input is given
    as it was found, for callers who need not show it: making it simple can take longer than finding it.
    """
    if isinstance(goal, Differ) and goal.left == goal.right:
        return Proved()
    parts = differing_parts(*goal.pairs[0]) if len(goal.pairs) == 1 else ()
    reads = reads_of((*parts, *goal.expressions))
    seed = hashlib.sha256(
        "\n".join(map(str, (*reads.facts, *reads.integers, *map(text_of, reads.texts)))).encode()
    )
    search = Search(goal, reads, Pools(reads, named), Draws(seed.digest()), moment)
    found = next(search.everyday(), None) if everyday else None
    found = found or ordinary(goal, reads, named, moment) or search.drawn(_FIRST)
    if found is None:
        # Z3 takes a tenth of a second to load: only what is left open needs it.
        from koordpolicy.graph.proof.solver import solve  # noqa: PLC0415

        answer = solve(goal, budget, search)
        if isinstance(answer, Proved):
            return answer
        found = answer.records if isinstance(answer, Counterexample) else None
        if found is None:
            found = search.stepped(budget.inputs // 2) or search.drawn(budget.inputs - _FIRST)
        if found is None:
            assert isinstance(answer, GaveUp)
            return answer
    return Counterexample(simplified(goal, found, search) if simple else found)


def ordinary(goal: Goal, reads: Reads, named: Named, moment: int | None = None) -> Records | None:
    """An input that meets the goal and that a cluster may well have; None where none was drawn, which proves nothing."""
    seed = hashlib.sha256("\n".join(map(str, (*reads.facts, *reads.integers))).encode())
    search = Search(goal, reads, Pools(reads, named, ordinary=True), Draws(seed.digest()), moment)
    return search.drawn(_ORDINARY, lambda records: fits_its_node(records) and is_ordinary(records, reads))


def simplified(goal: Goal, found: Records, search: Search) -> Records:
    """The input as ordinary as can be: like the everyday one that needs the fewest changes."""
    best = found
    seen: Seen = {}
    valid: Records = search.situations[0].records

    def keeps(records: Records) -> bool:
        nonlocal valid
        if not goal.met(records) or not is_valid(records, valid, seen):
            return False
        valid = records  # the next one shares most with it
        return True

    for situation in search.situations[:2]:
        made = smaller(found, situation.records, keeps)
        if best is found or _distance(made, situation.records) < _distance(best, situation.records):
            best = made
    return best


def _distance(records: Records, base: Records) -> int:
    """In how many facts two inputs differ."""
    count = 0
    for root, value in records.items():
        usual = base.get(root)
        if isinstance(value, Mapping) and isinstance(usual, Mapping):
            count += sum(value.get(path) != usual.get(path) for path in {*value, *usual})
        else:
            count += value != usual
    return count
