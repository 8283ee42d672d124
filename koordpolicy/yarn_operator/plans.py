"""What YARN may use of a node: what policies say, and what is to be written for it to the node and to the ResourceManager."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.algorithms.batch_sharing import BatchAmounts, Sharing, SharingStep, Units, next_step
from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.graph import About, RuleGraph
from koordpolicy.graph.bands import band_resources
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.node import amount_facts
from koordpolicy.model.node import Node
from koordpolicy.model.protocol import CPU, MEMORY, ORIGIN_EXTENDED_ALLOCATABLE
from koordpolicy.model.reading import ObjectError, amounts, embedded_object
from koordpolicy.model.third_party import ThirdPartyAllocation, third_party_allocations, with_allocation
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.yarn.nodes import MEBIBYTE, NodeManager, YARNAmounts

KIND: Final = "YARNNode"
OFFERS: Final = ("offer.cpu", "offer.memory")
BAND: Final = "batch"
SCHEDULER: Final = "hadoop-yarn"
"""Whose allocation it is in the node's annotation, as Koordinator names it."""

UNKNOWN: Final = "YARNNodeUnknown"
UNREADABLE: Final = "YARNAnnotationUnreadable"
AMBIGUOUS: Final = "YARNNodeManagerAmbiguous"
"""Reasons of Events."""

_AGE: Final = "metric.age"
"""The one fact of a node that changes by itself."""
_ID: Final = re.compile(r"[^\s/:?#]+:[0-9]{1,5}")
_NOTHING: Final = BatchAmounts()
_USUAL: Final = (10.0, 5.0)
"""Seconds between rounds and for an answer while policies say nothing of either."""
_SHORTEST: Final = 0.1
_ALL: Final = 100.0


