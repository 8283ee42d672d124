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
from koordpolicy.runtime.policies.published import NotPublishable, PolicyPublisher, PublishedName

LOG: Final = logging.getLogger(__name__)

_REMEMBERED: Final = 20
"""As many revisions as have objects."""


class AgentPolicies:
    """What agents follow is what this process decides by, once a rollout of it is over."""

    def __init__(self, component: RunningComponent, namespace: str) -> None:
        self._component = component
        self._publisher = PolicyPublisher(component.cluster, namespace)
        self._changed = asyncio.Event()
        self.published: PublishedName | None = None
        self.names: dict[str, str] = {}
        """The PolicyRevision objects of what was published, by what agents call its part where it has no commit."""
        self.trouble = ""

    async def lead(self) -> None:
        """Publish each revision that becomes active, until cancelled."""
        end = self._component.live.subscribe(lambda _: self._changed.set())
        backoff, failures = self._component.backoff(), 0
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                active = self._component.live.active
                if active is not None and not await self._publish(active):
                    failures += 1
                    asyncio.get_running_loop().call_later(backoff.delay(failures), self._changed.set)
                else:
                    failures = 0
        finally:
            end()

    async def _publish(self, active: ActiveRevision) -> bool:
        """Whether there is nothing to try again."""
        revision, kinds = active.revision, kinds_for(Component.AGENT)
        files = await asyncio.to_thread(part_of, revision.files, kinds)
        above = await asyncio.to_thread(part_of, revision.above, kinds)
        try:
            self.published = await self._publisher.publish(files, revision.commit, above)
        except NotPublishable as error:
            self._failed(str(error))
        except KubeError as error:
            self._failed(f"policies are not published for agents: {error.message}")
            return False
        else:
            self.trouble = ""
            self._remember(f"sha256:{self.published.digest}", active)
        return True

    def _remember(self, called: str, active: ActiveRevision) -> None:
        revision = active.revision
        self.names.pop(called, None)
        self.names[called] = revision_name(active.bundle, revision.commit or revision.digest)
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
            and {"digest": published.digest, "commit": published.commit, "trouble": self.trouble}
        }
