"""What the console asks of those who know why, as the command line asks them: the answers are JSON values."""

from typing import Any, Protocol

from koordpolicy.kube.port import Object
from koordpolicy.kube.snapshot import Snapshot


class Questions(Protocol):
    """Each raises `CannotAnswer` where there is nothing of that name, or it cannot be told. Called in threads, one at a time."""

    def pod(self, picture: Snapshot, name: str) -> dict[str, Any]:
        """Where the scheduler would put a pod now, or what would help it: `koordpolicy explain pod`."""
        ...

    def admission(self, picture: Snapshot, submitted: Object) -> dict[str, Any]:
        """What webhooks make of a pod at its creation, rule by rule: `koordpolicy explain pod -f`."""
        ...

    def admitted(self, picture: Snapshot, name: str, submitted: Object | None, source: str) -> dict[str, Any]:
        """What webhooks made of a pod that is there, and whether they would do the same now; `submitted` as its owner asked for it, which
        stands at `source`.
        """
        ...

    def holds(self, picture: Snapshot, name: str) -> dict[str, Any]:
        """What holds a pod back on its node, and what it may be let go for, by which policies: a part of `koordpolicy explain pod`."""
        ...

    def behind(self, reason: str) -> list[dict[str, Any]]:
        """The decisions behind a reason for which an agent lets pods go, as its Events name it, with all their rules."""
        ...

    def migration(self, picture: Snapshot, name: str) -> dict[str, Any] | None:
        """Why a descheduler moves a pod, where it goes and what that waits for: `koordpolicy explain migration`; None where it has no migration."""
        ...

    def node(self, picture: Snapshot, name: str) -> dict[str, Any]:
        """Who has the devices and CPUs of a node: `koordpolicy explain node`."""
        ...

    def decision(self, picture: Snapshot, decision: str, name: str) -> dict[str, Any]:
        """What a decision is for a node or pod, with the rules and facts behind it: `koordpolicy explain DECISION NAME`."""
        ...

    def gangs(self, picture: Snapshot) -> dict[str, Any]:
        """Gangs and how they stand, those of which pods wait first: some hundreds of them, and how many there are."""
        ...

    def gang(self, picture: Snapshot, name: str) -> dict[str, Any]:
        """How a gang stands and where its pods would go: `koordpolicy explain gang`, with some hundreds of its pods."""
        ...

    def quotas(self, picture: Snapshot) -> list[dict[str, Any]]:
        """All quotas: what they have, use, and lend."""
        ...

    def quota(self, picture: Snapshot, name: str) -> dict[str, Any]:
        """What a quota may use and why: `koordpolicy explain quota`."""
        ...
