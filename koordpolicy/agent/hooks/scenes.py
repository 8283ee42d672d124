"""What hooks are decided by at this moment, made of the agent's own look at the node."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.hooks.containers import KIND as HOOK
from koordpolicy.agent.hooks.containers import make_programs
from koordpolicy.agent.hooks.stages import STAGE_OF, Stage
from koordpolicy.agent.hooks.starting import HookScene
from koordpolicy.agent.node_strategies import cpu_pools
from koordpolicy.algorithms.records import PodRecords
from koordpolicy.cri.stages import HookStage
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.pod import Pod
from koordpolicy.model.time import NANOSECONDS

KIND: Final = "RuntimeHooks"
_FRESH: Final = NANOSECONDS
"""How long one look at the node serves: what is measured changes no faster."""


class NodeUnknown(Exception):
    """The agent has not heard of its node yet: it is as good as away."""


@dataclass(frozen=True, slots=True)
class Announced:
    """At which stages runtimes are to ask, and what they do when nobody answers."""

    stages: tuple[HookStage, ...]
    failure_policy: str


class HookScenes:
    """Looks at the node at most once a second, however many containers start; pods and policies are those of now."""

    def __init__(
        self,
        frame: Callable[[], NodeFrame | None],
        graph: Callable[[], RuleGraph],
        pods: Callable[[], Mapping[str, Pod]],
        now: Callable[[], int],
        clock: Callable[[], int],
    ) -> None:
        self._frame, self._graph, self._pods = frame, graph, pods
        self._now, self._clock = now, clock
        self._looked: tuple[int, RuleGraph, HookScene] | None = None
        self._said: Announced | None = None
        self._known = PodRecords()

    def scene(self) -> HookScene:
        """What hooks are decided by. Raises `NodeUnknown`."""
        graph, clock = self._graph(), self._clock()
        if self._looked is not None:
            at, of, scene = self._looked
            if of is graph and clock - at <= _FRESH:
                return replace(scene, now=self._now())
        frame = self._frame()
        if frame is None:
            raise NodeUnknown("the agent does not know its node yet")
        scene = HookScene(frame.graph, frame.record, cpu_pools(frame), frame.now, self._known)
        self._known.keep(list(self._pods().values()))
        make_programs(frame.graph)
        self._looked = (clock, frame.graph, scene)
        return scene

    def pod(self, uid: str) -> Pod | None:
        """The pod of a UID, where anybody has told of it."""
        return self._pods().get(uid)

    def stages(self) -> frozenset[Stage]:
        """The stages at which the agent is to be asked, by what could be decided last."""
        said = self.announced() or self._said
        self._said = said
        return frozenset() if said is None else frozenset(STAGE_OF[one] for one in said.stages)

    def fails(self) -> bool:
        """Whether nothing is to start while hooks cannot be decided at all, by what could be decided last."""
        said = self.announced() or self._said
        return said is not None and said.failure_policy == "Fail"

    def announced(self) -> Announced | None:
        """What runtime proxies are to know; None where it cannot be decided."""
        try:
            scene = self.scene()
            return announced(scene.graph, scene.node, scene.now)
        except (NodeUnknown, CelError):
            return None


def announced(graph: RuleGraph, node: Record, now: int) -> Announced:
    """What proxies are to know: stages that policy permits and at which some hook may speak. Raises `CelError`."""
    about = graph.about(KIND, "", {"node": node, "now": TIMES.timestamp(now)})
    permitted = set(about.value("stages"))
    if not graph.subjects(HOOK):
        permitted = set()
    stages = tuple(one for one, stage in STAGE_OF.items() if stage in permitted)
    return Announced(stages, about.value("failurePolicy"))
