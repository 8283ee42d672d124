"""What would help a pod that found no node: computed, and tried before it is said.

What belongs here: for each filter, the smallest change after which a node that nothing else refuses would
take the pod. For expressions that is another value of a parameter or of a limit (`knobs`), for the built-in
mechanisms what the pod or the node lacks (`native`). What does not: why nodes were refused, which decisions say
themselves.
"""

from koordpolicy.scheduler.advice.adviser import Advice, Adviser

__all__ = ["Advice", "Adviser"]
