"""Elastic quotas as a tree: who stands below whom, which namespaces lead where, what a guarantee comes to."""

from collections.abc import Collection, Iterator

from koordpolicy.algorithms.quota_limits import larger
from koordpolicy.model.amounts import add_to
from koordpolicy.model.quota import Quota


class QuotaTree:
    """All quotas of a cluster by name, which is unique there.

    It takes what it is given: nothing is checked here, so that it may hold quotas without their parents, and circles.
    """

    def __init__(self) -> None:
        self._quotas: dict[str, Quota] = {}
        self._children: dict[str, dict[str, Quota]] = {}
        self._bound: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._quotas)

    def __iter__(self) -> Iterator[Quota]:
        return iter(self._quotas.values())

    def __contains__(self, name: object) -> bool:
        return name in self._quotas

    def get(self, name: str) -> Quota | None:
        """The quota of that name."""
        return self._quotas.get(name)

    def put(self, quota: Quota) -> None:
        """Take a quota, in place of the one of its name."""
        self.remove(quota.name)
        self._quotas[quota.name] = quota
        self._children.setdefault(quota.parent, {})[quota.name] = quota
        for namespace in quota.namespaces:
            self._bound.setdefault(namespace, {})[quota.name] = None

    def remove(self, name: str) -> None:
        """Forget a quota; nothing happens when there is none."""
        quota = self._quotas.pop(name, None)
        if quota is None:
            return
        siblings = self._children[quota.parent]
        del siblings[name]
        if not siblings:
            del self._children[quota.parent]
        for namespace in dict.fromkeys(quota.namespaces):
            names = self._bound[namespace]
            del names[name]
            if not names:
                del self._bound[namespace]

    def children(self, name: str) -> Collection[Quota]:
        """The quotas right below one."""
        return self._children.get(name, {}).values()

    def siblings(self, quota: Quota) -> list[Quota]:
        """The other quotas below the same parent."""
        return [one for one in self.children(quota.parent) if one.name != quota.name]

    def led_to(self, namespace: str) -> tuple[str, str]:
        """Names of the quota that stands in a namespace under its name, and of the one that it is bound to, the one bound first; empty
        for none.
        """
        found, bound = self._quotas.get(namespace), self._bound.get(namespace)
        named = namespace if found is not None and found.namespace == namespace else ""
        return named, next(iter(bound)) if bound else ""

    def bound_elsewhere(self, quota: Quota) -> list[str]:
        """Those of a quota's namespaces that are bound to another one."""
        return [
            one for one in quota.namespaces if any(name != quota.name for name in self._bound.get(one, ()))
        ]

    def guarantee_fits(self, quota: Quota) -> bool:
        """Whether a quota's guarantee, raised to its min and carried upwards, stays within what one above it has.

        At each quota above, the guarantees of the other quotas below it are added, and the sum is raised to its min. Where
        nothing above is guaranteed enough up to the root, or the quotas form a circle, it does not fit.
        """
        wanted = larger(quota.min, quota.guaranteed)
        seen: set[str] = set()
        while quota.name not in seen:
            seen.add(quota.name)
            parent = self._quotas.get(quota.parent)
            if parent is None:
                return False
            total = dict(wanted)
            for other in self.siblings(quota):
                add_to(total, other.guaranteed)
            wanted = larger(parent.min, total)
            if all(number <= parent.guaranteed.get(name, 0) for name, number in wanted.items()):
                return True
            quota = parent
        return False
