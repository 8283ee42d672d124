"""Objects that cannot be read, as logs, metrics, Events and the status tell of them."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from koordpolicy.kube.events import Recorder
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.model.unreadable import Unreadable
from koordpolicy.runtime.clock import monotonic
from koordpolicy.runtime.metrics import Metrics

LOG: Final = logging.getLogger(__name__)

REASON: Final = "Unreadable"
"""The reason of the Events."""

_SHOWN: Final = 20
_MINUTE: Final = 60.0
_LINES: Final = 30
"""Lines a minute: whoever may create objects must not fill the disk with logs."""


class _Lines:
    """Lets so many lines a minute into the log, and says how many were left out."""

    def __init__(self) -> None:
        self._since = monotonic()
        self._count = 0

    def write(self, text: str, *values: object, cause: Exception | None) -> None:
        now = monotonic()
        if now - self._since >= _MINUTE:
            if self._count > _LINES:
                LOG.warning("%d more objects were unreadable", self._count - _LINES)
            self._since, self._count = now, 0
        self._count += 1
        if self._count <= _LINES:
            LOG.warning(text, *values, exc_info=cause)


def unreadable_objects(metrics: Metrics, recorder: Recorder, leads: Callable[[], bool]) -> UnreadableObjects:
    """Where a component notes what it cannot read. Only the replica that leads writes Events."""
    lines = _Lines()

    def found(resource: Resource, obj: Object, why: Unreadable) -> None:
        about = _reference(resource, obj)
        name = f"{about['metadata'].get('namespace', '')}/{about['metadata'].get('name', '')}".lstrip("/")
        lines.write("%s %s is unreadable: %s", resource, name, why.reason, cause=why.cause)
        metrics.add("koordpolicy_unreadable_objects_found_total", resource=str(resource))
        if why.cause is not None:
            metrics.add("koordpolicy_internal_errors_total", place="object")
        if leads() and name:
            recorder.record(
                about, REASON, f"this object is unreadable: {why.reason}", type="Warning", action="Reading"
            )

    def counted(resource: Resource, count: int) -> None:
        metrics.set("koordpolicy_unreadable_objects", count, resource=str(resource))

    return UnreadableObjects(found, counted)


def unreadable_status(unreadable: UnreadableObjects) -> dict[str, Any]:
    """What `/statusz` shows of them; nothing while all can be read."""
    if not len(unreadable):
        return {}
    shown = [
        {"resource": str(resource), "name": "/".join(key).lstrip("/"), "reason": why.reason}
        for (resource, key, why), _ in zip(unreadable, range(_SHOWN), strict=False)
    ]
    return {"unreadable": {"count": len(unreadable), "objects": shown}}


def _reference(resource: Resource, obj: Object) -> dict[str, Any]:
    """As much of an object as says which one it is, whatever stands in it."""
    whole: object = obj
    said = whole.get("metadata") if isinstance(whole, Mapping) else None
    metadata = {
        key: said[key]
        for key in ("namespace", "name", "uid")
        if isinstance(said, Mapping) and isinstance(said.get(key), str)
    }
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
