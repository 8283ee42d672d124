"""The PodGroup objects of a cluster, and which of them changed since somebody looked.

Where there is one of Kubernetes' own and another one of the same name, Kubernetes' own counts.
"""

from collections.abc import Iterable
from typing import Final

from koordpolicy.model.gang import GangKey, PodGroup
from koordpolicy.model.pod import Pod

_MOST: Final = 100_000
"""Changes that are kept for whoever asks for them; beyond, all objects count as changed."""


class PodGroups:
    """Kept from events, by namespace and name."""

    __slots__ = ("_all", "_changed", "_everything", "_hidden")

    def __init__(self) -> None:
        self._all: dict[GangKey, PodGroup] = {}
        self._hidden: dict[GangKey, PodGroup] = {}
        """Those beside which there is one of Kubernetes' own."""
        self._changed: dict[GangKey, None] = {}
        self._everything = False

    def __len__(self) -> int:
        return len(self._all)

    def get(self, key: GangKey) -> PodGroup | None:
        """The object of that namespace and name; None for none."""
        return self._all.get(key)

    def unheeded(self, pod: Pod) -> tuple[str, ...]:
        """What the group of Kubernetes' own that a pod names asks for, beside its gang, in vain."""
        found = self._all.get((pod.namespace, pod.scheduling_group))
        return () if found is None else found.unheeded

    @property
    def all(self) -> Iterable[PodGroup]:
        """All there are."""
        return self._all.values()

    def set(self, group: PodGroup) -> bool:
        """An object is new or has changed; whether it says something else of its gang now."""
        before = self._all.get(group.key)
        if before is not None and before.of_kubernetes != group.of_kubernetes:
            self._hidden[group.key] = before if group.of_kubernetes else group
            if before.of_kubernetes:
                return False
        self._all[group.key] = group
        if before is not None and before.declaration == group.declaration:
            return False
        self._note(group.key)
        return True

    def remove(self, namespace: str, name: str, *, of_kubernetes: bool = False) -> bool:
        """An object is gone; whether it counted."""
        key = namespace, name
        known = self._all.get(key)
        if known is None or known.of_kubernetes != of_kubernetes:
            self._hidden.pop(key, None)
            return False
        other = self._hidden.pop(key, None)
        if other is None:
            del self._all[key]
        else:
            self._all[key] = other
        self._note(key)
        return True

    def taken(self) -> list[GangKey]:
        """The keys of all that changed, or are gone, since this was asked last."""
        found = list(dict.fromkeys([*self._changed, *self._all])) if self._everything else list(self._changed)
        self._changed, self._everything = {}, False
        return found

    def _note(self, key: GangKey) -> None:
        if len(self._changed) < _MOST:
            self._changed[key] = None
        else:
            self._everything = True
