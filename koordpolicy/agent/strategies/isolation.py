"""What policy says of each group of pods: which group a pod belongs to, and the fields of that group."""

from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.graph import About, RuleGraph
from koordpolicy.graph.graph import Facts
from koordpolicy.language.facts import TIMES
from koordpolicy.model.protocol import QOS_BEST_EFFORT, QOS_BURSTABLE, QOS_GUARANTEED

KIND: Final = "Isolation"
LSE: Final = "LSE"
LSR: Final = "LSR"
LS: Final = "LS"
BE: Final = "BE"
SYSTEM: Final = "SYSTEM"
ROOT: Final = "root"

_BY_KUBERNETES: Final = {QOS_GUARANTEED: LSR, QOS_BURSTABLE: LS, QOS_BEST_EFFORT: BE}


def labelled_group(pod: Facts) -> str:
    """The group of the class that a pod's label says, LSE pods being as LSR ones; empty without one."""
    label = str(pod["qosLabel"])
    return LSR if label == LSE else label


def group_of(pod: Facts) -> str:
    """The group of a pod's class, by its label or by policy's default for its Kubernetes class."""
    qos = str(pod["qos"])
    return LSR if qos == LSE else qos


@dataclass(frozen=True, slots=True)
class Isolations:
    """The isolation policies of one revision on one node; `now` in nanoseconds since 1970."""

    graph: RuleGraph
    node: Facts
    now: int

    def about(self, group: str) -> About | None:
        """What is said of a group; None where no policy speaks of it."""
        if group not in self.graph.subjects(KIND):
            return None
        return self.graph.about(KIND, group, {"node": self.node, "now": TIMES.timestamp(self.now)})

    def on(self, group: str, section: str) -> bool:
        """Whether a section of a group is switched on."""
        about = self.about(group)
        return about is not None and bool(about.value(f"{section}.enabled"))

    def value(self, group: str, section: str, field: str, disabled: Any = None) -> Any:
        """A field of a group: what is said of it, and `disabled` while its section is not switched on.

        None where nobody speaks of the section: then the kernel's own is left alone.
        """
        about = self.about(group)
        if about is None:
            return None
        if not about.value(f"{section}.enabled"):
            return disabled if about.says(f"{section}.enabled") else None
        return about.value(f"{section}.{field}")

    def labelled_or_kubernetes(self, pod: Facts, section: str) -> str:
        """The group for the kernel's scheduler: by the label, else by the Kubernetes class.

        Guaranteed pods without a label are as LSR ones where that group is switched on, else as LS ones.
        """
        labelled = labelled_group(pod)
        if labelled in (LSR, LS, BE):
            return labelled
        found = _BY_KUBERNETES.get(str(pod["kubernetesQoS"]), LS)
        return LS if found == LSR and not self.on(LSR, section) else found
