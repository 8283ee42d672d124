"""What went wrong in a simulation and what that cost, as data."""

from typing import Any, Final

from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.faults import Faults

_MOST_NODES: Final = 20
"""Nodes of a fault that are told of by name."""


def faults(of: Faults | None) -> dict[str, Any] | None:
    """Times in seconds; None where nothing was to go wrong. `lostPods` were deleted with their nodes."""
    if of is None:
        return None
    counts = of.counts
    return {
        "planned": [
            {
                "kind": str(one.fault.kind),
                "atSeconds": one.fault.at / SECOND,
                "forSeconds": None if one.fault.lasts is None else one.fault.lasts / SECOND,
                "delaySeconds": one.fault.delay / SECOND or None,
                "nodes": len(one.nodes),
                "names": list(one.nodes[:_MOST_NODES]),
                "share": one.fault.share or None,
                "code": one.fault.code or None,
                "rule": one.fault.place,
            }
            for one in of.struck
        ],
        "lostPods": len(counts.lost),
        "placedAnew": len(counts.anew),
        "nodeSecondsWithoutReports": counts.silent / SECOND,
        "refused": sum(counts.refused.values()),
        "refusedWrites": {str(code): count for code, count in sorted(counts.refused.items())},
        "bindingsDelayed": len(counts.delayed),
    }
