"""Recommendations: what nodes report becomes histories, and histories become what Recommendation objects say."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.algorithms.recommended import MILLI, Layout, LayoutError, Recommended, recommended
from koordpolicy.algorithms.records import pod_record
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.errors import NotFound
from koordpolicy.kube.port import Cluster, MergePatch, Object
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.recommender.checkpoints import checkpoint_text, read_checkpoint
from koordpolicy.manager.recommender.histories import (
    CPU,
    MEMORY,
    MOST_CONTAINERS,
    RESOURCES,
    ContainerHistory,
    Histories,
    Key,
)
from koordpolicy.manager.recommender.owners import Owners
from koordpolicy.manager.recommender.policy import (
    Counting,
    Keeping,
    container_facts,
    counting_of,
    is_enabled,
    keeping_of,
    layouts_of,
    pace_of,
    wanted_of,
    workload_facts,
)
from koordpolicy.manager.recommender.status import (
    LOW_CONFIDENCE,
    NO_OBJECTS,
    UNSUPPORTED,
    Condition,
    bounds_text,
    is_due,
    status_of,
)
from koordpolicy.model.facts import Record
from koordpolicy.model.metric import NodeMetric, PodMetric
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.model.protocol import RECOMMENDED_BOUNDS, USAGE_HISTORY
from koordpolicy.model.reading import mapping, texts
from koordpolicy.model.recommendation import RecommendationObject, read_recommendation
from koordpolicy.model.unreadable import Unreadable, readable

Told = Callable[[RuleGraph, str, Key], None]
"""Told of what policies, or an annotation, left open: the graph that was asked, a phrase, the Recommendation."""


@dataclass(frozen=True, slots=True)
class RecommendationPlan:
    """What is to become of a Recommendation: patches of its metadata and its status, None where it stays as it is."""

    metadata: Mapping[str, Any] | None
    status: Mapping[str, Any] | None

    @property
    def writes(self) -> bool:
        return self.metadata is not None or self.status is not None


@dataclass(frozen=True, slots=True)
class _Counted:
    """For which Recommendations the use of a pod counts, and how; of a pod as it was, by a graph."""

    pod: Pod
    digest: str
    epoch: int
    counting: tuple[tuple[Key, Counting], ...]


@dataclass(slots=True)
class RecommendationController:
    """Follows the Recommendations that it is told of, by the graph that `graph` gives; `now` is nanoseconds since 1970.

    `known` gives a Recommendation as last heard of.
    """

    graph: Callable[[], RuleGraph]
    objects: ClusterObjects
    known: Callable[[Key], Object | None]
    owners: Owners
    now: Callable[[], int]
    told: Told
    histories: Histories = field(default_factory=Histories)
    written: dict[Key, int] = field(default_factory=dict)
    """When the history of each was written last, or taken from its object."""
    _read: dict[str, dict[str, RecommendationObject]] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)
    _counted: dict[PodKey, _Counted] = field(default_factory=dict)
    _named: dict[tuple[str, str, str], set[str]] = field(default_factory=dict)
    """Those that name a workload, by namespace and its kind and name."""
    _selecting: dict[str, set[str]] = field(default_factory=dict)
    """Those that select pods by labels, by namespace."""
    _epochs: dict[str, int] = field(default_factory=dict)
    """How often the Recommendations of a namespace have become others."""

    # --- which are followed -------------------------------------------------------------------------

    def heard(self, key: Key, obj: Object | None) -> bool:
        """A Recommendation is new, another, or gone (None); whether what it speaks of is another than before."""
        before = self._read.get(key[0], {}).get(key[1])
        found = None if obj is None else readable(read_recommendation, obj)
        if found is None or isinstance(found, Unreadable):
            self._unlist(key)
            self.histories.drop(key)
            self.written.pop(key, None)
            return True
        if before is not None and _said_by_others(before) == _said_by_others(found):
            self._read[key[0]][key[1]] = found
            return False
        self._unlist(key)
        self._list(key, found)
        if key not in self.histories:
            self._take_up(key, found)
        if before is not None and before.target != found.target:
            self.histories.follow(key, {})
        return True

    def _list(self, key: Key, found: RecommendationObject) -> None:
        namespace, name = key
        target = found.target
        self._read.setdefault(namespace, {})[name] = found
        if target.selector is None:
            self._named.setdefault((namespace, target.kind, target.name), set()).add(name)
        else:
            self._selecting.setdefault(namespace, set()).add(name)

    def _unlist(self, key: Key) -> None:
        """Whatever was counted for pods of the namespace is to be found anew."""
        namespace, name = key
        self._epochs[namespace] = self._epochs.get(namespace, 0) + 1
        listed = self._read.get(namespace, {})
        before = listed.pop(name, None)
        if before is None:
            return
        if not listed:
            del self._read[namespace]
        place = (namespace, before.target.kind, before.target.name)
        named = self._named.get(place, set())
        named.discard(name)
        if not named:
            self._named.pop(place, None)
        self._selecting.get(namespace, set()).discard(name)

    def _take_up(self, key: Key, found: RecommendationObject) -> None:
        """Follow a Recommendation, with the history that its object says."""
        source = found.annotations.get(USAGE_HISTORY)
        containers: dict[str, ContainerHistory] = {}
        if source is not None:
            read = readable(lambda text: read_checkpoint(text, USAGE_HISTORY), source)
            if isinstance(read, Unreadable):
                self.told(self.graph(), f"its history begins anew: {read.reason}", key)
            else:
                containers = read
        self.histories.follow(key, containers)
        # One that has never been written is the first to be.
        self.written[key] = max((one.last for one in containers.values()), default=0)

    def clear(self) -> None:
        """Forget everything: another replica leads."""
        self.histories.clear()
        self.owners.clear()
        for known in (
            self.written,
            self._read,
            self._seen,
            self._counted,
            self._named,
            self._selecting,
            self._epochs,
        ):
            known.clear()

    def due(self) -> list[Key]:
        """The Recommendations whose history is to be written, the one that waits longest first; no more than a minute's."""
        pace, now = pace_of(self.graph()), self.now()
        waiting = [
            (at, key)
            for key, at in self.written.items()
            if now - at >= pace.checkpoint * 1e9
            and any(one.last > at for one in self.histories.of(key).values())
        ]
        waiting.sort()
        return [key for _, key in waiting[: pace.most]]

    # --- what nodes report --------------------------------------------------------------------------

    def pod_changed(self, key: PodKey) -> None:
        """A pod is another, or gone."""
        self._counted.pop(key, None)

    def reported(self, metric: NodeMetric) -> int:
        """Count what a node reports, once; how many samples were taken."""
        if not self._read or metric.updated_at is None or self._seen.get(metric.name) == metric.updated_at:
            return 0
        self._seen[metric.name] = metric.updated_at
        graph, now = self.graph(), self.now()
        at = min(metric.updated_at, now)  # a clock that is ahead must not make all that was before worthless
        samples = 0
        for one in metric.pods:
            if one.namespace in self._read:
                pod = self.objects.pods.get(one.key)
                if pod is not None and pod.node_name == metric.name:
                    for key, counting in self._counting(graph, pod, now):
                        samples += self._count(graph, key, counting, one, at)
        return samples

    def node_gone(self, name: str) -> None:
        """A node is gone."""
        self._seen.pop(name, None)

    def _counting(self, graph: RuleGraph, pod: Pod, now: int) -> tuple[tuple[Key, Counting], ...]:
        known, epoch = self._counted.get(pod.key), self._epochs.get(pod.namespace, 0)
        if known is not None and (known.pod is pod and known.digest == graph.digest and known.epoch == epoch):
            return known.counting
        chain, whole = self.owners.chain(pod)
        found: list[tuple[Key, Counting]] = []
        record: Record | None = None
        for name in sorted(self._speaking_of(pod, chain)):
            recommendation = self._read[pod.namespace][name]
            key = (pod.namespace, name)
            record = record or pod_record(pod, graph.catalogue, TIMES)
            workload = workload_facts(recommendation)
            try:
                counting = (
                    counting_of(graph, workload, record, now) if is_enabled(graph, workload, now) else None
                )
            except CelError as error:
                self.told(graph, f"the use of a pod does not count: {error}", key)
                continue
            if counting is not None:
                found.append((key, counting))
        counted = tuple(found)
        if whole:
            self._counted[pod.key] = _Counted(pod, graph.digest, epoch, counted)
        return counted

    def _speaking_of(self, pod: Pod, chain: Sequence[tuple[str, str]]) -> set[str]:
        """The Recommendations of its namespace that a pod belongs to."""
        found: set[str] = set()
        for kind, name in chain:
            found |= self._named.get((pod.namespace, kind, name), set())
        for name in self._selecting.get(pod.namespace, ()):
            selector = self._read[pod.namespace][name].target.selector
            if selector is not None and selector.matches(pod.labels):
                found.add(name)
        return found

    def _count(self, graph: RuleGraph, key: Key, counting: Counting, used: PodMetric, at: int) -> int:
        containers = self.histories.of(key)
        shared = len(counting.shares) > 1
        samples = 0
        for name, of_cpu, of_memory in counting.shares:
            history = containers.get(name) or self._begin(graph, key, name, at)
            if history is None:
                continue
            amounts = {}
            if CPU in used.usage:
                amounts[CPU] = used.usage[CPU] / MILLI * of_cpu
            if MEMORY in used.usage:
                amounts[MEMORY] = used.usage[MEMORY] * of_memory
            if amounts and counting.weight > 0:
                history.add(amounts, counting.weight, at, shared=shared)
                samples += 1
        return samples

    def _begin(self, graph: RuleGraph, key: Key, container: str, at: int) -> ContainerHistory | None:
        """The history of a container that is reported for the first time; None where it cannot be kept."""
        if len(self.histories.of(key)) >= MOST_CONTAINERS:
            self.told(graph, f"it has more than {MOST_CONTAINERS} containers: others are not remembered", key)
            return None
        try:
            most = pace_of(graph).containers
            if self.histories.count >= most:
                self.told(graph, f"{most:,} containers are remembered already (`history.containers`)", key)
                return None
            layouts = self._layouts(graph, key, container, 0)
        except (CelError, LayoutError) as error:
            self.told(graph, f"container `{container}` is not remembered: {error}", key)
            return None
        history = ContainerHistory.new(layouts, at)
        self.histories.put(key, container, history)
        return history

    def _layouts(self, graph: RuleGraph, key: Key, container: str, history: int) -> Mapping[str, Layout]:
        workload = workload_facts(self._read[key[0]][key[1]])
        return layouts_of(graph, container_facts(workload, container, history), self.now())

    # --- what objects say ---------------------------------------------------------------------------

    def decide(self, key: Key, *, checkpoint: bool = False) -> RecommendationPlan | None:
        """What is to be written for a Recommendation, its history with it where that is due; None for one that is not there.

        One that policies do not follow, or say nothing of that holds together, stays as it is.
        """
        obj, graph, now = self.known(key), self.graph(), self.now()
        if obj is None:
            return None
        found = readable(read_recommendation, obj)
        if isinstance(found, Unreadable):
            wrong = (Condition(UNSUPPORTED, True, "Unreadable", found.reason),)
            if not is_due(obj, {}, wrong, 0.0, 2**63, now):
                return RecommendationPlan(None, None)
            return RecommendationPlan(None, status_of({}, wrong, obj, now))
        workload = workload_facts(found)
        try:
            if not is_enabled(graph, workload, now):
                return RecommendationPlan(None, None)
            keeping = keeping_of(graph, workload, now)
            amounts = self._recommend(graph, key, workload, now)
        except (CelError, LayoutError) as error:
            self.told(graph, str(error), key)
            return RecommendationPlan(None, None)
        conditions = self._conditions(key, keeping, now)
        due = is_due(obj, amounts, conditions, keeping.share, keeping.at_least, now)
        status = status_of(amounts, conditions, obj, now) if due else None
        return RecommendationPlan(self._metadata(obj, key, amounts, due, due or checkpoint), status)

    def _metadata(
        self,
        obj: Object,
        key: Key,
        amounts: Mapping[str, Mapping[str, Recommended]],
        due: bool,
        checkpoint: bool,
    ) -> Mapping[str, Any] | None:
        containers = self.histories.of(key)
        said: dict[str, Any] = {}
        if due:
            said[RECOMMENDED_BOUNDS] = (
                json.dumps(bounds_text(amounts), separators=(",", ":")) if amounts else None
            )
        if checkpoint and key in self.histories:
            said[USAGE_HISTORY] = checkpoint_text(containers) if containers else None
        there = texts(mapping(obj, "metadata"), "annotations", "metadata")
        changed = {name: value for name, value in said.items() if there.get(name) != value}
        return {"annotations": changed} if changed else None

    def _recommend(
        self, graph: RuleGraph, key: Key, workload: Record, now: int
    ) -> dict[str, dict[str, Recommended]]:
        """What is recommended by container, after those are forgotten that nothing was reported of for long."""
        amounts: dict[str, dict[str, Recommended]] = {}
        for name, history in tuple(self.histories.of(key).items()):
            facts = container_facts(workload, name, max(history.last - history.since, 0))
            if now - history.last >= keeping_of(graph, facts, now).forget:
                self.histories.forget(key, name)
                continue
            history.arrange(layouts_of(graph, facts, now))
            found = {
                resource: recommended(
                    history.histograms[resource],
                    wanted_of(graph, resource, facts, now),
                    MILLI if resource == CPU else 1,
                )
                for resource in RESOURCES
            }
            amounts[name] = {resource: one for resource, one in found.items() if one is not None}
        return {name: one for name, one in amounts.items() if one}

    def _conditions(self, key: Key, keeping: Keeping, now: int) -> Sequence[Condition]:
        containers = self.histories.of(key).values()
        if not containers:
            return (
                Condition(NO_OBJECTS, True, "NotReported", "no node reports the use of a pod that counts"),
            )
        if any(one.last - one.since < keeping.confident for one in containers):
            confidence = Condition(
                LOW_CONFIDENCE, True, "ShortHistory", "use is not known for long enough yet"
            )
        elif any(one.shared for one in containers):
            confidence = Condition(
                LOW_CONFIDENCE,
                True,
                "SharedUse",
                "nodes report the use of whole pods; it is divided among their containers by policy",
            )
        else:
            confidence = Condition(LOW_CONFIDENCE, False, "Sufficient", "use is known for long enough")
        return (Condition(NO_OBJECTS, False, "Reported", "nodes report the use of pods"), confidence)

    async def reconcile(self, cluster: Cluster, key: Key, *, checkpoint: bool = False) -> bool:
        """Write what differs; whether anything was written. Raises KubeError; nothing counts as written then."""
        plan = self.decide(key, checkpoint=checkpoint)
        if plan is None:
            return False
        namespace, name = key
        at = self.now()
        try:
            if plan.metadata is not None:
                patch = MergePatch({"metadata": plan.metadata})
                await cluster.patch(resources.RECOMMENDATIONS, name, patch, namespace=namespace)
            if plan.status is not None:
                patch = MergePatch({"status": plan.status})
                await cluster.patch(
                    resources.RECOMMENDATIONS, name, patch, namespace=namespace, subresource="status"
                )
        except NotFound:
            return False  # gone in the meantime; its deletion is on the way to us
        if key in self.histories and (checkpoint or plan.status is not None):
            self.written[key] = at
        return plan.writes


def _said_by_others(found: RecommendationObject) -> tuple[object, ...]:
    """What of a Recommendation decides about pods and is not written by ourselves."""
    own = (RECOMMENDED_BOUNDS, USAGE_HISTORY)
    annotations = {name: value for name, value in found.annotations.items() if name not in own}
    return found.target, found.labels, annotations
