"""The NodeSLO object of a node, as a koord-manager writes it, as a source of policies for its agent.

What the object says lies above the built-in pack, as `koordpolicy import` has it for the ConfigMap that the object is
made from: one table says which field means which decision.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.graph import Compiler, Layer
from koordpolicy.graph.exchange.importing import import_config
from koordpolicy.graph.exchange.refusing import files_of, without_refused
from koordpolicy.kube import resources
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.mirror import Mirror, ObjectChange
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.model.reading import ObjectError, mapping, sequence
from koordpolicy.model.slo_config import BURST, HOST_APPLICATIONS, QOS, SYSTEM, THRESHOLD
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from koordpolicy.runtime.policies.packs import BARE, OWN, bare_graph
from koordpolicy.runtime.watching import Watching, until_changed
from koordpolicy.source.revision import Revision, SourceTrouble, digest_of

LOG: Final = logging.getLogger(__name__)

_SECTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "resourceUsedThresholdWithBE": THRESHOLD,
        "resourceQOSStrategy": QOS,
        "cpuBurstStrategy": BURST,
        "systemStrategy": SYSTEM,
    }
)
_DIRECTORY: Final = "NodeSLO"


class NodeSLOSource:
    """Gives a revision for each state of the object. One that is deleted changes nothing: what it said last holds."""

    def __init__(self, cluster: Cluster, node: str, backoff: Backoff) -> None:
        self.origin = f"NodeSLO/{node}"
        self._node = node
        self._changed = asyncio.Event()
        self._mirror = Mirror(handlers=[self._noticed])
        self._watching = Watching(
            cluster,
            resources.NODE_SLOS,
            self._mirror,
            backoff,
            field_selector=f"metadata.name={node}",
            on_change=self._changed.set,
        )

    async def revisions(self) -> AsyncIterator[Revision | SourceTrouble]:
        """See `Source.revisions`."""
        watching = asyncio.create_task(self._watching.run(), name=f"follow {self.origin}")
        compiler = await asyncio.to_thread(pack_remembering)
        last: Revision | SourceTrouble | None = None
        try:
            while True:
                await until_changed(self._changed, [watching])
                self._changed.clear()
                item = await self._now(compiler)
                if item is not None and item != last:
                    last = item
                    yield item
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _now(self, compiler: Compiler) -> Revision | SourceTrouble | None:
        found = self._mirror.get(self._node)
        if found is None:
            trouble = self._watching.trouble
            if trouble is not None:
                return SourceTrouble(type(trouble).__name__, str(trouble))
            if not self._watching.settled.is_set():
                return None
            return SourceTrouble("NoNodeSLO", f"there is no NodeSLO object of node {self._node}")
        try:
            return await asyncio.to_thread(revision_of, found, compiler)
        except ObjectError as error:
            return SourceTrouble("UnreadableObject", f"NodeSLO {self._node}: {error}")

    def _noticed(self, change: ObjectChange) -> None:
        if change.new is not None:
            self._changed.set()


def revision_of(obj: Object, compiler: Compiler) -> Revision:
    """The policies that a NodeSLO object stands for: a bundle over the built-in pack.

    What cannot be taken over is left out, and told of in the log. Raises ObjectError.
    """
    path, text = BARE
    documents = {path: text}
    graph = bare_graph(compiler)
    imported = without_refused(
        import_config(configuration_of(obj), graph),
        lambda found: compiler.compile(Layer(OWN, {path: text, **files_of(found)})),
    )
    for row in imported.table:
        if row.reason:
            LOG.warning("NodeSLO: %s is left out: %s", row.source, row.reason)
    for number, document in enumerate(imported.documents):
        documents[f"{_DIRECTORY}/{number}.yaml"] = json.dumps(document, indent=1)
    return Revision(documents, digest_of(documents))


def configuration_of(obj: Object) -> dict[str, str]:
    """The documents of `slo-controller-config` that say for all nodes what the object says for its own.

    Raises ObjectError for what is not shaped as such an object.
    """
    spec = mapping(obj, "spec")
    said: dict[str, Any] = {
        document: {"clusterStrategy": dict(mapping(spec, section, "spec"))}
        for section, document in _SECTIONS.items()
        if spec.get(section) is not None
    }
    said.setdefault(THRESHOLD, {"clusterStrategy": {"enable": False}})
    if spec.get("hostApplications"):
        said[HOST_APPLICATIONS] = {"applications": list(sequence(spec, "hostApplications", "spec"))}
    return {document: json.dumps(strategy) for document, strategy in said.items()}
