"""Which processes there are: each holds a Lease of its own, and one that renews it no more is gone.

The same rules as for leader election (`kube/leases.py`): a lease is good for its duration after a watcher saw it
renewed, on the watcher's own clock. A process that ends in good order takes its lease away; one that is killed
leaves it behind, and whoever speaks for all removes it with what the process had said.
"""

import asyncio
import hashlib
import logging
import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from koordpolicy.diagnostics.wording import unanswered
from koordpolicy.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from koordpolicy.kube.leases import LeaseSighting, LeaseTerms, claim, first_claim, look
from koordpolicy.kube.port import Cluster, Object, Preconditions
from koordpolicy.kube.resources import LEASES
from koordpolicy.runtime.logs import LoggedOnce

LOG: Final = logging.getLogger(__name__)

TERMS: Final = LeaseTerms(duration=40.0, renew_deadline=20.0, retry=10.0)
"""As kubelets renew the leases of their nodes: good for 40 s, renewed each 10."""

LABEL: Final = "koordpolicy.io/lease"
COMPONENT: Final = "koordpolicy.io/component"
INSTANCE: Final = "koordpolicy.io/instance"
SOURCE_TROUBLE: Final = "koordpolicy.io/source-trouble"
"""Why the process has no new policies for now, on its lease; absent where its source is well."""
_MOST_TROUBLE: Final = 1024
_INSTANCE: Final = "instance"
_MOST_IN_NAME: Final = 200
_PLAIN: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


class Member(NamedTuple):
    """A process by its component and what it is called there."""

    component: str
    instance: str

    @property
    def lease(self) -> str:
        """The name of its Lease; a digest stands in for what no name may have."""
        name = f"{self.component}-{self.instance}"
        if not _PLAIN.fullmatch(name) or len(name) > _MOST_IN_NAME:
            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
            words = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_MOST_IN_NAME].strip("-")
            name = f"{words}-{digest}" if words else digest
        return f"koordpolicy-instance-{name}"


