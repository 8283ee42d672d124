"""Making room for a pod that found no node: who would have to go, and from which node.

What belongs here: the search for victims (`search`, with the arithmetic of `pools` and the trials of
`what_if`), why there are none (`no_candidate`), and what policy says of all that (`policy`). What does not:
evicting anybody, which the binder does; the pods that wait for victims to go, which the scheduler counts for every
post-filter (`scheduler/nominations.py`); and the order of victims, which is policy.
"""

from typing import Final

from koordpolicy.scheduler.plugins.base import Plugin
from koordpolicy.scheduler.plugins.preemption.evaluator import PreemptionEvaluator

DEFAULT_PREEMPTION: Final = Plugin(post_filter=PreemptionEvaluator)
