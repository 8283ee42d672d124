"""What the scheduler that leads does about quotas beside decisions: those that there always are get objects, figures are written
into these, and pods of quotas that have had more than they may for too long are evicted.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.algorithms.quota_overuse import OveruseTimer, QuotaMember, revoked
from koordpolicy.cluster.prepared import prepared
from koordpolicy.cluster.quota_of_pod import KIND
from koordpolicy.cluster.quotas import Quotas
from koordpolicy.kube import Cluster, Conflict, KubeError, MergePatch, NotFound, Preconditions
from koordpolicy.kube.resources import ELASTIC_QUOTAS
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import (
    QUOTA_ALLOCATED,
    QUOTA_CHILD_REQUEST,
    QUOTA_GUARANTEED,
    QUOTA_REQUEST,
    QUOTA_RESERVED_REQUEST,
    QUOTA_RESERVED_USED,
    QUOTA_RUNTIME,
)
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.quota import Quota, amounts_text, embedded_amounts
from koordpolicy.model.reading import NOTHING, Amounts, ObjectError
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.quota_objects import QuotaCreation
from koordpolicy.scheduler.sortkeys import sort_key

LOG: Final = logging.getLogger(__name__)

_LEAST: Final = 0.1
"""Seconds between two looks at least, whatever policy says."""
_ABSENT: Final = 5.0
"""Seconds between two looks where there are no quotas."""
_AT_ONCE: Final = 200
"""Quotas that are looked at before others get their turn."""


@dataclass(frozen=True, slots=True)
class QuotaWrite:
    """What is to be written into the object of a quota."""

    namespace: str
    name: str
    patch: Mapping[str, Any]


def figures(quotas: Quotas, name: str) -> Mapping[str, Amounts]:
    """What stands in the annotations of a quota, by their keys. Raises KeyError."""
    sums = quotas.sums(name)
    account = sums.get(name)
    assert account is not None
    return {
        QUOTA_RUNTIME: quotas.limit(name),
        QUOTA_REQUEST: account.request,
        QUOTA_CHILD_REQUEST: account.child_request,
        QUOTA_GUARANTEED: account.guaranteed,
        QUOTA_ALLOCATED: account.allocated if quotas[name].terms.guarantees else NOTHING,
        QUOTA_RESERVED_REQUEST: account.reserved_request,
        QUOTA_RESERVED_USED: account.reserved_used,
    }


def write_of(quotas: Quotas, quota: Quota) -> QuotaWrite | None:
    """What is to be written into a quota's object; None where all of it stands there, or cannot be told apart."""
    sums = quotas.sums(quota.name)
    account = sums.get(quota.name)
    assert account is not None
    annotations: dict[str, str | None] = {}
    try:
        for key, amounts in figures(quotas, quota.name).items():
            if _differ(embedded_amounts(quota.annotations, key) or NOTHING, amounts):
                annotations[key] = amounts_text(amounts) if amounts else None
    except ObjectError:
        return None
    patch: dict[str, Any] = {"metadata": {"annotations": annotations}} if annotations else {}
    if _differ(quota.used, account.used):
        shown = {key: amount_text(key, number) for key, number in account.used.items()}
        patch["status"] = {"used": {**dict.fromkeys(quota.used), **shown}}
    return QuotaWrite(quota.namespace, quota.name, patch) if patch else None


def _differ(one: Amounts, other: Amounts) -> bool:
    """Whether two lists say something else; a resource of which there is nothing need not be named."""
    return any(one.get(key, 0) != other.get(key, 0) for key in {**one, **other})


