"""What a plugin is."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.eviction import Victims
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import NodeView, Rows
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import Object, Patch, Resource
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.model.reading import Amounts
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.decision import NoCandidate, PodDecision, PostFilterResult
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.plugins.verdicts import Refused, Verdicts

T = TypeVar("T")


Facts = Mapping[str, Any]
"""The facts of one node, as a row of the table has them."""

Filter = Callable[[PodView, NodeView, Parameters], Verdicts]
Score = Callable[[PodView, NodeView, Parameters], "Scores | None"]
"""Scores of the nodes; None when the pod gives no reason to prefer any."""

FilterOne = Callable[[PodView, Parameters], tuple[tuple[str, ...], Callable[[Facts], Refused | None]]]
"""The reasons of a filter, and what says of one node after the other the same; None of one that passes."""

ScoreOne = Callable[[PodView, Parameters], "Callable[[Facts], int | float] | None"]
"""What gives the score of one node after the other; None as of `Score`."""

Requests = Callable[[PodView, Parameters], Mapping[str, int]]
"""The amounts that a pod needs to be free on a node, by resource, `pods` as such among them."""

Said = Callable[[], Parameters]
"""The parameters, computed when they are asked for."""

CacheKey = Callable[[PodView, ClusterState, Said], Hashable | None]
"""What stays equal as long as the answers about an unchanged node stay the same; None when the plugin
has nothing to say about the pod."""

Rank = Callable[[PodView, NodeView, Rows, Parameters], "Scores | None"]
"""Scores, 0 to 100, of the nodes of some rows, which are those left to choose from."""


Unresolvable = Callable[[PodView, ClusterState], bool]
"""Whether every node is unresolvable for the pod, without a look at any."""


@dataclass(frozen=True, slots=True)
class RefusedNodes:
    """Nodes that a filter alone refuses: some rows of a table. `state` is what there is beside nodes, as far as known."""

    table: NodeTable
    rows: Rows
    state: ClusterState | None = None


Helper = Callable[[PodView, Parameters, RefusedNodes], Iterator[str | None]]
"""What would help against a filter on some nodes, with `PAUSE` where it takes long."""

# --- with a state ---------------------------------------------------------------------------------


class Host(Protocol):
    """What the state of a plugin knows of its scheduler."""

    @property
    def cluster(self) -> ClusterState:
        """What there is in the cluster beside nodes, as it is now."""
        ...

    @property
    def graph(self) -> RuleGraph:
        """What policy says now."""
        ...

    @property
    def cache(self) -> ClusterCache:
        """The nodes with the pods on them; changed in trials alone."""
        ...

    def filters(self, view: PodView, /) -> "FilterRun":
        """The filters as they are asked about a pod now."""
        ...

    def now(self) -> int:
        """The time in nanoseconds since 1970."""
        ...

    @property
    def promises(self) -> "Promises":
        """Who waits for which node."""
        ...

    def reconsider(self, *pods: PodKey) -> None:
        """Ask again about these pods (none named: all) that the plugin lets wait, refused, or keeps before its gate."""
        ...

    def permit(self, *pods: PodKey) -> None:
        """The plugin permits these pods that it let wait: they need not be asked about again."""
        ...

    def has_turn(self, pod: PodKey) -> bool:
        """Whether a pod is to be tried yet, at once or after its back-off, whatever happens."""
        ...

    def release(self, *pods: PodKey) -> None:
        """No node is promised to these pods any more."""
        ...


@dataclass(frozen=True, slots=True)
class Refusal:
    """A plugin does not want a pod on its node. The pod comes back to the queue with the reason.

    `filter` is the one in whose name it is refused before it is tried, so that what helps against that one brings it back; empty for
    the plugin's own. `unheard` says that nobody is helped by what a pod gives back that waited: it was taken since anybody else was refused.
    """

    reason: str
    unheard: bool = False
    filter: str = ""


Reason = str | Callable[[], str]
"""A text, or what makes it when somebody asks."""


class Wait(NamedTuple):
    """A plugin does not permit a pod yet. At `until` (nanoseconds since 1970) this is a refusal for the reason."""

    until: int
    reason: Reason


Keep = Callable[[ClusterState, RuleGraph], None]
"""Has the cluster's state keep what a plugin reads of it, as a revision says; nodes and pods come anew then."""