@dataclass(frozen=True, slots=True)
class YARNPlan:
    """What is to be written for a node: `claim` as the annotation's whole text where `claims`, then `offer` with its grace.

    `sharing` is how things stand, None where nothing is known. `reason` is that of an Event about `problem`, empty where policy failed.
    """

    node: str
    manager: str = ""
    sharing: Sharing | None = None
    step: SharingStep = field(default_factory=SharingStep)
    annotation: str | None = None
    offer: YARNAmounts | None = None
    grace: int = 0
    problem: str = ""
    reason: str = ""

    @property
    def quiet(self) -> bool:
        """Whether nothing is to be written or told."""
        return self.step == SharingStep() and not self.problem

    @property
    def failed(self) -> bool:
        """Whether policies could not be evaluated."""
        return bool(self.problem) and not self.reason


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of batch CPU and memory, and of their class, on the wire."""

    cpu: str
    memory: str
    band: str

    def of(self, resources: Mapping[str, int]) -> BatchAmounts:
        return BatchAmounts(resources.get(self.cpu, 0), resources.get(self.memory, 0))


@dataclass(slots=True)
class YARNNodes:
    """Decides node by node, by the graph that `policies` gives for it. `now` is nanoseconds since 1970, `clock` seconds that nobody sets.

    It remembers what it wrote and nobody has shown it yet, so that no old news counts for room.
    """

    policies: Callable[[str, Mapping[str, str]], RuleGraph]
    now: Callable[[], int]
    clock: Callable[[], float]
    decided: Callable[[RuleGraph, Mapping[str, Any]], None] = lambda graph, roots: None
    """Hears what an offer was decided by: the revision and the records, by root."""
    _missing: dict[str, float] = field(default_factory=dict)
    """Since when NodeManagers of nodes are not known to run."""
    _claimed: dict[str, BatchAmounts] = field(default_factory=dict)
    """The claims that were written last."""
    _unsure: dict[str, BatchAmounts] = field(default_factory=dict)
    """The most that YARN may have been offered by requests without an answer."""
    _managers: dict[str, tuple[RuleGraph, NodeSight, str]] = field(default_factory=dict)
    _quiet: dict[str, tuple[tuple[Any, ...], YARNPlan]] = field(default_factory=dict)
    """What was decided where nothing is to be written, and from what: most nodes are from round to round as they were."""

    def begin(self) -> None:
        """We lead from now on: what others have done is in the cluster."""
        for known in (self._missing, self._claimed, self._unsure, self._managers, self._quiet):
            known.clear()

    def forget(self, node: str) -> None:
        """The node is gone."""
        for known in (self._missing, self._claimed, self._unsure, self._managers, self._quiet):
            known.pop(node, None)

    def claimed(self, node: str, amounts: BatchAmounts) -> None:
        """A claim was written."""
        self._claimed[node] = amounts

    def asked(self, node: str, offer: BatchAmounts) -> None:
        """The ResourceManager is asked to offer this: until it answers it may."""
        self._unsure[node] = offer.most(self._unsure.get(node, _NOTHING))

    def answered(self, node: str) -> None:
        """It has."""
        self._unsure.pop(node, None)

    def manager_of(self, sight: NodeSight) -> str:
        """The id of a node's NodeManager by policy; empty where it has none. Raises CelError."""
        node = sight.node
        graph = self.policies(node.name, node.labels)
        known = self._managers.get(node.name)
        if known is not None and known[0] is graph and known[1] == sight:
            return known[2]
        found = ""
        if graph.subjects(KIND):
            about = graph.about(KIND, "", {"node": self._record(graph, sight)})
            found = about.value("nodeManager") or ""
        self._managers[node.name] = (graph, sight, found)
        return found

    def decide(self, sight: NodeSight, manager: str, running: Mapping[str, NodeManager]) -> YARNPlan | None:
        """What is to be done for a node with that NodeManager, of those that run; None where YARN has nothing to do with it."""
        name = sight.node.name
        graph = self.policies(name, sight.node.labels)
        found = running.get(manager)
        given = (graph, sight, found, self._claimed.get(name), self._unsure.get(name))
        known = self._quiet.get(name)
        if known is not None and known[0] == given:
            return known[1]
        plan = self._decide(graph, sight, manager, running)
        self._quiet.pop(name, None)
        if plan is not None and plan.quiet and found is not None and not _reads_time(graph):
            self._quiet[name] = (given, plan)
        return plan

    def _decide(
        self, graph: RuleGraph, sight: NodeSight, manager: str, running: Mapping[str, NodeManager]
    ) -> YARNPlan | None:
        node = sight.node
        names = _names(graph)
        try:
            standing = None if names is None else _standing(node, names)
        except ObjectError as error:
            return self._unreadable(node, manager, running, str(error)) if manager else None
        if names is None or standing is None or not (manager or standing[0] != _NOTHING):
            return None
        claim, others, total = standing
        claim = claim.least(self._claimed.get(node.name, claim))
        found = running.get(manager)
        record = self._record(graph, sight)
        roots: dict[str, Any] = {"node": record, "now": TIMES.timestamp(self.now())}
        about = graph.about(KIND, "", roots)
        try:
            if found is None:
                return self._without(node, manager, claim, about, names)
            self._missing.pop(node.name, None)
            units = Units(max(about.value("vcore"), 1), MEBIBYTE)
            sharing = Sharing(
                total,
                names.of(_requested(record)),
                others,
                names.of(node.allocatable),
                claim,
                _amounts(found.total, units),
                _amounts(found.used, units),
                self._unsure.get(node.name, _NOTHING),
            )
            yarn = _facts(found, sharing)
            wanted = _NOTHING
            if about.value("enabled"):
                wanted = BatchAmounts(*(max(about.value(one, yarn=yarn) or 0, 0) for one in OFFERS))
                self.decided(graph, {**roots, "yarn": yarn})
            step = next_step(
                sharing,
                wanted,
                units,
                about.value("whenChangedBy") / _ALL,
                claim_offers=about.value("claim") == "Offered",
            )
            grace = about.value("overCommitTimeout", yarn=yarn).ns * 1000 // NANOSECONDS
            return _plan(node, manager, sharing, step, units, names, grace)
        except CelError as error:
            return YARNPlan(node.name, manager, problem=str(error))

    def _without(
        self, node: Node, manager: str, claim: BatchAmounts, about: About, names: _Names
    ) -> YARNPlan | None:
        """No NodeManager runs there, as far as is known: what it had stays claimed for a while."""
        since = self._missing.setdefault(node.name, self.clock())
        waits = about.value("releaseAfter")
        due = waits is None or self.clock() - since >= waits.ns / NANOSECONDS
        step = SharingStep(claim=_NOTHING if due and claim != _NOTHING else None)
        problem = f"no NodeManager `{manager}` runs, by its ResourceManager" if manager else ""
        return YARNPlan(
            node.name,
            manager,
            step=step,
            annotation=None if step.claim is None else _annotation(node, names, step.claim),
            problem=problem,
            reason=UNKNOWN if problem else "",
        )

    @staticmethod
    def _unreadable(node: Node, manager: str, running: Mapping[str, NodeManager], problem: str) -> YARNPlan:
        """Nothing can be claimed, so nothing may be used."""
        found = running.get(manager)
        nothing = YARNAmounts(0, 0)
        taken = found is not None and found.total != nothing
        return YARNPlan(
            node.name,
            manager,
            step=SharingStep(offer=_NOTHING if taken else None),
            offer=nothing if taken else None,
            problem=problem,
            reason=UNREADABLE,
        )

    def _record(self, graph: RuleGraph, sight: NodeSight) -> Record:
        return node_record(sight, graph.catalogue, TIMES, self.now())


