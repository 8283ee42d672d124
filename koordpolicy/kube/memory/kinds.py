"""What the API server does for particular kinds: one table; kinds that are not in it get only the general rules."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.kube import resources
from koordpolicy.kube.errors import Cause, Rejected
from koordpolicy.kube.memory import pods
from koordpolicy.kube.memory.disruption import check_budget
from koordpolicy.kube.memory.state import MemoryState
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.selectors import FieldSelector

_DATA_KEY: Final = re.compile(r"(?!\.\.?$)(?!\.\.)[-._a-zA-Z0-9]+", re.ASCII)
_LONGEST_KEY: Final = 253


def _complete_nothing(draft: dict[str, Any], old: Mapping[str, Any] | None, state: MemoryState) -> None:
    """No defaults."""


def _keep_status(draft: dict[str, Any]) -> None:
    """Nothing to complete."""


def _drop_status(draft: dict[str, Any], now: str) -> None:
    draft.pop("status", None)


def _check_nothing(draft: Mapping[str, Any]) -> list[Cause]:
    return []


def _check_no_change(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Cause]:
    return []


@dataclass(frozen=True, slots=True)
class KindRules:
    """The behaviour of one kind.

    `complete` fills defaults in, before and after admission; it gets the version before, None for a new
    object. `complete_status` does so for the status. `prepare` sets what only the server may set on a
    new object. `check` and `check_update` (old, new) list faults. `fields` can be used in field selectors,
    beside name and namespace.
    """

    complete: Callable[[dict[str, Any], Mapping[str, Any] | None, MemoryState], None] = _complete_nothing
    complete_status: Callable[[dict[str, Any]], None] = _keep_status
    prepare: Callable[[dict[str, Any], str], None] = _drop_status
    check: Callable[[Mapping[str, Any]], list[Cause]] = _check_nothing
    check_update: Callable[[Mapping[str, Any], Mapping[str, Any]], list[Cause]] = _check_no_change
    fields: tuple[str, ...] = ()


def _complete_node_status(draft: dict[str, Any]) -> None:
    status = draft.get("status")
    if isinstance(status, dict):
        pods.canonical_amounts(status, "capacity")
        pods.canonical_amounts(status, "allocatable")


def _prepare_node(draft: dict[str, Any], now: str) -> None:
    """Nodes keep the status they are created with: kubelets register themselves so."""
    draft.setdefault("spec", {})


def _complete_namespace(draft: dict[str, Any], old: Mapping[str, Any] | None, state: MemoryState) -> None:
    metadata = draft["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            "kubernetes.io/metadata.name": metadata["name"],
        }


def _prepare_namespace(draft: dict[str, Any], now: str) -> None:
    draft["spec"] = {"finalizers": ["kubernetes"]}
    draft["status"] = {"phase": "Active"}


def _check_priority_class_update(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Cause]:
    return [
        Cause(field, "cannot change after creation")
        for field in ("value", "preemptionPolicy")
        if old.get(field) != new.get(field)
    ]


def _complete_priority_class(
    draft: dict[str, Any], old: Mapping[str, Any] | None, state: MemoryState
) -> None:
    draft.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _check_data(draft: Mapping[str, Any]) -> list[Cause]:
    """The contents of a ConfigMap or Secret: text under keys that could be file names."""
    return [
        Cause(f"{field}[{key}]", "a key consists of letters, digits, `-`, `_` and `.`")
        for field in ("data", "binaryData")
        for key in draft.get(field) or ()
        if len(key) > _LONGEST_KEY or not _DATA_KEY.fullmatch(key)
    ]


_RULES: Final[Mapping[Resource, KindRules]] = MappingProxyType(
    {
        resources.PODS: KindRules(
            pods.complete,
            prepare=pods.prepare,
            check=pods.check,
            check_update=pods.check_update,
            fields=(
                "spec.nodeName",
                "spec.schedulerName",
                "spec.restartPolicy",
                "spec.serviceAccountName",
                "spec.hostNetwork",
                "status.phase",
                "status.podIP",
                "status.nominatedNodeName",
            ),
        ),
        resources.NODES: KindRules(
            complete_status=_complete_node_status, prepare=_prepare_node, fields=("spec.unschedulable",)
        ),
        resources.NAMESPACES: KindRules(
            _complete_namespace, prepare=_prepare_namespace, fields=("status.phase",)
        ),
        resources.EVENTS: KindRules(
            fields=(
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "reason",
                "reportingComponent",
                "type",
            )
        ),
        resources.CONFIG_MAPS: KindRules(check=_check_data),
        resources.SECRETS: KindRules(check=_check_data, fields=("type",)),
        resources.PRIORITY_CLASSES: KindRules(
            _complete_priority_class, check_update=_check_priority_class_update
        ),
        resources.POD_DISRUPTION_BUDGETS: KindRules(check=check_budget),
        resources.REPLICATION_CONTROLLERS: KindRules(fields=("status.replicas",)),
        resources.REPLICA_SETS: KindRules(fields=("status.replicas",)),
        resources.JOBS: KindRules(fields=("status.successful",)),
    }
)
_ORDINARY: Final = KindRules()
_EVERYWHERE: Final = ("metadata.name", "metadata.namespace")


def rules_of(resource: Resource) -> KindRules:
    """The rules of a resource's kind."""
    return _RULES.get(resource, _ORDINARY)


def check_fields(selector: FieldSelector, resource: Resource) -> None:
    """Rejected for fields by which this resource cannot be selected."""
    permitted = (*_EVERYWHERE, *rules_of(resource).fields)
    for requirement in selector.requirements:
        if requirement.field not in permitted:
            raise Rejected(
                f"{resource} cannot be selected by `{requirement.field}`, only by {', '.join(permitted)}"
            )