Gate = Callable[[Any, PodView, Parameters], "Refusal | None"]
"""Why a pod is not to be tried at all yet (None: it is). It is asked when the pod comes or changes, and again after the
events of the plugin."""

Reserve = Callable[[Any, PodView, NodeView, Parameters], "object | Refusal | None"]
"""Takes for a pod what it needs on the one node that is shown, and gives it as data; None for nothing.

It takes nothing where it refuses or raises."""

ReserveAnywhere = Callable[[Any, PodView], "object | None"]
"""The same of a plugin to which all nodes are alike; it refuses none."""

Undo = Callable[[Any, Any], None]
"""Gives back what `Reserve`, `ReserveAnywhere` or `Adopt` took."""

Redo = Callable[[Any, Any], None]
"""Takes again, at the end of a trial, what `Undo` gave back in it: the same data."""

Adopt = Callable[[Any, PodView, str], "object | None"]
"""Takes the same for a pod that is on a node already, as after a restart."""

Permit = Callable[[Any, PodView, str, Parameters], "Refusal | Wait | None"]
"""Whether a pod may go to its node (None). It is asked again after the events of the plugin."""

Sleep = Callable[[float], Awaitable[None]]
"""Waits for seconds. Raises Conflict when what is waited for is not wanted any more."""


class Port(Protocol):
    """What a plugin may do on the cluster before a pod is bound: a part of `kube.Cluster`, in whose words it is."""

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        """The object of this name."""
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        *,
        namespace: str | None = None,
        subresource: str = "",
    ) -> Object:
        """Change an object by a patch and return it as stored."""
        ...


Annotate = Callable[[Any], Mapping[str, str]]
"""The annotations that a pod gets with its binding, of what was taken for it."""

MakesWay = Callable[[PodView, ClusterState, Said], Mapping[str, Sequence[PodKey]]]
"""The pods, by node, that count as gone there for a pod whose room they keep."""

Write = Callable[[Port, Sleep], Awaitable[None]]
"""Writes what was taken, and waits until it is so. Raises KubeError."""

Prebind = Callable[[Any, Any, Port, Sleep], Awaitable[None]]
"""The same of some data, before the pod is bound. It may be called again. It holds no slot of the writes while it
waits, only while it patches."""


# --- pods that go together ------------------------------------------------------------------------


class JobRoom(NamedTuple):
    """What becomes of room for pods that go together: what is said of it, and who goes (None: nobody)."""

    remark: str
    made: PostFilterResult | None = None


@dataclass(frozen=True, slots=True)
class Jobs:
    """What a plugin does for pods that go together. All get its state first.

    `came` hears of pods that are there or have changed, with their node (empty for none), `went` of those that are gone, `heard`
    that an object has changed that jobs are declared by, `renewed` that a revision begins to decide. `open` says whether there may be anybody whom `next` names. `next` says who is tried before the queue's first: of those that may be
    tried, whether or not they back off, or of those that are due; `begin` why a pod is not tried now that has its turn; `failed` hears
    why one found no node. `at_once` says whether those that are next are decided on in the same step, `together` whether a pod goes
    with others or not at all, `company` which pods without a node these are; of one that does, and found no node, `make_room` says who goes for all of them (None: nothing is to be said). `annotations` are written with the binding of one.
    """

    came: Callable[[Any, PodView, str], None]
    went: Callable[[Any, PodKey], None]
    heard: Callable[[Any], None]
    renewed: Callable[[Any], None]
    open: Callable[[Any], bool]
    next: Callable[[Any, Callable[[PodKey], bool], Callable[[PodKey], bool]], PodKey | None]
    begin: Callable[[Any, PodView], Refusal | None]
    failed: Callable[[Any, PodView, PodDecision], None]
    at_once: Callable[[Any], bool]
    together: Callable[[Any, PodView], bool]
    company: Callable[[Any, PodView], Sequence[PodView]]
    make_room: Callable[[Any, PodView], JobRoom | None]
    annotations: Callable[[Any, PodKey], Mapping[str, str]]


