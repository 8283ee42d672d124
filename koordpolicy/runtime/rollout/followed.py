"""The gate of a process that follows published policies: a rollout goes on elsewhere, and says how far a revision is let go."""

import asyncio
from collections.abc import AsyncGenerator
from functools import partial

from koordpolicy.model.policy_revision import InstanceState
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.gating import Admission, RolloutReach, RolloutStage
from koordpolicy.runtime.policies.held import HeldReach
from koordpolicy.runtime.policies.revisions import ActiveRevision, CandidateRevision
from koordpolicy.runtime.rollout.canary import goes_ahead
from koordpolicy.runtime.rollout.changes import changes
from koordpolicy.runtime.rollout.comparing import compare_aside, show_comparison
from koordpolicy.runtime.rollout.shadow import Comparison
from koordpolicy.runtime.rollout.state import Phase


class FollowedGate:
    """Lets a held revision decide as far as whoever publishes it says; any other decides at once.

    Nothing is judged here, and nothing written: of thousands of followers none asks the cluster how a rollout stands.
    """

    def __init__(self, reach: HeldReach, metrics: Metrics) -> None:
        self._reach = reach
        self._metrics = metrics
        self.comparison: Comparison | None = None

    async def admit(
        self, candidate: CandidateRevision, active: ActiveRevision
    ) -> AsyncGenerator[RolloutStage | Admission, None]:
        """See `Gate.admit`. What ends the wait for a held revision is the next one that is given."""
        if not candidate.revision.held:
            yield Admission(True)
            return
        differing = await asyncio.to_thread(changes, active.graph, candidate.graph)
        comparison = self.comparison = Comparison(active.graph, candidate.graph, differing.decisions)
        comparing = asyncio.create_task(compare_aside(comparison, self._metrics), name="rollout: compare")
        before: RolloutReach | None = None
        try:
            while True:
                held = self._reach.held
                if held is not None and held.is_of(candidate.revision) and held.reach != before:
                    reach = held.reach
                    if before is None or before.step != reach.step:
                        comparison.begin(reach.sample, reach.keep)
                    comparison.sample, before = reach.sample, reach
                    self._show(candidate.revision.name, reach.step)
                    yield _stage(comparison, reach)
                await self._reach.changed()
        finally:
            comparing.cancel()
            await asyncio.gather(comparing, return_exceptions=True)
            self.comparison = None
            self._metrics.clear("koordpolicy_rollout_info")

    async def reverted(self) -> None:
        """See `Gate.reverted`. Whoever leads the rollout ends it."""

    def _show(self, revision: str, step: str) -> None:
        self._metrics.only(
            "koordpolicy_rollout_info", 1, revision=revision, step=step, phase=str(Phase.PROGRESSING)
        )
        if self.comparison is not None:
            show_comparison(self._metrics, self.comparison)


def _stage(comparison: Comparison, reach: RolloutReach) -> RolloutStage:
    """What decides where: whoever decides about its node asks by the node's name and labels."""
    return RolloutStage(
        partial(goes_ahead, reach.parts) if reach.parts else None,
        observe=comparison.observe if reach.sample > 0.0 else None,
        observer=comparison if reach.sample > 0.0 else None,
        state=InstanceState.CANARY if reach.parts else InstanceState.SHADOW,
        message=f"in step `{reach.step}` of a rollout",
        reach=reach,
    )
