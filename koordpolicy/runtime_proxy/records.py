"""What the proxy remembers of pods and containers: later calls name them by an ID alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.cri.shapes import (
    CONTAINER_HOOK_REQUEST,
    CONTAINER_LIST,
    POD_HOOK_REQUEST,
    POD_LIST,
)
from koordpolicy.cri.wire import Message

_POD: Final = "pod_meta"


@dataclass(slots=True)
class PodRecord:
    """A pod as hook servers are told of it: a request of theirs, that only lacks an answer. Raises `WireError` for labels that are none."""

    asked: Message
    labels: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.labels = self.asked.texts("labels")


@dataclass(slots=True)
class ContainerRecord:
    """A container as hook servers are told of it. `has_resources` is false where nobody has told of any since the proxy began."""

    pod: PodRecord
    asked: Message
    has_resources: bool


@dataclass(slots=True)
class Records:
    """Pods by the ID of their sandbox, and containers by theirs."""

    pods: dict[str, PodRecord] = field(default_factory=dict)
    containers: dict[str, ContainerRecord] = field(default_factory=dict)

    def take_over(self, pods: bytes, containers: bytes) -> list[str]:
        """Make records of what a runtime lists; the IDs of containers whose pod it does not list. Raises `WireError`.

        A runtime lists neither the parent of control groups nor resources nor environments.
        """
        for pod in Message(POD_LIST, pods).messages("items"):
            asked = Message(POD_HOOK_REQUEST)
            for name, of in (
                (_POD, "metadata"),
                ("runtime_handler", "runtime_handler"),
                ("labels", "labels"),
                ("annotations", "annotations"),
            ):
                asked.take(name, pod, of)
            self.pods.setdefault(pod.text("id"), PodRecord(asked))
        lost = []
        for one in Message(CONTAINER_LIST, containers).messages("containers"):
            of_pod = self.pods.get(one.text("pod_sandbox_id"))
            if of_pod is None:
                lost.append(one.text("id"))
                continue
            metadata = one.message("metadata")
            metadata.put_text("id", one.text("id"))
            asked = container_request(of_pod)
            asked.put_message("container_meta", metadata)
            asked.take("container_annotations", one, "annotations")
            self.containers.setdefault(one.text("id"), ContainerRecord(of_pod, asked, has_resources=False))
        return lost


def container_request(pod: PodRecord) -> Message:
    """What hook servers are asked about a container, as far as it is its pod's."""
    asked = Message(CONTAINER_HOOK_REQUEST)
    for name, of in (
        (_POD, _POD),
        ("pod_annotations", "annotations"),
        ("pod_labels", "labels"),
        ("pod_cgroup_parent", "cgroup_parent"),
    ):
        asked.take(name, pod.asked, of)
    return asked
