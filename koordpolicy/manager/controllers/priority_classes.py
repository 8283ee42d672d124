"""PriorityClasses of the bands: made, mended and taken away as policies say, those alone that the manager has made.

API servers let nobody change what a class says: one that says something else is deleted and made anew. Pods keep the priority
that they got from it.
"""

import logging
from collections.abc import Callable
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import AlreadyExists, Conflict, KubeError, NotFound, Rejected
from koordpolicy.kube.listing import every_object
from koordpolicy.kube.port import Cluster, Object, Preconditions
from koordpolicy.kube.resources import PRIORITY_CLASSES
from koordpolicy.manager.native.keeping import KEEPER, KEPT_BY
from koordpolicy.runtime.reconciling import ReconcileLoop

LOG: Final = logging.getLogger(__name__)

LOOK: Final = 10.0
"""Seconds between two looks at what others may have changed."""
_BAND: Final = "koordpolicy.io/band"
_NONE: Final = "PriorityClasses cannot be kept"
_PREEMPTS: Final = "PreemptLowerPriority"
"""What a class says that says nothing of preemption."""


class PriorityClasses:
    """The classes of the bands of the graph that `policies` gives."""

    def __init__(self, cluster: Cluster, policies: Callable[[], RuleGraph], backoff: Backoff) -> None:
        self.written = 0
        self.troubles: dict[str, str] = {}
        """Why a class is not as its band says, by name; under an empty name, why none can be kept."""
        self._cluster = cluster
        self._policies = policies
        self._loop = ReconcileLoop(self._reconcile, backoff)

    def again(self) -> None:
        """Other policies decide."""
        self._loop.trigger()

    async def run(self) -> None:
        """Keep them, until cancelled."""
        await self._loop.run()

    async def _reconcile(self) -> float | None:
        try:
            await self.keep()
        except KubeError as error:
            self._tell({"": str(error)})
            return None
        return LOOK

    async def keep(self) -> None:
        """Write what differs. Raises KubeError."""
        wanted, troubles = wanted_classes(self._policies())
        listed = await every_object(self._cluster, PRIORITY_CLASSES)
        there = {one["metadata"]["name"]: one for one in listed}
        for name, one in wanted.items():
            try:
                problem = await self._put(one, there.get(name))
            except (AlreadyExists, Conflict):
                problem = "it was changed while it was looked at"  # the next look sees it
            except Rejected as error:
                problem = str(error)
            if problem:
                troubles[name] = problem
        for name, found in there.items():
            if name not in wanted and _is_ours(found):
                await self._delete(found)
        self._tell(troubles)

    async def _put(self, wanted: Object, found: Object | None) -> str:
        """Why the class cannot be as it should be; empty where it is, or is now."""
        if found is not None:
            if _says(found) == _says(wanted):
                return ""
            if not _is_ours(found):
                value, policy = _says(found)
                return (
                    f"there is one that the manager has not made, with value {value} and {policy}; delete it to have"
                    " it kept, or say the same in policies"
                )
            await self._delete(found)
        await self._cluster.create(PRIORITY_CLASSES, wanted)
        self.written += 1
        return ""

    async def _delete(self, found: Object) -> None:
        """This very object: one that somebody has put in its place stays."""
        metadata = found["metadata"]
        this = Preconditions(metadata.get("uid", ""), metadata.get("resourceVersion", ""))
        try:
            await self._cluster.delete(PRIORITY_CLASSES, metadata["name"], preconditions=this)
        except (NotFound, Conflict):
            return
        self.written += 1

    def _tell(self, troubles: dict[str, str]) -> None:
        for name, problem in troubles.items():
            if self.troubles.get(name) != problem:
                what = f"the PriorityClass `{name}` is not as its band says" if name else _NONE
                LOG.warning("%s: %s", what, problem)
        self.troubles = troubles


def wanted_classes(graph: RuleGraph) -> tuple[dict[str, Object], dict[str, str]]:
    """The classes of all bands that say a value, by name; and what is wrong with others."""
    wanted: dict[str, Object] = {}
    troubles: dict[str, str] = {}
    for band, said in graph.classes.bands.items():
        value = said.get("priorityClass.value")
        if value is None or not said.get("priorityClass.kept", True):
            continue
        name = str(said.get("priorityClass.name", band))
        if name in wanted:
            other = wanted[name]["metadata"]["labels"][_BAND]
            troubles[name] = f"the bands `{other}` and `{band}` both say it; that of `{other}` holds"
            continue
        metadata = {"name": name, "labels": {KEPT_BY: KEEPER, _BAND: band}}
        wanted[name] = {
            "metadata": metadata,
            "value": value,
            "preemptionPolicy": said.get("priorityClass.preemptionPolicy", _PREEMPTS),
            "globalDefault": False,
            "description": f"Pods of the band `{band}`, as policies say.",
        }
    return wanted, troubles


def _says(one: Object) -> tuple[Any, Any]:
    return one.get("value"), one.get("preemptionPolicy") or _PREEMPTS


def _is_ours(one: Object) -> bool:
    return (one["metadata"].get("labels") or {}).get(KEPT_BY) == KEEPER
