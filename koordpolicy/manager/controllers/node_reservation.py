"""What a node keeps for programs outside Kubernetes, in its annotation."""

from typing import Any, Final

from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.controllers.node_change import NodeChange, to_write
from koordpolicy.model.cpuset import parse_cpuset
from koordpolicy.model.facts import Record
from koordpolicy.model.protocol import CPU, MEMORY, NODE_RESERVATION, RESERVATION_BY_POLICY
from koordpolicy.model.quantity import amount_text

KIND: Final = "NodeReservation"


def reservation_of(graph: RuleGraph, sight: NodeSight, record: Record, now: int) -> NodeChange:
    """What is to be written of a node's reservation; `now` in nanoseconds since 1970. Raises `CelError`.

    What policies wrote goes when they do not speak of the node any more; what anybody else wrote stays. The second
    annotation, with the text of the first, is how that is known.
    """
    about = graph.about(KIND, "", {"node": record, "now": TIMES.timestamp(now)})
    annotations = sight.node.annotations
    if not about.value("enabled"):
        ours = annotations.get(RESERVATION_BY_POLICY)
        if ours is None:
            return NodeChange()
        gone: dict[str, str | None] = {RESERVATION_BY_POLICY: None}
        if annotations.get(NODE_RESERVATION) == ours:
            gone[NODE_RESERVATION] = None
        return NodeChange(to_write(annotations, gone))
    amounts = {CPU: about.value("cpu"), MEMORY: about.value("memory")}
    kept: dict[str, Any] = {}
    resources = {name: amount_text(name, number) for name, number in amounts.items() if number}
    if resources:
        kept["resources"] = resources
    cpus = about.value("cpus")
    if cpus:
        try:
            parse_cpuset(cpus)
        except ValueError as error:
            return NodeChange(problems=(f"cpus: {error}",))
        kept["reservedCPUs"] = cpus
    kept["applyPolicy"] = about.value("applyTo")
    text = json_text(kept)
    return NodeChange(to_write(annotations, {NODE_RESERVATION: text, RESERVATION_BY_POLICY: text}))
