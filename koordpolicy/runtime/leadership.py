"""Whether this replica leads: what only one may do asks here, from the start of the process on."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

from koordpolicy.kube.port import Cluster
from koordpolicy.runtime.leader import Callbacks, Election
from koordpolicy.runtime.metrics import Metrics


class Leadership:
    """The place of one process among its replicas.

    `identity` is what it is called in leases: its instance's name, with what tells it from others of that name. Where
    nobody is elected (`elect`), each process leads. Nobody leads before `run`.
    """

    def __init__(
        self, cluster: Cluster, namespace: str, identity: str, metrics: Metrics, *, elect: bool
    ) -> None:
        self.identity = identity
        self._cluster = cluster
        self._namespace = namespace
        self._metrics = metrics
        self._elect = elect
        self._election: Election | None = None
        self._on_change: list[Callable[[bool], None]] = []

    @property
    def leads(self) -> bool:
        """Whether this replica does what only one may do."""
        if self._election is None:
            return not self._elect
        return self._election.leading

    def subscribe(self, callback: Callable[[bool], None]) -> None:
        """Tell whether this replica leads when it stands for election, and whenever that changes."""
        self._on_change.append(callback)

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows of it: whether this replica leads, who does as far as is known, and our own name."""
        holder = "" if self._election is None else self._election.leader
        return {"leading": self.leads, "holder": holder, "identity": self.identity}

    async def run(self, lease: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` while this replica leads, for ever."""
        if not self._elect:
            self._metrics.set("koordpolicy_leader", 1, lease=lease)
            await work()
            return

        def changed(leads: bool) -> None:
            self._metrics.set("koordpolicy_leader", int(leads), lease=lease)
            for tell in self._on_change:
                tell(leads)

        changed(False)
        self._election = Election(
            self._cluster,
            self._namespace,
            lease,
            self.identity,
            jitter=random.random,
            callbacks=Callbacks(started=lambda: changed(True), stopped=lambda: changed(False)),
        )
        await self._election.run(work)
