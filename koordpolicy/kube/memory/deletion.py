"""How an object goes: at once, after a time to stop, or when its finalizers are gone. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.kube import resources
from koordpolicy.kube.errors import Forbidden
from koordpolicy.kube.frozen import FrozenDict
from koordpolicy.kube.memory import pods
from koordpolicy.kube.port import Propagation
from koordpolicy.kube.resources import Resource
from koordpolicy.model.time import NANOSECONDS, parse_time, time_text

FOREGROUND: Final = "foregroundDeletion"
"""The finalizer of an owner that waits for its dependents to go first."""

ORPHAN: Final = "orphan"
"""The finalizer of an owner whose dependents are to lose its name first."""

_LASTING_NAMESPACES: Final = ("default", "kube-system", "kube-public")


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a deletion does: the object's next version (None: no change), and whether it then goes `at_once`."""

    marked: dict[str, Any] | None
    at_once: bool


def deletion_of(
    obj: FrozenDict, resource: Resource, grace: int | None, propagation: Propagation | None, now: int
) -> Deletion:
    """What a request to delete does to an object. `grace` and `now` are in seconds; None: the object's own.

    Pods are always marked first, so that their watchers see them going. Forbidden for namespaces of the
    system.
    """
    if resource == resources.NAMESPACES:
        return _namespace_deletion(obj, now)
    metadata = dict(obj["metadata"])
    finalizers = _finalizers(metadata.get("finalizers") or (), propagation)
    first = "deletionTimestamp" not in metadata
    seconds = pods.grace_of(obj, grace) if resource == resources.PODS else 0
    left = metadata.get("deletionGracePeriodSeconds") or 0
    if left and (grace is None or seconds >= left):
        return Deletion(None, at_once=False)  # it is going already, and nobody asks it to hurry
    graceful = resource == resources.PODS and (first or left)
    if not graceful and not finalizers:
        return Deletion(None, at_once=True)
    due = now + seconds
    if left:
        began = parse_time(metadata["deletionTimestamp"]) // NANOSECONDS - left
        due = max(now, began + seconds)
        seconds = 1 if seconds and due == now else seconds
    if first or left:
        metadata["deletionTimestamp"] = time_text(due * NANOSECONDS)
        metadata["deletionGracePeriodSeconds"] = seconds
    if first and "generation" in metadata:
        metadata["generation"] += 1
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    marked = {**obj, "metadata": metadata} if metadata != obj["metadata"] else None
    return Deletion(marked, at_once=not seconds and not finalizers)


def _namespace_deletion(obj: FrozenDict, now: int) -> Deletion:
    """A namespace only begins to go; it is gone when it is empty."""
    metadata = obj["metadata"]
    if metadata["name"] in _LASTING_NAMESPACES:
        raise Forbidden(f"namespace `{metadata['name']}` cannot be deleted")
    if "deletionTimestamp" in metadata:
        return Deletion(None, at_once=False)
    marked = {
        **obj,
        "metadata": {**metadata, "deletionTimestamp": time_text(now * NANOSECONDS)},
        "status": {**(obj.get("status") or {}), "phase": "Terminating"},
    }
    return Deletion(marked, at_once=False)


def ready_to_go(metadata: dict[str, Any], resource: Resource) -> bool:
    """Whether an object that was marked has nothing left to wait for."""
    waits = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    return bool(metadata.get("deletionTimestamp")) and not waits and resource != resources.NAMESPACES


def _finalizers(present: Iterable[str], propagation: Propagation | None) -> list[str]:
    """The finalizers of an object that goes: its own, and the one that stands for what happens to dependents."""
    if propagation is None:
        return list(present)
    own = [entry for entry in present if entry not in (FOREGROUND, ORPHAN)]
    return own + {Propagation.FOREGROUND: [FOREGROUND], Propagation.ORPHAN: [ORPHAN]}.get(propagation, [])
