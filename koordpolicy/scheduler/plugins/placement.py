"""What nodes say of themselves: cordons, names, taints, labels."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from koordpolicy.algorithms import node_affinity, toleration
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.cluster.nodes import TAINTS, NodeView, taints_of
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.distinct import among
from koordpolicy.model.node import Taint
from koordpolicy.model.placement import Placement
from koordpolicy.model.protocol import HOSTNAME
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.plugins.base import PAUSE, PLACE, ROWS, SPEC, Plugin, RefusedNodes
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.plugins.verdicts import Verdicts, one_reason, refuses_none, the_same_for_all


def node_unschedulable(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Cordoned nodes."""
    tolerated = toleration.tolerated(pod.placement.tolerations, toleration.CORDON)
    cordoned = None if tolerated else nodes.flagged("unschedulable")
    if cordoned is None:
        return refuses_none((toleration.CORDONED,), nodes.count)
    return one_reason(cordoned, toleration.CORDONED)


NODE_NAME_MISMATCH: Final = "node(s) didn't match the requested node name"


def node_name(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes other than the one that the pod names."""
    wanted = pod.pod.node_name
    if not wanted:
        return refuses_none((NODE_NAME_MISMATCH,), nodes.count)
    return one_reason(nodes.names() != nodes.code(wanted), NODE_NAME_MISMATCH)


def taint_toleration(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes with taints that the pod does not tolerate. Each set of taints is looked at once."""
    if not nodes.tainted:
        return refuses_none((toleration.UNTOLERATED,), nodes.count)
    codes = nodes.taints()
    refused = np.zeros(nodes.count, np.bool_)
    for code in nodes.tainted:
        if not toleration.tolerates_all(pod.placement.tolerations, taints_of(nodes.text(code))):
            refused |= codes == code
    return one_reason(refused, toleration.UNTOLERATED)


def required_affinity(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes that have not what the pod's selector and affinity require."""
    placement = pod.placement
    if not placement.node_selector and placement.required is None and not placement.among:
        return refuses_none((node_affinity.MISMATCH,), nodes.count)
    elsewhere = ~node_affinity.matches_all(placement, nodes)
    if not placement.among:
        return one_reason(elsewhere, node_affinity.MISMATCH)
    named = among(nodes.names(), [nodes.code(name) for name in placement.among])
    return Verdicts(
        (node_affinity.MISMATCH, NOT_HINTED), np.vstack((elsewhere, ~named & ~elsewhere)), elsewhere | ~named
    )


NOT_HINTED: Final = "node(s) are not named by the pod's scheduling hint"


def avoided_taints(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Scores:
    """How many taints of each node the pod would rather avoid."""
    if not nodes.tainted:
        return the_same_for_all(nodes.count)
    codes = nodes.taints()
    counts = np.zeros(nodes.count, np.int64)
    for code in nodes.tainted:
        counts[codes == code] = toleration.avoided(pod.placement.tolerations, taints_of(nodes.text(code)))
    return counts


def preferred_affinity(pod: PodView, nodes: NodeView, _parameters: Parameters) -> "Scores | None":
    """The weights of the pod's wishes that each node fulfils."""
    preferred = pod.placement.preferred
    return node_affinity.preference_all(preferred, nodes) if preferred else None


# --- advice --------------------------------------------------------------------------------------

_LISTED: Final = 3
"""Changes that are named for one filter, the best first."""


def uncordoned(_pod: PodView, _parameters: Parameters, nodes: RefusedNodes) -> Iterator[str]:
    """Cordoned nodes could be uncordoned."""
    yield f"{len(nodes.rows)} would take it if uncordoned"


def tolerations(pod: PodView, _parameters: Parameters, nodes: RefusedNodes) -> Iterator[str | None]:
    """The single taints that keep the pod away."""
    tolerated = pod.placement.tolerations
    found: Counter[Taint] = Counter()
    for at, row in enumerate(nodes.rows, 1):
        if at % ROWS == 0:
            yield PAUSE
        text = str(nodes.table.row(int(row)).get(TAINTS, ""))
        bad = [
            taint
            for taint in taints_of(text)
            if taint.effect in (toleration.NO_SCHEDULE, toleration.NO_EXECUTE)
            and not toleration.tolerated(tolerated, taint)
        ]
        if len(bad) == 1:
            found[bad[0]] += 1
    for taint, count in found.most_common(_LISTED):
        text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
        if taint.key.startswith(toleration.OF_CONDITIONS):
            yield f"{count} would take it once Kubernetes takes {text} away, which says how the node is"
        else:
            yield f"{count} would take it if the pod tolerated {text}"


def labels(pod: PodView, _parameters: Parameters, nodes: RefusedNodes) -> Iterator[str | None]:
    """The single labels that nodes lack."""
    wanted = pod.placement
    found: Counter[tuple[str, str]] = Counter()
    for at, row in enumerate(nodes.rows, 1):
        if at % ROWS == 0:
            yield PAUSE
        facts = nodes.table.row(int(row))
        own: Any = facts["labels"]
        bad = [(key, value) for key, value in wanted.node_selector.items() if own.get(key) != value]
        # A node's own name is no label that another one could have.
        if len(bad) == 1 and bad[0][0] != HOSTNAME and _affinity_passes(wanted, str(facts["name"]), own):
            found[bad[0]] += 1
    for (key, value), count in found.most_common(_LISTED):
        yield f"{count} would take it with the label {key}={value}"
    rest = len(nodes.rows) - sum(found.values())
    if rest and wanted.required is not None and not found:
        yield "no node has the labels that the pod's affinity requires"


def unknown_labels(pod: PodView, table: NodeTable) -> Iterator[str]:
    """Labels of the pod's selector that no node has at all, whatever else refuses the nodes."""
    for key, value in pod.placement.node_selector.items():
        column = table.entry("labels", key)
        same = column.values == table.strings.find(value)
        if not (same if column.absent is None else same & ~column.absent).any():
            yield f"no node has the label {key}={value}"


def _affinity_passes(wanted: Placement, name: str, own: Mapping[str, str]) -> bool:
    """Whether a node with these labels meets what the affinity alone requires."""
    return wanted.required is None or node_affinity.matches(Placement(required=wanted.required), name, own)


# --- the plugins ---------------------------------------------------------------------------------

NODE_UNSCHEDULABLE: Final = Plugin(
    filter=node_unschedulable,
    node_facts=frozenset({"unschedulable"}),
    pod_facts=SPEC,
    advice=uncordoned,
    of_kubernetes=True,
)

NODE_NAME: Final = Plugin(
    filter=node_name, node_facts=frozenset({"name"}), pod_facts=frozenset({"nodeName"}), of_kubernetes=True
)

TAINT_TOLERATION: Final = Plugin(
    filter=taint_toleration,
    score=avoided_taints,
    node_facts=frozenset({TAINTS}),
    pod_facts=SPEC,
    advice=tolerations,
    of_kubernetes=True,
)

NODE_AFFINITY: Final = Plugin(
    filter=required_affinity,
    score=preferred_affinity,
    node_facts=PLACE,
    pod_facts=SPEC,
    advice=labels,
    of_kubernetes=True,
)
