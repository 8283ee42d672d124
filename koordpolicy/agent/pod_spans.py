"""Spans of pods on their node: from when the agent hears of one until its files say what policies want."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.kube.mirror import ObjectChange
from koordpolicy.linux.writes.write import CHANGED, FileOutcome, FileWriteResult
from koordpolicy.model.reading import ObjectError, mapping, text
from koordpolicy.runtime.trace_context import Attributes
from koordpolicy.runtime.tracing import Tracing

_MOST: Final = 1000
"""Pods whose containers do not run yet that are remembered."""
_BEFORE: Final = 60_000_000_000
"""Nanoseconds: a pod that was there so long before the agent began is none that came while it ran."""


class PodSpans:
    """Makes a span `hold` of each traced pod that comes to a node while the agent runs.

    `revision_of` gives the name of a graph's revision by its digest, `now` nanoseconds since 1970.
    """

    def __init__(
        self, tracing: Tracing, node: str, revision_of: Callable[[str], str], now: Callable[[], int]
    ) -> None:
        self._tracing = tracing
        self._node = node
        self._revision_of = revision_of
        self._now = now
        self._began = now()
        self._heard: dict[str, int] = {}
        """Pods that are not held yet, by UID, with when they were heard of."""

    def heard(self, change: ObjectChange) -> None:
        """A pod came, changed or went."""
        try:
            uid = text(mapping(change.new or change.old or {}, "metadata"), "uid", "metadata")
        except ObjectError:
            return
        if change.new is None:
            self._heard.pop(uid, None)
        elif change.old is None and len(self._heard) < _MOST:
            self._heard[uid] = self._now()

    def carried_out(
        self, frame: NodeFrame, pods: Mapping[str, NodePod], results: Iterable[FileWriteResult]
    ) -> None:
        """A round has written `results`: those pods are held whose containers all run."""
        if not self._heard:
            return
        held = [
            uid
            for uid in self._heard
            if (one := pods.get(uid)) is not None and len(one.containers) >= len(one.pod.containers)
        ]
        every = tuple(results) if held else ()
        for uid in held:
            self._add(frame, pods[uid], self._heard.pop(uid), every)

    def _add(self, frame: NodeFrame, one: NodePod, heard: int, results: Iterable[FileWriteResult]) -> None:
        pod = one.pod
        context = self._tracing.context(pod.uid, pod.annotations)
        if context is None or (pod.created_at or 0) < self._began - _BEFORE:
            return
        own = [result for result in results if f"{result.write.target}/".startswith(f"{one.group}/")]
        failed = [result for result in own if result.outcome in {FileOutcome.FAILED, FileOutcome.REFUSED}]
        attributes: Attributes = {
            "k8s.namespace.name": pod.namespace,
            "k8s.pod.name": pod.name,
            "k8s.pod.uid": pod.uid,
            "k8s.node.name": self._node,
            "koordpolicy.revision": self._revision_of(frame.graph.digest),
            "koordpolicy.files": len(own),
            "koordpolicy.files.written": sum(result.outcome in CHANGED for result in own),
        }
        problem = "; ".join(f"{result.path or result.write.file}: {result.problem}" for result in failed)
        self._tracing.add("hold", context, heard, self._now(), attributes, problem)
