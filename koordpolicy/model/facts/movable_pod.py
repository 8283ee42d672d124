"""Facts of pods that are asked where pods are to be moved."""

from collections.abc import Sequence
from typing import Final

from koordpolicy.model.eviction_cost import read_eviction_cost
from koordpolicy.model.facts.record import Record
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import DELETION_COST, EVICTION_COST
from koordpolicy.model.reading import Json, ObjectError, integer, mapping, objects

PREFERENCE_ELSEWHERE: Final = "preferenceElsewhere"
"""The fact that follows from all other nodes, and is looked for where a policy asks for it."""

_READY: Final = "Ready"
_TRUE: Final = "True"
_INIT: Final = ("initContainerStatuses",)
_MAIN: Final = ("containerStatuses",)
_STATUSES: Final = (*_INIT, *_MAIN)
_STATES: Final = ("waiting", "terminated")


def movable_pod_facts(pod: Pod) -> Record:
    """Who owns the pod, what it has on its node, what moving it costs. What cannot be read counts as not said."""
    ready = pod.condition(_READY) if pod.conditions else None
    return {
        "ownerKinds": [owner.kind for owner in pod.owners],
        "terminating": pod.terminating,
        "volumeKinds": _volume_kinds(pod.raw),
        "ready": ready is not None and ready.status == _TRUE,
        "restarts": _restarts(pod.raw, _STATUSES),
        "initRestarts": _restarts(pod.raw, _INIT),
        "states": _states(pod),
        "initStates": _reasons(pod.raw, _INIT),
        "exitCodes": _exit_codes(pod.raw, _MAIN),
        "initExitCodes": _exit_codes(pod.raw, _INIT),
        "deletionCost": read_eviction_cost(pod.annotations.get(DELETION_COST)),
        "evictionCost": read_eviction_cost(pod.annotations.get(EVICTION_COST)),
    }


def on_node_facts(
    untolerated: Sequence[str] = (),
    avoided: Sequence[str] = (),
    *,
    matches: bool = True,
    preference: int = 0,
) -> Record:
    """Whether the pod would be let on its node as that is now: taints in the way, and what it asks of nodes and prefers.

    What other nodes have of that is 0 until somebody looks.
    """
    return {
        "untoleratedTaints": list(untolerated),
        "avoidedTaints": list(avoided),
        "matchesNode": matches,
        "preferenceHere": preference,
        PREFERENCE_ELSEWHERE: 0,
    }


def _volume_kinds(raw: Json) -> list[str]:
    try:
        volumes = objects(mapping(raw, "spec"), "volumes", "spec")
    except ObjectError:
        return []
    return sorted({kind for volume in volumes for kind in volume if kind != "name"})


def _restarts(raw: Json, keys: tuple[str, ...]) -> int:
    try:
        status = mapping(raw, "status")
        return sum(
            integer(one, "restartCount") or 0 for key in keys for one in objects(status, key, "status")
        )
    except ObjectError:
        return 0


def _states(pod: Pod) -> list[str]:
    status = pod.raw.get("status")
    reason = status.get("reason") if isinstance(status, dict) else None
    found = [pod.phase, *([reason] if isinstance(reason, str) and reason else [])]
    return [*found, *_reasons(pod.raw, _MAIN)]


def _reasons(raw: Json, keys: tuple[str, ...]) -> list[str]:
    """Why containers wait or have ended, each reason once."""
    try:
        status = mapping(raw, "status")
        found: dict[str, None] = {}
        for key in keys:
            for one in objects(status, key, "status"):
                state = mapping(one, "state")
                for kind in _STATES:
                    reason = mapping(state, kind).get("reason")
                    if isinstance(reason, str) and reason:
                        found[reason] = None
        return list(found)
    except ObjectError:
        return []


def _exit_codes(raw: Json, keys: tuple[str, ...]) -> list[int]:
    """With what containers have ended, each code once."""
    try:
        status = mapping(raw, "status")
        found: dict[int, None] = {}
        for key in keys:
            for one in objects(status, key, "status"):
                code = integer(mapping(mapping(one, "state"), "terminated"), "exitCode")
                if code is not None:
                    found[code] = None
        return list(found)
    except ObjectError:
        return []
