"""A source of policies with a live ConfigMap `slo-controller-config` above them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.model.reading import ObjectError, texts
from koordpolicy.model.slo_config import CONFIG_MAP
from koordpolicy.runtime.policies.config_map import FollowedConfigMap
from koordpolicy.runtime.policies.live_config import Check, ConfigReader, LiveConfig
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from koordpolicy.runtime.policies.packs import bare_graph
from koordpolicy.runtime.watching import until_changed
from koordpolicy.source.revision import Revision, Source, SourceTrouble

LOG: Final = logging.getLogger(__name__)

Told = Callable[[Object | None, LiveConfig], None]
"""Hears of each version of the ConfigMap, None where there is none, and of what it says."""


@dataclass(slots=True)
class _Below:
    """What the source below has given: its newest revision, and whether it has trouble since."""

    revision: Revision | None = None
    trouble: SourceTrouble | None = None


class ConfigSource:
    """Gives the revisions of a source, and with each what the ConfigMap of a namespace says above it.

    Nothing is given before it is known what the ConfigMap says, or that there is none: policies would decide as if there were none.
    A ConfigMap that is deleted says nothing any more, at once; Koordinator goes on by it until it is restarted.
    `before` is what it said by the kept copy of the last good revision: what holds where its first version is refused.
    """

    def __init__(
        self,
        below: Source,
        cluster: Cluster,
        namespace: str,
        backoff: Backoff,
        *,
        check: Check,
        told: Told,
        before: Mapping[str, str] | None = None,
    ) -> None:
        self.origin = below.origin
        self._map = FollowedConfigMap(cluster, namespace, CONFIG_MAP, backoff)
        self.place = self._map.place
        self._source = below
        self._check = check
        self._told = told
        self._config = LiveConfig(dict(before or {}))
        self._version: str | None = None
        self._below = _Below()
        self._given: Revision | None = None
        self._trouble: SourceTrouble | None = None
        """What was given last, and the trouble that was given since."""

    def data(self) -> Mapping[str, str]:
        """The documents of the ConfigMap as it stands, good or not; none where there is none."""
        found = self._map.get()
        try:
            return {} if found is None else texts(found, "data")
        except ObjectError:
            return {}

    async def revisions(self) -> AsyncGenerator[Revision | SourceTrouble, None]:
        """See `Source.revisions`."""
        changed = self._map.changed
        async with self._map.followed() as watching:
            feeding = asyncio.create_task(self._feed(), name=f"follow {self.origin}")
            try:
                compiler = await asyncio.to_thread(pack_remembering)
                pack = await asyncio.to_thread(bare_graph, compiler)
                reader = ConfigReader(pack, self._check, self.place)
                while True:
                    await until_changed(changed, [watching, feeding])
                    changed.clear()
                    if not self._map.synced:
                        for trouble in self._unknown():
                            yield trouble
                        continue
                    await self._read(reader)
                    for item in self._now():
                        yield item
            finally:
                feeding.cancel()
                await asyncio.gather(feeding, return_exceptions=True)

    async def _feed(self) -> None:
        async for item in self._source.revisions():
            if isinstance(item, SourceTrouble):
                self._below.trouble = item
            else:
                self._below = _Below(item)
            self._map.changed.set()

    def _unknown(self) -> list[SourceTrouble]:
        """Why there is nothing to give before the ConfigMap could be read; once."""
        failed = self._map.trouble
        if failed is None:
            return []
        trouble = SourceTrouble(type(failed).__name__, f"{self.place}: {failed.message}")
        if trouble == self._trouble:
            return []
        self._trouble = trouble
        return [trouble]

    async def _read(self, reader: ConfigReader) -> None:
        """See what the ConfigMap says, where it is another than last time."""
        found = self._map.get()
        version = "" if found is None else str(found["metadata"].get("resourceVersion", ""))
        if version == self._version:
            return
        self._version = version
        config = LiveConfig()
        if found is not None:
            try:
                data = texts(found, "data")
            except ObjectError as error:  # no API server gives such a one
                LOG.warning("%s is left as it was: %s", self.place, error)
                return
            config = await asyncio.to_thread(reader.read, data, self._config.files)
        self._config = config
        self._told(found, config)

    def _now(self) -> list[Revision | SourceTrouble]:
        """What is to be given now: the newest revision with what lies above it, and the trouble that stands after it."""
        items: list[Revision | SourceTrouble] = []
        below = self._below
        if below.revision is not None:
            revision = replace(below.revision, above=self._config.files)
            over = self._trouble is not None and below.trouble is None
            if revision != self._given or over:
                self._given, self._trouble = revision, None
                items.append(revision)
        if below.trouble is not None and below.trouble != self._trouble:
            self._trouble = below.trouble
            items.append(below.trouble)
        return items
