"""Fact records of what only a pod's object says: what it tolerates, what of its node it shares, what it may do there.

Who decides on pods as they are submitted has the object at hand. Paths are those of the API, below the spec or a container, and
every field that is a fact as it stands is a line of a table here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from koordpolicy.model.facts.pod import container_facts
from koordpolicy.model.facts.record import Record
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.reading import Json, flag, integer, mapping, objects, text, text_list, texts


@dataclass(frozen=True, slots=True)
class SpecField:
    """A field by what it holds: a bool, str or int, a list or dict of texts.

    `unset` is the fact where the object does not say the field; None: there is none then.
    """

    kind: type
    unset: bool | str | int | tuple[str, ...] | Mapping[str, str] | None = None


_FLAG: Final = SpecField(bool, unset=False)
_TEXT: Final = SpecField(str, "")
_NUMBER: Final = SpecField(int, 0)
_TEXTS: Final = SpecField(list, ())
_USERS: Final[Mapping[str, SpecField]] = MappingProxyType(
    {
        "securityContext.runAsNonRoot": SpecField(bool),
        "securityContext.runAsUser": SpecField(int),
        "securityContext.runAsGroup": SpecField(int),
        "securityContext.seccompProfile.type": SpecField(str),
    }
)
"""What a pod says for all of its containers, and a container for itself."""

POD_FIELDS: Final[Mapping[str, SpecField]] = MappingProxyType(
    {
        "hostNetwork": _FLAG,
        "hostPID": _FLAG,
        "hostIPC": _FLAG,
        "serviceAccountName": _TEXT,
        "automountServiceAccountToken": SpecField(bool),
        "runtimeClassName": _TEXT,
        "nodeSelector": SpecField(dict, MappingProxyType({})),
        **_USERS,
        "securityContext.fsGroup": SpecField(int),
    }
)
CONTAINER_FIELDS: Final[Mapping[str, SpecField]] = MappingProxyType(
    {
        "imagePullPolicy": _TEXT,
        "securityContext.privileged": _FLAG,
        "securityContext.allowPrivilegeEscalation": SpecField(bool),
        "securityContext.readOnlyRootFilesystem": _FLAG,
        **_USERS,
        "securityContext.capabilities.add": _TEXTS,
        "securityContext.capabilities.drop": _TEXTS,
    }
)
TOLERATION_FIELDS: Final[Mapping[str, SpecField]] = MappingProxyType(
    {
        "key": _TEXT,
        "operator": SpecField(str, "Equal"),
        "value": _TEXT,
        "effect": _TEXT,
        "tolerationSeconds": SpecField(int),
    }
)
VOLUME_FIELDS: Final[Mapping[str, SpecField]] = MappingProxyType(
    {"name": _TEXT, "hostPath.path": SpecField(str)}
)
PORT_FIELDS: Final[Mapping[str, SpecField]] = MappingProxyType(
    {
        "name": _TEXT,
        "containerPort": _NUMBER,
        "hostPort": _NUMBER,
        "hostIP": _TEXT,
        "protocol": SpecField(str, "TCP"),
    }
)

EMPTY_DIR: Final = "emptyDir"
VOLUME_SOURCES: Final = (
    "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "configMap", "csi", "downwardAPI", EMPTY_DIR,
    "ephemeral", "fc", "flexVolume", "flocker", "gcePersistentDisk", "gitRepo", "glusterfs", "hostPath", "image", "iscsi",
    "nfs", "persistentVolumeClaim", "photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd", "scaleIO",
    "secret", "storageos", "vsphereVolume",
)  # fmt: skip
"""Where the API lets volumes come from."""


@dataclass(frozen=True, slots=True)
class _Group:
    """The fields below one part of an object, with how each is read. `unset` is what they are where that part is not there."""

    steps: tuple[str, ...]
    fields: tuple[tuple[str, str, Callable[[Json, str, str], object], object], ...]
    unset: Record


def _groups(fields: Mapping[str, SpecField]) -> tuple[_Group, ...]:
    below: dict[tuple[str, ...], list[str]] = {}
    for path in fields:
        below.setdefault(tuple(path.split(".")[:-1]), []).append(path)
    return tuple(
        _Group(
            steps,
            tuple(
                (path, path.rpartition(".")[2], _READERS[fields[path].kind], _unset(fields[path]))
                for path in paths
            ),
            {path: value for path in paths if (value := _unset(fields[path])) is not None},
        )
        for steps, paths in below.items()
    )


def _unset(field: SpecField) -> object:
    return list(field.unset) if isinstance(field.unset, tuple) else field.unset


_READERS: Final[Mapping[type, Callable[[Json, str, str], object]]] = {
    bool: flag,
    str: text,
    int: integer,
    list: text_list,
    dict: texts,
}
_POD: Final = _groups(POD_FIELDS)
_CONTAINER: Final = _groups(CONTAINER_FIELDS)
_TOLERATION: Final = _groups(TOLERATION_FIELDS)
_VOLUME: Final = _groups(VOLUME_FIELDS)
_PORT: Final = _groups(PORT_FIELDS)


def submitted_pod_facts(pod: Pod) -> Record:
    """What follows from a pod's object beside `pod_facts`. Raises ObjectError with the place of what is malformed."""
    spec = mapping(pod.raw, "spec")
    return {
        **_said(spec, _POD, "spec"),
        "tolerations": [
            _said(one, _TOLERATION, f"spec.tolerations[{at}]")
            for at, one in enumerate(objects(spec, "tolerations", "spec"))
        ],
        "volumes": [
            {**_said(one, _VOLUME, f"spec.volumes[{at}]"), "source": _source(one)}
            for at, one in enumerate(objects(spec, "volumes", "spec"))
        ],
        "ephemeralContainers": [
            _ephemeral(one, f"spec.ephemeralContainers[{at}]")
            for at, one in enumerate(objects(spec, "ephemeralContainers", "spec"))
        ],
    }


