"""Small objects and a clock for the tests of the in-memory cluster."""

from typing import Any

from koordpolicy.kube.memory import Store

NOW = 1_750_000_000


class Clock:
    """Seconds since 1970 that move only when told."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def store(clock: Clock | None = None, **arguments: Any) -> Store:
    """A new cluster on a clock that stands."""
    return Store(clock or Clock(), **arguments)


def pod(name: str, /, *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """The smallest pod, with more in its spec as given."""
    containers = [{"name": "main", "image": "pause"}]
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {"containers": containers, **spec}}


def config(name: str, /, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    """A ConfigMap."""
    return {"metadata": {"name": name, **metadata}, "data": data or {}}


def names(objects: Any) -> list[str]:
    """The names of objects, in order."""
    return [obj["metadata"]["name"] for obj in objects]


def words(events: Any) -> str:
    """Watch events as text: `ADDED a, DELETED b`; bookmarks without a name."""
    return ", ".join(f"{event.type} {event.object['metadata'].get('name', '')}".strip() for event in events)
