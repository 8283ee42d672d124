"""Hooks as a runtime proxy asks for them: a message about a pod or container, and the answer.

The answer's resources are those of the question with what hooks change: a proxy takes sets of CPUs and the score of an answer as they are,
so that saying nothing of them would clear them.
"""

from collections.abc import Callable, Mapping
from typing import Final

from koordpolicy.agent.hooks.stages import STAGE_OF, Stage
from koordpolicy.agent.hooks.starting import HookScene, StartChanges, container_changes, pod_changes
from koordpolicy.agent.plan import FileValue
from koordpolicy.cri.shapes import (
    CONTAINER_HOOK_ANSWER,
    CONTAINER_HOOK_REQUEST,
    POD_HOOK_ANSWER,
    POD_HOOK_REQUEST,
)
from koordpolicy.cri.stages import HookStage
from koordpolicy.cri.wire import Message
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import CPU, MEMORY, QOS_BEST_EFFORT, QOS_BURSTABLE, QOS_GUARANTEED

PodOf = Callable[[str], Pod | None]
"""The pod of a UID, where the agent knows it."""

FIELDS: Final[Mapping[str, str]] = {
    "cpu.shares": "cpu_shares",
    "cpu.cfs_quota_us": "cpu_quota",
    "memory.limit_in_bytes": "memory_limit_in_bytes",
    "oom_score_adj": "oom_score_adj",
}
"""The field of CRI that stands for a kernel file."""


def answer(scene: HookScene, pod_of: PodOf, stage: HookStage, data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The answer to a proxy, and what is to be told of hooks that were passed over.

    Raises `HookFailed`, and `WireError` where the question is no message.
    """
    if stage not in STAGE_OF:
        return b"", ()
    if stage.of_pod:
        return _of_pod(scene, pod_of, STAGE_OF[stage], Message(POD_HOOK_REQUEST, data))
    return _of_container(scene, pod_of, STAGE_OF[stage], Message(CONTAINER_HOOK_REQUEST, data))


def _of_pod(scene: HookScene, pod_of: PodOf, stage: Stage, asked: Message) -> tuple[bytes, tuple[str, ...]]:
    metadata = asked.message("pod_meta")
    pod = pod_of(metadata.text("uid")) or told_pod(
        metadata, asked.texts("labels"), asked.texts("annotations"), asked.text("cgroup_parent")
    )
    changes = pod_changes(scene, pod, stage)
    made = Message(POD_HOOK_ANSWER)
    made.put_texts("annotations", changes.annotations)
    return made.encoded(), changes.notes


def _of_container(
    scene: HookScene, pod_of: PodOf, stage: Stage, asked: Message
) -> tuple[bytes, tuple[str, ...]]:
    name = asked.message("container_meta").text("name")
    resources = asked.message("container_resources")
    metadata = asked.message("pod_meta")
    pod = pod_of(metadata.text("uid")) or told_pod(
        metadata,
        asked.texts("pod_labels"),
        asked.texts("pod_annotations"),
        asked.text("pod_cgroup_parent"),
        (told_container(name, resources),),
    )
    changes = container_changes(scene, pod, name, stage)
    made = Message(CONTAINER_HOOK_ANSWER)
    made.put_texts("container_annotations", changes.annotations)
    put_changes(resources, changes)
    made.put_message("container_resources", resources)
    if changes.environment:
        made.put_texts("container_envs", {**asked.texts("container_envs"), **changes.environment})
    return made.encoded(), changes.notes


def put_changes(resources: Message, changes: StartChanges) -> None:
    """Make resources of CRI say what hooks change."""
    for file, name in FIELDS.items():
        value: FileValue | None = changes.files.get(file)
        if isinstance(value, int):
            resources.put_integer(name, value)
    if changes.cpus is not None:
        resources.put_text("cpuset_cpus", changes.cpus)
    if changes.unified:
        resources.put_texts("unified", {**resources.texts("unified"), **changes.unified})


def told_pod(
    metadata: Message,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    parent: str,
    containers: tuple[Container, ...] = (),
) -> Pod:
    """A pod as its runtime knows it, before anybody else has told of it: its class by where its group stands."""
    return Pod(
        metadata.text("name"),
        metadata.text("namespace"),
        metadata.text("uid"),
        labels,
        annotations,
        containers=containers,
        kubernetes_qos=_class_of(parent),
    )


def told_container(name: str, resources: Message) -> Container:
    """A container with what its runtime is asked to give it, as amounts that a spec would have."""
    limits, requests = {}, {}
    quota, period = resources.integer("cpu_quota"), resources.integer("cpu_period")
    if quota > 0 and period > 0:
        limits[CPU] = quota * 1000 // period
    if (memory := resources.integer("memory_limit_in_bytes")) > 0:
        limits[MEMORY] = memory
    if (shares := resources.integer("cpu_shares")) > 2:
        requests[CPU] = -(-shares * 1000 // 1024)
    return Container(name, requests=requests, limits=limits)


def _class_of(parent: str) -> str:
    for word, name in (("besteffort", QOS_BEST_EFFORT), ("burstable", QOS_BURSTABLE)):
        if word in parent:
            return name
    return QOS_GUARANTEED if parent else QOS_BEST_EFFORT