# --- when no node is left -------------------------------------------------------------------------


class FilterStep(Protocol):
    """A filter of a profile."""

    @property
    def name(self) -> str:
        """Its name in the profile."""
        ...

    @property
    def place(self) -> str:
        """`filter:NAME`."""
        ...

    @property
    def plugin(self) -> "Plugin | None":
        """Its plugin, if it has one."""
        ...

    @property
    def looks_beyond(self) -> bool:
        """Whether the plugin looks beyond a node's own row."""
        ...

    @property
    def depends_on_pods(self) -> bool:
        """Whether other pods on a node can change the answer about it."""
        ...

    def values(self, records: Mapping[str, Any]) -> Parameters:
        """The values of the plugin's parameters for a pod. Raises CelError."""
        ...


class FilterResult(Protocol):
    """What one filter says of nodes: the verdicts of its plugin, what its expression accepts; None of what was not asked."""

    @property
    def step(self) -> FilterStep:
        """Which filter."""
        ...

    @property
    def verdicts(self) -> Verdicts | None:
        """What the plugin says."""
        ...

    @property
    def accepted(self) -> Mask | None:
        """What the expression says."""
        ...


class FilterResults(Protocol):
    """What all filters say about so many nodes, in their order."""

    @property
    def nodes(self) -> int:
        """How many nodes."""
        ...

    @property
    def filters(self) -> Sequence[FilterResult]:
        """Filter by filter."""
        ...

    @property
    def cache_keys(self) -> Mapping[str, Hashable]:
        """The cache keys, by place, of the plugins that look beyond nodes and have something to say."""
        ...

    def feasible(self) -> Mask | None:
        """The nodes that no filter refuses; None where that is all."""
        ...

    def made(self, version: int, /) -> dict[object, Any]:
        """What others make of these answers, to be kept as long as they and the nodes, of which that is the table's version, are what
        they are. The pod is one of several that are alike to all filters, at one time.
        """
        ...


class FilterRun(Protocol):
    """The filters of a cycle in which no node was left, to be asked again: of nodes as they are in a trial."""

    @property
    def view(self) -> PodView:
        """The pod."""
        ...

    @property
    def records(self) -> Mapping[str, Any]:
        """The facts that expressions read, by root, those of nodes excepted."""
        ...

    @property
    def filters(self) -> Sequence[FilterStep]:
        """The filters in their order."""
        ...

    @property
    def likeness(self) -> Hashable:
        """The same for pods of which the filters say the same, whenever they are asked. Raises CycleProblem."""
        ...

    @property
    def situation(self) -> Hashable:
        """The same for pods of which the filters say the same now, as long as no row, pod on a node, or promise changes.

        None where that is not known. Raises CycleProblem.
        """
        ...

    @property
    def moments(self) -> "Sequence[FilterRun]":
        """This one, and the same as of when those who go will be gone, if time alone can change the answers."""
        ...

    def resized(self, amounts: Mapping[str, object]) -> "FilterRun":
        """The same of a pod with other amounts, by fact."""
        ...

    def nominated(self, node: str) -> tuple[PodView, ...]:
        """The pods that count as being on a node for this one, since the node is promised to them."""
        ...

    def evaluate(
        self, table: NodeTable, rows: Rows | None = None, *, local_only: bool = False
    ) -> FilterResults:
        """What the filters say of all nodes of a table, or of some rows; `local_only` those alone that follow from rows.

        Raises CycleProblem.
        """
        ...

    def unresolvable(self, results: FilterResults) -> Mask:
        """The nodes on which fewer pods would not help, by who refuses them first."""
        ...

    def why_refused(
        self, results: FilterResults, table: NodeTable, rows: Rows, filters: int | None = None
    ) -> tuple[Counter[str], Mask]:
        """How many nodes are refused for which reason by whom refuses them first, and which ones nobody refuses.

        `results` speak of the nodes of these rows; only the first so many filters count.
        """
        ...


