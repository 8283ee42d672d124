"""The NodeManagers that a ResourceManager tells of, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from koordpolicy.model.reading import Json, ObjectError, mapping, objects, text

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class YARNAmounts:
    """Memory in mebibytes and virtual cores, as YARN counts."""

    memory: int
    vcores: int


@dataclass(frozen=True, slots=True)
class NodeManager:
    """A NodeManager by its `host:port`: what YARN may use there (`total`), and what its containers have."""

    id: str
    state: str
    total: YARNAmounts
    used: YARNAmounts
    containers: int


def read_node_managers(answer: Json) -> Mapping[str, NodeManager]:
    """What `GET /ws/v1/cluster/nodes` says, by id. Raises ObjectError with the place of what is malformed.

    Where there is no node, `nodes` is null or empty.
    """
    if "nodes" not in answer:
        raise ObjectError("nodes: missing; is this the address of a ResourceManager?")
    found = (_node_manager(one) for one in objects(mapping(answer, "nodes"), "node", "nodes"))
    return {one.id: one for one in found}


def _node_manager(obj: Json) -> NodeManager:
    id = text(obj, "id", "node")
    if not id:
        raise ObjectError("node.id: missing")
    used = YARNAmounts(_count(obj, "usedMemoryMB"), _count(obj, "usedVirtualCores"))
    # Before 3.3 there is no total; what is available is negative where less is offered than used.
    total = YARNAmounts(
        max(used.memory + _number(obj, "availMemoryMB"), 0),
        max(used.vcores + _number(obj, "availableVirtualCores"), 0),
    )
    return NodeManager(id, text(obj, "state", "node"), total, used, _count(obj, "numContainers"))


def _count(obj: Json, key: str) -> int:
    return max(_number(obj, key), 0)


def _number(obj: Json, key: str) -> int:
    found: Any = obj.get(key)
    if isinstance(found, bool) or not isinstance(found, int):
        raise ObjectError(f"node.{key}: expected a whole number, found {type(found).__name__}")
    return found
