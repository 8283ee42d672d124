"""What the API server knows about pods: defaults, priorities, what may change, binding and eviction marks."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from koordpolicy.kube import resources
from koordpolicy.kube.errors import Cause, Conflict, Forbidden, Invalid
from koordpolicy.kube.memory.metadata import is_dns_label
from koordpolicy.kube.memory.state import MemoryState
from koordpolicy.model.pod import computed_qos, read_pod
from koordpolicy.model.protocol import (
    CONDITION_READY,
    CONDITION_SCHEDULED,
    HUGEPAGES_PREFIX,
    PHASE_FAILED,
    PHASE_PENDING,
    PHASE_SUCCEEDED,
    is_extended,
)
from koordpolicy.model.quantity import Quantity, parse_quantity
from koordpolicy.model.reading import ObjectError

_DEFAULTS: Final = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "terminationGracePeriodSeconds": 30,
    "schedulerName": "default-scheduler",
}
_CONTAINER_LISTS: Final = ("containers", "initContainers")
_PLAIN_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_EVICTING: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def complete(draft: dict[str, Any], old: Mapping[str, Any] | None, state: MemoryState) -> None:
    """Fill in defaults: policies, requests from limits, and the priority of the pod's class (once and for all).

    Forbidden when the class is missing, or the pod names a priority that is not its class's.
    """
    spec = draft.setdefault("spec", {})
    for field, value in _DEFAULTS.items():
        spec.setdefault(field, value)
    for container in _containers(spec):
        limits = canonical_amounts(container.get("resources"), "limits")
        requests = canonical_amounts(container.get("resources"), "requests")
        if limits and limits.keys() - requests.keys():
            container["resources"]["requests"] = {**limits, **requests}
    if old is None:
        _resolve_priority(spec, state)
        return
    for field in ("priority", "preemptionPolicy"):
        if spec.get(field) is None and field in old["spec"]:
            spec[field] = old["spec"][field]


def prepare(draft: dict[str, Any], now: str) -> None:
    """Set the status a new pod begins with, whatever its creator wrote there."""
    try:
        pod = read_pod(draft)
    except ObjectError as error:
        raise Invalid(f"the pod cannot be read: {error}") from error
    status: dict[str, Any] = {
        "phase": PHASE_PENDING,
        "qosClass": computed_qos((*pod.containers, *pod.init_containers), pod.pod_requests, pod.pod_limits),
    }
    if draft["spec"].get("schedulingGates"):
        status["conditions"] = [
            {
                "type": CONDITION_SCHEDULED,
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastTransitionTime": now,
            }
        ]
    draft["status"] = status


def check(draft: Mapping[str, Any]) -> list[Cause]:
    """What is wrong with a pod's spec; empty when nothing is."""
    spec = draft["spec"]
    causes: list[Cause] = []
    if not spec.get("containers"):
        causes.append(Cause("spec.containers", "a pod needs at least one container"))
    seen = set()
    for field in _CONTAINER_LISTS:
        for index, container in enumerate(spec.get(field) or ()):
            at = f"spec.{field}[{index}]"
            name = container.get("name")
            if not is_dns_label(name):
                causes.append(Cause(f"{at}.name", f"`{name}` is not a DNS label"))
            elif name in seen:
                causes.append(Cause(f"{at}.name", f"`{name}` names another container too"))
            seen.add(name)
            if not container.get("image"):
                causes.append(Cause(f"{at}.image", "a container needs an image"))
            _check_resources(container.get("resources") or {}, f"{at}.resources", causes)
    return causes


def check_update(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Cause]:
    """What an update may not change: all of the spec but images, added tolerations, removed gates and the like."""
    before, after = old["spec"], new["spec"]
    if before == after:
        return []
    causes: list[Cause] = []
    dropped = [
        entry for entry in before.get("tolerations") or () if entry not in (after.get("tolerations") or ())
    ]
    if dropped:
        causes.append(Cause("spec.tolerations", "existing tolerations cannot be changed or removed"))
    gates = before.get("schedulingGates") or ()
    if any(gate not in gates for gate in after.get("schedulingGates") or ()):
        causes.append(Cause("spec.schedulingGates", "gates can only be removed"))
    deadline, limit = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if limit is not None and (deadline is None or deadline > limit):
        causes.append(Cause("spec.activeDeadlineSeconds", "can only become smaller"))
    if gates:
        wanted = after.get("nodeSelector") or {}
        if any(wanted.get(key) != value for key, value in (before.get("nodeSelector") or {}).items()):
            causes.append(Cause("spec.nodeSelector", "of a gated pod, can only be added to"))
    changed = sorted(_fixed_fields(before, after, gated=bool(gates)))
    if changed:
        fields = ", ".join(f"`{field}`" for field in changed)
        causes.append(
            Cause(
                "spec",
                f"{fields} cannot change after creation; only images, tolerations, gates and deadline can",
            )
        )
    return causes