def container_spec_facts(container: Json, at: str) -> Record:
    """What follows from a container's object beside `container_facts`; `at` is its place. Raises ObjectError."""
    ports = enumerate(objects(container, "ports", at))
    return {
        **_said(container, _CONTAINER, at),
        "ports": [_said(one, _PORT, f"{at}.ports[{index}]") for index, one in ports],
    }


def container_specs(pod: Pod) -> list[Record]:
    """The same of all containers of a pod, in the order of the fact `containers`."""
    spec = mapping(pod.raw, "spec")
    return [
        container_spec_facts(one, f"spec.{field}[{at}]")
        for field in ("initContainers", "containers")
        for at, one in enumerate(objects(spec, field, "spec"))
    ]


def _ephemeral(container: Json, at: str) -> Record:
    """One that was added to a running pod to look into it, which can ask for nothing."""
    known = Container(text(container, "name", at), text(container, "image", at))
    return {**container_facts(known, init=False), **container_spec_facts(container, at)}


def _source(volume: Json) -> str:
    """Where a volume comes from; empty for what this version does not know."""
    said = [name for name, value in volume.items() if value is not None and name != "name"]
    if not said:
        return EMPTY_DIR
    return next((name for name in VOLUME_SOURCES if name in said), "")


def _said(parent: Json, groups: tuple[_Group, ...], at: str) -> Record:
    record: Record = {}
    for group in groups:
        holder, place = parent, at
        for step in group.steps:
            holder, place = mapping(holder, step, place), f"{place}.{step}"
        if not holder:
            record.update(group.unset)
            continue
        for path, key, read, unset in group.fields:
            value = unset if holder.get(key) is None else read(holder, key, place)
            if value == "":  # means the same as nothing, as everywhere in the API
                value = unset
            if value is not None:
                record[path] = value
    return record
