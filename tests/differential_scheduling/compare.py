"""Judgements side by side: what differs, in words."""

import re
from collections.abc import Iterator, Mapping

from tests.differential_scheduling.case import Judgement, Room
from tests.differential_scheduling.oracle import Cluster
from tests.differential_scheduling.oracle.evaluate import best


def differences(ours: Judgement, oracle: Judgement, cluster: Cluster) -> Iterator[str]:
    """What the oracle says otherwise than our scheduler."""
    if ours.feasible != oracle.feasible:
        yield _feasible("ours", "oracle", ours, oracle)
    elif not ours.feasible:
        if ours.reasons != oracle.reasons:
            yield f"oracle: reasons: ours {_shown(ours.reasons)}; oracle {_shown(oracle.reasons)}"
        if oracle.rooms is not None:
            yield from _rooms("oracle", ours, oracle.rooms, cluster)
            if not oracle.rooms and _tail(ours.message) != oracle.vain:
                yield f"oracle: in vain: ours {_tail(ours.message)!r}; oracle {oracle.vain!r}"


def real_differences(
    ours: Judgement, oracle: Judgement, as_built: Judgement, real: Judgement, cluster: Cluster
) -> Iterator[str]:
    """What kube-scheduler says otherwise than the oracle that knows how it is built, and than our scheduler.

    Ours is asked to say the same only where what is documented is what is built.
    """
    if as_built.feasible != real.feasible:
        yield _feasible("oracle", "real", as_built, real)
        return
    known = deviates(oracle, as_built)
    if ours.feasible != real.feasible and not known:
        yield _feasible("ours", "real", ours, real)
    if real.feasible:
        return
    if as_built.said != real.reasons:
        yield f"real: reasons: oracle {_shown(as_built.said or {})}; real {_shown(real.reasons)}"
    if dict(as_built.rooms or {}) != dict(real.rooms or {}):
        yield f"real: rooms: oracle {dict(as_built.rooms or {})}; real {dict(real.rooms or {})}"
    elif not real.rooms and as_built.vain != _tail(real.message):
        yield f"real: in vain: oracle {as_built.vain!r}; real {_tail(real.message)!r}"
    if known:
        return
    if ours.reasons == real.reasons and _counted(real.message) and _head(ours.message) != _head(real.message):
        yield f"real: message: ours {ours.message!r}; real {real.message!r}"
    yield from _rooms("real", ours, real.rooms or {}, cluster)
    if not real.rooms and _tail(ours.message) != _tail(real.message):
        yield f"real: in vain: ours {_tail(ours.message)!r}; real {_tail(real.message)!r}"


def deviates(oracle: Judgement, as_built: Judgement) -> bool:
    """Whether kube-scheduler is known to evaluate otherwise than documented."""
    return (oracle.feasible, oracle.reasons, oracle.rooms, oracle.vain) != (
        as_built.feasible, as_built.reasons, as_built.rooms, as_built.vain,
    )  # fmt: skip


def _feasible(one: str, other: str, first: Judgement, second: Judgement) -> str:
    more, less = first.feasible - second.feasible, second.feasible - first.feasible
    return f"{other}: feasible: only {one} {sorted(more)}, only {other} {sorted(less)}"


def _counted(message: str) -> bool:
    """Whether a message counts nodes; what gate a pod beforehand does not."""
    return re.match(r"0/\d+ nodes are available: \d", message) is not None


def _head(message: str) -> str:
    """What the filters say, without what is said of making room."""
    return message.split(" preemption: ", maxsplit=1)[0]


def _tail(message: str) -> str:
    """What is said of making room."""
    return message.partition(" preemption: ")[2]


def _rooms(name: str, ours: Judgement, rooms: Mapping[str, Room], cluster: Cluster) -> Iterator[str]:
    mine = dict(ours.rooms or {})
    if bool(mine) != bool(rooms):
        yield f"{name}: room: ours {mine}; {name} {dict(rooms)}"
    for node, room in mine.items():
        if rooms.get(node) != room and rooms:
            yield f"{name}: room on {node}: ours {room}; {name} {rooms.get(node)}"
    if ours.chosen and rooms:
        good = best(dict(rooms), cluster)
        if ours.chosen not in good:
            yield f"{name}: chosen: ours {ours.chosen}; best are {sorted(good)}"


def _shown(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {text}" for text, count in sorted(reasons.items()))
