"""What is evaluation: the objects of a cluster, and pods that look for a node in it, all as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]

SCHEDULER = "koord-scheduler"
"""The profile's name: of ours, and of the one that kube-scheduler is given."""


def name_of(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["name"])


def key_of(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Namespace and name."""
    return str(obj["metadata"].get("namespace") or ""), name_of(obj)


@dataclass(frozen=True, slots=True)
class Room:
    """Who would have to go from a node: the names of pods, and how many of them a budget protects."""

    victims: frozenset[tuple[str, str]]
    violations: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a evaluate says of a pod.

    `feasible` are the nodes it fits on; with none of them, `reasons` counts nodes by why not. `rooms` are the
    nodes where others could go for it, `chosen` the one of them that is taken, "" for none; each is None
    where the evaluate does not tell. `message` is the text of the pod's condition. `said` are the reasons as
    kube-scheduler counts them, `vain` is what it says of why nobody can go, where a evaluate knows that.
    """

    feasible: frozenset[str]
    reasons: Mapping[str, int] = field(default_factory=dict)
    rooms: Mapping[str, Room] | None = None
    chosen: str | None = None
    message: str = ""
    said: Mapping[str, int] | None = None
    vain: str = ""

    def to_plain(self) -> Object:
        """As JSON has it."""
        return {
            "feasible": sorted(self.feasible),
            "reasons": dict(self.reasons),
            "message": self.message,
            "rooms": [
                {"node": node, "victims": sorted(room.victims), "violations": room.violations}
                for node, room in sorted((self.rooms or {}).items())
            ],
        }


def _judgement(plain: Mapping[str, Any]) -> Judgement:
    rooms = {
        one["node"]: Room(frozenset((space, name) for space, name in one["victims"]), one["violations"])
        for one in plain["rooms"]
    }
    return Judgement(frozenset(plain["feasible"]), plain["reasons"], rooms, message=plain["message"])


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster and pods. Each pod is evaluation alone: the others are not there.

    `real` is what kube-scheduler said of the last pod, where it was asked.
    """

    objects: Sequence[Object]
    pods: Sequence[Object]
    note: str = ""
    real: Judgement | None = None

    def to_json(self) -> str:
        """As one file of a directory of cases."""
        plain: Object = {"note": self.note, "objects": self.objects, "pods": self.pods}
        if self.real is not None:
            plain["real"] = self.real.to_plain()
        return json.dumps(plain, indent=1, sort_keys=True) + "\n"


def from_json(text: str) -> Case:
    """A case from its file."""
    read = json.loads(text)
    real = read.get("real")
    return Case(read["objects"], read["pods"], read["note"], None if real is None else _judgement(real))
