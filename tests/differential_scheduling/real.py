"""The real kube-scheduler on a real API server as a evaluate.

One server and one scheduler for a whole run; clusters come one after another, and all waiting pods of a
cluster at once. Which nodes pass is learned as extender (see `extender.py`), why none does from the pod's
condition. Each pod is deleted as soon as it has been evaluation.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.differential_scheduling.api import RESOURCES, Api, Refused, path_of
from tests.differential_scheduling.case import SCHEDULER, Case, Judgement, Object, Room, key_of, name_of
from tests.differential_scheduling.drawing.chance import LAST_PORT, NAMESPACES
from tests.differential_scheduling.extender import REFUSAL, Extender
from tests.differential_scheduling.oracle import Cluster, judgement
from tests.differential_scheduling.ours import counts_of
from tests.parts.apiserver import ApiServer
from tests.parts.processes import Running
from tests.parts.table import find

_KINDS: Final = (
    "Node", "StorageClass", "CSIDriver", "CSINode", "CSIStorageCapacity", "PersistentVolume",
    "PersistentVolumeClaim", "VolumeAttachment", "PodDisruptionBudget", "Pod",
)  # fmt: skip
_MEDDLING: Final = (
    "ServiceAccount", "TaintNodesByCondition", "Priority", "DefaultTolerationSeconds",
    "StorageObjectInUseProtection", "RuntimeClass", "NodeRestriction",
)  # fmt: skip
"""Admission plugins that would make other objects of those that were drawn."""

_PATIENCE: Final = 20.0
"""Seconds that an answer may take."""


@dataclass(frozen=True, slots=True)
class PreparedDecision:
    """A case as the server has it: its objects and pods with the server's defaults, and what came of each pod.

    `refused` are pods that the server did not take, with its words. `preempted` is a pod that was let
    displace others, and the node it was promised then.
    """

    objects: Sequence[Object]
    evaluation: Sequence[tuple[Object, Judgement]]
    refused: Sequence[str]
    preempted: tuple[Object, Judgement] | None


@asynccontextmanager
async def real_scheduler(folder: Path) -> AsyncIterator["Real"]:
    """Start all of it; raises Missing where a part cannot be had, Ended where one does not run."""
    program = find("kube-scheduler").path
    server = ApiServer(folder / "server", without_admission=_MEDDLING)
    async with AsyncExitStack() as stack:
        await asyncio.to_thread(server.__enter__)
        stack.callback(server.__exit__, None, None, None)
        extender = await stack.enter_async_context(Extender())
        api = await stack.enter_async_context(Api(server.access))
        for name, labels in NAMESPACES.items():
            metadata = {"name": name, "labels": labels}
            await api.request("POST", "/api/v1/namespaces", {"metadata": metadata})
        configuration = folder / "scheduler.json"
        configuration.write_text(
            json.dumps(_configuration(server.kubeconfig("kube-scheduler"), extender.port))
        )
        arguments: list[str | Path] = [program, f"--config={configuration}", "--secure-port=0"]
        stack.enter_context(Running(arguments, folder / "kube-scheduler.log"))
        real = Real(api, extender)
        listening = asyncio.create_task(real.listen())
        stack.callback(listening.cancel)
        yield real


def _configuration(kubeconfig: Path, port: int) -> Mapping[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
        # A pod is asked about once; what is tried again only takes time.
        "podInitialBackoffSeconds": 600,
        "podMaxBackoffSeconds": 600,
        # Claims of resources are no matter here, and what their plugin says stands in every message.
        "profiles": [
            {
                "schedulerName": SCHEDULER,
                "plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}},
            }
        ],
        "extenders": [
            {
                "urlPrefix": f"http://127.0.0.1:{port}", "filterVerb": "filter", "preemptVerb": "preempt",
                "nodeCacheCapable": True, "httpTimeout": "30s",
            }
        ],
    }  # fmt: skip


class Real:
    """Judges cases. `listen` has to run meanwhile."""

    def __init__(self, api: Api, extender: Extender) -> None:
        self._api = api
        self._extender = extender
        self._pods: dict[str, Object] = {}
        self._probes = 0

    async def listen(self) -> None:
        """Follow all pods."""
        while True:
            with suppress(OSError):
                async for type, pod in self._api.watch_pods():
                    async with self._extender.heard:
                        uid = pod["metadata"]["uid"]
                        self._pods[uid] = pod
                        if type == "DELETED":
                            pod["metadata"].setdefault("deletionTimestamp", "gone")
                        self._extender.heard.notify_all()

    async def evaluate(self, case: Case, *, preempting: bool = True) -> PreparedDecision:
        """Build the cluster, ask about all pods, clear up. Raises Refused for an object, TimeoutError."""
        try:
            return await self._judged(case, preempting)
        finally:
            await self._api.clear(_KINDS, NAMESPACES)
            self._pods.clear()

    async def _judged(self, case: Case, preempting: bool) -> PreparedDecision:
        *others, last = (one for one in case.objects if one["kind"] != "Namespace")
        made = [*await self._api.create_all(others), *await self._api.create_all([last])]
        for one in made:
            if isinstance(one, Refused):
                raise one
        objects = await self._api.read_all(["Namespace", *_KINDS])
        await self._settled(Cluster(objects))
        evaluation, refused = await self._ask(case.pods)
        preempted = None
        if preempting:
            for pod, found in evaluation:
                if found.rooms:
                    preempted = await self._preempt(pod, case)
                    break
        return PreparedDecision(objects, evaluation, refused, preempted)

    async def _settled(self, cluster: Cluster) -> None:
        """Wait until the scheduler has heard of everything: a pod that any node takes finds those there are."""
        probe = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "gamma"},
            "spec": {
                "schedulerName": SCHEDULER, "tolerations": [{"operator": "Exists"}], "priority": 2_000_000,
                "preemptionPolicy": "Never", "containers": [
                    {
                        "name": "main", "image": "example/probe:1",
                        "ports": [{"containerPort": 80, "hostPort": LAST_PORT}],
                    }
                ],
            },
        }  # fmt: skip
        expected = judgement({**probe, "metadata": {"name": "probe", "namespace": "gamma"}}, cluster).feasible
        until = time.monotonic() + _PATIENCE
        while True:
            self._probes += 1
            name = f"probe-{self._probes}"
            evaluation, _ = await self._ask([{**probe, "metadata": {"name": name, "namespace": "gamma"}}])
            if evaluation[0][1].feasible == expected:
                return
            if time.monotonic() > until:
                raise TimeoutError(f"kube-scheduler sees {evaluation[0][1]}, expected {sorted(expected)}")
            await asyncio.sleep(0.02)

    async def _ask(self, pods: Sequence[Object]) -> tuple[list[tuple[Object, Judgement]], list[str]]:
        made = await self._api.create_all(pods)
        refused = [str(one) for one in made if isinstance(one, Refused)]
        waiting = [one for one in made if not isinstance(one, Refused)]
        uids = {one["metadata"]["uid"] for one in waiting}
        await self._until(lambda: all(self._outcome(uid) is not None for uid in uids))
        evaluation = []
        for one in waiting:
            found = self._outcome(one["metadata"]["uid"])
            assert found is not None
            evaluation.append((one, found))
        await asyncio.gather(*(self._delete(one) for one in waiting))
        return evaluation, refused

    async def _until(self, happened: Any) -> None:
        async with self._extender.heard:
            await asyncio.wait_for(self._extender.heard.wait_for(happened), _PATIENCE)

    async def _delete(self, pod: Object) -> None:
        await self._api.request("DELETE", path_of("Pod", *key_of(pod)), {"gracePeriodSeconds": 0})

    def _outcome(self, uid: str) -> Judgement | None:
        nodes = self._extender.nodes.get(uid)
        if nodes is not None:
            return Judgement(nodes)
        message = _unschedulable(self._pods.get(uid))
        if message is None:
            return None
        rooms = self._extender.rooms.get(uid, {})
        total = int(message.split(" ", 1)[0].removeprefix("0/")) if message.startswith("0/") else 0
        return Judgement(
            frozenset(),
            counts_of(message, total),
            {node: self._room(room) for node, room in rooms.items()},
            # Where it was kept from making room the message ends otherwise than it would.
            message="" if rooms else message,
        )

    def _room(self, told: Mapping[str, Any]) -> Room:
        victims = frozenset(key_of(self._pods[one["UID"]]) for one in told["pods"])
        return Room(victims, int(told["numpdbviolations"]))

    async def _preempt(self, pod: Object, case: Case) -> tuple[Object, Judgement] | None:
        """Let a pod displace others; it is a new one of another name."""
        (drawn,) = [one for one in case.pods if key_of(one) == key_of(pod)]
        again = await self._api.create(
            {
                **drawn,
                "metadata": {**drawn["metadata"], "name": f"{name_of(drawn)}-again"},
                # Until it is let nobody looks at it.
                "spec": {**drawn["spec"], "schedulingGates": [{"name": "example.com/not-yet"}]},
            }
        )
        uid = again["metadata"]["uid"]
        self._extender.let.add(uid)
        await self._api.request(
            "PATCH", path_of("Pod", *key_of(again)), {"spec": {"schedulingGates": []}},
            "application/merge-patch+json",
        )  # fmt: skip

        def promised() -> str:
            status = self._pods.get(uid, {}).get("status", {})
            return str(status.get("nominatedNodeName") or "")

        await self._until(lambda: bool(promised()) or self._outcome(uid) is not None)
        await self._until(lambda: bool(promised()))
        told = self._extender.rooms[uid]
        # Those that are on their way already are not sent away again.
        victims = {
            one["UID"]
            for one in told[promised()]["pods"]
            if "deletionTimestamp" not in self._pods[one["UID"]]["metadata"]
            or _target(self._pods[one["UID"]])
        }
        await self._until(lambda: all(self._goes(one) for one in victims))
        gone = {key_of(one) for one in self._pods.values() if _target(one)}
        expected = {key_of(self._pods[one]) for one in victims}
        return pod, Judgement(
            frozenset(), {}, {node: self._room(one) for node, one in told.items()}, promised(),
            "" if gone == expected else f"victims {sorted(gone)}",
        )  # fmt: skip

    def _goes(self, uid: str) -> bool:
        pod = self._pods[uid]
        return bool(pod["metadata"].get("deletionTimestamp")) and _target(pod)


def _target(pod: Object) -> bool:
    return any(
        one["type"] == "DisruptionTarget" and one["reason"] == "PreemptionByScheduler"
        for one in pod.get("status", {}).get("conditions") or ()
    )


def _unschedulable(pod: Object | None) -> str | None:
    """The message of a pod that was looked at in vain."""
    for one in ({} if pod is None else pod).get("status", {}).get("conditions") or ():
        if one["type"] == "PodScheduled" and one.get("reason") in ("Unschedulable", "SchedulerError"):
            return None if one["reason"] == "SchedulerError" and REFUSAL in one["message"] else one["message"]
    return None


__all__ = ["RESOURCES", "PreparedDecision", "Real", "real_scheduler"]
