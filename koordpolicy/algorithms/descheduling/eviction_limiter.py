"""How many pods may go in one cycle, from one node, from one namespace, and at all."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EvictionLimits:
    """Pods in a cycle; None is no limit, 0 is none at all."""

    per_node: int | None = None
    per_namespace: int | None = None
    total: int | None = None


@dataclass(slots=True)
class EvictionLimiter:
    """What went in this cycle, against its limits."""

    limits: EvictionLimits
    _nodes: Counter[str] = field(default_factory=Counter)
    _namespaces: Counter[str] = field(default_factory=Counter)
    _total: int = 0

    def refusal(self, node: str, namespace: str) -> str | None:
        """The limit that one more pod would break: `node`, `namespace` or `total`; None when it may go.

        A pod without a node (`""`) breaks none of a node's.
        """
        limits = self.limits
        if node and _full(self._nodes[node], limits.per_node):
            return "node"
        if _full(self._namespaces[namespace], limits.per_namespace):
            return "namespace"
        return "total" if _full(self._total, limits.total) else None

    def charge(self, node: str, namespace: str) -> None:
        """A pod went."""
        if node:
            self._nodes[node] += 1
        self._namespaces[namespace] += 1
        self._total += 1

    def reset(self) -> None:
        """A new cycle begins."""
        self._nodes.clear()
        self._namespaces.clear()
        self._total = 0


def _full(count: int, limit: int | None) -> bool:
    return limit is not None and count >= limit
