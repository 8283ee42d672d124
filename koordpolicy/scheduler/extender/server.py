"""The extender over HTTP: the four calls that kube-scheduler makes, each a POST of JSON.

Every replica answers: nothing is decided here that only one may decide. What goes wrong is told in the answer
where it has a place for that (filter, bind), and by the status of the response otherwise.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, Final

from koordpolicy.kube import Cluster, KubeError, Object
from koordpolicy.kube.resources import PODS
from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.model.pod_volumes import read_pod_volumes
from koordpolicy.model.reading import ObjectError
from koordpolicy.runtime.clock import monotonic
from koordpolicy.runtime.http import JSON, Request, Response, Route
from koordpolicy.runtime.http.authentication import Protection
from koordpolicy.runtime.http.json_bodies import read_json, write_json
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.scheduler.cycle import CycleProblem
from koordpolicy.scheduler.decision_log import PlacementLog
from koordpolicy.scheduler.extender.extender import Extender
from koordpolicy.scheduler.extender.turns import PATIENCE, Underway
from koordpolicy.scheduler.extender.wire import (
    BindingArgs,
    error_json,
    passed_json,
    priorities_json,
    read_args,
    read_binding_args,
    read_preemption_args,
    room_json,
)
from koordpolicy.scheduler.scheduler import Scheduler

LOG: Final = logging.getLogger(__name__)

MEMORY: Final = 512 * 2**20
"""Bytes that a call may take when it is read: a filter call may carry every node of a cluster as an object."""
_PACKED: Final = 4
"""Objects of Kubernetes take at least so many bytes of memory for each byte of JSON."""

_SHORT: Final = 1_000_000
"""Bytes of a body above which calls are answered one after another: memory is limited for each, not for all."""

NOT_READY: Final = "the extender has not read the cluster yet"

Call = Callable[[Any], Awaitable[Any]]
Known = Callable[[str, str], Object | None]


class ExtenderServer:
    """The routes of the four calls, by a scheduler that hears of a cluster.

    `known` gives a pod as last heard of, by namespace and name. Nothing is answered before `ready` is set. A
    pod's binding is waited for `patience` seconds at most before the nodes of the next pod are filtered. A call takes `memory` bytes at most when
    it is read.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        known: Known,
        cluster: Cluster,
        metrics: Metrics,
        patience: float = PATIENCE,
        memory: int = MEMORY,
        log: PlacementLog | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._known = known
        self._extender = Extender(scheduler)
        self._cluster = cluster
        self._metrics = metrics
        self._underway = Underway(patience)
        self._memory = memory
        self._log = log
        self._one_large = asyncio.Lock()
        self.ready = False

    def heard(self) -> None:
        """The scheduler has heard something of the cluster."""
        cache = self._scheduler.cache
        self._underway.look(lambda pod: cache.node_of(pod) is not None)

    def routes(self) -> tuple[Route, ...]:
        """What is served."""
        return (
            self._route("filter", self._filter, tells=True),
            self._route("prioritize", self._prioritize, tells=False),
            self._route("preempt", self._room, tells=False),
            self._route("bind", self._bind, tells=True),
        )

    async def _filter(self, body: Any) -> Any:
        args = read_args(body)
        await self._underway.settled()
        passed = self._extender.filter(args)
        if self._log is not None:
            refused = (*passed.failed.values(), *passed.unresolvable.values())
            cycle = self._scheduler.framework.cycle(args.pod)
            self._log.answered(cycle, len(args.names), passed.names, refused)
        if len(passed.names) == 1:
            self._chooses(args.pod)  # the only node is taken without a call for scores
        return passed_json(args, passed)

    async def _prioritize(self, body: Any) -> Any:
        args = read_args(body)
        scores = self._extender.prioritize(args)
        self._chooses(args.pod)
        return priorities_json(scores)

    def _chooses(self, pod: Pod) -> None:
        """kube-scheduler knows enough to choose; what has volumes may wait for them before it is bound."""
        if not read_pod_volumes(pod.raw, pod.name).claims:
            self._underway.expect(pod.key)

    async def _room(self, body: Any) -> Any:
        return room_json(self._extender.room(read_preemption_args(body)))

    async def _bind(self, body: Any) -> Any:
        """Bind, and count the pod on its node at once; what is asked next knows of it."""
        args = read_binding_args(body)
        await self._bound(args)
        return error_json("")

    async def _bound(self, args: BindingArgs) -> None:
        known = self._known(args.namespace, args.name)
        if known is None:
            known = await self._cluster.get(PODS, args.name, namespace=args.namespace)
        pod, scheduler = read_pod(known), self._scheduler
        if pod.uid != args.uid:
            raise ObjectError(f"pod {args.namespace}/{args.name} is another one by now")
        scheduler.assume(pod, args.node)
        self._underway.came(pod.key)
        try:
            await self._cluster.bind(args.namespace, args.name, args.node, uid=args.uid)
        except BaseException:
            scheduler.withdraw(pod)
            raise

    def _route(self, verb: str, call: Call, *, tells: bool) -> Route:
        """`tells` says whether the answer has a place for errors."""

        async def answer(request: Request) -> Response:
            began = monotonic()
            result, response = await self._answer(call, request, tells=tells)
            self._metrics.add("koordpolicy_extender_calls_total", verb=verb, result=result)
            self._metrics.observe("koordpolicy_extender_duration_seconds", monotonic() - began, verb=verb)
            return response

        return Route("POST", f"/{verb}", answer, Protection.WRITE)

    async def _answer(self, call: Call, request: Request, *, tells: bool) -> tuple[str, Response]:
        if not self.ready:
            return "not_ready", _failed(NOT_READY, 503, tells=tells)
        try:
            async with self._one_large if len(request.body) > _SHORT else nullcontext():
                told = await call(await self._decoded(request.body))
        except ValueError as problem:  # JsonProblem and ObjectError
            return "malformed", _failed(str(problem), 400, tells=tells)
        except (CycleProblem, KubeError) as problem:
            return "error", _failed(str(problem), 500, tells=tells)
        except Exception as problem:
            LOG.exception("a call of the extender failed")
            self._metrics.add("koordpolicy_internal_errors_total", place="extender")
            text = f"internal error, please report: {type(problem).__name__}: {problem}"
            return "error", _failed(text, 500, tells=tells)
        return "ok", Response(200, write_json(told), JSON)

    async def _decoded(self, body: bytes) -> Any:
        if len(body) < _SHORT:
            return read_json(body, self._memory)
        return await asyncio.to_thread(read_json, body, self._memory)


def limits_of(memory: int) -> ServerLimits:
    """What the server of the calls takes, when each may take so much memory."""
    body = max(memory // _PACKED, 1)
    return ServerLimits(body=body, bodies=2 * body)


def _failed(message: str, status: int, *, tells: bool) -> Response:
    if tells:
        return Response(200, write_json(error_json(message)), JSON)
    return Response.text(f"{message}\n", status)
