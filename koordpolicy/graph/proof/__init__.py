"""Whether two expressions ever differ, and whether a condition always holds: three answers and no fourth.

A *counterexample*, an input that was run through the engine; *proved*, that there is none; *gave up*, with the budget that
was spent or the construct that was not understood. Everyday inputs, intervals and a directed search come first, since
they are fast and their examples read well; the solver (`encode`, which alone imports Z3) answers what they leave open.

A proof speaks of values and errors as the language defines them. It leaves out the limits of cost and size, which end
an evaluation of any expression whose input is large enough.
"""

from koordpolicy.graph.proof.goal import Differ, Fails, Goal
from koordpolicy.graph.proof.solve import decide
from koordpolicy.graph.proof.verdict import Counterexample, GaveUp, ProofBudget, Proved, Verdict

__all__ = [
    "Counterexample",
    "Differ",
    "Fails",
    "GaveUp",
    "Goal",
    "ProofBudget",
    "Proved",
    "Verdict",
    "decide",
]
