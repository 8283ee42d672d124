"""The objects of the quotas that there always are, which the scheduler that leads creates where they are absent."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from koordpolicy.cluster.quota_policy import QuotaPolicy, builtin
from koordpolicy.cluster.quotas import Quotas
from koordpolicy.kube import AlreadyExists, Cluster, KubeError, NotFound, Object
from koordpolicy.kube.resources import ELASTIC_QUOTAS
from koordpolicy.model.protocol import (
    DEFAULT_QUOTA,
    QUOTA_IS_PARENT,
    QUOTA_LENDS,
    ROOT_QUOTA,
    SYSTEM_QUOTA,
)
from koordpolicy.model.quantity import amount_text

LOG: Final = logging.getLogger(__name__)

_IN_ORDER: Final = (ROOT_QUOTA, SYSTEM_QUOTA, DEFAULT_QUOTA)


def missing(quotas: Quotas, policy: QuotaPolicy) -> Iterator[Object]:
    """The objects that are to be created, in order; none where policy does not want them."""
    if not policy.creates_builtins:
        return
    for name in _IN_ORDER:
        known = quotas.tree.get(name)
        if known is None or not known.raw:
            yield _object(name, policy)


def _object(name: str, policy: QuotaPolicy) -> Object:
    labels, spec = {}, {}
    if name == ROOT_QUOTA:
        labels = {QUOTA_IS_PARENT: "true", QUOTA_LENDS: "false"}
    else:
        most = policy.kept(builtin(name, None)).terms.max
        spec = {"max": {key: amount_text(key, number) for key, number in most.items()}}
    return {
        "apiVersion": ELASTIC_QUOTAS.api_version,
        "kind": ELASTIC_QUOTAS.kind,
        "metadata": {"name": name, "namespace": policy.builtin_namespace, "labels": labels},
        "spec": spec,
    }


@dataclass(slots=True)
class QuotaCreation:
    """Creates what is missing. `now` is nanoseconds since 1970. What fails is tried again after a while, as policy says."""

    cluster: Cluster
    now: Callable[[], int]
    _again: int = 0
    _told: str = ""

    async def create(self, quotas: Quotas) -> None:
        """Create what is missing now, unless that was tried just before."""
        policy = quotas.policy
        if policy is None or self.now() < self._again:
            return
        for obj in missing(quotas, policy):
            self._again = self.now() + policy.nanoseconds("builtin.retryAfter")
            try:
                await self.cluster.create(ELASTIC_QUOTAS, obj, namespace=obj["metadata"]["namespace"])
            except AlreadyExists:
                continue  # the news of it is on its way
            except KubeError as error:
                if (text := f"{obj['metadata']['name']}: {error}") != self._told:
                    # Quotas hold without their objects: where nobody has made the namespace, nobody misses them either.
                    LOG.log(
                        logging.INFO if isinstance(error, NotFound) else logging.WARNING,
                        "quota %s; it holds all the same, and its object is tried again (QuotaTree.builtin says when, and in"
                        " which namespace)",
                        text,
                    )
                self._told = text
                return
