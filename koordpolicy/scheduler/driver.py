"""The scheduler's driver, without I/O: what is to be written, one action after another, and what comes of each.

    driver = Driver(scheduler)
    for action in driver.actions(now):           # decides on the pods that are due, as far as it is asked
        ...                                      # carry `action.plan` out, as `binder.apply` does; None: nothing to do
        then = driver.done(action, outcome)      # then.plan is what follows at once, if anything does
    driver.next_time()                           # when to come again although nothing happens

Events go to the scheduler's own methods. Nothing here waits or asks for the time, so a rim is all that differs
between places: `loop.SchedulingLoop` carries many actions out at a time on a real cluster. On a virtual clock a
synchronous rim does one after another; `binder.apply` is a coroutine that such a rim sends on by itself, with a `sleep`
that hands out the seconds, of which a `Prebind` alone makes use: the rim goes on with it that much later.

`Prebind` is the only action that may take long. It needs no slot of the writes, and no order: other decisions go on.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from koordpolicy.model.pod import Pod
from koordpolicy.scheduler.binder import (
    Binding,
    OvertakenError,
    Prebind,
    Preempt,
    WriteOutcome,
    WritePlan,
    plan,
)
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.plugins.base import Write
from koordpolicy.scheduler.scheduler import Scheduler

LOG: Final = logging.getLogger(__name__)

NOT_WANTED: Final = "the pod is not on its way to the node any more"
"""Why a pod is not bound whose decision does not hold any more."""


class Settled(NamedTuple):
    """A decision with what came of it, for metrics, Events and logs."""

    decision: PodDecision
    pod: Pod
    outcome: WriteOutcome | None


class Action(NamedTuple):
    """A decision on a pod with what is to be written of it now.

    None where that stands there already, or where the pod waits for a permit: that is decided on once more.
    """

    decision: PodDecision
    pod: Pod
    plan: WritePlan | None


class Driver:
    """Turns decisions into actions, and what came of these into what holds.

    `on_settled` hears of each decision once nothing is left to be done about it, `on_failure` of errors that nobody
    foresaw and that took no decision.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        on_settled: Callable[[Settled], None] = lambda settled: None,
        on_failure: Callable[[Exception], None] = lambda problem: None,
    ) -> None:
        self._scheduler = scheduler
        self._on_settled = on_settled
        self._on_failure = on_failure

    def actions(self, now: int) -> Iterator[Action]:
        """Decide on all pods that are due at `now` (nanoseconds since 1970), each when its action is asked for.

        Each step is an action, so that a rim has its turn after as many as it wants.
        """
        while (action := self.next_action(now)) is not None:
            yield action

    def next_action(self, now: int) -> Action | None:
        """The first of these; None where no pod is due."""
        found = self._scheduler.schedule_next()
        return None if found is None else self._action(*found, now)

    def done(self, action: Action, outcome: WriteOutcome) -> Action | None:
        """What came of an action, after which another one may be due at once."""
        decision, pod = action.decision, action.pod
        if isinstance(action.plan, Prebind):
            if not self.wants(action):
                outcome = WriteOutcome(action.plan, OvertakenError(NOT_WANTED))
            elif outcome.error is None:
                self._scheduler.written(decision)
                return Action(decision, pod, action.plan.then)
        if outcome.error is not None:
            self._take_back(action)
        self._settle(Settled(decision, pod, outcome))
        return None

    def wants(self, action: Action) -> bool:
        """Whether the pod of an action is still on its way by that decision."""
        account = self._scheduler.ledger.assumed(action.decision.pod)
        return account is not None and account.decision is action.decision

    def pause(self) -> None:
        """Nobody asks for actions from now on, until somebody does: nothing is held for pods that wait for permits."""
        try:
            self._scheduler.forget_waiting()
        except Exception as problem:  # noqa: BLE001  # told of by `failed`
            self.failed("what waits for permits could not be taken back", problem)

    def next_time(self, *, retries: bool = True) -> int | None:
        """When to come again although nothing happens: the first of all back-offs, permits and confirmations that end.

        It may be now. None when nothing is due by time. Without `retries` the pods do not count that are tried again
        although nothing helps them, as one must who may have missed something.
        """
        return self._scheduler.next_time(retries=retries)

    def failed(self, what: str, problem: Exception) -> None:
        """Tell of an error that nobody foresaw."""
        LOG.error("%s: internal error, please report", what, exc_info=problem)
        self._on_failure(problem)

    def _action(self, decision: PodDecision, pod: Pod, now: int) -> Action:
        if self._scheduler.awaits_permit(decision):
            return Action(decision, pod, None)
        try:
            planned = plan(decision, pod, now)
            if isinstance(planned, Binding):
                planned = self._with_claims(planned)
        except Exception as problem:  # noqa: BLE001  # told of by `failed`
            self.failed(f"there is no plan for pod {'/'.join(decision.pod)}", problem)
            self._scheduler.forget(pod)
            planned = None
        if planned is None:
            self._settle(Settled(decision, pod, None))
        return Action(decision, pod, planned)

    def _with_claims(self, bind: Binding) -> WritePlan:
        """The binding of a pod with what is written on it, after what its claims have to have written before."""
        scheduler = self._scheduler
        said = scheduler.said_at_binding(bind.pod)
        account = scheduler.ledger.assumed(bind.pod)
        writes: tuple[Write, ...] = ()
        if (
            account is not None and len(account.claims) > 1
        ):  # most have one claim, their place, which writes nothing
            said, writes = {**said, **account.annotations}, account.writes
        if said:
            bind = bind._replace(annotations={**bind.annotations, **said})
        return Prebind(bind, writes) if writes else bind

    def _take_back(self, action: Action) -> None:
        """What was decided did not come to pass.

        Lost or not: the cluster's own news of the pod say what it is now, and taking back is idempotent.
        """
        if isinstance(action.plan, Binding | Prebind):
            if self.wants(action):
                self._scheduler.forget(action.pod)
        elif isinstance(action.plan, Preempt):
            self._scheduler.call_off(action.decision)

    def _settle(self, settled: Settled) -> None:
        """Tell of a decision; that this fails must not change what was decided."""
        try:
            self._on_settled(settled)
        except Exception as problem:  # noqa: BLE001  # told of by `failed`
            self.failed(f"the decision on pod {'/'.join(settled.decision.pod)} could not be told of", problem)
