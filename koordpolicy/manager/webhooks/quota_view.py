"""The quotas of a cluster as webhooks know them: what they have heard of, and what they have let through themselves."""

from typing import Final

from koordpolicy.algorithms.quota_tree import QuotaTree
from koordpolicy.kube.known import KnownObjects
from koordpolicy.kube.mirror import Key, ObjectChange
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import ELASTIC_QUOTAS
from koordpolicy.manager.webhooks.webhook import WebhookContext
from koordpolicy.model.quota import Quota, read_quota
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.model.unreadable import readable

_BELIEVED: Final = 30 * NANOSECONDS
"""How long a request that was let through counts before anything is heard of it: longer than any waits for its answer."""

MOST_ADMITTED: Final = 1000
"""Requests that count so at most, the latest: whoever sends more, forged ones included, costs no more memory than these."""


class QuotaView:
    """A tree that follows the objects, with the requests that were let through and have not been heard of yet.

    Without these, two quotas that exceed their parent together could be created at the same time. A request that something
    else refuses afterwards is forgotten after a while. Objects that cannot be read are passed over. Of several quotas of
    one name, the tree has the one that was heard of last.
    """

    def __init__(self, objects: KnownObjects) -> None:
        self._tree = QuotaTree()
        self._heard: dict[str, dict[Key, Object]] = {}
        self._admitted: dict[str, int] = {}
        """Until when a request that was let through counts, by the quota's name, the earliest first."""
        objects.follow(ELASTIC_QUOTAS, self._changed)

    def tree(self, now: int) -> QuotaTree:
        """The quotas now; `now` in nanoseconds since 1970."""
        while self._admitted:
            name, until = next(iter(self._admitted.items()))
            if until > now:
                break
            del self._admitted[name]
            self._put(name)
        return self._tree

    def objects(self, name: str) -> list[Object]:
        """The objects of that name as last heard of: more than one where namespaces have quotas of one name."""
        return list(self._heard.get(name, {}).values())

    def admitted(self, name: str, quota: Quota | None, now: int) -> None:
        """A request was let through: the quota is to be so, or to go."""
        self._admitted.pop(name, None)
        self._admitted[name] = now + _BELIEVED
        if len(self._admitted) > MOST_ADMITTED:
            oldest = next(iter(self._admitted))
            del self._admitted[oldest]
            self._put(oldest)
        if quota is None:
            self._tree.remove(name)
        else:
            self._tree.put(quota)

    def _changed(self, change: ObjectChange) -> None:
        name = change.key[1]
        heard = self._heard.setdefault(name, {})
        heard.pop(change.key, None)
        if change.new is not None:
            heard[change.key] = change.new
        elif not heard:
            del self._heard[name]
        self._admitted.pop(name, None)
        self._put(name)

    def _put(self, name: str) -> None:
        known = self._heard.get(name)
        quota = readable(read_quota, next(reversed(known.values()))) if known else None
        if isinstance(quota, Quota):
            self._tree.put(quota)
        else:
            self._tree.remove(name)


def view_of(context: WebhookContext) -> QuotaView:
    """The view that the handlers of one context share."""
    return context.once(QuotaView, lambda one: QuotaView(one.objects))
