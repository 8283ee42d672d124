"""Publishes for the agents of all nodes the part of the policies that they need. The leader does."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.kube.errors import KubeError
from koordpolicy.language.facts.table import Component
from koordpolicy.model.policy_revision import revision_name
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.policies.live import ActiveRevision
from koordpolicy.runtime.policies.parts import kinds_for, part_of
from koordpolicy.runtime.policies.published import NotPublishable, PublishedName
from koordpolicy.runtime.policies.publishing import HeldTree, PolicyPublisher
from koordpolicy.source.revision import Revision

LOG: Final = logging.getLogger(__name__)

_REMEMBERED: Final = 20
"""As many revisions as have objects."""
_PATIENCE: Final = 60.0
"""Seconds in which whoever begins to lead may not know yet of a rollout that goes on: nodes that are ahead stay so."""


class AgentPolicies:
    """What agents follow is what this process decides by, and what a rollout holds back, as far as it lets it go."""

    def __init__(self, component: RunningComponent, namespace: str) -> None:
        self._component = component
        self._publisher = PolicyPublisher(component.cluster, namespace)
        self._changed = asyncio.Event()
        self._sent: tuple[object, ...] = ()
        self._patient = False
        self.published: PublishedName | None = None
        self.names: dict[str, str] = {}
        """The PolicyRevision objects of what was published, by what agents call its part where it has no commit."""
        self.trouble = ""

    async def lead(self) -> None:
        """Publish each revision that becomes active, and each stage of one that is held back, until cancelled."""
        live = self._component.live
        ends = [
            live.subscribe(lambda _: self._changed.set()),
            live.subscribe_stage(lambda _: self._changed.set()),
        ]
        self._sent, self._patient = (), True
        impatient = asyncio.get_running_loop().call_later(_PATIENCE, self._wait_no_longer)
        backoff, failures = self._component.backoff(), 0
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                if live.active is None:
                    continue
                if await self._publish(live.active):
                    failures = 0
                    continue
                failures += 1
                asyncio.get_running_loop().call_later(backoff.delay(failures), self._look_again)
        finally:
            impatient.cancel()
            for end in ends:
                end()

    def _wait_no_longer(self) -> None:
        self._patient = False
        self._look_again()

    def _look_again(self) -> None:
        self._sent = ()
        self._changed.set()

    async def _publish(self, active: ActiveRevision) -> bool:
        """Whether there is nothing to try again."""
        candidate, stage = self._component.live.candidate, self._component.live.stage
        reach = None if candidate is None or stage is None else stage.reach
        self._patient = self._patient and reach is None
        wanted = (active.revision, None if candidate is None else candidate.revision, reach)
        if wanted == self._sent:
            return True
        revision = active.revision
        try:
            files, above = await self._part(revision)
            held = None
            if candidate is not None and reach is not None:
                held = HeldTree(
                    *await self._part(candidate.revision), commit=candidate.revision.commit, reach=reach
                )
            self.published = await self._publisher.publish(
                files, revision.commit, above, held, patient=self._patient
            )
        except NotPublishable as error:
            self._failed(str(error))
        except KubeError as error:
            self._failed(f"policies are not published for agents: {error.message}")
            return False
        else:
            self.trouble = ""
            self._remember(self.published.digest, active.bundle, revision)
            if candidate is not None and held is not None and self.published.held is not None:
                self._remember(self.published.held.digest, candidate.bundle, candidate.revision)
        self._sent = wanted
        return True

    async def _part(self, revision: Revision) -> tuple[dict[str, str], dict[str, str]]:
        """What agents need of a revision, and of what lies above it."""
        kinds = kinds_for(Component.AGENT)
        files = await asyncio.to_thread(part_of, revision.files, kinds)
        return files, await asyncio.to_thread(part_of, revision.above, kinds)

    def _remember(self, digest: str, bundle: str, revision: Revision) -> None:
        called = f"sha256:{digest}"
        self.names.pop(called, None)
        self.names[called] = revision_name(bundle, revision.commit or revision.digest)
        while len(self.names) > _REMEMBERED:
            del self.names[next(iter(self.names))]

    def _failed(self, why: str) -> None:
        if self.trouble != why:
            LOG.warning("%s", why)
        self.trouble = why

    def status(self) -> Mapping[str, Any]:
        """What `/statusz` shows."""
        published = self.published
        return {
            "publishedForAgents": published
            and {
                "digest": published.digest,
                "commit": published.commit,
                "held": published.held
                and {"digest": published.held.digest, "step": published.held.reach.step},
                "trouble": self.trouble,
            }
        }
