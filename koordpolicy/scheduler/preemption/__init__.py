"""Making room for a pod that found none: who would have to go, on which node, and who waits for it.

What belongs here: the search for victims (`search`, with the arithmetic of `pools` and the questions of
`supposing`), why there are none (`in_vain`), the nodes as they would be without them (`hypothesis`), the budgets over them (`budgets`), the
pods that wait for victims to go (`nominations`), and what policy says of all that (`policy`). What does not:
evicting anybody, which the binder does, and the order of victims, which is policy.
"""

from koordpolicy.scheduler.preemption.budgets import Budgets
from koordpolicy.scheduler.preemption.in_vain import Without
from koordpolicy.scheduler.preemption.making_room import MakingRoom

__all__ = ["Budgets", "MakingRoom", "Without"]
