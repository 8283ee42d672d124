"""What hook servers' answers make of records and of the runtime's requests. Fields that nobody changed keep their bytes."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final

from koordpolicy.algorithms.runtime_merge import RuntimeResources, answered, updated
from koordpolicy.cri.shapes import CONTAINER_HOOK_ANSWER, POD_HOOK_ANSWER
from koordpolicy.cri.wire import Message
from koordpolicy.runtime_proxy.records import ContainerRecord, PodRecord

_TEXT: Final = frozenset({"cpuset_cpus", "cpuset_mems"})
_NAMES: Final = tuple(one.name for one in fields(RuntimeResources))


def resources_of(message: Message) -> RuntimeResources:
    """Resources of CRI as values."""
    found: dict[str, Any] = {
        name: message.text(name) if name in _TEXT else message.integer(name)
        for name in _NAMES
        if name != "unified"
    }
    return RuntimeResources(**found, unified=message.texts("unified"))


def put_resources(message: Message, wanted: RuntimeResources) -> None:
    """Bring those fields up to date that say something else."""
    there = resources_of(message)
    if wanted == there:
        return
    for name in _NAMES:
        value = getattr(wanted, name)
        if value == getattr(there, name):
            continue
        if name == "unified":
            message.put_texts(name, value)
        elif name in _TEXT:
            message.put_text(name, value)
        else:
            message.put_integer(name, value)


def merge_pod(record: PodRecord, answer: bytes) -> None:
    """Take a hook's answer about a pod over; its resources are nothing that CRI could be told. Raises `WireError`."""
    said = Message(POD_HOOK_ANSWER, answer)
    for name in ("labels", "annotations"):
        _add_texts(record.asked, name, said.texts(name))
    record.labels = record.asked.texts("labels")
    if parent := said.text("cgroup_parent"):
        record.asked.put_text("cgroup_parent", parent)


def merge_container(record: ContainerRecord, answer: bytes) -> None:
    """Take a hook's answer about a container over. Raises `WireError`."""
    said = Message(CONTAINER_HOOK_ANSWER, answer)
    _add_texts(record.asked, "container_annotations", said.texts("container_annotations"))
    if parent := said.text("pod_cgroup_parent"):
        record.asked.put_text("pod_cgroup_parent", parent)
    if record.has_resources and said.has("container_resources"):
        _merge(record, said.message("container_resources"), answered)
    if said.has("container_envs"):
        record.asked.put_texts("container_envs", said.texts("container_envs"))


def merge_update(record: ContainerRecord, asked: Message) -> None:
    """Take over what a runtime is asked to change. Raises `WireError`."""
    if record.has_resources:
        _merge(record, asked, updated)


def _merge(
    record: ContainerRecord,
    other: Message,
    rule: Callable[[RuntimeResources, RuntimeResources], RuntimeResources],
) -> None:
    mine = record.asked.message("container_resources")
    put_resources(mine, rule(resources_of(mine), resources_of(other)))
    record.asked.put_message("container_resources", mine)


def put_pod(config: Message, record: PodRecord) -> None:
    """Make the configuration of a sandbox say what the record says."""
    for name in ("labels", "annotations"):
        if not config.same(name, record.asked, name):
            _put_texts(config, name, record.asked.texts(name))
    _put_parent(config, record.asked.text("cgroup_parent"))


def put_container(request: Message, record: ContainerRecord) -> None:
    """Make a request to create a container say what the record says."""
    config = request.message("config")
    if not config.same("annotations", record.asked, "container_annotations"):
        _put_texts(config, "annotations", record.asked.texts("container_annotations"))
    if record.has_resources:
        linux = config.message("linux")
        there = linux.message("resources")
        put_resources(there, resources_of(record.asked.message("container_resources")))
        if linux.has("resources") or there.encoded():
            linux.put_message("resources", there)
            config.put_message("linux", linux)
    if not config.same("envs", record.asked, "container_envs"):
        _put_environment(config, record.asked.texts("container_envs"))
    request.put_message("config", config)
    sandbox = request.message("sandbox_config")
    if _put_parent(sandbox, record.asked.text("pod_cgroup_parent")):
        request.put_message("sandbox_config", sandbox)


def put_update(request: Message, record: ContainerRecord) -> None:
    """Make a request to change resources say the whole record: what nobody asked for stays as it was that way."""
    linux = request.message("linux")
    put_resources(linux, resources_of(record.asked.message("container_resources")))
    request.put_message("linux", linux)
    _put_texts(request, "annotations", {**request.texts("annotations"), **record.asked.texts("container_annotations")})  # fmt: skip


def environment_of(config: Message) -> dict[str, str]:
    """A container's environment as its runtime is asked for it."""
    return {one.text("key"): one.text("value") for one in config.messages("envs")}


def _put_environment(config: Message, wanted: Mapping[str, str]) -> None:
    """In the order that is there, new ones at the end."""
    there = environment_of(config)
    if dict(wanted) == there:
        return
    shape = config.shape["envs"].shape or {}
    kept = [one for one in config.messages("envs") if one.text("key") in wanted]
    for one in kept:
        if one.text("value") != wanted[one.text("key")]:
            one.put_text("value", wanted[one.text("key")])
    for key in (one for one in wanted if one not in there):
        kept.append(Message(shape))
        kept[-1].put_text("key", key)
        kept[-1].put_text("value", wanted[key])
    config.put_messages("envs", kept)


def _put_parent(config: Message, parent: str) -> bool:
    linux = config.message("linux")
    if not parent or linux.text("cgroup_parent") == parent:
        return False
    linux.put_text("cgroup_parent", parent)
    config.put_message("linux", linux)
    return True


def _add_texts(message: Message, name: str, more: Mapping[str, str]) -> None:
    if more:
        message.put_texts(name, {**message.texts(name), **more})


def _put_texts(message: Message, name: str, wanted: Mapping[str, str]) -> None:
    if message.texts(name) != wanted:
        message.put_texts(name, wanted)
