"""Strategies that look at pods beside each other: copies on one node, pods that keep away from others, uneven spread, and shrinking workloads."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.algorithms.descheduling.copies import CopyKey, crowded_copies
from koordpolicy.algorithms.descheduling.scale_down import (
    ScaleDownNode,
    ScaleDownPod,
    ScaleDownRole,
    scale_down_ranking,
)
from koordpolicy.algorithms.descheduling.uneven_spread import uneven_pods
from koordpolicy.algorithms.node_affinity import matches
from koordpolicy.algorithms.toleration import tolerates_all
from koordpolicy.algorithms.work import Work
from koordpolicy.descheduler.by_rules import Release
from koordpolicy.descheduler.moves import Moves
from koordpolicy.descheduler.rules import StrategyRules
from koordpolicy.descheduler.snapshot import SeenNode, SeenPod
from koordpolicy.model.neighbours import ALONE, Neighbours, PodTerm, SpreadConstraint, read_neighbours
from koordpolicy.model.placement import Placement, Toleration
from koordpolicy.model.reading import ObjectError, mapping, objects

Found = Work[list[SeenPod]]

_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label that every namespace has. Others are not known here: a term that selects namespaces by those selects none."""


def release_peers(
    nodes: Sequence[SeenNode],
    rules: StrategyRules,
    moves: Moves,
    catalogue: Catalogue,
) -> Work[None]:
    """Let pods go that the strategy's plugin finds among those that may go for its reason."""
    peers = _Peers(nodes, rules, moves)
    find = _PLUGINS[rules.plugin]
    found = yield from find(peers)
    going = Release({node.name: node for node in nodes}, rules, moves, catalogue)
    for pod in found:
        yield
        going.one(pod, peers.node_of(pod))


class _Peers:
    """The pods of a round beside each other."""

    def __init__(self, nodes: Sequence[SeenNode], rules: StrategyRules, moves: Moves) -> None:
        self.nodes = nodes
        self.rules = rules
        self.moves = moves
        self._by_row = {node.row: node for node in nodes}

    def node_of(self, pod: SeenPod) -> SeenNode:
        """The node that a pod is on."""
        return self._by_row[pod.row]

    def may_go(self, pod: SeenPod) -> bool:
        """Whether a pod may go for the strategy's reason, and nothing forbids it."""
        node = self.node_of(pod)
        return self.wanted(pod) and self.moves.why_not(pod, node) is None

    def wanted(self, pod: SeenPod) -> bool:
        """Whether a pod may go for the strategy's reason."""
        return self.rules.candidate(pod.facts, self.node_of(pod).facts, self.moves.now)

    def key(self, pod: SeenPod) -> Any:
        """Its place among those that may go."""
        return self.rules.key(pod.facts, self.node_of(pod).facts, self.moves.now)


def _copies(peers: _Peers) -> Found:
    pods: list[list[SeenPod]] = []
    for node in peers.nodes:
        yield
        found = [pod for pod in node.pods if pod.pod.owners and peers.may_go(pod)]
        pods.append(sorted(found, key=peers.key, reverse=True))  # of copies the one stays that would go last
    places: dict[tuple[Toleration, ...], frozenset[int]] = {}

    def may_be_on(pod: SeenPod) -> frozenset[int]:
        placement = pod.placement
        if placement is None:
            return frozenset()
        if placement.node_selector or placement.required is not None or placement.among:
            return _places(peers.nodes, placement)
        known = places.get(placement.tolerations)
        if known is None:
            known = places[placement.tolerations] = _places(peers.nodes, placement)
        return known

    return [pod for _, pod in crowded_copies(pods, _copy_key, may_be_on)]


def _places(nodes: Sequence[SeenNode], placement: Placement) -> frozenset[int]:
    return frozenset(at for at, node in enumerate(nodes) if _permitted(placement, node))


def _permitted(placement: Placement, node: SeenNode) -> bool:
    own = node.sight.node
    return (
        not own.unschedulable
        and matches(placement, own.name, own.labels)
        and tolerates_all(placement.tolerations, own.taints)
    )


def _copy_key(pod: SeenPod) -> CopyKey:
    """The namespace, owners and images of a pod: what copies of it have, too."""
    try:
        containers = objects(mapping(pod.pod.raw, "spec"), "containers", "spec")
    except ObjectError:
        return ()
    images = sorted(str(one.get("image", "")) for one in containers)
    owners = sorted((one.kind, one.name) for one in pod.pod.owners)
    return (pod.pod.namespace, tuple(owners), tuple(images))


def _repelled(peers: _Peers) -> Found:
    """Pods whose required anti-affinity another pod violates. Of two that keep away from each other one goes."""
    apart: list[tuple[SeenPod, Neighbours]] = []
    by_namespace: dict[str, list[SeenPod]] = defaultdict(list)
    for node in peers.nodes:
        yield
        for pod in node.pods:
            by_namespace[pod.pod.namespace].append(pod)
        mine = [(pod, said) for pod in node.pods if (said := _said(pod)).apart]
        apart += sorted(mine, key=lambda one: peers.key(one[0]))
    gone: set[int] = set()
    found = []
    near: dict[tuple[PodTerm, str, str], list[SeenPod]] = {}
    for pod, said in apart:
        yield
        if any(
            id(other) not in gone
            for term in said.apart
            for other in _near(peers, pod, term.pods, term.key, by_namespace, near)
        ) and peers.may_go(pod):
            gone.add(id(pod))
            found.append(pod)
    return found


