"""Who leads, and who may: the rules of leader election over a Lease, without waiting or asking.

The rules are those of Kubernetes' own components, so that ours and theirs could share a Lease: a holder renews;
whoever has seen the same record for the whole time it is good for takes it over. That time is measured on the
watcher's own clock from when it saw the record: what the record says of times is for people to read, and
clocks of other machines are never trusted.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.kube.frozen import thaw
from koordpolicy.kube.port import Object
from koordpolicy.model.time import NANOSECONDS, time_text

_LATE: Final = 1.2
"""How much later than asked for a retry may come, by jitter."""


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """The times of an election, in seconds.

    A lease is good for `duration` after it was seen renewed. A leader that could not renew for
    `renew_deadline` stops leading; what is between the two is the time it has to stop its work. Everybody tries
    each `retry`.
    """

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry * _LATE > 0:
            raise ValueError(
                f"a lease of {self.duration:g} s must be longer than its renew deadline of"
                f" {self.renew_deadline:g} s, and that than {_LATE} times the retry period of {self.retry:g} s"
            )

    @property
    def answer(self) -> float:
        """Seconds that one try may take: half of the renew deadline, as in Kubernetes' own components."""
        return self.renew_deadline / 2

    def pause(self, jitter: float) -> float:
        """Seconds until the next try; `jitter` in [0, 1) spreads those of several."""
        return self.retry * (1.0 + (_LATE - 1.0) * jitter)


@dataclass(frozen=True, slots=True)
class LeaseSighting:
    """A record as one contender saw it: the Lease's spec, and when it first looked like that, on its own clock."""

    record: Mapping[str, Any]
    at: float

    @property
    def holder(self) -> str:
        """Who holds the lease; "" when it was given back."""
        return str(self.record.get("holderIdentity") or "")

    def free_from(self, terms: LeaseTerms) -> float:
        """The moment from which another may take it, on the clock of `at`."""
        if not self.holder:
            return -math.inf
        seconds = self.record.get("leaseDurationSeconds")
        return self.at + (float(seconds) if isinstance(seconds, int | float) else terms.duration)


def look(before: LeaseSighting | None, lease: Object, now: float) -> LeaseSighting:
    """What is known after reading the Lease: a record that did not change was seen when it was first seen."""
    record = lease.get("spec") or {}
    if before is not None and before.record == record:
        return before
    return LeaseSighting(record, now)


def may_claim(seen: LeaseSighting, identity: str, terms: LeaseTerms, now: float) -> bool:
    """Whether `identity` may write its name: it is there already, or nobody's time runs any more."""
    return seen.holder == identity or now >= seen.free_from(terms)


def first_claim(namespace: str, name: str, identity: str, terms: LeaseTerms, wall_ns: int) -> dict[str, Any]:
    """The Lease to create where there is none. `wall_ns` are nanoseconds since 1970, for people to read."""
    moment = micro_time(wall_ns)
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": math.ceil(terms.duration),
            "acquireTime": moment,
            "renewTime": moment,
            "leaseTransitions": 0,
        },
    }


def claim(lease: Object, identity: str, terms: LeaseTerms, wall_ns: int) -> dict[str, Any]:
    """The Lease with our name renewed or put in; whether that is permitted is for `may_claim` to say."""
    draft = thaw(lease)
    spec = draft.setdefault("spec", {})
    moment = micro_time(wall_ns)
    if spec.get("holderIdentity") != identity:
        spec["acquireTime"] = moment
        spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
    spec["holderIdentity"] = identity
    spec["leaseDurationSeconds"] = math.ceil(terms.duration)
    spec["renewTime"] = moment
    return draft


def handed_back(lease: Object, wall_ns: int) -> dict[str, Any]:
    """The Lease without a holder, so that the next one need not wait."""
    draft = thaw(lease)
    moment = micro_time(wall_ns)
    # One second, because the API server wants a positive number.
    draft["spec"] = {
        **(draft.get("spec") or {}),
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": moment,
        "renewTime": moment,
    }
    return draft


def micro_time(wall_ns: int) -> str:
    """Nanoseconds since 1970 as Kubernetes writes a MicroTime: six places, `Z`."""
    return f"{time_text(wall_ns).removesuffix('Z')}.{wall_ns % NANOSECONDS // 1000:06d}Z"
