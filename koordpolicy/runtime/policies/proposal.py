"""What whoever proposes policies needs to know of them, and hears; how they are tried is `proposing`'s business."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.runtime.policies.revisions import Reason


@dataclass(frozen=True, slots=True)
class Proposal:
    """How a try ended: `reason` is None where all of it compiles, and `message` one phrase otherwise.

    `sources` are the texts that findings point into, packs included.
    """

    reason: Reason | None
    message: str
    found: Diagnostics
    sources: Mapping[str, str]


class PolicyObjects(Protocol):
    """The policy objects of a cluster."""

    def texts(self) -> Mapping[str, str]:
        """Those that are there, as texts by path."""
        ...

    async def propose(self, files: Mapping[str, str]) -> Proposal:
        """What would become of them if these were all."""
        ...
