"""What would help a pod that found no node: computed, and tried before it is said.

What belongs here: for each filter, the smallest change after which a node that nothing else refuses would
take the pod. For expressions that is another value of a parameter or of a limit (`knobs`), for the built-in
plugins what the pod or the node lacks (`Plugin.advice`). All of it takes a bounded number of evaluations, in small
pieces (`pace`). What does not: why nodes were refused, which decisions say themselves, and when any of this is
worked on (`scheduler/diagnosis.py`).
"""

from koordpolicy.scheduler.advice.adviser import Advice, Adviser
from koordpolicy.scheduler.advice.pace import Evaluations

__all__ = ["Advice", "Adviser", "Evaluations"]
