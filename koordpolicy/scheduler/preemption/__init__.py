"""Making room for a pod that found none: who would have to go, on which node, and who waits for it.

What belongs here: the search for victims (`search`, with the arithmetic of `pools` and the cycles of
`what_if`), why there are none (`no_candidate`), the nodes as they would be without them (`hypothesis`), the
pods that wait for victims to go (`nominations`), and what policy says of all that (`policy`). What does not:
evicting anybody, which the binder does, and the order of victims, which is policy.
"""

from koordpolicy.scheduler.preemption.evaluator import PreemptionEvaluator
from koordpolicy.scheduler.preemption.no_candidate import NoCandidate

__all__ = ["NoCandidate", "PreemptionEvaluator"]