class Promises(Protocol):
    """Which nodes are promised to whom, and who leaves: a part of the ledger."""

    def promised_to(self, key: PodKey) -> str | None:
        """The node that is promised to a pod."""
        ...

    def promised_on(self, node: str) -> Mapping[PodKey, PodView]:
        """The pods that a node is promised to."""
        ...

    @property
    def promise_changes(self) -> int:
        """A number that is another one after every change of what is promised to whom."""
        ...

    def leaves(self, pod: Pod) -> bool:
        """Whether a pod was chosen to leave its node."""
        ...

    def waits(self, key: PodKey) -> bool:
        """Whether a pod has a node, and has to be permitted to go there."""
        ...

    @property
    def waiting(self) -> Collection[PodKey]:
        """The pods of which that is so."""
        ...


class PostFilterHost(Protocol):
    """What a post-filter knows of its scheduler."""

    @property
    def graph(self) -> RuleGraph:
        """What policy says."""
        ...

    @property
    def profile(self) -> str:
        """Of which profile."""
        ...

    @property
    def cache(self) -> ClusterCache:
        """The nodes with the pods on them; changed in trials alone."""
        ...

    @property
    def promises(self) -> Promises:
        """Who waits for which node."""
        ...

    def draw(self, count: int, /) -> int:
        """A number from 0 to `count` - 1."""
        ...


class PostFilter(Protocol):
    """What makes room for a pod that no node took. Nothing follows from what it says: the scheduler sees to that."""

    @property
    def helped_by(self) -> frozenset[Event]:
        """The events, beside the end of a pod, after which it may make room for a pod that it made none for."""
        ...

    def may_free(self, records: Mapping[str, Any], node: str, lacking: Mapping[str, int]) -> bool:
        """Whether so much as a pod lacks might be made free on a node, in amounts alone; `records` are of the pod.

        A hint, asked of many pods after an event: yes may be in vain.
        """
        ...

    def alike(self, records: Mapping[str, Any]) -> Hashable:
        """The same for pods of which `may_free` says the same, as long as nothing changes; `records` are of the pod."""
        ...

    def find(self, run: FilterRun, results: FilterResults) -> PostFilterResult | NoCandidate:
        """Who goes for the pod, from which node; or why nobody does. `results` are about all nodes. Raises CycleProblem."""
        ...

    def could(self, run: FilterRun, results: FilterResults) -> str | None:
        """The node on which room could be made, whether or not the pod waits for one already. Raises CycleProblem."""
        ...

    def beside(self, run: FilterRun, node: str, going: Collection[PodKey]) -> Victims[PodKey] | None:
        """Who goes from one node when some go in any case; None if all were in vain. Raises CycleProblem."""
        ...


class Anew:
    """A cache_key that equals nothing: what depends on all pods of the cluster is not remembered."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0


ANEW: Final = Anew()

NODES_COME_AND_CHANGE: Final = frozenset({Event.NODE_ADDED, Event.NODE_CHANGED})

PLACE: Final = frozenset({"labels", "name"})
"""What labels say of where a node is."""

SPEC: Final = frozenset({"spec"})
"""Stands for what a pod's spec says of nodes, which has no facts of its own."""

PAUSE: Final = None
"""What advice yields where others may have their turn."""

