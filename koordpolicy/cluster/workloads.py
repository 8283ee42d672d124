"""What makes pods and what speaks to them: the selectors of services and of controllers."""

from collections.abc import Mapping
from functools import reduce
from typing import Final

from koordpolicy.cluster.label_index import LabelIndex
from koordpolicy.model.labels import LabelRequirement, LabelSelector, Operator, read_selector
from koordpolicy.model.pod import Pod
from koordpolicy.model.reading import Json, mapping, text, texts

PLAIN: Final = frozenset({"ReplicationController"})
"""Kinds whose selector is a plain map of labels."""
CONTROLLERS: Final = PLAIN | {"ReplicaSet", "StatefulSet"}
"""Kinds of controllers whose selectors count."""


class Workloads:
    """Services and controllers by namespace."""

    __slots__ = ("_controllers", "_filed", "_services")

    def __init__(self) -> None:
        self._services: dict[tuple[str, str], LabelSelector] = {}
        self._filed: dict[str, LabelIndex[LabelSelector]] = {}
        self._controllers: dict[tuple[str, str, str], LabelSelector] = {}

    def set_service(self, obj: Json) -> bool:
        """A service as JSON; whether it selects others than before. Raises ObjectError."""
        metadata = mapping(obj, "metadata")
        namespace, name = text(metadata, "namespace", "metadata"), text(metadata, "name", "metadata")
        selector = _equal_to(texts(mapping(obj, "spec"), "selector", "spec"))
        if self._services.get((namespace, name), LabelSelector()) == selector:
            return False
        self.remove_service(namespace, name)
        if selector.requirements:
            self._services[namespace, name] = selector
            self._filed.setdefault(namespace, LabelIndex()).add(selector, selector)
        return True

    def remove_service(self, namespace: str, name: str) -> bool:
        """A service is gone; whether it was known."""
        gone = self._services.pop((namespace, name), None)
        if gone is None:
            return False
        # Another service of the namespace may have the same selector.
        if not any(key[0] == namespace and one == gone for key, one in self._services.items()):
            self._filed[namespace].discard(gone, gone)
        return True

    def set_controller(self, kind: str, obj: Json) -> bool:
        """A controller of a kind as JSON; whether it selects others than before. Raises ObjectError."""
        metadata, spec = mapping(obj, "metadata"), mapping(obj, "spec")
        key = (kind, text(metadata, "namespace", "metadata"), text(metadata, "name", "metadata"))
        if kind in PLAIN:
            selector = _equal_to(texts(spec, "selector", "spec"))
        else:
            selector = read_selector(mapping(spec, "selector", "spec"), "spec.selector")
        before = self._controllers.get(key)
        self._controllers[key] = selector
        return before != selector

    def remove_controller(self, kind: str, namespace: str, name: str) -> bool:
        """A controller is gone; whether it was known."""
        return self._controllers.pop((kind, namespace, name), None) is not None

    def selector_of(self, pod: Pod) -> LabelSelector | None:
        """What a pod's services and its controller select, together; None when that is nothing."""
        found: list[LabelSelector] = []
        filed = self._filed.get(pod.namespace)
        if filed is not None:
            found += [selector for selector in filed.near(pod.labels) if selector.matches(pod.labels)]
        owner = pod.controller if pod.owners else None
        if owner is not None and owner.kind in CONTROLLERS:
            controller = self._controllers.get((owner.kind, pod.namespace, owner.name))
            if controller is not None:
                found.append(controller)
        if not found:
            return None  # asked twice of every pod
        both = reduce(_both, found, LabelSelector())
        return both if both.requirements else None


def _both(one: LabelSelector, other: LabelSelector) -> LabelSelector:
    """What matches both selectors, each requirement once and in one order."""
    return LabelSelector(
        tuple(
            sorted(
                {*one.requirements, *other.requirements}, key=lambda r: (r.key, r.operator, sorted(r.values))
            )
        )
    )


def _equal_to(labels: Mapping[str, str]) -> LabelSelector:
    return LabelSelector(
        tuple(LabelRequirement(key, Operator.IN, frozenset({value})) for key, value in sorted(labels.items()))
    )
