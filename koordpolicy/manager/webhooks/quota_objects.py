"""Objects of quotas as this process knows them best: as last heard of, or as it wrote them itself a moment ago."""

import asyncio

from koordpolicy.kube.known import KnownObjects
from koordpolicy.kube.mirror import Key, ObjectChange
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import ELASTIC_QUOTAS
from koordpolicy.manager.webhooks.quota_view import QuotaView


class QuotaObjects:
    """The latest object of each quota. What was written counts until the cluster tells of it, or of something later."""

    def __init__(self, objects: KnownObjects, view: QuotaView) -> None:
        self._view = view
        self._written: dict[Key, Object] = {}
        self._news: dict[Key, asyncio.Event] = {}
        objects.follow(ELASTIC_QUOTAS, self._changed)

    def named(self, name: str) -> list[Object]:
        """The quotas of a name: more than one where namespaces have quotas of one name."""
        return [self._written.get(_key(one), one) for one in self._view.objects(name)]

    def wrote(self, obj: Object) -> None:
        """Take note of what the cluster has stored for us."""
        key = _key(obj)
        heard = next((one for one in self._view.objects(key[1]) if _key(one) == key), None)
        if heard is not None and not _is_later(heard, obj):
            self._written[key] = obj

    async def other_than(self, obj: Object) -> Object | None:
        """The quota as soon as another state of it is known than this one; None once it is gone. Waits for the cluster."""
        key = _key(obj)
        while True:
            found = next((one for one in self.named(key[1]) if _key(one) == key), None)
            if found is None or _version(found) != _version(obj):
                return found
            await self._news.setdefault(key, asyncio.Event()).wait()

    def _changed(self, change: ObjectChange) -> None:
        written = self._written.get(change.key)
        if written is not None and (change.new is None or _is_later(change.new, written)):
            del self._written[change.key]
        news = self._news.pop(change.key, None)
        if news is not None:
            news.set()


def _key(obj: Object) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _version(obj: Object) -> str:
    return str(obj["metadata"].get("resourceVersion", ""))


def _is_later(obj: Object, other: Object) -> bool:
    """Whether one state of an object is as late as another, or later. One that cannot be compared counts as later."""
    first, second = _version(obj), _version(other)
    return int(first) >= int(second) if first.isdecimal() and second.isdecimal() else True
