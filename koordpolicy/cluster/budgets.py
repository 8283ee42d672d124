"""The disruption budgets of a cluster, and which of them a pod is under."""

from collections.abc import Sequence

from koordpolicy.algorithms.eviction import violating
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.disruption import Budget
from koordpolicy.model.pod import Pod, PodKey

_REMEMBERED = 200_000
"""Pods whose budgets are kept at once."""


class Budgets:
    """Kept from events. What covers a pod is looked for again only after selectors have changed."""

    __slots__ = ("_by_namespace", "_over", "_version")

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, Budget]] = {}
        self._over: dict[PodKey, tuple[Pod, int, tuple[str, ...]]] = {}
        self._version = 0

    def set(self, budget: Budget) -> None:
        """A budget is new or has changed."""
        here = self._by_namespace.setdefault(budget.namespace, {})
        before = here.get(budget.name)
        here[budget.name] = budget
        if before is None or before.selector != budget.selector:
            self._version += 1

    def remove(self, namespace: str, name: str) -> None:
        """A budget is gone."""
        here = self._by_namespace.get(namespace, {})
        if here.pop(name, None) is not None:
            self._version += 1
            if not here:
                del self._by_namespace[namespace]

    def broken(self, views: Sequence[PodView]) -> list[bool] | None:
        """For pods in order of importance, whose going breaks a budget; None where none of them is under one."""
        if not self._by_namespace:
            return None
        over: dict[tuple[str, str], Budget] = {}
        for view in views:
            namespace = view.pod.namespace
            for name in self._names(view):
                over[namespace, name] = self._by_namespace[namespace][name]
        return violating([view.pod for view in views], over.values()) if over else None

    def _names(self, view: PodView) -> tuple[str, ...]:
        """The names of the budgets whose selector matches a pod."""
        here = self._by_namespace.get(view.pod.namespace)
        if not here or not view.pod.labels:
            return ()
        known = self._over.get(view.pod.key)
        if known is not None and known[0] is view.pod and known[1] == self._version:
            return known[2]
        found = tuple(
            name
            for name, budget in here.items()
            if budget.selector is not None and budget.selector.matches(view.pod.labels)
        )
        if len(self._over) > _REMEMBERED:
            self._over.clear()
        self._over[view.pod.key] = view.pod, self._version, found
        return found