def bound(pod: Mapping[str, Any], node: str, annotations: Mapping[str, str], now: str) -> dict[str, Any]:
    """The pod placed on a node. Conflict when it is bound, going, or gated."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        raise Conflict(f"pod `{name}` is being deleted and cannot be bound")
    if spec.get("nodeName"):
        raise Conflict(f"pod `{name}` is already bound to node `{spec['nodeName']}`")
    if spec.get("schedulingGates"):
        raise Conflict(f"pod `{name}` has scheduling gates and cannot be bound yet")
    metadata = dict(pod["metadata"])
    if annotations:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    status = with_condition(pod.get("status") or {}, {"type": CONDITION_SCHEDULED, "status": "True"}, now)
    status.pop("nominatedNodeName", None)
    return {**pod, "metadata": metadata, "spec": {**spec, "nodeName": node}, "status": status}


def evicting(pod: Mapping[str, Any], now: str) -> dict[str, Any]:
    """The pod with the condition that says why it goes."""
    return {
        **pod,
        "metadata": dict(pod["metadata"]),
        "status": with_condition(pod.get("status") or {}, _EVICTING, now),
    }


def with_condition(status: Mapping[str, Any], condition: Mapping[str, Any], now: str) -> dict[str, Any]:
    """A status in which the condition's type says this; the transition time moves when its status does."""
    conditions = list(status.get("conditions") or ())
    place = next((i for i, entry in enumerate(conditions) if entry.get("type") == condition["type"]), None)
    if place is None:
        conditions.append({**condition, "lastTransitionTime": now})
    else:
        same = conditions[place].get("status") == condition["status"]
        since = conditions[place].get("lastTransitionTime", now) if same else now
        conditions[place] = {**condition, "lastTransitionTime": since}
    return {**status, "conditions": conditions}


def grace_of(pod: Mapping[str, Any], wanted: int | None) -> int:
    """The seconds a pod gets to stop: none where nothing runs yet or any more."""
    phase = (pod.get("status") or {}).get("phase")
    if not pod["spec"].get("nodeName") or phase in (PHASE_SUCCEEDED, PHASE_FAILED):
        return 0
    seconds = pod["spec"].get("terminationGracePeriodSeconds", 0) if wanted is None else wanted
    return 1 if seconds < 0 else int(seconds)


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether the pod's Ready condition is true."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(entry.get("type") == CONDITION_READY and entry.get("status") == "True" for entry in conditions)


def canonical_amounts(parent: dict[str, Any] | None, field: str) -> dict[str, Any]:
    """Rewrite a resource list's quantities as the API server stores them (`1000m` → `1`); returns the list."""
    amounts = (parent or {}).get(field)
    if not isinstance(amounts, dict):
        return {}
    for name, value in amounts.items():
        amounts[name] = _canonical(value)
    return amounts


@lru_cache(maxsize=16_384)
def _canonical(value: str | float) -> str:
    return str(parse_quantity(value))


def _containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [container for field in _CONTAINER_LISTS for container in spec.get(field) or ()]


def _resolve_priority(spec: dict[str, Any], state: MemoryState) -> None:
    name = spec.get("priorityClassName") or ""
    if name:
        found = state.find(resources.PRIORITY_CLASSES, ("", name))
        if found is None:
            raise Forbidden(
                f"there is no PriorityClass `{name}`; create it, or name another in `priorityClassName`"
            )
    else:
        classes = state.collection(resources.PRIORITY_CLASSES).objects.values()
        defaults = [entry for entry in classes if entry.get("globalDefault")]
        found = min(defaults, key=lambda entry: int(entry.get("value", 0)), default=None)
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    priority = int(found.get("value", 0)) if found else 0
    policy = found.get("preemptionPolicy", "PreemptLowerPriority") if found else "PreemptLowerPriority"
    for field, value in (("priority", priority), ("preemptionPolicy", policy)):
        if spec.get(field) is None:
            spec[field] = value
        elif spec[field] != value:
            source = f"class `{name}`" if name else "pods without a `priorityClassName`"
            raise Forbidden(
                f"the pod's `{field}` is `{spec[field]}`, but `{value}` is that of {source}; leave it out"
            )


def _check_resources(owned: Mapping[str, Any], at: str, causes: list[Cause]) -> None:
    limits, requests = owned.get("limits") or {}, owned.get("requests") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            nanos = _parsed(value).nanos
            if "/" not in name and name not in _PLAIN_RESOURCES and not name.startswith(HUGEPAGES_PREFIX):
                causes.append(
                    Cause(f"{at}.{field}[{name}]", "not a resource of Kubernetes; others have a domain")
                )
            if nanos < 0:
                causes.append(Cause(f"{at}.{field}[{name}]", "cannot be negative"))
            if is_extended(name) and nanos % 10**9:
                causes.append(Cause(f"{at}.{field}[{name}]", f"`{value}` must be a whole number"))
    for name, value in requests.items():
        exact = is_extended(name) or name.startswith(HUGEPAGES_PREFIX)
        if name not in limits:
            if exact:
                causes.append(
                    Cause(
                        f"{at}.limits[{name}]",
                        "needs a limit equal to the request: it cannot be overcommitted",
                    )
                )
            continue
        requested, limited = _parsed(value).nanos, _parsed(limits[name]).nanos
        if requested > limited:
            causes.append(
                Cause(f"{at}.requests[{name}]", f"`{value}` is more than the limit `{limits[name]}`")
            )
        elif exact and requested != limited:
            causes.append(Cause(f"{at}.requests[{name}]", f"`{value}` must equal the limit `{limits[name]}`"))


@lru_cache(maxsize=16_384)
def _parsed(value: str) -> Quantity:
    return parse_quantity(value)


def _fixed_fields(before: Mapping[str, Any], after: Mapping[str, Any], *, gated: bool) -> set[str]:
    """The fields of the spec that differ although they may not."""
    free = {"tolerations", "schedulingGates", "activeDeadlineSeconds", *_CONTAINER_LISTS}
    if gated:
        free |= {"nodeSelector", "affinity"}
    changed = {
        field for field in before.keys() | after.keys() if before.get(field) != after.get(field)
    } - free
    for field in _CONTAINER_LISTS:
        one, other = before.get(field) or (), after.get(field) or ()
        if len(one) != len(other) or any(
            {**old, "image": ""} != {**new, "image": ""} for old, new in zip(one, other, strict=True)
        ):
            changed.add(field)
    return changed
