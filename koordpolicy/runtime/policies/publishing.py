"""Publishes policies in the cluster for thousands that follow them: see `published`."""

import base64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from koordpolicy.kube.errors import AlreadyExists, NotFound
from koordpolicy.kube.port import Cluster, MergePatch
from koordpolicy.kube.resources import CONFIG_MAPS
from koordpolicy.runtime.policies.gating import RolloutReach
from koordpolicy.runtime.policies.held import HeldRevision, held_text
from koordpolicy.runtime.policies.published import (
    HELD,
    LABEL,
    NOTHING,
    POINTER,
    POLICIES,
    NotAsNamed,
    PublishedName,
    object_name,
    packed_files,
    pointed_at,
)
from koordpolicy.source.revision import digest_of

_KEPT: Final = 3
"""Revisions that stay for followers that are slow."""


@dataclass(frozen=True, slots=True)
class HeldTree:
    """What is to be published of a revision that a rollout holds back: its files, what lies above them, how far it may go."""

    files: Mapping[str, str]
    above: Mapping[str, str]
    commit: str
    reach: RolloutReach


class PolicyPublisher:
    """Keeps what is published, in one namespace. One process does."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    async def publish(
        self,
        files: Mapping[str, str],
        commit: str,
        above: Mapping[str, str] = NOTHING,
        held: HeldTree | None = None,
        *,
        patient: bool = False,
    ) -> PublishedName:
        """Make a tree, with what lies above it, the newest; nothing is written where it is.

        `held` is what a rollout holds back beside it. Who is `patient` and knows of none leaves what the pointer holds beside the
        same revision. Raises KubeError, NotPublishable.
        """
        name = PublishedName(digest_of({**files, **above}), commit)
        if held is not None:
            digest = digest_of({**held.files, **held.above})
            if digest != name.digest:  # else followers have nothing to take
                name = replace(name, held=HeldRevision(digest, held.commit, held.reach))
        found = await self._pointer()
        if found is not None and patient and held is None and replace(found, held=None) == name:
            return found
        if found == name:
            return name
        await self._hold(name.digest, files, above)
        if held is not None and name.held is not None:
            await self._hold(name.held.digest, held.files, held.above)
        data = {
            "digest": name.digest,
            "commit": commit,
            HELD: None if name.held is None else held_text(name.held),
        }
        if found is None:
            pointer = {
                "metadata": {"name": POINTER},
                "data": {key: value for key, value in data.items() if value is not None},
            }
            try:
                await self._cluster.create(CONFIG_MAPS, pointer, namespace=self._namespace)
            except AlreadyExists:
                found = PublishedName("")
        if found is not None:
            await self._cluster.patch(
                CONFIG_MAPS, POINTER, MergePatch({"data": data}), namespace=self._namespace
            )
        await self._remove_old(name)
        return name

    async def _hold(self, digest: str, files: Mapping[str, str], above: Mapping[str, str]) -> None:
        """Make the object of a content where there is none. Raises KubeError, NotPublishable."""
        packed = packed_files(files, above)
        body = {
            "metadata": {"name": object_name(digest), "labels": {LABEL: "agent"}},
            "immutable": True,
            "data": {"digest": digest},
            "binaryData": {POLICIES: base64.b64encode(packed).decode("ascii")},
        }
        with suppress(AlreadyExists):  # its content is what its name says: it was published before
            await self._cluster.create(CONFIG_MAPS, body, namespace=self._namespace)

    async def _pointer(self) -> PublishedName | None:
        try:
            return pointed_at(await self._cluster.get(CONFIG_MAPS, POINTER, namespace=self._namespace))
        except NotFound:
            return None
        except NotAsNamed:
            return PublishedName("")  # whatever somebody wrote there is replaced

    async def _remove_old(self, named: PublishedName) -> None:
        wanted = {object_name(named.digest), *([object_name(named.held.digest)] if named.held else ())}
        page = await self._cluster.list(
            CONFIG_MAPS, namespace=self._namespace, label_selector=f"{LABEL}=agent"
        )
        old = [one for one in page.items if one["metadata"]["name"] not in wanted]
        old.sort(key=lambda one: str(one["metadata"].get("creationTimestamp", "")))
        for one in old[: max(len(old) - _KEPT, 0)]:
            try:
                await self._cluster.delete(CONFIG_MAPS, one["metadata"]["name"], namespace=self._namespace)
            except NotFound:
                continue
