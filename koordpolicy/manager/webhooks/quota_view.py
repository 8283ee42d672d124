"""The quotas of a cluster as webhooks know them: what they have heard of, and what they have let through themselves."""

from collections.abc import Iterator
from typing import Final

from koordpolicy.algorithms.quota_tree import QuotaTree
from koordpolicy.kube.known import KnownObjects
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import ELASTIC_QUOTAS, PODS
from koordpolicy.manager.webhooks.quotas import QuotaPods
from koordpolicy.model.facts.quota import MOST_PODS
from koordpolicy.model.protocol import QUOTA_NAME
from koordpolicy.model.quota import Quota, read_quota
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.model.unreadable import readable

_BELIEVED: Final = 30 * NANOSECONDS
"""How long a request that was let through counts before anything is heard of it: longer than any waits for its answer."""

_MOST: Final = 1000
"""Requests that count so at most, the latest: whoever sends more, forged ones included, costs no more memory than these."""


class QuotaView:
    """A tree that follows the objects, with the requests that were let through and have not been heard of yet.

    Without these, two quotas that exceed their parent together could be created at the same time. A request that something
    else refuses afterwards is forgotten after a while. Objects that cannot be read are passed over.
    """

    def __init__(self, objects: KnownObjects) -> None:
        self._objects = objects
        self._tree = QuotaTree()
        self._known: dict[str, Object] = {}
        self._admitted: dict[str, int] = {}
        """Until when a request that was let through counts, by the quota's name."""

    def tree(self, now: int) -> QuotaTree:
        """The quotas now; `now` in nanoseconds since 1970."""
        heard: dict[str, Object] = {}
        for obj in self._objects.every(ELASTIC_QUOTAS):
            name = obj["metadata"]["name"]
            heard[name] = obj
            if self._known.get(name) is not obj:
                self._admitted.pop(name, None)
                self._put(name, obj)
        for name in self._known.keys() - heard.keys():
            self._admitted.pop(name, None)
            self._tree.remove(name)
        self._known = heard
        for name in [name for name, until in self._admitted.items() if until <= now]:
            del self._admitted[name]
            self._put(name, heard.get(name))
        return self._tree

    def admitted(self, name: str, quota: Quota | None, now: int) -> None:
        """A request was let through: the quota is to be so, or to go."""
        self._admitted.pop(name, None)
        self._admitted[name] = now + _BELIEVED
        if len(self._admitted) > _MOST:
            oldest = next(iter(self._admitted))
            del self._admitted[oldest]
            self._put(oldest, self._known.get(oldest))
        if quota is None:
            self._tree.remove(name)
        else:
            self._tree.put(quota)

    def pods(self) -> QuotaPods:
        """What is known of pods."""
        return QuotaPods(self._labelled, self._has_pods)

    def _put(self, name: str, obj: Object | None) -> None:
        quota = None if obj is None else readable(read_quota, obj)
        if isinstance(quota, Quota):
            self._tree.put(quota)
        else:
            self._tree.remove(name)

    def _labelled(self, name: str) -> list[str]:
        found = []
        for namespace, pod, labels in self._each_pod():
            if labels.get(QUOTA_NAME) == name:
                found.append(f"{namespace}/{pod}")
                if len(found) == MOST_PODS:
                    break
        return found

    def _has_pods(self, namespace: str) -> bool:
        return any(one == namespace for one, _, _ in self._each_pod())

    def _each_pod(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        for pod in self._objects.every(PODS):
            metadata = pod["metadata"]
            yield metadata.get("namespace", ""), metadata["name"], metadata.get("labels") or {}