@dataclass(slots=True)
class QuotaUpkeep:
    """The upkeep of the quotas that `quotas` gives. `now` is nanoseconds since 1970.

    `write` carries a write out on the cluster. What fails is done at the next look.
    """

    quotas: Callable[[], Quotas]
    cluster: Cluster
    now: Callable[[], int]
    failed: Callable[[str], None] = lambda place: None
    _timers: dict[str, OveruseTimer] = field(default_factory=dict)
    _creation: QuotaCreation = field(init=False)

    def __post_init__(self) -> None:
        self._creation = QuotaCreation(self.cluster, self.now)

    async def report(self) -> None:
        """Write figures, again and again until cancelled."""
        while True:
            await asyncio.sleep(self.pause("reporting.every"))
            await self._guarded("quota status", self.report_once)

    async def revoke(self) -> None:
        """Evict where quotas have more than they may, again and again until cancelled."""
        while True:
            await asyncio.sleep(self.pause("revocation.every"))
            await self._guarded("quota revocation", self.revoke_once)

    async def report_once(self) -> None:
        """Create what is missing, and write what differs."""
        quotas = self.quotas()
        await self._creation.create(quotas)
        for at, kept in enumerate(list(quotas) if quotas.active else ()):
            if at % _AT_ONCE == 0:
                await asyncio.sleep(0)
            quota = quotas.tree.get(kept.quota.name)
            if not kept.reported or quota is None or not quota.raw or quota.name not in quotas:
                continue
            write = write_of(quotas, quota)
            if write is not None:
                await self._tried(
                    self.cluster.patch(
                        ELASTIC_QUOTAS, write.name, MergePatch(write.patch), namespace=write.namespace
                    )
                )

    async def revoke_once(self) -> None:
        """Evict who has to go by now."""
        for quota, pod in self.due():
            LOG.info("quota %s has more than it may: pod %s is evicted", quota, "/".join(pod.key))
            await self._tried(
                self.cluster.evict(pod.namespace, pod.name, preconditions=Preconditions(uid=pod.uid))
            )

    def due(self) -> list[tuple[str, Pod]]:
        """The pods that have to go by now, each with its quota."""
        quotas, now = self.quotas(), self.now()
        if not quotas.active or quotas.policy is None:
            self._timers.clear()
            return []
        after = quotas.policy.nanoseconds("revocation.after")
        found = []
        for kept in quotas:
            name = kept.quota.name
            if not kept.revoked:
                self._timers.pop(name, None)
                continue
            account = quotas.sums(name).get(name)
            assert account is not None
            timer = self._timers.get(name)
            if timer is None:
                timer = self._timers[name] = OveruseTimer(now)
            limit = quotas.limit(name)
            if timer.over(now, account.used, limit, after):
                found += [(name, pod) for pod in self._going(quotas, name, account.used, limit)]
        for name in [one for one in self._timers if one not in quotas]:
            del self._timers[name]
        return found

    def _going(self, quotas: Quotas, name: str, used: Amounts, limit: Amounts) -> Iterator[Pod]:
        """Pods of a quota itself that have to go so that it is within its limit."""
        policy = quotas.policy
        assert policy is not None
        order, spared = (
            prepared(policy.graph, f"{KIND}.revocation.{field}") for field in ("order", "spared")
        )
        ordered = []
        for key, member in quotas.pods_of(name).items():
            if not member.placed:
                continue
            roots = quotas.roots(member.view)
            try:
                stays = spared.value(roots) is not False
                request = policy.whole_request(member.view, roots["namespaceObject"], roots["now"])
            except CelError:
                stays, request = True, member.request
            ordered.append((sort_key(order, roots), QuotaMember(key, request, stays)))
        ordered.sort(key=lambda pair: pair[0])
        members = quotas.pods_of(name)
        for key in revoked(used, limit, [member for _, member in ordered]):
            yield members[key].view.pod

    def pause(self, slot: str) -> float:
        """Seconds until the next look that a slot says the pace of."""
        quotas = self.quotas()
        if not quotas.active or quotas.policy is None:
            return _ABSENT
        return max(_LEAST, quotas.policy.nanoseconds(slot) / NANOSECONDS)

    async def _guarded(self, place: str, once: Callable[[], Awaitable[None]]) -> None:
        try:
            await once()
        except Exception:
            LOG.exception("%s failed: internal error, please report", place)
            self.failed(place)

    async def _tried(self, write: Awaitable[object]) -> None:
        try:
            await write
        except (NotFound, Conflict):
            pass  # what we know is old
        except KubeError as error:
            LOG.warning("quotas: %s", error)
