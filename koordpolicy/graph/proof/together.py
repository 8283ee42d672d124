"""Whether conditions can hold on one input: asked of pairs whose regions leave it open, within a small budget."""

from collections.abc import Sequence
from typing import Final

from koordpolicy.graph.proof.examples import in_words
from koordpolicy.graph.proof.goal import Fails
from koordpolicy.graph.proof.solve import Named, decide
from koordpolicy.graph.proof.verdict import Counterexample, GaveUp, ProofBudget
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import BOOL
from koordpolicy.language.facts import ROOTS

_BUDGET: Final = ProofBudget(inputs=1_400, work=300_000)


def held_together(tests: Sequence[ir.Node], named: Named) -> tuple[str, str]:
    """Whether all tests can be true on one input that there can be.

    `together` with the facts of one, which the engine confirms; `apart`, which is proved; `open`, and why.
    """
    if not tests:
        return "together", "any input"
    whole = tests[0] if len(tests) == 1 else ir.And(BOOL, tuple(tests))
    unmet = ir.Call(BOOL, "!_(bool)", (whole,))
    match decide(Fails(unmet, compile_row(tuple(ROOTS), unmet)), named, _BUDGET):
        case Counterexample(records=records):
            return "together", in_words(records, *tests)
        case GaveUp(why=why):
            return "open", why
    return "apart", ""
