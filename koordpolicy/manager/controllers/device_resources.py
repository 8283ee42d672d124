"""What a node offers of its devices: capacity, allocatable amounts and labels."""

from typing import Final

from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.controllers.node_change import NodeChange, to_write
from koordpolicy.model.facts import Record
from koordpolicy.model.node import Node

KIND: Final = "DeviceResource"


def devices_of(graph: RuleGraph, sight: NodeSight, record: Record, now: int) -> NodeChange:
    """What is to be written of a node's devices, of all sorts that policies know; `now` in nanoseconds since 1970.

    A sort that cannot be decided keeps what it offers. Resources that policies name in no way, and labels, are left as they are.
    """
    resources: dict[str, int | None] = {}
    labels: dict[str, str | None] = {}
    problems: list[str] = []
    for sort in graph.subjects(KIND):
        about = graph.about(KIND, sort, {"node": record, "now": TIMES.timestamp(now)})
        try:
            if not about.value("enabled"):
                continue
            offered: dict[str, int | None] = dict.fromkeys(about.value("withdrawn") or ())
            for name in about.value("resources") or ():
                amount = about.value("amount", resource=name)
                if amount is not None:
                    offered[name] = max(amount, 0)
            wanted = dict(about.value("labels") or {})
        except CelError as error:
            problems.append(f"{sort}: {error}")
            continue
        resources.update(offered)
        labels.update(wanted)
    return NodeChange(
        labels=to_write(sight.node.labels, labels),
        resources={
            name: number for name, number in resources.items() if not _stands(sight.node, name, number)
        },
        problems=tuple(problems),
    )


def _stands(node: Node, name: str, number: int | None) -> bool:
    return node.allocatable.get(name) == number and node.capacity.get(name) == number
