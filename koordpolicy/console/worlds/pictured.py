"""A cluster at rest, from a snapshot; and one that is photographed again and again, which is a live one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from koordpolicy.algorithms.pod_request import effective_requests
from koordpolicy.console.frames import COLUMNS, Frame, Frames, leading, share
from koordpolicy.console.worlds.world import CannotAnswer, NodeShown, PodSpan
from koordpolicy.diagnostics.wording import worded
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import band_resources
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import NODE_METRICS
from koordpolicy.kube.snapshot import Snapshot, SnapshotError
from koordpolicy.model.metric import NodeMetric, read_node_metric
from koordpolicy.model.node import Node, read_node
from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.model.protocol import CPU, MEMORY, PRIORITY_CLASS, QOS_CLASS
from koordpolicy.model.unreadable import Unreadable, readable

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a snapshot shows: nodes, pods, the names of classes and bands that its frame has codes of."""

    snapshot: Snapshot
    nodes: tuple[NodeShown, ...]
    spans: tuple[PodSpan, ...]
    names: tuple[tuple[str, ...], tuple[str, ...]]
    frame: Frame


class PicturedWorld:
    """One frame of a snapshot."""

    kind = "picture"

    def __init__(self, graph: RuleGraph, snapshot: Snapshot, title: str) -> None:
        self.graph = graph
        self.title = title
        self.frames = Frames()
        self._nodes: tuple[NodeShown, ...] = ()
        self._spans: tuple[PodSpan, ...] = ()
        self._names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._snapshot = snapshot
        self.trouble = ""
        self.behind = ""
        """Why the policies that answer are not those of the cluster as it is now."""
        self.show(self.read(snapshot))

    def nodes(self) -> tuple[NodeShown, ...]:
        """See `World`."""
        return self._nodes

    def classes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """See `World`."""
        return self._names

    def clock(self) -> dict[str, Any]:
        """See `World`."""
        return {
            "steers": False,
            "start": self.frames.kept[0].time / 1e9 if self.frames.kept else 0,
            "failure": self.trouble or (f"{self.behind}; those before it answer" if self.behind else ""),
            "over": self.kind == "picture",
        }

    def steer(self, wanted: Mapping[str, Any]) -> None:
        """See `World`."""
        raise CannotAnswer("time goes by itself here: only a simulation can be told to wait")

    def spans(self) -> tuple[PodSpan, ...]:
        """See `World`."""
        return self._spans

    async def picture(self) -> Snapshot:
        """See `World`."""
        return self._snapshot

    def submitted(self, pod: str) -> Object | None:
        """See `World`: a cluster does not keep what its webhooks changed."""
        return None

    # --- from a snapshot to a frame ---------------------------------------------------------------

    def show(self, seen: Seen) -> None:
        """Add what was read of a snapshot."""
        if self._nodes and [one.name for one in seen.nodes] != [one.name for one in self._nodes]:
            self.frames.begin()
        self._snapshot, self._nodes, self._spans, self._names = (
            seen.snapshot,
            seen.nodes,
            seen.spans,
            seen.names,
        )
        self.frames.add(seen.frame)

    def read(self, snapshot: Snapshot) -> Seen:
        """What a snapshot shows; nothing is changed by it, so that it may be read in a thread."""
        nodes = [one for one in (readable(read_node, obj) for obj in snapshot.nodes) if isinstance(one, Node)]
        shown = tuple(
            NodeShown(one.name, one.capacity.get(CPU, 0), one.capacity.get(MEMORY, 0), dict(one.labels))
            for one in nodes
        )
        metrics = {
            one.name: one
            for one in (readable(read_node_metric, obj) for obj in snapshot.of(NODE_METRICS))
            if not isinstance(one, Unreadable)
        }
        spans = tuple(self._read_pods(snapshot, metrics))
        there = frozenset(node.name for node in nodes)
        on = [span for span in spans if span.node in there]
        # Codes of earlier frames keep their meaning.
        classes = tuple(dict.fromkeys((*self._names[0], *(span.qos for span in on))))
        bands = tuple(dict.fromkeys((*self._names[1], *(span.band for span in on))))
        frame = self._frame(snapshot.taken, nodes, metrics, on, (classes, bands), len(spans))
        return Seen(snapshot, shown, spans, (classes, bands), frame)

    def _read_pods(self, snapshot: Snapshot, metrics: Mapping[str, NodeMetric]) -> list[PodSpan]:
        used = {
            f"{pod.namespace}/{pod.name}": pod.usage.get(CPU, 0)
            for one in metrics.values()
            for pod in one.pods
        }
        cpus = self._cpu_names()
        spans = []
        for obj in snapshot.pods:
            pod = readable(read_pod, obj)
            if not isinstance(pod, Pod) or pod.terminal:
                continue
            found = self.graph.catalogue.resolve(
                pod.labels.get(QOS_CLASS), pod.labels.get(PRIORITY_CLASS), pod.priority, pod.kubernetes_qos
            )
            name = "/".join(pod.key)
            requests = effective_requests(pod)
            spans.append(
                PodSpan(
                    name,
                    pod.node_name,
                    0,
                    found.qos,
                    self.graph.catalogue.class_name(found.band),
                    used.get(name, 0),
                    sum(requests.get(one, 0) for one in cpus),
                )
            )
        return spans

    def _cpu_names(self) -> tuple[str, ...]:
        bands = (band_resources(self.graph, band).get(CPU) for band in self.graph.classes.bands)
        return tuple(dict.fromkeys((CPU, *(one for one in bands if one))))

    def _frame(
        self,
        taken: int,
        nodes: list[Node],
        metrics: Mapping[str, NodeMetric],
        on: list[PodSpan],
        names: tuple[tuple[str, ...], tuple[str, ...]],
        pods: int,
    ) -> Frame:
        count = len(nodes)
        place = {node.name: at for at, node in enumerate(nodes)}
        at = [place[span.node] for span in on]
        classes, bands = names

        def every(amount: Callable[[Node, NodeMetric | None], int]) -> np.ndarray[Any, np.dtype[np.int64]]:
            return np.array([amount(node, metrics.get(node.name)) for node in nodes], np.int64)

        cpu = every(lambda node, _: node.capacity.get(CPU, 0))
        memory = every(lambda node, _: node.capacity.get(MEMORY, 0))
        used = every(lambda _, found: 0 if found is None else (found.node_usage or {}).get(CPU, 0))
        held = every(lambda _, found: 0 if found is None else (found.node_usage or {}).get(MEMORY, 0))
        lent = [name for name in self._cpu_names() if name != CPU]
        offered = every(lambda node, _: sum(node.allocatable.get(name, 0) for name in lent))
        weight = np.array([span.cpu for span in on], np.int64)
        best = (
            np.bincount(at, np.array([span.cpu if span.qos == "BE" else 0 for span in on]), count)
            if on
            else np.zeros(count)
        )
        requested = (
            np.bincount(at, np.array([span.requested for span in on]), count) if on else np.zeros(count)
        )
        columns: dict[str, Any] = {
            "used": share(used, cpu),
            "services": share(used - best, cpu),
            "bestEffort": share(best, cpu),
            "withheld": np.zeros(count, np.uint8),  # what was wished for, no object tells
            "memory": share(held, memory),
            "requested": share(requested, cpu),
            "offered": share(offered, cpu),
            "class": leading(at, [classes.index(span.qos) for span in on], weight + 1, count),
            "band": leading(at, [bands.index(span.band) for span in on], weight + 1, count),
            "pods": np.minimum(np.bincount(at, minlength=count) if on else np.zeros(count), 255).astype(
                np.uint8
            ),
        }
        rows = np.stack([columns[name] for name in COLUMNS], axis=1).tobytes()
        whole = max(int(cpu.sum()), 1)

        def percent(part: Any) -> float:
            return round(100 * float(part.sum()) / whole, 2)

        return Frame(
            taken,
            rows,
            {
                "used": percent(used),
                "services": percent(used - best),
                "bestEffort": percent(best),
                "withheld": 0,
                "requested": percent(requested),
                "memory": round(100 * float(held.sum()) / max(int(memory.sum()), 1), 2),
                "running": len(on),
                "pending": pods - len(on),
            },
        )


class LiveWorld(PicturedWorld):
    """A cluster as it is now: `take` photographs it, every so many seconds. It writes nothing to it."""

    kind = "live"

    def __init__(
        self,
        graph: RuleGraph,
        snapshot: Snapshot,
        title: str,
        take: Callable[[], Awaitable[Snapshot]],
        interval: float,
    ) -> None:
        super().__init__(graph, snapshot, title)
        self._take = take
        self._interval = interval

    async def follow(self) -> None:
        """Photograph the cluster again and again; what is in the way is told on the page, until it works again."""
        while True:
            await asyncio.sleep(self._interval)
            try:
                snapshot = await self._take()
                self.show(await asyncio.to_thread(self.read, snapshot))
                self.trouble = ""
            except (KubeError, SnapshotError) as error:
                self.trouble = f"the cluster cannot be read: {worded(error)}"
                LOG.warning("%s", self.trouble)
