"""Several schedulers at work at once: each places pods on its own share of the nodes.

A node belongs to the shard that its label `koordpolicy.io/shard` names, or else to one by a hash of its name, so
that only few nodes change hands when the number of shards does. No two shards place pods on the same node: what
one decides the other cannot overfill.

A pod belongs to its home, by a hash of its uid; replicas that must be near or apart from each other, or spread
evenly, have one home, by their controller, since shards that decide at the same moment do not know of each
other's decisions yet. For the same reason rules between pods of different homes hold as of the last news from the cluster.
Every shard knows all nodes and pods and asks all filters of all nodes; a filter of ours refuses the nodes of
others last. A pod that fits on theirs alone is passed on to the shard of the best of them, by an annotation of the
same name with the way that it went: `0>2` is in the hands of shard 2. Where it fits nowhere, the shard in whose
hands it is makes room on its own nodes if it can, or passes it on to one that could. No shard gets it twice in one
round; at the end it goes home, and waits there for an event, on whatever node. Pods of gangs are not placed: nobody has all of
them in his hands, and they are told so.

A shard that is down leaves its nodes and pods alone until it, or a standby of it, is there again: nobody takes over
what others may still be at work on. Each shard has a lease of its own. Change the number of shards with all stopped.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import PreparedDecision
from koordpolicy.model.distinct import distinct
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import SHARD
from koordpolicy.model.table import NodeTable
from koordpolicy.model.table.kinds import Strings
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation import Evaluation
from koordpolicy.scheduler.plugins import Parameters, Plugin, Verdicts
from koordpolicy.scheduler.plugins.base import NODES_COME_AND_CHANGE
from koordpolicy.scheduler.plugins.gang.elsewhere import GANGS_IN_SHARDS
from koordpolicy.scheduler.profile import Profile
from koordpolicy.scheduler.step import Step

FOREIGN: Final = "node(s) belong to another shard of the scheduler"
STEP: Final = "Shard"
"""The name of the filter."""

MOST: Final = 256
"""Shards that there may be."""

_FACTS: Final = frozenset({"labels", "name"})
_KEPT: Final = 4

Route = tuple[int, ...]
"""The shards that have had a pod in this round, the one that has it now last. Empty: it is at home."""


def read_route(text: str, count: int) -> Route:
    """The way that a pod's annotation tells; empty where that makes no sense, as after the number has changed."""
    parts = text.split(">")
    if not all(part.isascii() and part.isdecimal() and len(part) < 4 for part in parts):
        return ()
    route = tuple(int(part) for part in parts)
    return route if len(set(route)) == len(route) and max(route) < count else ()


def route_text(route: Route) -> str:
    """What the annotation says."""
    return ">".join(map(str, route))


@lru_cache(maxsize=200_000)
def share_of(name: str, count: int) -> int:
    """The shard that something belongs to by its name: of all, the one with the greatest hash of both."""
    seed = name.encode()
    return max(range(count), key=lambda at: hashlib.blake2b(b"%d/%s" % (at, seed), digest_size=8).digest())


@dataclass(slots=True)
class _Owners:
    """The owners of nodes by the number of their name in a table, -1 where nobody has asked yet."""

    strings: Strings
    owners: NDArray[np.int16] = field(default_factory=lambda: np.full(1024, -1, np.int16))

    def of(self, codes: NDArray[np.int32], count: int) -> NDArray[np.int16]:
        if len(codes) and codes.max() >= len(self.owners):
            larger = np.full(2 * int(codes.max()), -1, np.int16)
            larger[: len(self.owners)] = self.owners
            self.owners = larger
        found = self.owners[codes]
        if (found < 0).any():
            for code in distinct(codes[found < 0]).tolist():
                self.owners[code] = share_of(self.strings.texts[code], count)
            found = self.owners[codes]
        return found


