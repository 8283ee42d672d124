"""The messages of NRI (`nri.pkg.api.v1alpha1`) as far as hooks read or change them; numbers are those of containerd's nri."""

from enum import IntEnum
from typing import Final

from koordpolicy.cri.wire import Field, Form, Shape

RUNTIME: Final = "nri.pkg.api.v1alpha1.Runtime"
PLUGIN_CONNECTION: Final = 1
RUNTIME_CONNECTION: Final = 2


class NriEvent(IntEnum):
    """What a plugin may subscribe to: the bit of each in the mask is one less than its number."""

    CREATE_CONTAINER = 4
    UPDATE_CONTAINER = 8


def _of(number: int, form: Form, shape: Shape | None = None) -> Field:
    return Field(number, form, shape)


_NUMBER: Final[Shape] = {"value": _of(1, Form.INTEGER)}
"""One that may be absent."""


def _optional(number: int) -> Field:
    return Field(number, Form.MESSAGE, _NUMBER)


REGISTER: Final[Shape] = {"plugin_name": _of(1, Form.TEXT), "plugin_idx": _of(2, Form.TEXT)}
CONFIGURE: Final[Shape] = {"runtime_name": _of(2, Form.TEXT), "runtime_version": _of(3, Form.TEXT)}
CONFIGURED: Final[Shape] = {"events": _of(2, Form.INTEGER)}
SYNCHRONIZE: Final[Shape] = {"more": _of(3, Form.INTEGER)}
SYNCHRONIZED: Final[Shape] = {"more": _of(2, Form.INTEGER)}

_MEMORY: Final[Shape] = {"limit": _optional(1)}
_CPU: Final[Shape] = {
    "shares": _optional(1),
    "quota": _optional(2),
    "period": _optional(3),
    "cpus": _of(6, Form.TEXT),
}
NRI_RESOURCES: Final[Shape] = {
    "memory": _of(1, Form.MESSAGE, _MEMORY),
    "cpu": _of(2, Form.MESSAGE, _CPU),
    "unified": _of(6, Form.TEXTS),
}
_POD_LINUX: Final[Shape] = {"cgroup_parent": _of(3, Form.TEXT)}
NRI_POD: Final[Shape] = {
    "name": _of(2, Form.TEXT),
    "uid": _of(3, Form.TEXT),
    "namespace": _of(4, Form.TEXT),
    "labels": _of(5, Form.TEXTS),
    "annotations": _of(6, Form.TEXTS),
    "linux": _of(8, Form.MESSAGE, _POD_LINUX),
}
_CONTAINER_LINUX: Final[Shape] = {"resources": _of(3, Form.MESSAGE, NRI_RESOURCES)}
NRI_CONTAINER: Final[Shape] = {
    "id": _of(1, Form.TEXT),
    "name": _of(3, Form.TEXT),
    "linux": _of(11, Form.MESSAGE, _CONTAINER_LINUX),
}
OF_CONTAINER: Final[Shape] = {
    "pod": _of(1, Form.MESSAGE, NRI_POD),
    "container": _of(2, Form.MESSAGE, NRI_CONTAINER),
    "linux_resources": _of(3, Form.MESSAGE, NRI_RESOURCES),
}
"""CreateContainer, and UpdateContainer with resources that are to be another way."""
NRI_KEY_VALUE: Final[Shape] = {"key": _of(1, Form.TEXT), "value": _of(2, Form.TEXT)}
_ADJUSTED_LINUX: Final[Shape] = {
    "resources": _of(2, Form.MESSAGE, NRI_RESOURCES),
    "oom_score_adj": _optional(4),
}
ADJUSTMENT: Final[Shape] = {
    "annotations": _of(2, Form.TEXTS),
    "env": _of(4, Form.MESSAGES, NRI_KEY_VALUE),
    "linux": _of(6, Form.MESSAGE, _ADJUSTED_LINUX),
}
CREATED: Final[Shape] = {"adjust": _of(1, Form.MESSAGE, ADJUSTMENT)}
_UPDATED_LINUX: Final[Shape] = {"resources": _of(1, Form.MESSAGE, NRI_RESOURCES)}
CONTAINER_UPDATE: Final[Shape] = {
    "container_id": _of(1, Form.TEXT),
    "linux": _of(2, Form.MESSAGE, _UPDATED_LINUX),
}
UPDATED: Final[Shape] = {"update": _of(1, Form.MESSAGES, CONTAINER_UPDATE)}