def _near(
    peers: _Peers,
    pod: SeenPod,
    term: PodTerm,
    key: str,
    by_namespace: Mapping[str, Sequence[SeenPod]],
    known: dict[tuple[PodTerm, str, str], list[SeenPod]],
) -> Iterator[SeenPod]:
    """Other pods of a term in the domain of a pod."""
    domain = peers.node_of(pod).sight.node.labels.get(key)
    if domain is None or term.selector is None:
        return
    found = known.get((term, key, domain))
    if found is None:
        chosen = term.namespace_selector
        found = known[term, key, domain] = [
            other
            for namespace, pods in by_namespace.items()
            if namespace in term.namespaces
            or (chosen is not None and chosen.matches({_NAMESPACE_NAME: namespace}))
            for other in pods
            if peers.node_of(other).sight.node.labels.get(key) == domain
            and term.selector.matches(other.pod.labels)
        ]
    yield from (other for other in found if other is not pod)


def _uneven(peers: _Peers) -> Found:
    """Pods that make the spread uneven which pods of their namespace ask for."""
    by_namespace: dict[str, list[SeenPod]] = defaultdict(list)
    asked: dict[str, dict[tuple[SpreadConstraint, Any], Placement]] = defaultdict(dict)
    permitted = peers.rules.constraints
    for node in peers.nodes:
        yield
        for pod in node.pods:
            if pod.pod.terminating:
                continue
            by_namespace[pod.pod.namespace].append(pod)
            placement = pod.placement
            for one in _said(pod).spread if placement is not None else ():
                assert placement is not None
                if ("DoNotSchedule" if one.hard else "ScheduleAnyway") in permitted:
                    asked[pod.pod.namespace].setdefault((one, _counts_by(one, placement)), placement)
    found: dict[int, SeenPod] = {}
    for namespace, constraints in asked.items():
        for (one, _), placement in constraints.items():
            yield
            for pod in _of_constraint(peers, one, placement, by_namespace[namespace]):
                found.setdefault(id(pod), pod)
    return [pod for pod in found.values() if peers.may_go(pod)]


def _counts_by(one: SpreadConstraint, placement: Placement) -> Any:
    """What of a pod says which nodes count: constraints of pods that differ in it are not the same."""
    affinity = (
        (tuple(sorted(placement.node_selector.items())), placement.required) if one.honor_affinity else None
    )
    return affinity, placement.tolerations if one.honor_taints else None


def _of_constraint(
    peers: _Peers, one: SpreadConstraint, placement: Placement, pods: Sequence[SeenPod]
) -> Sequence[SeenPod]:
    if one.selector is None:
        return ()
    domains: dict[str, list[SeenPod]] = {}
    members: dict[str, list[SeenNode]] = defaultdict(list)
    rows: dict[int, str] = {}
    for node in peers.nodes:
        own = node.sight.node
        value = own.labels.get(one.key)
        if value is None or (one.honor_affinity and not matches(placement, own.name, own.labels)):
            continue
        if one.honor_taints and not tolerates_all(placement.tolerations, own.taints):
            continue
        domains.setdefault(value, [])
        members[value].append(node)
        rows[node.row] = value
    for pod in pods:
        if pod.row in rows and one.selector.matches(pod.pod.labels):
            domains[rows[pod.row]].append(pod)
    sizes = [len(inside) for inside in domains.values()]
    least = min(sizes, default=0) if len(sizes) >= one.min_domains else 0
    if not sizes or max(sizes) - least <= one.max_skew:
        return ()
    # The last of a domain goes first: one that may go, that could go anywhere, and that is the least important.
    for inside in domains.values():
        inside.sort(key=peers.key, reverse=True)
        inside.sort(key=lambda pod: (peers.may_go(pod), not _is_bound(pod)))

    def fits(pod: SeenPod, below: Collection[str]) -> bool:
        if not peers.rules.fits(pod.facts, peers.node_of(pod).facts, peers.moves.now):
            return True
        return any(node.row != pod.row and node.takes(pod) for value in below for node in members[value])

    return uneven_pods(list(domains.items()), one.max_skew, fits, one.min_domains)


def _is_bound(pod: SeenPod) -> bool:
    """Whether a pod asks for some nodes."""
    placement = pod.placement
    return placement is None or bool(placement.node_selector) or placement.required is not None


def _said(pod: SeenPod) -> Neighbours:
    try:
        return read_neighbours(pod.pod.raw, pod.pod.namespace)
    except ObjectError:
        return ALONE


def _shrinking(peers: _Peers) -> Found:
    """Pods in the order in which nodes become empty soonest."""
    nodes, by_name = [], {}
    for node in peers.nodes:
        yield
        pods = []
        for pod in node.pods:
            role = ScaleDownRole.NON_TARGET
            if peers.wanted(pod):
                free = peers.moves.why_not(pod, node) is None
                role = ScaleDownRole.ELIGIBLE if free else ScaleDownRole.SKIPPED
            namespace, name = pod.pod.key
            by_name[namespace, name] = pod
            pods.append(ScaleDownPod(namespace, name, role, pod.request, pod.pod.created_at or 0))
        allocatable: Any = node.facts["resources.allocatable"]
        nodes.append(ScaleDownNode(node.name, allocatable, pods))
    ranking = scale_down_ranking(nodes, peers.rules.weights)
    return [by_name[one.pod.namespace, one.pod.name] for one in ranking.ranked]


_PLUGINS: Final[Mapping[str, Callable[[_Peers], Found]]] = {
    "RemoveDuplicates": _copies,
    "RemovePodsViolatingInterPodAntiAffinity": _repelled,
    "RemovePodsViolatingTopologySpreadConstraint": _uneven,
    "ScaleDownBinPack": _shrinking,
}
PEER_PLUGINS: Final = frozenset(_PLUGINS)
"""Plugins that find the pods that go, of those that may."""
