"""Leader election: one of several replicas works, the others stand by.

The loop's clock measures all spans, so that an election runs on virtual time too.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from koordpolicy.diagnostics.wording import unanswered
from koordpolicy.kube import Cluster, Conflict, KubeError, NotFound, Object
from koordpolicy.kube.leases import (
    LeaseSighting,
    LeaseTerms,
    claim,
    first_claim,
    handed_back,
    look,
    may_claim,
)
from koordpolicy.kube.resources import LEASES
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.logs import LoggedOnce

_log: Final = logging.getLogger(__name__)

_RELEASE: Final = 5.0
"""Seconds to give the lease back when leaving; after that it simply runs out."""


def own_identity(instance: str) -> str:
    """A name no other process has: what the process is called, and a number drawn at the start.

    The number keeps apart what an operator called the same by mistake, and a process from the one before a restart.
    """
    return f"{instance}_{secrets.token_hex(8)}"


def page_token() -> str:
    """A text that nobody guesses."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Who wants to know: that we lead, and that we do not lead any more."""

    started: Callable[[], None] = lambda: None
    stopped: Callable[[], None] = lambda: None


class Election:
    """One contender for the Lease `namespace/name`.

    `identity` must be a process's own, not a machine's. `jitter` gives numbers in [0, 1), `wall_ns` the
    nanoseconds since 1970 that the record shows to people; nothing is decided by them.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        name: str,
        identity: str,
        *,
        jitter: Callable[[], float],
        terms: LeaseTerms | None = None,
        callbacks: Callbacks | None = None,
        wall_ns: Callable[[], int] = now_ns,
    ) -> None:
        self.identity = identity
        self.leading = False
        """Whether our work runs and has not been told to end."""
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._terms = terms or LeaseTerms()
        self._callbacks = callbacks or Callbacks()
        self._jitter = jitter
        self._wall_ns = wall_ns
        self._seen: LeaseSighting | None = None
        self._lease: Object | None = None
        """As we wrote it last; None when somebody else may have written since."""
        self._trouble = LoggedOnce(_log)

    @property
    def leader(self) -> str:
        """Who leads as far as we know, "" for nobody: ourselves only while we do, whatever the record still says."""
        holder = self._seen.holder if self._seen is not None else ""
        return "" if holder == self.identity and not self.leading else holder

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Stand for election, run `work` while leading, and stand again when leadership was lost.

        Returns when `work` does, and raises what it raises. `work` is cancelled when leadership is lost, and
        has `duration - renew_deadline` seconds to end before another begins; from then on we do not lead, though the
        lease may still be ours. However this ends, cancellation included, the lease is given back as soon as the work
        has stopped.
        """
        while True:
            try:
                if await self._lead(work, await self._acquire()):
                    return
            finally:
                await self._release()

    async def _lead(self, work: Callable[[], Awaitable[None]], renewed: float) -> bool:
        """Work and renew; whether the work has ended by itself."""
        self.leading = True
        _log.info("leading %s/%s as %s", self._namespace, self._name, self.identity)
        self._callbacks.started()
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._renew(renewed))
        try:
            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
            ended = working.done()
            if not ended:
                why = renewing.result()
                _log.warning("not leading %s/%s any more: %s", self._namespace, self._name, why)
        finally:
            self.leading = False
            self._callbacks.stopped()
            # While the work winds up, the lease is renewed as long as that is possible.
            working.cancel()
            await asyncio.wait((working,))
            renewing.cancel()
            await asyncio.wait((renewing,))
        if not working.cancelled():
            working.result()
        return ended

    async def _acquire(self) -> float:
        """Try until the lease is ours; the moment from which it is, with time left in which to renew it."""
        while True:
            began = asyncio.get_running_loop().time()
            if await self._attempt():
                return began
            await asyncio.sleep(self._terms.pause(self._jitter()))

    async def _renew(self, renewed: float) -> str:
        """Renew for ever; return when the lease is lost or could not be renewed in time, with which of the two.

        Time counts from the moment before the last request that succeeded: others saw it no sooner.
        """
        loop = asyncio.get_running_loop()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(renewed + self._terms.renew_deadline):
                    while True:
                        await asyncio.sleep(self._terms.pause(self._jitter()))
                        began = loop.time()
                        if await self._attempt():
                            renewed = began
                            break
                        if self._seen is not None and self.leader not in {"", self.identity}:
                            return f"{self.leader} leads"
                    continue
            return f"its lease could not be renewed within {self._terms.renew_deadline:g} s"

    async def _attempt(self) -> bool:
        """One try to take or renew the lease; whether it is ours now.

        A server that comes back may answer what was asked long ago. A lease won by such an answer would be lost at
        once, since its time counts from the question, so that answers are not waited for that long.
        """
        try:
            async with asyncio.timeout(self._terms.answer):
                ours = await self._write()
        except (KubeError, TimeoutError) as error:
            self._lease = None
            trouble = unanswered(error, self._terms.answer)
            self._trouble.met(trouble, "lease %s/%s: %s", self._namespace, self._name, trouble)
            return False
        self._trouble.over()
        return ours

    async def _write(self) -> bool:
        now = asyncio.get_running_loop().time
        if self._lease is not None:
            with suppress(Conflict, NotFound):
                await self._store(claim(self._lease, self.identity, self._terms, self._wall_ns()))
                return True
            self._lease = None
        try:
            lease = await self._cluster.get(LEASES, self._name, namespace=self._namespace)
        except NotFound:
            draft = first_claim(self._namespace, self._name, self.identity, self._terms, self._wall_ns())
            self._took(await self._cluster.create(LEASES, draft, namespace=self._namespace))
            return True
        self._see(look(self._seen, lease, now()))
        assert self._seen is not None
        if not may_claim(self._seen, self.identity, self._terms, now()):
            return False
        await self._store(claim(lease, self.identity, self._terms, self._wall_ns()))
        return True

    async def _store(self, draft: Object) -> None:
        """Write the lease, unless somebody did since it was read (Conflict)."""
        self._took(await self._cluster.update(LEASES, draft))

    def _took(self, lease: Object) -> None:
        self._lease = lease
        self._see(look(self._seen, lease, asyncio.get_running_loop().time()))

    def _see(self, seen: LeaseSighting) -> None:
        before, self._seen = "" if self._seen is None else self._seen.holder, seen
        if seen.holder not in {before, "", self.identity} and not self.leading:
            _log.info("standing by for %s/%s: %s leads", self._namespace, self._name, seen.holder)

    async def _release(self) -> None:
        """Give the lease back if it is still ours; when that fails, it runs out by itself."""
        try:
            async with asyncio.timeout(_RELEASE):
                lease = await self._cluster.get(LEASES, self._name, namespace=self._namespace)
                if look(None, lease, 0.0).holder == self.identity:
                    self._took(await self._cluster.update(LEASES, handed_back(lease, self._wall_ns())))
        except (KubeError, TimeoutError) as error:
            why = unanswered(error, _RELEASE)
            _log.info("lease %s/%s was not given back: %s", self._namespace, self._name, why)
        finally:
            self._lease = None
