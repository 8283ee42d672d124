"""What is remembered of the use of containers, by the Recommendation that speaks of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from koordpolicy.algorithms.histogram import Histogram
from koordpolicy.algorithms.recommended import Layout, rearranged

Key = tuple[str, str]
"""Namespace and name of a Recommendation."""

CPU: Final = "cpu"
MEMORY: Final = "memory"
RESOURCES: Final = (CPU, MEMORY)

MOST_CONTAINERS: Final = 32
"""Of one Recommendation: its checkpoints stand in an annotation, and 256 KiB of these are all that an object may have."""


@dataclass(slots=True)
class ContainerHistory:
    """The use of one container, of all pods of its workload: histograms by resource, with their layouts.

    `since` and `last` are when it was reported first and last, nanoseconds since 1970. `shared` says whether its pods have
    other containers, so that what it used was not measured by itself.
    """

    layouts: dict[str, Layout]
    histograms: dict[str, Histogram]
    since: int
    last: int
    shared: bool = False

    @classmethod
    def new(cls, layouts: Mapping[str, Layout], at: int) -> "ContainerHistory":
        """One without samples. Raises LayoutError."""
        histograms = {resource: layout.histogram() for resource, layout in layouts.items()}
        return cls(dict(layouts), histograms, at, at)

    def add(self, amounts: Mapping[str, float], weight: float, at: int, *, shared: bool) -> None:
        """Count a sample: cores, bytes."""
        for resource, histogram in self.histograms.items():
            if resource in amounts:
                histogram.add(amounts[resource], weight, at)
        self.last = max(self.last, at)
        self.shared = shared

    def arrange(self, layouts: Mapping[str, Layout]) -> None:
        """Go on with other layouts. Raises LayoutError; nothing is changed then."""
        changed = {
            resource: layout for resource, layout in layouts.items() if self.layouts[resource] != layout
        }
        made = {
            resource: rearranged(self.histograms[resource], layout) for resource, layout in changed.items()
        }
        self.histograms.update(made)
        self.layouts.update(changed)


class Histories:
    """All histories of a process, by Recommendation and container. `count` is how many there are."""

    __slots__ = ("_known", "count")

    def __init__(self) -> None:
        self._known: dict[Key, dict[str, ContainerHistory]] = {}
        self.count = 0

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._known))

    def of(self, key: Key) -> Mapping[str, ContainerHistory]:
        """The containers of a Recommendation; none for one that is not followed."""
        return MappingProxyType(self._known.get(key, {}))

    def follow(self, key: Key, containers: Mapping[str, ContainerHistory]) -> None:
        """Follow a Recommendation from now on, of which so much is known already."""
        self.drop(key)
        self._known[key] = dict(containers)
        self.count += len(containers)

    def put(self, key: Key, container: str, history: ContainerHistory) -> None:
        """Remember a container of a Recommendation that is followed."""
        containers = self._known[key]
        self.count += container not in containers
        containers[container] = history

    def forget(self, key: Key, container: str) -> None:
        """Remember a container no more."""
        if self._known[key].pop(container, None) is not None:
            self.count -= 1

    def drop(self, key: Key) -> None:
        """Follow a Recommendation no more."""
        self.count -= len(self._known.pop(key, {}))

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()
        self.count = 0
