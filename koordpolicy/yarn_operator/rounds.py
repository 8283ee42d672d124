"""Rounds over the nodes of a cluster: what is written to them and to the ResourceManager, and what is told of both."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.algorithms.batch_sharing import BatchAmounts
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.errors import Conflict, KubeError, NotFound
from koordpolicy.kube.port import MergePatch
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.node import Node
from koordpolicy.model.protocol import THIRD_PARTY_ALLOCATIONS
from koordpolicy.runtime.clock import monotonic, now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.yarn.nodes import NodeManager
from koordpolicy.yarn.resource_manager import (
    ResourceManager,
    ResourceManagerAccess,
    ResourceManagerError,
    connect_resource_manager,
)
from koordpolicy.yarn_operator.plans import (
    AMBIGUOUS,
    KIND,
    OFFERS,
    YARNNodes,
    YARNPlan,
    is_id,
    pace_of,
)
from koordpolicy.yarn_operator.watched import PolicyReads

LOG: Final = logging.getLogger(__name__)

_FAILED: Final = "YARNNotUpdated"
AWAY: Final = "YARNUnreachable"
BACK: Final = "YARNReachable"
"""Reasons of Events."""
_GAUGES: Final = ("koordpolicy_yarn_reachable", "koordpolicy_yarn_nodes", "koordpolicy_yarn_resources")
_AT_ONCE: Final = 20
"""Nodes that are looked at before others get their turn."""


class YARNSharing:
    """Runs on the operator that leads. `lease` is the object that Events about the ResourceManager speak of, by namespace and name."""

    def __init__(
        self,
        component: RunningComponent,
        objects: ClusterObjects,
        access: ResourceManagerAccess,
        reads: PolicyReads,
        lease: tuple[str, str],
    ) -> None:
        self._component = component
        self._objects = objects
        self._access = access
        self._reads = reads
        self._lease = lease
        self._backoff = component.backoff(initial=1.0, longest=60.0)
        self.controller = YARNNodes(component.live.graph_for, now_ns, monotonic, self._decided)
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._problem: str | None = None
        """Why the ResourceManager cannot be asked: empty where it can, None while that is not known."""
        self._shared = 0

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows."""
        return {"yarn": {"nodes": self._shared, "problem": self._problem or ""}}

    async def lead(self) -> None:
        """Keep what YARN is offered as policies want it, until cancelled."""
        self.controller.begin()
        try:
            await self._keep_sharing()
        finally:
            # Whoever leads next tells from now on.
            self._shared, self._problem = 0, None
            for name in _GAUGES:
                self._component.process.metrics.clear(name)

    async def _keep_sharing(self) -> None:
        away = 0
        async with connect_resource_manager(self._access, self._heard) as manager:
            while True:
                await self._reads.known()
                interval, patience = pace_of(self._component.live.graph)
                try:
                    running = await manager.node_managers(patience)
                except ResourceManagerError as error:
                    # Who cannot be asked goes on as before: nothing more is offered, and nothing given back to pods.
                    away += 1
                    self._is_away(str(error))
                    await asyncio.sleep(max(interval, self._backoff.delay(away)))
                    continue
                away = 0
                self._is_back()
                await self.round(manager, running, patience)
                await asyncio.sleep(interval)

    async def round(
        self, manager: ResourceManager, running: Mapping[str, NodeManager], patience: float
    ) -> None:
        """Look at each node once. What fails at one of them is told, and tried again later."""
        sums = {name: [0, 0] for name in ("offered", "used", "claimed")}
        self._shared = 0
        taken: dict[str, str] = {}
        for at, name in enumerate(sorted(self._objects.nodes)):
            if at % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
            node = self._objects.nodes.get(name)
            if node is not None and not self._reads.knows(node):
                return  # another revision decides since the round began: the next one waits for what that reads
            plan = self._plan(name, running, taken)
            if plan is None:
                continue
            self._shared += 1
            self._tell(plan)
            if plan.sharing is not None:
                for key, one in (
                    ("offered", plan.sharing.offered),
                    ("used", plan.sharing.used),
                    ("claimed", plan.sharing.claim),
                ):
                    sums[key][0] += one.cpu
                    sums[key][1] += one.memory
            if self._not_before.get(name, 0.0) <= monotonic():
                await self._carry_out(manager, plan, patience)
        for gone in [name for name in self._failures if name not in self._objects.nodes]:
            self._forget(gone)
        self._show(sums)

    def _plan(self, name: str, running: Mapping[str, NodeManager], taken: dict[str, str]) -> YARNPlan | None:
        sight = self._objects.sight(name)
        if sight is None:
            self._forget(name)
            return None
        try:
            manager = self.controller.manager_of(sight)
            if manager and not is_id(manager):
                return YARNPlan(
                    name, manager, problem=f"`{manager}` is no host:port of a NodeManager", reason=AMBIGUOUS
                )
            if manager and taken.setdefault(manager, name) != name:
                text = f"the NodeManager `{manager}` is that of node {taken[manager]}, too: only that one shares with it"
                return YARNPlan(name, manager, problem=text, reason=AMBIGUOUS)
            return self.controller.decide(sight, manager, running)
        except CelError as error:
            return YARNPlan(name, problem=str(error))

    async def _carry_out(self, manager: ResourceManager, plan: YARNPlan, patience: float) -> None:
        """Write the claim, then the offer. An offer that needs a claim follows when pods have been seen to lose it."""
        try:
            if plan.step.claim is not None:
                await self._write(plan, plan.step.claim)
            if plan.offer is not None and plan.step.offer is not None:
                self.controller.asked(plan.node, plan.step.offer)
                await manager.offer(plan.manager, plan.offer, plan.grace, patience)
                self.controller.answered(plan.node)
        except (Conflict, NotFound):
            return  # what we know is old: the next round knows more
        except (KubeError, ResourceManagerError) as error:
            failures = self._failures[plan.node] = self._failures.get(plan.node, 0) + 1
            self._not_before[plan.node] = monotonic() + self._backoff.delay(failures)
            self._event(plan.node, _FAILED, str(error))
            LOG.log(
                logging.WARNING if failures == 1 else logging.DEBUG,
                "what YARN is offered of node %s was not written: %s",
                plan.node,
                error,
            )
        else:
            self._failures.pop(plan.node, None)
            self._not_before.pop(plan.node, None)

    async def _write(self, plan: YARNPlan, claim: BatchAmounts) -> None:
        node = self._objects.nodes.get(plan.node)
        if node is None:
            return
        # Others may write into the same annotation: nothing of theirs is lost.
        metadata = {
            "resourceVersion": node.resource_version,
            "annotations": {THIRD_PARTY_ALLOCATIONS: plan.annotation},
        }
        await self._component.cluster.patch(resources.NODES, plan.node, MergePatch({"metadata": metadata}))
        self.controller.claimed(plan.node, claim)

    def _forget(self, name: str) -> None:
        self.controller.forget(name)
        self._failures.pop(name, None)
        self._not_before.pop(name, None)

    # --- what is told ------------------------------------------------------------------------------

    def _decided(self, graph: RuleGraph, roots: Mapping[str, Any]) -> None:
        """Write some of the decisions down."""
        log = self._component.log
        if log is None:
            return
        for name in (f"{KIND}.{field}" for field in OFFERS):
            if log.wants(name):
                about = {"node": str(roots["node"]["name"])}
                log.record(graph.ask(name, **roots), about, self._component.revision_of(graph.digest))

    def _heard(self, what: str, status: int) -> None:
        result = str(status) if status else "unanswered"
        self._component.process.metrics.add("koordpolicy_yarn_requests_total", request=what, result=result)

    def _show(self, sums: Mapping[str, list[int]]) -> None:
        metrics = self._component.process.metrics
        for what, (cpu, memory) in sums.items():
            metrics.set("koordpolicy_yarn_resources", cpu / 1000, what=what, resource="cpu")
            metrics.set("koordpolicy_yarn_resources", memory, what=what, resource="memory")
        metrics.set("koordpolicy_yarn_nodes", self._shared)

    def _tell(self, plan: YARNPlan) -> None:
        component = self._component
        node = self._objects.nodes.get(plan.node)
        graph = component.live.graph if node is None else component.live.graph_for(node.name, node.labels)
        component.counts.add(KIND, component.revision_of(graph.digest), failed=plan.failed)
        if plan.failed:
            component.troubles.add(KIND, graph.digest, plan.problem, example=f"node {plan.node}")
        elif plan.problem:
            self._event(plan.node, plan.reason, plan.problem)

    def _event(self, name: str, reason: str, text: str) -> None:
        node = self._objects.nodes.get(name)
        if node is not None:
            self._component.recorder.record(_about(node), reason, text, type="Warning", action="ShareBatch")

    def _is_away(self, problem: str) -> None:
        self._component.process.metrics.set("koordpolicy_yarn_reachable", 0)
        if not self._problem:
            LOG.warning("YARN's ResourceManager cannot be asked: %s", problem)
        # As often as it is so: API servers forget an Event that nobody repeats.
        self._lease_event(AWAY, problem, warning=True)
        self._problem = problem

    def _is_back(self) -> None:
        self._component.process.metrics.set("koordpolicy_yarn_reachable", 1)
        if self._problem != "":
            # Also where another operator, which led before, may have told that it does not.
            LOG.info("YARN's ResourceManager answers")
            self._lease_event(BACK, "the ResourceManager answers", warning=False)
        self._problem = ""

    def _lease_event(self, reason: str, text: str, *, warning: bool) -> None:
        namespace, name = self._lease
        regarding = {
            "apiVersion": resources.LEASES.api_version,
            "kind": resources.LEASES.kind,
            "metadata": {"namespace": namespace, "name": name},
        }
        self._component.recorder.record(
            regarding, reason, text, type="Warning" if warning else "Normal", action="ShareBatch"
        )


def _about(node: Node) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "uid": node.name}}