class Shard:
    """Shard `index`, from 0, of `count`."""

    def __init__(self, index: int, count: int) -> None:
        if not 0 <= index < count <= MOST:
            raise ValueError(f"there is no shard {index} of {count}")
        self.index = index
        self.count = count
        self._owners: list[_Owners] = []

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    # --- pods -----------------------------------------------------------------------------------

    def home(self, pod: Pod) -> int:
        """The shard that a pod comes to first."""
        controller = pod.controller
        together = controller is not None and _hangs_together(pod)
        return share_of(controller.uid if together and controller else pod.uid, self.count)

    def route(self, pod: Pod) -> Route:
        """The way that a pod went in this round, its home first."""
        text = pod.annotations.get(SHARD)
        return (read_route(text, self.count) if text else ()) or (self.home(pod),)

    def holds(self, pod: Pod) -> bool:
        """Whether a pod is in our hands."""
        return self.route(pod)[-1] == self.index

    def route_to(self, pod: Pod, node: str | None, table: NodeTable) -> Route | None:
        """The way that a pod goes to the shard of a node; None when there is none, or that one has had it."""
        if not node:
            return None
        labels = table.row(table.index(node))["labels"]
        assert isinstance(labels, Mapping)
        route, owner = self.route(pod), self.owner(node, labels)
        return None if owner in route else (*route, owner)

    def way_home(self, pod: Pod) -> Route | None:
        """No way at all, for a pod that came from another shard; None for one that is at home."""
        return None if len(self.route(pod)) == 1 else ()

    # --- nodes ----------------------------------------------------------------------------------

    def owner(self, node: str, labels: Mapping[str, str]) -> int:
        """The shard that a node belongs to."""
        pinned = _pinned(labels.get(SHARD, ""), self.count)
        return share_of(node, self.count) if pinned is None else pinned

    def adapt(self, profile: Profile) -> Profile:
        """The profile with the filter that refuses the nodes of other shards, last."""
        plugin = Plugin(filter=self._filter, node_facts=_FACTS)
        step = Step(
            STEP,
            PreparedDecision(None, (), True, frozenset()),
            plugin,
            (),
            expression=False,
            reads=_FACTS,
            helped_by=NODES_COME_AND_CHANGE,
        )
        others = [
            one if one.plugin is None or one.plugin.jobs is None else replace(one, plugin=GANGS_IN_SHARDS)
            for one in profile.filters
        ]
        return replace(profile, filters=(*others, step), node_facts=profile.node_facts | _FACTS)

    def lifted(self, cycle: Cycle, evaluation: Evaluation) -> tuple[Cycle, Evaluation]:
        """The cycle and the answers as if all nodes were ours."""
        profile = replace(cycle.profile, filters=cycle.profile.filters[:-1])
        others = replace(evaluation, filters=evaluation.filters[:-1])
        return replace(cycle, profile=profile), others

    def _filter(self, _pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
        owners = self._known(nodes.strings).of(nodes.names(), self.count)
        codes, absent = nodes.label(SHARD)
        if absent is None or not absent.all():
            rows = np.arange(nodes.count) if absent is None else np.flatnonzero(~absent)
            owners = owners.copy()
            for row in rows.tolist():
                pinned = _pinned(nodes.text(int(codes[row])), self.count)
                if pinned is not None:
                    owners[row] = pinned
        refused = owners != self.index
        return Verdicts((FOREIGN,), refused[np.newaxis], refused)

    def _known(self, strings: Strings) -> _Owners:
        found = next((one for one in self._owners if one.strings is strings), None)
        if found is None:
            found = _Owners(strings)
            self._owners = [found, *self._owners][:_KEPT]
        return found


def _pinned(text: str, count: int) -> int | None:
    """The shard that a label names; None where it names none that there is."""
    if not (text.isascii() and text.isdecimal() and len(text) < 4):
        return None
    return int(text) if int(text) < count else None


def _hangs_together(pod: Pod) -> bool:
    """Whether the pod says something of other pods."""
    spec = pod.raw.get("spec")
    if not isinstance(spec, Mapping):
        return False
    affinity = spec.get("affinity")
    return bool(spec.get("topologySpreadConstraints")) or (
        isinstance(affinity, Mapping) and bool(affinity.get("podAffinity") or affinity.get("podAntiAffinity"))
    )
