"""Pods wait in line for their quota: those of one quota are admitted together, so many quotas at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from koordpolicy.kube.errors import KubeError
from koordpolicy.manager.webhooks.quota_batch import Demand, QuotaSettings, QuotaVerdict
from koordpolicy.model.reading import ObjectError

Admit: TypeAlias = Callable[[str, Sequence[Demand], QuotaSettings], Awaitable[list[QuotaVerdict]]]
_Waiting: TypeAlias = tuple[Demand, asyncio.Future[QuotaVerdict]]


class QuotaLine:
    """Who comes while a quota is being written to waits, and is admitted next with all who came in the meantime."""

    def __init__(self, admit: Admit) -> None:
        self._admit = admit
        self._waiting: dict[str, list[_Waiting]] = {}
        self._working: dict[str, asyncio.Task[None]] = {}

    async def admit(self, name: str, demand: Demand, settings: QuotaSettings) -> QuotaVerdict:
        """Admit one pod to a quota. Raises TimeoutError once that takes too long; what raises for one, raises for all."""
        verdict: asyncio.Future[QuotaVerdict] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, []).append((demand, verdict))
        self._start(settings)
        async with asyncio.timeout(settings.timeout):
            return await verdict

    def _start(self, settings: QuotaSettings) -> None:
        """Begin with those who wait the longest, as far as there are workers."""
        free = settings.workers - len(self._working)
        for name in [one for one in self._waiting if one not in self._working][: max(free, 0)]:
            self._working[name] = asyncio.create_task(self._work(name, settings), name=f"quota {name}")

    async def _work(self, name: str, settings: QuotaSettings) -> None:
        # Whoever does not wait any more must not be counted.
        waiting = [one for one in self._waiting.pop(name) if not one[1].done()]
        try:
            verdicts = await self._admit(name, [demand for demand, _ in waiting], settings)
            for (_, future), verdict in zip(waiting, verdicts, strict=True):
                if not future.done():
                    future.set_result(verdict)
        except (KubeError, ObjectError) as error:
            for _, future in waiting:
                if not future.done():
                    future.set_result(QuotaVerdict(failed=error))
        except Exception as error:  # noqa: BLE001  # a mistake of ours: each review tells of it
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error)
        finally:
            del self._working[name]
            self._start(settings)
