"""Runners of the runtime proxy: what a hook's answer makes of a container's resources, as messages."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.cri.shapes import CONTAINER_HOOK_ANSWER, CONTAINER_HOOK_REQUEST, POD_HOOK_REQUEST, RESOURCES
from koordpolicy.cri.wire import Message
from koordpolicy.runtime_proxy.merging import merge_container
from koordpolicy.runtime_proxy.records import ContainerRecord, PodRecord
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]


def proxy_merge(given: Given) -> Given:
    asked = Message(CONTAINER_HOOK_REQUEST)
    asked.put_message("container_resources", resources(given["record"]))
    record = ContainerRecord(PodRecord(Message(POD_HOOK_REQUEST)), "", asked, has_resources=True)
    answer = Message(CONTAINER_HOOK_ANSWER)
    answer.put_message("container_resources", resources(given["hook"]))
    merge_container(record, answer.encoded())
    found = record.asked.message("container_resources")
    return {
        "result": {
            name: found.text(name) if isinstance(value, str) else found.integer(name)
            for name, value in given["record"].items()
        }
    }


def resources(said: Given) -> Message:
    made = Message(RESOURCES)
    for name, value in said.items():
        if isinstance(value, str):
            made.put_text(name, value)
        else:
            made.put_integer(name, value)
    return made


RUNNERS: Mapping[str, Runner] = {"proxy_merge": Runner(proxy_merge)}