def _reads_time(graph: RuleGraph) -> bool:
    """Whether equal facts may give other answers later."""

    def found() -> bool:
        names = [str(key) for key in graph.decisions if key.kind == KIND]
        read = {fact for name in names for fact in facts_of(graph.expression(name))}
        return any(root == "now" or (root, path) == ("node", _AGE) for root, path in read)

    return graph.once(("reads time", KIND), found)


def pace_of(graph: RuleGraph) -> tuple[float, float]:
    """Seconds between rounds, and for an answer of the ResourceManager."""
    if not graph.subjects(KIND):
        return _USUAL
    about = graph.about(KIND, "")
    found = []
    for name, usual in zip(("pace.interval", "pace.timeout"), _USUAL, strict=True):
        said = about.value_or(name, None)
        found.append(usual if said is None else max(said.ns / NANOSECONDS, _SHORTEST))
    return found[0], found[1]


def is_id(text: str) -> bool:
    """Whether a text is `host:port`."""
    return _ID.fullmatch(text) is not None


def _names(graph: RuleGraph) -> _Names | None:
    names = band_resources(graph, BAND)
    if CPU not in names or MEMORY not in names:
        return None
    return _Names(names[CPU], names[MEMORY], graph.catalogue.class_name(BAND))


def _standing(node: Node, names: _Names) -> tuple[BatchAmounts, BatchAmounts, BatchAmounts]:
    """What is claimed for YARN, what for others, and the node's batch resources before that. Raises ObjectError."""
    mine, others = _NOTHING, _NOTHING
    for one in third_party_allocations(node.annotations):
        if one.name == SCHEDULER:
            mine = mine.plus(names.of(one.resources))
        elif one.priority == names.band:
            others = others.plus(names.of(one.resources))
    origin = node.annotations.get(ORIGIN_EXTENDED_ALLOCATABLE)
    if not origin:
        return mine, others, names.of(node.allocatable)
    declared = embedded_object(origin, ORIGIN_EXTENDED_ALLOCATABLE)
    return mine, others, names.of(amounts(declared, "resources", ORIGIN_EXTENDED_ALLOCATABLE))


def _requested(record: Record) -> Mapping[str, int]:
    found: Any = record["resources.requested"]
    return dict(found)


def _amounts(counted: YARNAmounts, units: Units) -> BatchAmounts:
    return BatchAmounts(counted.vcores * units.cpu, counted.memory * units.memory)


def _facts(found: NodeManager, sharing: Sharing) -> Record:
    record: Record = {"nodeManager": found.id, "state": found.state, "containers": found.containers}
    for name, one in (
        ("offered", sharing.offered),
        ("used", sharing.used),
        ("batch", sharing.total),
        ("others", sharing.others),
        ("free", sharing.free),
    ):
        record.update(amount_facts(name, {CPU: one.cpu, MEMORY: one.memory}))
    return record


def _annotation(node: Node, names: _Names, claim: BatchAmounts) -> str | None:
    resources = {names.cpu: claim.cpu, names.memory: claim.memory}
    return with_allocation(node.annotations, ThirdPartyAllocation(SCHEDULER, names.band, resources))


def _plan(
    node: Node, manager: str, sharing: Sharing, step: SharingStep, units: Units, names: _Names, grace: int
) -> YARNPlan:
    offer = step.offer
    return YARNPlan(
        node.name,
        manager,
        sharing,
        step,
        None if step.claim is None else _annotation(node, names, step.claim),
        None if offer is None else YARNAmounts(offer.memory // units.memory, offer.cpu // units.cpu),
        grace,
    )
