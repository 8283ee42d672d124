"""What kube-scheduler says to an extender, and what it is answered: `extender/v1` as JSON.

Names of fields are read whatever their case, as kube-scheduler itself does, and written as it writes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.model.reading import Json, ObjectError

MOST: Final = 10
"""The best score that an extender may give; the least is 0."""


@dataclass(frozen=True, slots=True)
class ExtenderArgs:
    """A pod and the nodes that are left for it. `objects` are the nodes themselves where the names alone were not enough."""

    pod: Pod
    names: tuple[str, ...]
    objects: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Passed:
    """The nodes that passed, and why others did not: for a while, or whatever pods go."""

    names: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Going:
    """The pods, by uid, that would go from a node, and how many of them a disruption budget would keep."""

    uids: tuple[str, ...]
    violations: int = 0


@dataclass(frozen=True, slots=True)
class PreemptionArgs:
    """A pod, and for each node on which room could be made for it who would go."""

    pod: Pod
    nodes: Mapping[str, Going]


@dataclass(frozen=True, slots=True)
class BindingArgs:
    """A pod to be bound to a node."""

    namespace: str
    name: str
    uid: str
    node: str


def read_args(body: Any) -> ExtenderArgs:
    """`ExtenderArgs`. Raises ObjectError."""
    fields = _fields(body)
    pod, nodes, names = _pod(fields), fields.get("nodes"), fields.get("nodenames")
    if nodes is None:
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise ObjectError("NodeNames is not a list of names, and Nodes are not given either")
        return ExtenderArgs(pod, tuple(names))
    objects: dict[str, Json] = {}
    items = _fields(nodes, "Nodes").get("items") or ()
    if not isinstance(items, list):
        raise ObjectError("Nodes.items is not a list")
    for one in items:
        metadata = one.get("metadata") if isinstance(one, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(name, str):
            raise ObjectError("Nodes.items holds something without a name")
        objects[name] = one
    return ExtenderArgs(pod, tuple(objects), objects)


def passed_json(args: ExtenderArgs, passed: Passed) -> dict[str, Any]:
    """`ExtenderFilterResult`, with nodes or names, as it was args."""
    if args.objects is None:
        left: dict[str, Any] = {"NodeNames": list(passed.names)}
    else:
        items = [args.objects[name] for name in passed.names]
        left = {"Nodes": {"metadata": {}, "items": items}}
    return {
        **left,
        "FailedNodes": dict(passed.failed),
        "FailedAndUnresolvableNodes": dict(passed.unresolvable),
        "Error": "",
    }


def error_json(message: str) -> dict[str, Any]:
    """A result that says what went wrong, of filter and bind."""
    return {"Error": message}


def priorities_json(scores: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """`HostPriorityList`."""
    return [{"Host": name, "Score": score} for name, score in scores]


def read_preemption_args(body: Any) -> PreemptionArgs:
    """`ExtenderPreemptionArgs`, victims as pods or as uids. Raises ObjectError."""
    fields = _fields(body)
    found: dict[str, Going] = {}
    for key, uid_of in (("nodenametometavictims", _uid), ("nodenametovictims", _uid_of_pod)):
        nodes = fields.get(key) or {}
        if not isinstance(nodes, dict):
            raise ObjectError(f"{key} is not a mapping of nodes")
        for name, said in nodes.items():
            victims = _fields(said, f"{key}.{name}")
            pods, violations = victims.get("pods") or (), victims.get("numpdbviolations") or 0
            if not isinstance(pods, list) or type(violations) is not int:
                raise ObjectError(f"{key}.{name} does not hold pods and a number of violations")
            found[name] = Going(tuple(uid_of(one) for one in pods), violations)
    return PreemptionArgs(_pod(fields), found)


def room_json(nodes: Mapping[str, Going]) -> dict[str, Any]:
    """`ExtenderPreemptionResult`."""
    return {
        "NodeNameToMetaVictims": {
            name: {"Pods": [{"UID": uid} for uid in going.uids], "NumPDBViolations": going.violations}
            for name, going in nodes.items()
        }
    }


def read_binding_args(body: Any) -> BindingArgs:
    """`ExtenderBindingArgs`. Raises ObjectError."""
    fields = _fields(body)
    values = [fields.get(key) for key in ("podnamespace", "podname", "poduid", "node")]
    if not all(isinstance(one, str) and one for one in values):
        raise ObjectError("ExtenderBindingArgs lacks one of PodNamespace, PodName, PodUID and Node")
    namespace, name, uid, node = map(str, values)
    return BindingArgs(namespace, name, uid, node)


def _fields(body: Any, where: str = "body") -> dict[str, Any]:
    if not isinstance(body, dict):
        raise ObjectError(f"{where} is not an object")
    return {str(key).lower(): value for key, value in body.items()}


def _pod(fields: Mapping[str, Any]) -> Pod:
    pod = fields.get("pod")
    if not isinstance(pod, dict):
        raise ObjectError("Pod is not an object")
    return read_pod(pod)


def _uid(pod: Any) -> str:
    uid = _fields(pod, "Pods").get("uid")
    if not isinstance(uid, str):
        raise ObjectError("Pods holds one without a uid")
    return uid


def _uid_of_pod(pod: Any) -> str:
    return _uid(pod.get("metadata") if isinstance(pod, dict) else None)
