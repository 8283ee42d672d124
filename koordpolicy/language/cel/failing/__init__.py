"""Which evaluations can end in an error: found over the typed form, flow-sensitively, before anything runs.

What belongs here: knowledge of what must hold where a node is evaluated (`known`, `assume`), ranges of numbers, the
causes of errors by node and function. What does not belong here: how findings are worded and mended (`graph/meaning`).
"""

from koordpolicy.language.cel.failing.analysis import Presence, TooManySteps, could_fail, failures
from koordpolicy.language.cel.failing.causes import FailureCause, PossibleFailure
from koordpolicy.language.cel.failing.known import Known

__all__ = ["FailureCause", "Known", "PossibleFailure", "Presence", "TooManySteps", "could_fail", "failures"]
