"""Whom policy lets go from a node that runs short, and in which order."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.release import Thresholds
from koordpolicy.graph import About, RuleGraph
from koordpolicy.graph.bands import band_resources
from koordpolicy.graph.graph import Facts
from koordpolicy.graph.sortable import sort_key_of
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.model.reading import Amounts

PodKey = tuple[str, str, str]
"""Namespace, name and UID: another pod of the same name is another one."""

_LAST: Final = ((1,),)
DEFAULT_STEP: Final = 2.0
"""Percent that use goes below a threshold where no rule says down to which: the meaning of the fields `lower`."""


def pod_key(pod: Facts) -> PodKey:
    """Which pod a record is of."""
    return (str(pod["namespace"]), str(pod["name"]), str(pod.get("uid", "")))


@dataclass(frozen=True, slots=True)
class Evictable:
    """The rules of one kind on one node. Where they cannot be told, nobody goes."""

    graph: RuleGraph
    kind: str
    node: Facts
    now: int

    def about(self, pod: Facts | None = None) -> About:
        """What the rules say, of one pod if there is one."""
        roots: dict[str, Any] = {"node": self.node, "now": TIMES.timestamp(self.now)}
        if pod is not None:
            roots["pod"] = pod
        return self.graph.about(self.kind, "", roots)

    def on(self, section: str) -> bool:
        """Whether pods go at all, and for the reason of a section."""
        about = self.about()
        return bool(about.value("enabled")) and bool(about.value(f"{section}.enabled"))

    def thresholds(self, at: str, lower: str) -> Thresholds | None:
        """From which percentage pods go and down to which; None where nothing says it."""
        about = self.about()
        threshold, low = about.value(at), about.value(lower)
        if threshold is None:
            return None
        return Thresholds(threshold, threshold - DEFAULT_STEP if low is None else low)

    def candidates(self, section: str, *, highest_priority: int | None = None) -> list[Facts]:
        """The pods that may go for the reason of a section, the first going first.

        With a highest priority only pods of at most that one, by their band where they have none themselves. Of those
        that go neither before nor after each other the less protected class goes first, then the last by name.
        """
        found = []
        for pod in self._known():
            if highest_priority is not None and self._priority(pod) > highest_priority:
                continue
            about = self.about(pod)
            if about.value_or(f"{section}.candidates", otherwise=False):
                found.append((self._key(about, section), pod))
        found.sort(key=lambda one: str(one[1]["name"]), reverse=True)
        protection = self._protection()
        found.sort(key=lambda one: protection.get(str(one[1]["qos"]), 0))
        found.sort(key=lambda one: one[0])
        return [pod for _key, pod in found]

    def _protection(self) -> dict[str, int]:
        """How far each class is protected at the cost of others."""
        return {
            str(said.get("value", name)): int(said.get("protectionOrder", 0))
            for name, said in self.graph.classes.qos.items()
        }

    def _known(self) -> Iterator[Facts]:
        return (pod for pod in self.node["pods"] if pod["known"])

    def _priority(self, pod: Facts) -> int:
        own = pod.get("priority")
        return int(own) if own else self.graph.catalogue.default_priority(str(pod["band"]))

    @staticmethod
    def _key(about: About, section: str) -> tuple[Any, ...]:
        try:
            return ((0,), *sort_key_of(about.value(f"{section}.order") or ()))
        except CelError:
            return _LAST

    # --- what is requested, against what is offered ------------------------------------------------

    def requests_up_to(
        self, highest_priority: int, native: str
    ) -> tuple[dict[str, int], dict[PodKey, Amounts]]:
        """What pods of at most that priority request of a native resource, by the name that their band has for it.

        Together, and each by itself. Pods that have ended count too, as they do in Koordinator.
        """
        together: dict[str, int] = {}
        each: dict[PodKey, Amounts] = {}
        for pod in self._known():
            if self._priority(pod) <= highest_priority:
                name = band_resources(self.graph, str(pod["band"])).get(native, native)
                amount = int(pod["resources.request"].get(name, 0))
                together[name] = together.get(name, 0) + amount
                each[pod_key(pod)] = {name: amount}
        return together, each

    def spares_guaranteed(self, highest_priority: int) -> bool:
        """Whether that priority is below all bands whose pods have the node's own resources for good."""
        lowest = min(
            (
                said["range.from"]
                for said in self.graph.classes.bands.values()
                if said.get("resources.mode") == "Native" and "range.from" in said
            ),
            default=None,
        )
        return lowest is None or highest_priority < lowest


def used(pods: Iterable[Facts], resource: str) -> dict[PodKey, Amounts]:
    """What pods use of a resource, of those that were measured."""
    return {
        pod_key(pod): {resource: int(pod[f"usage.{resource}"])} for pod in pods if f"usage.{resource}" in pod
    }
