"""The messages of CRI (`runtime.v1`) and of Koordinator's hook servers (`runtime.v1alpha1`), as far as hooks read or change them.

Numbers are those of Kubernetes' cri-api and of Koordinator's `apis/runtime/v1alpha1`; both number the resources of containers alike,
so that these go from one to the other as they are.
"""

from typing import Final

from koordpolicy.cri.wire import Field, Form, Shape


def _texts(number: int) -> Field:
    return Field(number, Form.TEXTS)


def _text(number: int) -> Field:
    return Field(number, Form.TEXT)


def _integer(number: int) -> Field:
    return Field(number, Form.INTEGER)


def _message(number: int, shape: Shape) -> Field:
    return Field(number, Form.MESSAGE, shape)


def _messages(number: int, shape: Shape) -> Field:
    return Field(number, Form.MESSAGES, shape)


# --- shared by both

POD_METADATA: Final[Shape] = {
    "name": _text(1),
    "uid": _text(2),
    "namespace": _text(3),
    "attempt": _integer(4),
}
CONTAINER_METADATA: Final[Shape] = {"name": _text(1), "attempt": _integer(2), "id": _text(3)}
"""CRI has no `id` there; Koordinator's hook servers do."""
RESOURCES: Final[Shape] = {
    "cpu_period": _integer(1),
    "cpu_quota": _integer(2),
    "cpu_shares": _integer(3),
    "memory_limit_in_bytes": _integer(4),
    "oom_score_adj": _integer(5),
    "cpuset_cpus": _text(6),
    "cpuset_mems": _text(7),
    "unified": _texts(9),
    "memory_swap_limit_in_bytes": _integer(10),
}

# --- CRI

_KEY_VALUE: Final[Shape] = {"key": _text(1), "value": _text(2)}
_POD_LINUX: Final[Shape] = {"cgroup_parent": _text(1)}
_POD_CONFIG: Final[Shape] = {
    "metadata": _message(1, POD_METADATA),
    "labels": _texts(6),
    "annotations": _texts(7),
    "linux": _message(8, _POD_LINUX),
}
RUN_POD_SANDBOX: Final[Shape] = {"config": _message(1, _POD_CONFIG), "runtime_handler": _text(2)}
_CONTAINER_LINUX: Final[Shape] = {"resources": _message(1, RESOURCES)}
_CONTAINER_CONFIG: Final[Shape] = {
    "metadata": _message(1, CONTAINER_METADATA),
    "envs": _messages(6, _KEY_VALUE),
    "annotations": _texts(10),
    "linux": _message(15, _CONTAINER_LINUX),
}
CREATE_CONTAINER: Final[Shape] = {
    "pod_sandbox_id": _text(1),
    "config": _message(2, _CONTAINER_CONFIG),
    "sandbox_config": _message(3, _POD_CONFIG),
}
IDENTITY: Final[Shape] = {"id": _text(1)}
"""Of a sandbox or container: all answers and requests that say no more, or say it first."""
UPDATE_RESOURCES: Final[Shape] = {
    "container_id": _text(1),
    "linux": _message(2, RESOURCES),
    "annotations": _texts(4),
}
_LISTED_POD: Final[Shape] = {
    "id": _text(1),
    "metadata": _message(2, POD_METADATA),
    "labels": _texts(5),
    "annotations": _texts(6),
    "runtime_handler": _text(7),
}
POD_LIST: Final[Shape] = {"items": _messages(1, _LISTED_POD)}
_LISTED_CONTAINER: Final[Shape] = {
    "id": _text(1),
    "pod_sandbox_id": _text(2),
    "metadata": _message(3, CONTAINER_METADATA),
    "annotations": _texts(9),
}
CONTAINER_LIST: Final[Shape] = {"containers": _messages(1, _LISTED_CONTAINER)}

# --- hook servers

POD_HOOK_REQUEST: Final[Shape] = {
    "pod_meta": _message(1, POD_METADATA),
    "runtime_handler": _text(2),
    "labels": _texts(3),
    "annotations": _texts(4),
    "cgroup_parent": _text(5),
}
POD_HOOK_ANSWER: Final[Shape] = {
    "labels": _texts(1),
    "annotations": _texts(2),
    "cgroup_parent": _text(3),
    "resources": _message(4, RESOURCES),
}
CONTAINER_HOOK_REQUEST: Final[Shape] = {
    "pod_meta": _message(1, POD_METADATA),
    "container_meta": _message(2, CONTAINER_METADATA),
    "container_annotations": _texts(3),
    "container_resources": _message(4, RESOURCES),
    "pod_annotations": _texts(6),
    "pod_labels": _texts(7),
    "pod_cgroup_parent": _text(8),
    "container_envs": _texts(9),
}
CONTAINER_HOOK_ANSWER: Final[Shape] = {
    "container_annotations": _texts(1),
    "container_resources": _message(2, RESOURCES),
    "pod_cgroup_parent": _text(3),
    "container_envs": _texts(4),
}
