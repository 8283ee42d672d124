"""Chance, and the few words that labels, taints and selectors are made of."""

import random
from collections.abc import Sequence
from typing import Any, Final, TypeVar

T = TypeVar("T")

ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104  # said by pods, not bound by us
LAST_PORT: Final = 61_000
"""The host port of the pod that is created last."""

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONES: Final = ("z1", "z2", "z3")
NODE_LABELS: Final = {
    "disk": ("ssd", "hdd"),
    "rank": ("1", "5", "10", "007", "many"),
    "pool": ("a", "b", "c"),
}
POD_LABELS: Final = {"app": ("web", "db", "job"), "tier": ("front", "back"), "version": ("v1", "v2")}
TAINTS: Final = {"dedicated": ("a", "b"), "spot": ("", "yes")}
NAMESPACES: Final = {"alpha": {"team": "red"}, "beta": {"team": "blue", "kind": "test"}, "gamma": {}}
TOPOLOGIES: Final = (*[ZONE] * 5, *[HOSTNAME] * 4, *["pool"] * 2, "rack")


class Chance(random.Random):
    """Random, with the cycles that drawing asks."""

    def happens(self, share: float) -> bool:
        return self.random() < share

    def some(self, items: Sequence[T], most: int, least: int = 1) -> list[T]:
        """A few different items."""
        return self.sample(list(items), self.randint(least, min(most, len(items))))

    def labels(self, words: dict[str, tuple[str, ...]], share: float = 0.75) -> dict[str, str]:
        return {key: self.choice(values) for key, values in words.items() if self.happens(share)}

    def selector(self, words: dict[str, tuple[str, ...]] = POD_LABELS) -> dict[str, Any]:
        """A label selector, now and then an empty one."""
        if self.happens(0.06):
            return {}
        if self.happens(0.6):
            key = self.choice(list(words))
            return {"matchLabels": {key: self.choice(words[key])}}
        return {"matchExpressions": [self.requirement(words) for _ in range(self.randint(1, 2))]}

    def requirement(self, words: dict[str, tuple[str, ...]]) -> dict[str, Any]:
        key = self.choice(list(words))
        operator = self.choice(("In", "In", "NotIn", "Exists", "DoesNotExist"))
        one: dict[str, Any] = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            one["values"] = self.some(words[key], 2)
        return one
