"""The filters of a cycle as post-filters ask them: of nodes as they are in a trial, now and when victims will be gone."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from koordpolicy.algorithms.columns import Mask
from koordpolicy.cluster.nodes import Rows
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import Records
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.evaluation import Evaluation, FirstRefusals, evaluate
from koordpolicy.scheduler.evaluation.keys import cache_keys_of, likeness
from koordpolicy.scheduler.evaluation.refusals import unresolvable
from koordpolicy.scheduler.nominations import Nominations
from koordpolicy.scheduler.plugins import ParameterError
from koordpolicy.scheduler.plugins.base import FilterResults
from koordpolicy.scheduler.step import Step


@dataclass(slots=True)
class CycleFilters:
    """Those of one cycle as of now, or as of later, when only filters that read the time can have another answer.

    It is what `plugins.base.FilterRun` says.
    """

    cycle: Cycle
    nominations: Nominations
    _later: bool = False
    _ahead: "CycleFilters | None" = field(init=False, repr=False)
    _asked: Cycle = field(init=False, repr=False)
    _likeness: bytes | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self._asked = replace(self.cycle, profile=self.cycle.profile.of_filters(timed=self._later))
        ahead = 0 if self._later else self.nominations.look_ahead(self.cycle)
        self._ahead = self._in(ahead) if ahead else None

    @property
    def moments(self) -> Sequence["CycleFilters"]:
        """As of now, and of later where policy looks ahead. Held nowhere: in a cycle of references it would await the collector."""
        return (self,) if self._ahead is None else (self, self._ahead)

    def _in(self, ahead: int) -> "CycleFilters":
        """The same so many nanoseconds later."""
        then = Timestamp(self.cycle.records["now"].ns + ahead)
        later = replace(self.cycle, records={**self.cycle.records, "now": then})
        return CycleFilters(later, self.nominations, _later=True)

    @property
    def view(self) -> PodView:
        """The pod."""
        return self.cycle.view

    @property
    def records(self) -> Records:
        """The facts that expressions read, by root."""
        return self.cycle.records

    @property
    def filters(self) -> Sequence[Step]:
        """The filters in their order."""
        return self.cycle.profile.filters

    @property
    def likeness(self) -> Hashable:
        """The same for pods of which the filters say the same, whenever they are asked. Raises CycleProblem."""
        if self._likeness is None:
            try:
                self._likeness = likeness(self.cycle)
            except (CelError, ParameterError, ObjectError) as problem:
                raise CycleProblem.of(problem) from problem
        return self._likeness

    @property
    def situation(self) -> Hashable:
        """The same for pods of which the filters say the same now, as long as no row, pod on a node, or promise changes.

        None where a filter looks beyond rows, at what may change unseen. Raises CycleProblem.
        """
        cycle = self.cycle
        try:
            if cache_keys_of(cycle):
                return None
            alike = likeness(cycle, on_others=True)
        except (CelError, ParameterError, ObjectError) as problem:
            raise CycleProblem.of(problem) from problem
        moments = tuple(moment.records["now"] for moment in self.moments)
        return alike, moments, repr(self.nominations.signature(cycle))

    def resized(self, amounts: Mapping[str, object]) -> "CycleFilters":
        """The same of a pod with other amounts, by fact."""
        cycle = self.cycle
        facts = {**cycle.view.facts, **amounts}
        pod = {**cycle.records["pod"], **amounts}
        other = replace(cycle, view=replace(cycle.view, facts=facts), records={**cycle.records, "pod": pod})
        return CycleFilters(other, self.nominations)

    def nominated(self, node: str) -> tuple[PodView, ...]:
        """The pods that count as being on a node for this one, since the node is promised to them."""
        return self.nominations.respected(self.cycle, node)

    def evaluate(self, table: NodeTable, rows: Rows | None = None, *, local_only: bool = False) -> Evaluation:
        """What the filters say that matter as of this moment. Raises CycleProblem."""
        return evaluate(
            self._asked, table, rows, filters_only=True, local_only=local_only, timed_only=self._later
        )

    def unresolvable(self, results: FilterResults) -> Mask:
        """The nodes on which fewer pods would not help, by who refuses them first."""
        return unresolvable(self.cycle, results)

    def why_refused(
        self, results: FilterResults, table: NodeTable, rows: Rows, filters: int | None = None
    ) -> tuple[Counter[str], Mask]:
        """How many nodes the first filter that refuses them refuses for which reason, and which ones none refuses.

        `results` speak of the nodes of these rows; only the first so many filters count.
        """
        found: Counter[str] = Counter()
        folded = FirstRefusals(results, filters=filters)
        for first in folded:
            found.update(first.counts(self.cycle, table, rows))
        return found, folded.left
