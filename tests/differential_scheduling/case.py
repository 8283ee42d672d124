"""What is judged: the objects of a cluster, and pods that look for a node in it, all as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]

SCHEDULER = "koord-scheduler"
"""The profile's name: of ours, and of the one that kube-scheduler is given."""


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster and pods. Each pod is judged alone: the others are not there."""

    objects: Sequence[Object]
    pods: Sequence[Object]
    note: str = ""

    def to_json(self) -> str:
        return json.dumps(
            {"note": self.note, "objects": self.objects, "pods": self.pods}, indent=1, sort_keys=True
        )


def from_json(text: str) -> Case:
    read = json.loads(text)
    return Case(read["objects"], read["pods"], read.get("note", ""))


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
    """What a judge says of a pod.

    `feasible` are the nodes it fits on; with none of them, `reasons` counts nodes by why not. `rooms` are the
    nodes where others could go for it, `chosen` the one of them that is taken, "" for none; each is None
    where the judge does not tell. `message` is the text of the pod's condition. `said` are the reasons as
    kube-scheduler counts them, where a judge knows that.
    """

    feasible: frozenset[str]
    reasons: Mapping[str, int] = field(default_factory=dict)
    rooms: Mapping[str, Room] | None = None
    chosen: str | None = None
    message: str = ""
    said: Mapping[str, int] | None = None
