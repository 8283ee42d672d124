"""Pods of one quota that are admitted together: one look at the quota, one write for all that fit."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from koordpolicy.algorithms.quota_admission import retry_budget
from koordpolicy.cluster.quota_of_pod import KIND
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import Conflict
from koordpolicy.kube.port import Cluster, MergePatch, Object
from koordpolicy.kube.resources import ELASTIC_QUOTAS
from koordpolicy.language.cel.errors import CelError
from koordpolicy.manager.webhooks.quota_admission import QuotaDemand, admit_pods
from koordpolicy.manager.webhooks.quota_objects import QuotaObjects
from koordpolicy.model.protocol import QUOTA_CHILD_REQUEST
from koordpolicy.model.quota import Quota, amounts_text, read_quota
from koordpolicy.model.reading import NOTHING, Amounts, embedded_object
from koordpolicy.model.time import NANOSECONDS

Demand = Callable[[Quota], QuotaDemand | None]
"""What a pod counts for in its quota, as that is; None where it counts for nothing. Raises `CelError`."""

_NOTHING: Final = QuotaDemand(NOTHING, NOTHING)


@dataclass(frozen=True, slots=True)
class QuotaVerdict:
    """Whether a pod may come: `refused` is why not, `failed` what kept that from being told."""

    refused: str = ""
    failed: Exception | None = None


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """How quotas are written to, as policy says; seconds. See `QuotaAdmission` of the kind."""

    workers: int
    timeout: float
    retries: int
    jitter: float
    longest_jitter: float
    read_again: bool


def settings_of(graph: RuleGraph) -> QuotaSettings:
    """What a revision says."""
    about = graph.about(KIND, "")

    def seconds(field: str) -> float:
        return float(about.value(f"admission.{field}").ns / NANOSECONDS)

    return QuotaSettings(
        workers=about.value("admission.workers"),
        timeout=seconds("timeout"),
        retries=about.value("admission.retries"),
        jitter=seconds("retryJitter"),
        longest_jitter=seconds("longestJitter"),
        read_again=about.value("admission.readAgain"),
    )


@dataclass(frozen=True, slots=True)
class QuotaBatches:
    """Admits pods of one quota, and writes what they count for into the quota. `draw` gives numbers from 0 to below 100."""

    objects: QuotaObjects
    cluster: Cluster
    draw: Callable[[], float]

    async def admit(
        self, name: str, demands: Sequence[Demand], settings: QuotaSettings
    ) -> list[QuotaVerdict]:
        """A verdict for each pod, in order.

        What was written meanwhile by others is looked at again, with all pods. Raises KubeError when the write failed, or met
        others too often, and ObjectError for a quota that cannot be read: then none of the pods may come.
        """
        left = retry_budget(settings.retries, len(demands))
        pauses = settings.longest_jitter
        known = self.objects.named(name)
        if len(known) != 1:
            return [QuotaVerdict(_not_one(name, known))] * len(demands)
        (obj,) = known
        while True:
            quota = read_quota(obj)
            verdicts, total = _verdicts(quota, demands)
            if total == quota.child_request:
                return verdicts
            try:
                self.objects.wrote(await self._write(obj, quota, total))
                return verdicts
            except Conflict:
                if left == 0:
                    raise
                left -= 1
            pause = min(settings.jitter * (0.5 + self.draw() / 200), pauses)
            if pause > 0:
                pauses -= pause
                await asyncio.sleep(pause)
            obj = await self._again(obj, settings)

    def look(self, name: str, demand: Demand) -> QuotaVerdict:
        """What one pod would be told now; nothing is written. Raises ObjectError."""
        known = self.objects.named(name)
        if len(known) != 1:
            return QuotaVerdict(_not_one(name, known))
        return _verdicts(read_quota(known[0]), [demand])[0][0]

    async def _write(self, obj: Object, quota: Quota, total: Amounts) -> Object:
        source = quota.annotations.get(QUOTA_CHILD_REQUEST)
        written = embedded_object(source, QUOTA_CHILD_REQUEST) if source else {}
        metadata = {
            "resourceVersion": obj["metadata"].get("resourceVersion"),
            "annotations": {QUOTA_CHILD_REQUEST: amounts_text(total, written)},
        }
        return await self.cluster.patch(
            ELASTIC_QUOTAS, quota.name, MergePatch({"metadata": metadata}), namespace=quota.namespace
        )

    async def _again(self, obj: Object, settings: QuotaSettings) -> Object:
        """The quota as it is now that a write met another one. Raises KubeError."""
        namespace, name = obj["metadata"].get("namespace"), obj["metadata"]["name"]
        if settings.read_again:
            return await self.cluster.get(ELASTIC_QUOTAS, name, namespace=namespace)
        try:
            async with asyncio.timeout(settings.timeout):
                found = await self.objects.other_than(obj)
        except TimeoutError:
            found = None
        if found is None:
            raise Conflict(f"the quota {namespace}/{name} changed, and it is not known how")
        return found


def _verdicts(quota: Quota, demands: Sequence[Demand]) -> tuple[list[QuotaVerdict], Amounts]:
    """Why each pod is refused, and what counts as used with those that are not."""
    asked: list[QuotaDemand] = []
    failed: dict[int, CelError] = {}
    for at, demand in enumerate(demands):
        try:
            asked.append(demand(quota) or _NOTHING)
        except CelError as error:
            failed[at] = error
            asked.append(_NOTHING)
    refusals, total = admit_pods(quota, asked)
    verdicts = [QuotaVerdict(refused) for refused in refusals]
    for at, problem in failed.items():
        verdicts[at] = replace(verdicts[at], failed=problem)
    return verdicts, total


def _not_one(name: str, known: Sequence[Object]) -> str:
    if not known:
        return f"the quota {name} is gone"
    places = ", ".join(sorted(str(one["metadata"].get("namespace", "")) for one in known))
    return f"several quotas have the name {name}, in the namespaces {places}"
