"""Writes the NodeMetric object of this node, at the times that policy says."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from koordpolicy.agent.reports.devices import NONE_IN_USE, DevicesInUse
from koordpolicy.agent.reports.node_metric import status_of
from koordpolicy.kube.errors import Conflict, KubeError, NotFound
from koordpolicy.kube.port import Cluster, MergePatch
from koordpolicy.kube.resources import NODE_METRICS
from koordpolicy.model.agent_runs import AgentRuns, runs_text
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.protocol import DRY_RUN_ANNOTATION, RUNS_ANNOTATION
from koordpolicy.model.reading import Amounts

LOG: Final = logging.getLogger(__name__)

_ATTEMPTS: Final = 3
_NO_OBJECT: Final = "there is no NodeMetric object of this node: no manager has made one"


class NodeMetricReporter:
    """Reports for one node. `runs` is what is said of the policies that are run."""

    def __init__(self, cluster: Cluster, node: str, runs: Callable[[], AgentRuns]) -> None:
        self._cluster = cluster
        self._node = node
        self._runs = runs
        self._told = ""
        self.last: NodeMetric | None = None
        """What was reported last."""
        self.zones: Mapping[int, tuple[Amounts, Amounts | None]] = {}
        """What was reported last of NUMA zones, and of the system's part of them."""
        self.trouble = ""
        """Why the last report was not written; empty when it was."""

    async def report(
        self,
        metric: NodeMetric,
        zones: Mapping[int, tuple[Amounts, Amounts | None]],
        devices: DevicesInUse = NONE_IN_USE,
        best_effort_cpu: int | None = None,
    ) -> bool:
        """Write a report; whether it was written. Without such an object nobody wants one."""
        self.last, self.zones = metric, zones
        try:
            await self._write(status_of(metric, zones, devices, best_effort_cpu))
            await self.tell()
        except NotFound:
            self.trouble = _NO_OBJECT
        except KubeError as error:
            self.trouble = error.message
            LOG.warning("the report of the node was not written: %s", error)
        else:
            self.trouble = ""
        return not self.trouble

    async def tell(self) -> None:
        """Say which policies are run, in an annotation of the object, when that has changed. Raises KubeError.

        A dry run that was killed may have left its mark, which goes then.
        """
        said = runs_text(self._runs())
        if said != self._told:
            await self._annotate({RUNS_ANNOTATION: said, DRY_RUN_ANNOTATION: None})
            self._told = said

    async def mark_dry_run(self) -> None:
        """Say which policies a dry run asks, when that has changed; nothing else of the object is touched.

        Whether it can be said stands in `trouble`: a dry run goes on without.
        """
        said = runs_text(self._runs())
        if said == self._told:
            return
        try:
            await self._annotate({DRY_RUN_ANNOTATION: said})
        except NotFound:
            self.trouble = _NO_OBJECT
        except KubeError as error:
            self.trouble = f"the dry run cannot be told of: {error.message}"
        else:
            self._told, self.trouble = said, ""

    async def unmark_dry_run(self) -> None:
        """Take back what was said of a dry run. Raises KubeError."""
        if self._told:
            with suppress(NotFound):
                await self._annotate({DRY_RUN_ANNOTATION: None})
            self._told = ""

    async def _annotate(self, annotations: Mapping[str, str | None]) -> None:
        patch = MergePatch({"metadata": {"annotations": annotations}})
        await self._cluster.patch(NODE_METRICS, self._node, patch)

    async def _write(self, status: Mapping[str, Any]) -> None:
        """Replace the status: nothing of an earlier report stays in lists or maps. Raises KubeError."""
        for attempt in range(_ATTEMPTS):
            found = await self._cluster.get(NODE_METRICS, self._node)
            try:
                await self._cluster.update(
                    NODE_METRICS, {**found, "status": dict(status)}, subresource="status"
                )
            except Conflict:
                if attempt + 1 == _ATTEMPTS:
                    raise
            else:
                return