class Presence:
    """Keeps the lease of this process while `run` runs.

    `identity` is the process's own, never that of another or of one before a restart. `jitter` gives numbers in
    [0, 1), `wall_ns` the nanoseconds since 1970 that the lease shows to people. `source_trouble` gives what the lease tells
    of the source of policies, "" where it is well.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        member: Member,
        identity: str,
        *,
        jitter: Callable[[], float],
        wall_ns: Callable[[], int],
        source_trouble: Callable[[], str] = str,
        terms: LeaseTerms = TERMS,
    ) -> None:
        self._source_trouble = source_trouble
        self._cluster = cluster
        self._namespace = namespace
        self._member = member
        self._identity = identity
        self._jitter = jitter
        self._wall_ns = wall_ns
        self._terms = terms
        self._lease: Object | None = None
        self._trouble = LoggedOnce(LOG)
        self._others: set[str] = set()

    async def run(self) -> None:
        """Renew until cancelled. A cluster that cannot be reached delays that and stops nothing."""
        while True:
            try:
                async with asyncio.timeout(self._terms.answer):
                    await self._renew()
                self._trouble.over()
            except (KubeError, TimeoutError) as error:
                self._lease = None
                trouble = unanswered(error, self._terms.answer)
                self._trouble.met(
                    trouble,
                    "lease %s/%s cannot be renewed: %s; others will count this process as gone",
                    self._namespace,
                    self._member.lease,
                    trouble,
                )
            await asyncio.sleep(self._terms.pause(self._jitter()))

    async def withdraw(self) -> None:
        """Take the lease away: this process ends. Raises KubeError."""
        lease = self._lease
        if lease is None:
            return
        with suppress(NotFound, Conflict):  # gone, or another's by now
            await _remove(self._cluster, lease)
        self._lease = None

    async def _renew(self) -> None:
        cluster, name = self._cluster, self._member.lease
        if self._lease is not None:
            with suppress(Conflict, NotFound):
                self._lease = await cluster.update(LEASES, self._claimed(self._lease))
                return
            self._lease = None
        try:
            lease = await cluster.get(LEASES, name, namespace=self._namespace)
        except NotFound:
            draft = first_claim(self._namespace, name, self._identity, self._terms, self._wall_ns())
            draft["metadata"]["labels"] = {LABEL: _INSTANCE}
            # Annotations, since the names of hosts and pods may be longer than a label's value.
            draft["metadata"]["annotations"] = {
                COMPONENT: self._member.component,
                INSTANCE: self._member.instance,
            }
            with suppress(AlreadyExists):
                self._lease = await cluster.create(LEASES, draft, namespace=self._namespace)
            return
        self._notice(str((lease.get("spec") or {}).get("holderIdentity") or ""))
        with suppress(Conflict, NotFound):
            self._lease = await cluster.update(LEASES, self._claimed(lease))

    def _claimed(self, lease: Object) -> Object:
        claimed = claim(lease, self._identity, self._terms, self._wall_ns())
        told = dict(claimed["metadata"].get("annotations") or {})
        trouble = self._source_trouble()[:_MOST_TROUBLE]
        if trouble:
            told[SOURCE_TROUBLE] = trouble
        else:
            told.pop(SOURCE_TROUBLE, None)
        claimed["metadata"]["annotations"] = told
        return claimed

    def _notice(self, holder: str) -> None:
        """A holder that was there before a restart goes; one that comes back runs beside us under the same name."""
        if holder in {"", self._identity}:
            return
        if holder in self._others:
            LOG.warning(
                "another %s is called %s, too (%s): what one reports the other takes back; name them apart"
                " by --instance",
                self._member.component,
                self._member.instance,
                holder,
            )
        self._others.add(holder)


@dataclass(slots=True)
class _Known:
    """A lease as last seen; None where there was none, and since when that is so."""

    lease: Object | None
    seen: LeaseSighting


class RollCall:
    """Who is there, seen from one process; `clock` gives seconds that never run backwards.

    Whoever is asked about for the first time counts as there for as long as a lease is good. So does everybody after
    a time without a look, as when the API server was away: nobody could renew then, or nobody here could see it.
    """

    def __init__(
        self, cluster: Cluster, namespace: str, *, clock: Callable[[], float], terms: LeaseTerms = TERMS
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._clock = clock
        self._terms = terms
        self._known: dict[str, _Known] = {}
        self._looked_at = -math.inf

    @property
    def present(self) -> frozenset[Member]:
        """Those whose leases were good at the last look."""
        now = self._clock()
        return frozenset(
            member
            for one in self._known.values()
            if one.lease is not None and not self._gone(one, now) and (member := _member_of(one.lease))
        )

    async def absent(self, members: Iterable[Member]) -> frozenset[Member]:
        """Those that are gone, of the members and of all that have a lease. Raises KubeError."""
        listed = await self._cluster.list(
            LEASES, namespace=self._namespace, label_selector=f"{LABEL}={_INSTANCE}"
        )
        now, known = self._clock(), self._known
        if now - self._looked_at > self._terms.renew_deadline:
            known = {}
        self._looked_at = now
        found = {str(lease["metadata"]["name"]): lease for lease in listed.items}
        # Who left a lease behind is asked about, too: it has to be removed.
        wanted = {member.lease: member for member in (*filter(None, map(_member_of, listed.items)), *members)}
        fresh: dict[str, _Known] = {}
        for name in {*found, *wanted}:
            lease, before = found.get(name), known.get(name)
            seen = look(before.seen if before else None, lease or {"spec": {}}, now)
            fresh[name] = _Known(lease, seen)
        self._known = fresh
        return frozenset(member for name, member in wanted.items() if self._gone(fresh[name], now))

    async def forget(self, members: Iterable[Member]) -> None:
        """Remove the leases that members who are gone left behind. Raises KubeError."""
        for name in {member.lease for member in members}:
            known = self._known.get(name)
            if known is not None and known.lease is not None:
                with suppress(NotFound, Conflict):  # it came back
                    await _remove(self._cluster, known.lease)

    def _gone(self, known: _Known, now: float) -> bool:
        good_until = known.seen.free_from(self._terms)
        if known.lease is None or not known.seen.holder:
            good_until = known.seen.at + self._terms.duration
        return now >= good_until


def _member_of(lease: Object) -> Member | None:
    """Whose lease it is; None where it does not say so."""
    said = lease["metadata"].get("annotations") or {}
    component, instance = said.get(COMPONENT, ""), said.get(INSTANCE, "")
    return Member(component, instance) if component and instance else None


async def _remove(cluster: Cluster, lease: Object) -> None:
    """Delete a lease as it was seen."""
    metadata = lease["metadata"]
    await cluster.delete(
        LEASES,
        metadata["name"],
        namespace=metadata["namespace"],
        preconditions=Preconditions(metadata.get("uid", ""), metadata.get("resourceVersion", "")),
    )
