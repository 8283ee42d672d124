"""What makes pods and what speaks to them: the selectors of services and of controllers."""

from collections.abc import Mapping
from typing import Final

from koordpolicy.model.labels import LabelSelector, Operator, Requirement, read_selector
from koordpolicy.model.pod import Pod
from koordpolicy.model.reading import Json, mapping, text, texts

PLAIN: Final = frozenset({"ReplicationController"})
"""Kinds whose selector is a plain map of labels."""
CONTROLLERS: Final = PLAIN | {"ReplicaSet", "StatefulSet"}
"""Kinds of controllers whose selectors count."""


class Workloads:
    """Services and controllers by namespace."""

    __slots__ = ("_controllers", "_services", "version")

    def __init__(self) -> None:
        self._services: dict[str, dict[str, Mapping[str, str]]] = {}
        self._controllers: dict[tuple[str, str, str], LabelSelector] = {}
        self.version = 0

    def set_service(self, obj: Json) -> None:
        """A service as JSON. Raises ObjectError."""
        metadata = mapping(obj, "metadata")
        namespace, name = text(metadata, "namespace", "metadata"), text(metadata, "name", "metadata")
        found = texts(mapping(obj, "spec"), "selector", "spec")
        if self._services.get(namespace, {}).get(name) != found:
            self._services.setdefault(namespace, {})[name] = found
            self.version += 1

    def remove_service(self, namespace: str, name: str) -> None:
        """A service is gone."""
        if self._services.get(namespace, {}).pop(name, None) is not None:
            self.version += 1

    def set_controller(self, kind: str, obj: Json) -> None:
        """A controller of a kind as JSON. Raises ObjectError."""
        metadata, spec = mapping(obj, "metadata"), mapping(obj, "spec")
        key = (kind, text(metadata, "namespace", "metadata"), text(metadata, "name", "metadata"))
        if kind in PLAIN:
            selector = _equal_to(texts(spec, "selector", "spec"))
        else:
            selector = read_selector(mapping(spec, "selector", "spec"), "spec.selector")
        if self._controllers.get(key) != selector:
            self._controllers[key] = selector
            self.version += 1

    def remove_controller(self, kind: str, namespace: str, name: str) -> None:
        """A controller is gone."""
        if self._controllers.pop((kind, namespace, name), None) is not None:
            self.version += 1

    def selector_of(self, pod: Pod) -> LabelSelector | None:
        """What a pod's services and its controller select, together; None when that is nothing."""
        labels: dict[str, str] = {}
        for selector in self._services.get(pod.namespace, {}).values():
            if selector and all(pod.labels.get(key) == value for key, value in selector.items()):
                labels.update(selector)
        found = _equal_to(labels)
        owner = pod.controller
        if owner is not None and owner.kind in CONTROLLERS:
            controller = self._controllers.get((owner.kind, pod.namespace, owner.name))
            if controller is not None:
                new = tuple(one for one in controller.requirements if one not in found.requirements)
                found = LabelSelector((*found.requirements, *new))
        return found if found.requirements else None


def _equal_to(labels: Mapping[str, str]) -> LabelSelector:
    return LabelSelector(
        tuple(Requirement(key, Operator.IN, frozenset({value})) for key, value in sorted(labels.items()))
    )
