"""The smallest plugin with a state, whole: licences that a namespace has so many of, from a server that may be away."""

from collections import Counter

from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.scheduler.plugins.base import Host, Plugin, Refusal, Wait
from koordpolicy.scheduler.plugins.parameters import Parameters


class Licences:
    """Those that are taken, by namespace."""

    def __init__(self, host: Host) -> None:
        self.host, self.taken, self.reachable = host, Counter[str](), True

    def take(self, pod: PodView, _nodes: NodeView, parameters: Parameters) -> str | Refusal:
        """One for a pod."""
        if self.taken[pod.pod.namespace] >= parameters["perNamespace"]:
            return Refusal("no licence is left in the namespace")
        return self.adopt(pod)

    def adopt(self, pod: PodView, _node: str = "") -> str:
        """The one that a pod has."""
        self.taken[pod.pod.namespace] += 1
        return pod.pod.namespace

    def give_back(self, namespace: str) -> None:
        """A pod's, in that namespace."""
        self.taken[namespace] -= 1

    def permit(self, _pod: PodView, _node: str, _parameters: Parameters) -> Wait | None:
        """Nobody starts while the server is away, for a minute."""
        return None if self.reachable else Wait(self.host.now() + 60 * 10**9, "the licence server is away")


LICENCES = Plugin(
    state=Licences, reserve=Licences.take, undo=Licences.give_back, adopt=Licences.adopt, permit=Licences.permit,
    helped_by=frozenset({Event.POD_GONE}), status=lambda state: dict(+state.taken),
)  # fmt: skip
