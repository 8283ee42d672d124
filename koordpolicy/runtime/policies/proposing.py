"""What would become of the policy objects in a cluster if some of them were others: tried, and never taken."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.graph import Layer
from koordpolicy.runtime.policies.compiling import BackgroundCompiler, Scrutiny
from koordpolicy.runtime.policies.objects import ClusterSource
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from koordpolicy.runtime.policies.packs import OWN, find_pack
from koordpolicy.runtime.policies.proposal import Proposal
from koordpolicy.runtime.policies.revisions import Reason, RejectedRevision, errors_of, summary_of
from koordpolicy.runtime.trial.verdict import TrialRequest, TrialsLost
from koordpolicy.source.revision import Revision, digest_of

if TYPE_CHECKING:
    from koordpolicy.runtime.trial.client import Trials


class LivePolicyObjects:
    """Those that a source follows. They are tried in the process of trials, where there is one."""

    def __init__(
        self, source: ClusterSource, trials: "Trials | None", max_cost: int, now: Callable[[], int]
    ) -> None:
        self._source = source
        self._trials = trials
        self._aside = (
            None
            if trials
            else BackgroundCompiler(find_pack, now, scrutiny=Scrutiny.CHECKS, max_cost=max_cost)
        )

    def texts(self) -> Mapping[str, str]:
        """See `PolicyObjects.texts`."""
        return self._source.texts()

    async def propose(self, files: Mapping[str, str]) -> Proposal:
        """See `PolicyObjects.propose`."""
        ordered = dict(sorted(files.items()))
        if self._trials is not None:
            return await asyncio.to_thread(tried, self._trials, ordered)
        assert self._aside is not None
        outcome = await self._aside.compile(Revision(ordered, digest_of(ordered), ""))
        if isinstance(outcome, RejectedRevision):
            return Proposal(outcome.reason, outcome.message, outcome.found, outcome.sources)
        return Proposal(None, "", outcome.found, outcome.sources)


def checked_by(trials: "Trials | None", max_cost: int) -> Callable[[Mapping[str, str]], Proposal]:
    """What would become of trees: by a trial where they are tried, else compiled here; waits for that."""
    if trials is not None:
        return partial(tried, trials)
    compiler = pack_remembering(max_cost)

    def compiled(files: Mapping[str, str]) -> Proposal:
        compilation = compiler.compile(Layer(OWN, files))
        errors = errors_of(compilation.found)
        reason = Reason.COMPILE_FAILED if compilation.graph is None else None
        return Proposal(reason, summary_of(errors) if errors else "", compilation.found, compilation.sources)

    return compiled


def tried(trials: "Trials", files: Mapping[str, str]) -> Proposal:
    """What would become of a tree, by a trial of it; waits for that."""
    try:
        verdict = trials.attempt(TrialRequest(files, (), tests=False))
    except TrialsLost as lost:
        message = f"the process that tries revisions is gone ({lost})"
        return Proposal(Reason.INTERNAL_ERROR, message, Diagnostics(), files)
    return Proposal(verdict.reason, verdict.message, verdict.found, {**verdict.packs, **files})
