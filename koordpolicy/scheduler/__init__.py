"""The scheduler: takes pods from a queue, asks the rule graph where each may go and goes best.

    facts (cache, pods) -> ask (profile: one column program and plugins) -> plan (cycle) -> apply (binder)

`Scheduler` is all of it but the rim, as plain synchronous calls: hand it objects as they come and go,
and call `schedule_one` as long as it gives decisions. It reads no clock and draws no lots of its own, so
the simulator runs the same scheduler on virtual time as the process does on real time. What is placed,
filtered, scored, estimated and in which order is policy; nothing here has a threshold or a weight.
"""

from koordpolicy.scheduler.decision import Candidate, PodDecision, Refusals
from koordpolicy.scheduler.scheduler import Scheduler

__all__ = ["Candidate", "PodDecision", "Refusals", "Scheduler"]
