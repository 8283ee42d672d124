"""Which pods bear which quota's label, and which namespaces have pods: kept from change to change."""

from koordpolicy.kube.known import KnownObjects
from koordpolicy.kube.mirror import Key, ObjectChange
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import PODS
from koordpolicy.manager.webhooks.quotas import QuotaPods
from koordpolicy.model.facts.quota import MOST_PODS
from koordpolicy.model.protocol import QUOTA_NAME
from koordpolicy.model.reading import mapping, texts
from koordpolicy.model.unreadable import readable


class PodsOfQuotas:
    """What is known of pods, as rules on quotas ask. A pod whose labels cannot be read has none."""

    def __init__(self, objects: KnownObjects) -> None:
        self._labelled: dict[str, dict[Key, None]] = {}
        self._in_namespace: dict[str, int] = {}
        objects.follow(PODS, self._changed)

    @property
    def known(self) -> QuotaPods:
        """What rules ask."""
        return QuotaPods(self._names, lambda namespace: namespace in self._in_namespace)

    def _names(self, quota: str) -> list[str]:
        found = []
        for namespace, name in self._labelled.get(quota, ()):
            found.append(f"{namespace}/{name}")
            if len(found) == MOST_PODS:
                break
        return found

    def _changed(self, change: ObjectChange) -> None:
        before, after = _label(change.old), _label(change.new)
        if before != after:
            if before:
                pods = self._labelled[before]
                del pods[change.key]
                if not pods:
                    del self._labelled[before]
            if after:
                self._labelled.setdefault(after, {})[change.key] = None
        step = (change.new is not None) - (change.old is not None)
        if step:
            namespace = change.key[0]
            count = self._in_namespace.get(namespace, 0) + step
            if count:
                self._in_namespace[namespace] = count
            else:
                del self._in_namespace[namespace]


def _label(pod: Object | None) -> str:
    found = "" if pod is None else readable(_quota_name, pod)
    return found if isinstance(found, str) else ""


def _quota_name(pod: Object) -> str:
    return texts(mapping(pod, "metadata"), "labels", "metadata").get(QUOTA_NAME, "")
