"""Comparing: clusters and their pods by all judges, counted; what differs is kept, made small."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from koordpolicy.model.reading import ObjectError
from tests.differential_scheduling.case import Case, Judgement, Object, name_of
from tests.differential_scheduling.compare import deviates, differences, real_differences
from tests.differential_scheduling.oracle import Cluster, judgement
from tests.differential_scheduling.oracle.evaluate import best, refusals
from tests.differential_scheduling.ours import Ours
from tests.differential_scheduling.real import PreparedDecision, Real


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A pod that two judges see otherwise, with the cluster and the pods that were asked about before it."""

    case: Case
    found: Sequence[str]

    def __str__(self) -> str:
        return "\n  ".join([name_of(self.case.pods[-1]), *self.found])


@dataclass(slots=True)
class Totals:
    """What a run counted. `refusals` are nodes by the reason that the oracle gives."""

    clusters: int = 0
    pods: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    not_taken: list[str] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)

    def visit(self, case: Case) -> None:
        """Compare our scheduler with the oracle about one cluster, and with kube-scheduler if it once was asked."""
        reals = [*(None for _ in case.pods[1:]), case.real]
        self._count(case.objects, list(zip(case.pods, reals, strict=True)))

    def visit_asked(self, asked: PreparedDecision) -> None:
        """Compare both with what kube-scheduler said of a cluster."""
        self.not_taken += asked.refused
        self._count(asked.objects, asked.evaluation)
        if asked.preempted is not None:
            self.pods["really displaced others"] += 1
            pod, real = asked.preempted
            good = best(dict(real.rooms or {}), Cluster(asked.objects))
            if real.chosen not in good or real.message:
                found = f"real: chosen: oracle {sorted(good)}; real {real.chosen} {real.message}"
                self.disagreements.append(Disagreement(Case(asked.objects, [pod]), [found]))

    def add(self, other: "Totals") -> None:
        """Count what another run counted."""
        self.clusters += other.clusters
        self.pods.update(other.pods)
        self.refusals.update(other.refusals)
        self.not_taken += other.not_taken
        self.disagreements += other.disagreements

    def _count(
        self, objects: Sequence[Object], evaluation: Sequence[tuple[Object, Judgement | None]]
    ) -> None:
        self.clusters += 1
        cluster, ours = Cluster(objects), Ours(objects)
        built = Cluster(objects, as_built=True)
        for at, (pod, real) in enumerate(evaluation):
            mine, oracle = ours.evaluate(pod), judgement(pod, cluster)
            self.pods[_sort(oracle, len(cluster.nodes))] += 1
            self.pods["could displace others"] += bool(oracle.rooms)
            self.refusals.update(_general(refusals(pod, cluster)))
            found = list(differences(mine, oracle, cluster))
            if real is not None:
                as_built = judgement(pod, built)
                self.pods["evaluation otherwise than documented"] += deviates(oracle, as_built)
                found += real_differences(mine, oracle, as_built, real, cluster)
            if found:
                before = [one for one, _ in evaluation[: at + 1]]
                self.disagreements.append(Disagreement(Case(objects, before, real=real), found))


async def ask(real: Real, case: Case) -> Totals:
    """Compare all judges about a case. What differs is asked again, and stands if it differs again.

    kube-scheduler hears of objects of different kinds one by one: now and then it answers before it has heard of
    all of them.
    """
    totals = Totals()
    totals.visit_asked(await real.evaluate(case))
    if totals.disagreements:
        totals = Totals()
        totals.visit_asked(await real.evaluate(case))
        totals.pods["clusters asked about again"] += 1
    return totals


def _general(reasons: Counter[str]) -> Counter[str]:
    """Reasons without the names of objects."""
    found: Counter[str] = Counter()
    for text, count in reasons.items():
        found[re.sub(r'"[^"]*"', '"..."', text)] += count
    return found


def _sort(oracle: Judgement, nodes: int) -> str:
    if not oracle.feasible:
        return "fit nowhere"
    return "fit everywhere" if len(oracle.feasible) == nodes else "fit somewhere"


def disagreements(case: Case) -> list[Disagreement]:
    """Where our scheduler and the oracle differ about a case."""
    totals = Totals()
    totals.visit(case)
    return totals.disagreements


def still(case: Case) -> bool:
    """Whether our scheduler and the oracle differ about the last pod of a case."""
    try:
        return any(len(one.case.pods) == len(case.pods) for one in disagreements(case))
    except (AssertionError, AttributeError, KeyError, ObjectError, TypeError, ValueError):
        return False  # too little is left of some object


def smaller(case: Case, differs: Callable[[Case], bool] = still, cycles: int = 400) -> Case:
    """A smaller case that still differs: with fewer pods and objects, and less in them.

    `cycles` bounds how often is asked.
    """
    left = cycles

    def try_all(candidates: Callable[[Case], Iterator[Case]]) -> bool:
        nonlocal case, left
        for candidate in candidates(case):
            if not left:
                return False
            left -= 1
            if differs(candidate):
                case = candidate
                return True
        return False

    for candidates in (_fewer_pods, _fewer_objects, _less_inside):
        while try_all(candidates):
            pass
    return case


def _fewer_pods(case: Case) -> Iterator[Case]:
    if len(case.pods) > 1:
        yield replace(case, pods=case.pods[-1:])
        for at in range(len(case.pods) - 1):
            yield replace(case, pods=[*case.pods[:at], *case.pods[at + 1 :]])


def _fewer_objects(case: Case) -> Iterator[Case]:
    size = len(case.objects) // 2
    while size:
        for begin in range(0, len(case.objects), size):
            yield replace(case, objects=[*case.objects[:begin], *case.objects[begin + size :]])
        size //= 2


def _less_inside(case: Case) -> Iterator[Case]:
    for at, obj in enumerate(case.objects):
        for less in _without_one(obj):
            yield replace(case, objects=[*case.objects[:at], less, *case.objects[at + 1 :]])
    for less in _without_one(case.pods[-1]):
        yield replace(case, pods=[*case.pods[:-1], less])


_KEPT = {
    "metadata",
    "spec",
    "status",
    "apiVersion",
    "kind",
    "name",
    "namespace",
    "uid",
    "containers",
    "image",
    "nodeName",
    "schedulerName",
    "accessModes",
    "requests",
    "storage",
    "capacity",
    "csi",
    "key",
    "effect",
    "operator",
    "values",
    "topologyKey",
    "maxSkew",
    "whenUnsatisfiable",
    "phase",
    "driver",
    "volumeHandle",
    "provisioner",
    "hostPort",
    "containerPort",
}
"""Without these an object is none that an API server would take."""


def _without_one(value: Object) -> Iterator[Object]:
    """An object less one of its parts, at any depth; large parts first."""
    for key in value:
        if key not in _KEPT:
            yield {name: one for name, one in value.items() if name != key}
    for key, part in value.items():
        if isinstance(part, dict):
            for less in _without_one(part):
                yield {**value, key: less}
        elif isinstance(part, list):
            for at, one in enumerate(part):
                if len(part) > 1 or key not in _KEPT:
                    yield {**value, key: [*part[:at], *part[at + 1 :]]}
                if isinstance(one, dict):
                    for less in _without_one(one):
                        yield {**value, key: [*part[:at], less, *part[at + 1 :]]}
