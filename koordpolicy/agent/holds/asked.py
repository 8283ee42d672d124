"""All that may hold a pod back on its node, asked of one revision."""

from collections.abc import Callable, Mapping
from typing import Final

from koordpolicy.agent.holds.cpu import burst, cpus, interference, kernel_scheduler, quota, suppression
from koordpolicy.agent.holds.evictions import evictions
from koordpolicy.agent.holds.hold import HeldPod, Hold, HoldState
from koordpolicy.agent.holds.other import caches, disks, memory, network
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.reading import ObjectError

_EACH: Final[Mapping[str, Callable[[HeldPod], Hold]]] = {
    "CPU suppression": suppression,
    "Others that suffer": interference,
    "Quota": quota,
    "CPU burst": burst,
    "CPU set": cpus,
    "Turns on CPUs": kernel_scheduler,
    "Memory": memory,
    "Caches and memory bandwidth": caches,
    "Disks": disks,
    "Network": network,
}


def holds_of(held: HeldPod) -> list[Hold]:
    """What each strategy means for the pod. One that cannot be told says why."""
    return [_told(title, hold, held) for title, hold in _EACH.items()]


def evictions_of(held: HeldPod) -> list[Hold]:
    """Each reason for which its agent may let it go."""
    try:
        return list(evictions(held))
    except (CelError, ValueError) as error:
        return [Hold("Evictions", "", HoldState.UNKNOWN, f"They cannot be told here: {error}.")]


def _told(title: str, hold: Callable[[HeldPod], Hold], held: HeldPod) -> Hold:
    try:
        return hold(held)
    except (CelError, ObjectError, ValueError) as error:
        return Hold(title, "", HoldState.UNKNOWN, f"It cannot be told here: {error}.")