ROWS: Final = 256
"""Nodes that are looked at one by one before others have their turn."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """An implementation: all that a plugin may have. What it does not have costs nothing.

    As a filter and as a score, it reads `node_facts` and `pod_facts`, so that equal pods on unchanged nodes need no second
    look. `row_only` says that the verdict about a node follows from its row alone; others have a `cache_key`, and
    may look at the state of the cluster. `rank` scores the nodes that are left in view of each other, `rank_key` says
    whether it has something to say. Of pods that are `ordinary` neither key is asked for, nor whether they are `concerned`, unless some of
    `ordinary_with` is there (bits of `ClusterState.present`; None: whatever is there). `filter_one` and `score_one` say of one node what `filter` and `score` do; not
    all plugins have them. `requests` is what a filter that only counts amounts counts, `unresolvable` whether
    it refuses the pod as such. `helped_by` are the events after which a refused pod may pass, or one that waits for a permit or before a gate.
    `keeps` is called with each revision, before nodes and pods are known.

    `state` makes the state of a plugin, once for each scheduler; `gate`, `settle`, `reserve`, `undo`, `redo`, `adopt`, `permit`,
    `prebind` and `status` get it first (None without it). `gate` keeps pods out of the queue; one with `settle`, which is called before each decision and says whether it is not done yet, is asked again when a pod is taken from the queue, and says itself whom events
    help that wait before it, others are asked about all of them after `helped_by`. What `reserve` (or `reserve_anywhere`) takes for a pod on its node is kept in the ledger, and
    `undo` gives it back exactly once; where that happens in a trial, `redo` takes it again at the end (None: in a trial it stays
    taken). A plugin with `adopt` holds it as long as the pod is there, others until the cluster
    shows the pod on its node. `concerns` says of which pods they are asked at all (None: of all), `concerned` the same by the state.
    `jobs` is what it does for pods that go together.

    `annotates` gives what is written on the pod with its binding, `writes` says for which data `prebind` is asked at all (None: all). `makes_way` names pods that all filters and scores leave out on their
    nodes when they are asked about a certain pod; it is asked once in each cycle, so it has to be quick where it has nothing to say.

    `post_filter` makes, once for each revision, what is asked when no node takes a pod: the first of the profile's that makes room, in
    the order of the table.

    `advice` says what would help against the filter, `status` what is shown of the state; `bars` whether a node of this name
    is closed to a pod whoever leaves it: a filter that has it looks at the node alone, if beyond its row. `of_kubernetes`
    says that kube-scheduler has the same plugin by default.
    """

    filter: Filter | None = None
    score: Score | None = None
    node_facts: frozenset[str] = frozenset()
    pod_facts: frozenset[str] = frozenset()
    helped_by: frozenset[Event] = NODES_COME_AND_CHANGE
    row_only: bool = True
    cache_key: CacheKey | None = None
    rank: Rank | None = None
    rank_key: CacheKey | None = None
    ordinary_with: int | None = None
    requests: Requests | None = None
    unresolvable: Unresolvable | None = None
    filter_one: FilterOne | None = None
    score_one: ScoreOne | None = None
    keeps: Keep | None = None
    state: Callable[[Host], Any] | None = None
    concerns: Callable[[PodView], bool] | None = None
    concerned: Callable[[Any, PodView], bool] | None = None
    jobs: Jobs | None = None
    gate: Gate | None = None
    settle: Callable[[Any], bool] | None = None
    reserve: Reserve | None = None
    reserve_anywhere: ReserveAnywhere | None = None
    undo: Undo | None = None
    redo: Redo | None = None
    adopt: Adopt | None = None
    permit: Permit | None = None
    prebind: Prebind | None = None
    annotates: Annotate | None = None
    writes: Callable[[Any], bool] | None = None
    makes_way: MakesWay | None = None
    status: Callable[[Any], Mapping[str, Any] | None] | None = None
    post_filter: Callable[[PostFilterHost], PostFilter] | None = None
    advice: Helper | None = None
    bars: Callable[[PodView, str, ClusterState], bool] | None = None
    of_kubernetes: bool = False

    def may_concern_ordinary(self, present: int) -> bool:
        """Whether it may have something to say of ordinary pods where these things are there."""
        return self.ordinary_with is None or bool(self.ordinary_with & present)

    @property
    def decides_late(self) -> bool:
        """Whether it has a say beside filters."""
        parts = (self.reserve, self.reserve_anywhere, self.permit, self.gate, self.post_filter)
        return any(part is not None for part in parts)


def request_of(pod: PodView) -> Amounts:
    """What the pod requests."""
    request: Amounts = pod.facts["resources.request"]  # type: ignore[assignment]  # the fact's type says so
    return request
