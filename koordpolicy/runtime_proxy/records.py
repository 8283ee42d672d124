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
from koordpolicy.cri.wire import Message, WireError
from koordpolicy.runtime_proxy.checkpoint import Checkpoint, Kept, Prepared

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
    sandbox: str
    asked: Message
    has_resources: bool


class Records:
    """Pods by the ID of their sandbox, and containers by theirs."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._prepared = 0
        self.pods: dict[str, PodRecord] = {}
        self.containers: dict[str, ContainerRecord] = {}

    def put_pod(self, identity: str, record: PodRecord) -> None:
        """Remember a pod, over a restart too."""
        self.pods[identity] = record
        self._checkpoint.keep(identity, Kept(record.asked.encoded()))

    def prepare_container(self, record: ContainerRecord) -> Prepared | None:
        """Write down a container that its runtime is about to make."""
        self._prepared += 1
        return self._checkpoint.prepare(f"{record.sandbox}.{self._prepared}", _kept(record))

    def put_new_container(self, identity: str, record: ContainerRecord, prepared: Prepared | None) -> None:
        """Remember a container that has its ID now."""
        name_container(record, identity)
        if prepared is None:
            self.put_container(identity, record)
            return
        self.containers[identity] = record
        self._checkpoint.settle(prepared, identity)

    def give_up(self, prepared: Prepared | None) -> None:
        """Forget a container that was not made."""
        self._checkpoint.give_up(prepared)

    def put_container(self, identity: str, record: ContainerRecord) -> None:
        """Remember a container, over a restart too."""
        self.containers[identity] = record
        self._checkpoint.keep(identity, _kept(record))

    def drop_pod(self, identity: str) -> None:
        """Forget a pod."""
        if self.pods.pop(identity, None) is not None:
            self._checkpoint.forget(identity)

    def drop_container(self, identity: str) -> None:
        """Forget a container."""
        if self.containers.pop(identity, None) is not None:
            self._checkpoint.forget(identity)

    def drop_sandbox(self, identity: str) -> None:
        """Forget a pod with all that was in it."""
        self.drop_pod(identity)
        for name in [name for name, one in self.containers.items() if one.sandbox == identity]:
            self.drop_container(name)

    def take_over(self, pods: bytes, containers: bytes) -> list[str]:
        """Make records of what a runtime lists; the IDs of containers whose pod it does not list. Raises `WireError`.

        A runtime lists neither the parent of control groups nor resources nor environments: these are those of the checkpoint,
        as far as it has any. What it has of others goes.
        """
        kept = self._checkpoint.read()
        lost = []
        for pod in Message(POD_LIST, pods).messages("items"):
            identity = pod.text("id")
            if identity not in self.pods:
                self.pods[identity] = _pod_of(kept.pop(identity, None)) or _listed_pod(pod)
        for one in Message(CONTAINER_LIST, containers).messages("containers"):
            identity, sandbox = one.text("id"), one.text("pod_sandbox_id")
            of = self.pods.get(sandbox)
            if of is None:
                lost.append(identity)
            elif identity not in self.containers:
                record = _container_of(kept.pop(identity, None), of, identity, sandbox)
                self.containers[identity] = record or _listed_container(one, of, sandbox)
        for identity in kept:
            self._checkpoint.forget(identity)
        return lost


def name_container(record: ContainerRecord, identity: str) -> None:
    """Put a container's ID into what is asked about it."""
    metadata = record.asked.message("container_meta")
    metadata.put_text("id", identity)
    record.asked.put_message("container_meta", metadata)


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


def _listed_pod(pod: Message) -> PodRecord:
    asked = Message(POD_HOOK_REQUEST)
    for name, of in (
        (_POD, "metadata"),
        ("runtime_handler", "runtime_handler"),
        ("labels", "labels"),
        ("annotations", "annotations"),
    ):
        asked.take(name, pod, of)
    return PodRecord(asked)


def _listed_container(one: Message, pod: PodRecord, sandbox: str) -> ContainerRecord:
    metadata = one.message("metadata")
    metadata.put_text("id", one.text("id"))
    asked = container_request(pod)
    asked.put_message("container_meta", metadata)
    asked.take("container_annotations", one, "annotations")
    return ContainerRecord(pod, sandbox, asked, has_resources=False)


def _pod_of(kept: Kept | None) -> PodRecord | None:
    try:
        return None if kept is None else PodRecord(Message(POD_HOOK_REQUEST, kept.asked))
    except WireError:
        return None


def _container_of(kept: Kept | None, pod: PodRecord, identity: str, sandbox: str) -> ContainerRecord | None:
    if kept is None or kept.sandbox != sandbox:
        return None
    try:
        record = ContainerRecord(
            pod, sandbox, Message(CONTAINER_HOOK_REQUEST, kept.asked), kept.has_resources
        )
        name_container(record, identity)
    except WireError:
        return None
    return record


def _kept(record: ContainerRecord) -> Kept:
    return Kept(record.asked.encoded(), record.sandbox, record.has_resources)
