"""The gangs of a scheduler: what its book says of each step of a pod, and whom that concerns.

Pods of a gang wait before the queue until enough of them are there. The first that has its turn opens a round, in which the
others are tried right after it; each that finds a node waits there. Once enough have one, all go; where one finds none, all that
wait give their nodes back.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from koordpolicy.algorithms.gang import Gang, Held, Permitted, Round, Why, gang_id, in_order
from koordpolicy.algorithms.gang_book import GangBook
from koordpolicy.algorithms.gang_records import GangPods
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.gang import GangDeclaration, GangKey, declared_by_pod
from koordpolicy.model.pod import PodKey
from koordpolicy.model.protocol import PHASE_RUNNING
from koordpolicy.model.reading import NO_TEXT
from koordpolicy.scheduler.decision import PodDecision, PostFilterResult
from koordpolicy.scheduler.plugins.base import Host, JobRoom, Refusal, Wait
from koordpolicy.scheduler.plugins.gang.gathered import GatheredGang, gathering_of, nodes_beside
from koordpolicy.scheduler.plugins.gang.policy import BY_POD_GROUP, GangDecisions, GangPolicy, TooMany
from koordpolicy.scheduler.plugins.gang.room import NoRoom, RoomForGang, Wanted, as_told
from koordpolicy.scheduler.plugins.gang.starving import Starving
from koordpolicy.scheduler.plugins.gang.timings import ATTEMPTED, GONE, SUCCEEDED, GangTimings
from koordpolicy.scheduler.plugins.gang.victims import GangVictims
from koordpolicy.scheduler.plugins.gang.words import (
    bound_together,
    lacking_text,
    not_initialised_text,
    shown,
    too_many_text,
    waiting_text,
)
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.plugins.topology.pins import NETWORK
from koordpolicy.scheduler.plugins.topology.plan import NoPlan

_KEPT: Final = "gang by policy"
_NO_FACTS: Final[Mapping[str, Any]] = {}


class Gangs:
    """The state of the plugin."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._policy = GangPolicy(host.graph)
        self._decisions = GangDecisions(self._policy, host.now, self._namespace, self._priority_of)
        self.book: Final = GangBook(self._decisions)
        self._said: dict[str, GangDeclaration] = {}
        """What is said of each gang that enough is said of, by its id."""
        self._too_many: dict[str, TooMany] = {}
        """The gangs of which nothing is read, as more are placed together with each than policy allows."""
        self._by_object: set[str] = set()
        """The gangs that PodGroup objects alone speak of."""
        self._priorities: dict[PodKey, int] = {}
        self._phases: dict[PodKey, str] = {}
        self._views: dict[PodKey, PodView] = {}
        """The pods without a node, as they are planned."""
        self._owners: dict[str, str] = {}
        self.changed: Final[dict[str, None]] = {}
        """The gangs of PodGroup objects to which something has happened; whoever tells of them takes them away."""
        self.lost: Final[set[str]] = set()
        """Those of which pods have gone that were bound; the same."""
        self._in_round: set[PodKey] = set()
        """The pods that have got a node to wait at in the round that is open, in which nobody else is tried."""
        self._unheard: set[PodKey] = set()
        """Those of them that give it back in the same round: nobody is helped by that."""
        self._failed: dict[str, str] = {}
        """Why each gang did not fit when it was tried last."""
        self._reserved: set[PodKey] = set()
        """The pods that have just got a node, and are not asked about yet."""
        self._complete: set[tuple[str, ...]] = set()
        self._unfinished: dict[str, None] = {}
        """The gangs that are bound in part."""
        self._starving = Starving(self.book, self._decisions, host.now)
        self._victims = GangVictims(host.graph)
        self.timings: Final = GangTimings(host.now)
        self._tried: PodKey | None = None
        """The pod that has its turn, or that opened a round for which there is no plan."""
        self._one_go: tuple[Round | None, bool] = (None, False)
        """Whether the pods of a round are decided on in one go, which is asked once of each round."""
        self._due: tuple[PodKey, ...] = ()
        """The pods that are promised nodes from which nobody has to go: they are tried again once the round is over."""
        self.heard()

    # --- what there is ----------------------------------------------------------------------------

    def concerned(self, view: PodView) -> bool:
        """Whether a pod is in a gang."""
        known = view.__dict__.get(_KEPT)
        if known is not None and known[0] is self._policy:
            return bool(known[1])  # asked several times of each pod
        return bool(self._name_of(view))

    def came(self, view: PodView, node: str) -> None:
        """A pod is there or has changed, with its node; empty for none."""
        key, name = view.pod.key, self._name_of(view)
        if not name:
            if self.book.gang_of(key) is not None:
                self.went(key)
            return
        named = gang_id((view.pod.namespace, name))
        self._priorities[key], self._phases[key] = view.priority, view.pod.phase
        if node:
            self._views.pop(key, None)
        else:
            self._views[key] = view
        gang = self.book.set_pod(key, named, bound=bool(node))
        self._declare(gang, view, name)
        if named in self._by_object:
            self.changed[named] = None
            if named not in self._owners:
                self._owners[named] = ",".join(
                    sorted(f"{view.pod.namespace}/{one.name}" for one in view.pod.owners)
                )
        if gang.bound and gang.pending:
            self._unfinished[named] = None
        self._look(gang)
        if node and self.book.one_stands_for(gang):
            self._ask_again(gang.pending)

    def went(self, key: PodKey) -> None:
        """A pod is gone, or nobody is to place it."""
        gang = self.book.gang_of(key)
        if gang is None:
            return
        stood = self.book.group_of(gang).representative == key
        fewer = key not in gang.bound and gang.id in self._failed
        if gang.id in self._by_object:
            self.changed[gang.id] = None
            if key in gang.bound:
                self.lost.add(gang.id)
        self.book.remove_pod(key)
        self._priorities.pop(key, None)
        self._phases.pop(key, None)
        self._views.pop(key, None)
        for known in (self._reserved, self._in_round, self._unheard):
            known.discard(key)
        if gang.bound and gang.pending:
            self._unfinished[gang.id] = None
        if not gang.pods:
            self._failed.pop(gang.id, None)
        if not gang.pods and gang.id not in self._by_object:
            self._remove(gang.id)
        self._look(gang)
        if stood or (fewer and not self.book.lacks(gang)):
            # Who is gone may be the one that found no node, for whom alone something could have happened.
            self._ask_again(self.book.pending_with(gang))

    def heard(self) -> None:
        """PodGroup objects have changed."""
        groups = self._host.cluster.pod_groups
        for key in groups.taken():
            self._set_by_object(key)

    def _set_by_object(self, key: GangKey) -> None:
        named = gang_id(key)
        known = self.book.gangs.get(named)
        if known is not None and known.pods and named not in self._by_object:
            return  # its pods say what holds of it
        found = self._host.cluster.pod_groups.get(key)
        if found is None:
            self._by_object.discard(named)
            self._said.pop(named, None)
            self._owners.pop(named, None)
            if known is not None and not known.pods:
                self._remove(named)
                return
            if known is not None:
                self._by_object.add(named)
                self._set(named)
            return
        self._by_object.add(named)
        self.changed[named] = None
        self._said[named] = found.declaration
        self._set(named)

    def _declare(self, gang: Gang, view: PodView, name: str) -> None:
        """A pod may be the first to say how its gang is placed."""
        if gang.id in self._by_object or gang.parameters is not None:
            return
        namespace = self._namespace(view.pod.namespace)
        if self._policy.declared_by(view, namespace, self._host.now()) == BY_POD_GROUP:
            self._by_object.add(gang.id)
            self._set_by_object((view.pod.namespace, name))
        else:
            self._said[gang.id] = declared_by_pod(view.pod, name)
            self._set(gang.id)

    def _set(self, named: str) -> None:
        """A gang is placed as is said of it now."""
        said, found = self._said.get(named), None
        if said is not None:
            found = self._policy.parameters(said, self._namespace(said.namespace), self._host.now())
        known = self.book.gangs.get(named)
        before = None if known is None else known.parameters or self._too_many.get(named)
        self._too_many.pop(named, None)
        if isinstance(found, TooMany):
            self._too_many[named] = found
        parameters = None if isinstance(found, TooMany) else found
        gang = self.book.set_gang(named, parameters)
        if parameters is None and named not in self._by_object:
            self._said.pop(named, None)  # the next pod may say enough
        self._look(gang)
        if parameters is not None or found != before:
            self._ask_again(gang.pending)

    def _remove(self, named: str) -> None:
        self.book.remove_gang(named)
        for known in (self._said, self._too_many):
            known.pop(named, None)

    def _look(self, gang: Gang) -> None:
        """Whether a gang, with those that are placed together with it, is complete now; whoever waits for that is asked again."""
        if gang.parameters is None:
            return
        group = self.book.group_of(gang)
        complete = not self.book.lacks(gang)
        if complete and group.gangs not in self._complete:
            self._complete.add(group.gangs)
            group.complete_since = self._host.now()
            self._ask_again(self.book.pending_with(gang))
        elif not complete and group.gangs in self._complete:
            self._complete.discard(group.gangs)
            group.complete_since = None
        if gang.bound:
            group.complete_since = None

    def _name_of(self, view: PodView) -> str:
        """The name of the gang that a pod belongs to; empty for none. A view keeps what follows from it."""
        policy, known = self._policy, view.__dict__.get(_KEPT)
        if known is not None and known[0] is policy:
            return str(known[1])
        if not policy.by_pod_alone:
            return policy.gang_of(view, self._namespace(view.pod.namespace), self._host.now())
        name = policy.gang_of_pod(view)
        view.__dict__[_KEPT] = policy, name
        return name

    def renewed(self) -> None:
        """Another revision decides, perhaps: what is said of gangs may mean something else."""
        if self._host.graph is self._policy.graph:
            return
        self._policy = self._decisions.policy = GangPolicy(self._host.graph)
        self._one_go = None, False
        for named in list(self.book.gangs):
            self._set(named)

    def _namespace(self, name: str) -> Mapping[str, Any]:
        return self._host.cluster.namespaces.get(name, _NO_FACTS)

    def _priority_of(self, gang: Gang) -> int:
        if not self._policy.reads_priority:
            return 0
        return max((self._priorities.get(pod, 0) for pod in gang.pods), default=0)

    # --- before and in the queue ------------------------------------------------------------------

    def gate(self, view: PodView, _parameters: Parameters) -> Refusal | None:
        """Why a pod is not to wait in the queue."""
        key = view.pod.key
        if self.book.gang_of(key) is None:
            self.came(view, "")
        why = self.book.may_enter(key)
        return None if why is None else Refusal(self._text(why, key))

    def open(self) -> bool:
        """Whether a round is open, or a gang bound in part."""
        return self.book.round is not None or bool(self._unfinished)

    def next(self, may: Callable[[PodKey], bool], due: Callable[[PodKey], bool]) -> PodKey | None:
        """Who is tried before the queue's first."""
        while self.book.round is not None:
            pod = self.book.first()
            if pod is not None:
                self.book.take(pod)
                if may(pod):
                    return pod
                continue
            self.timings.end(ATTEMPTED if self.book.round.gang in self.book.gangs else GONE)
            self._give_back(self.book.next().rejected)
            self._in_round.clear()
            self._planned.clear()
            self._ask_again(self._due)
            self._due = ()
        for named in list(self._unfinished) if self._unfinished else ():
            gang = self.book.gangs.get(named)
            if (
                gang is None
                or not gang.pending
                or not self._decisions.finishes_first(gang, self.book.group_of(gang))
            ):
                del self._unfinished[named]
                continue
            for pod in gang.pending:
                if due(pod):
                    return pod
        return None

    def begin(self, view: PodView) -> Refusal | None:
        """Why a pod is not tried that has its turn."""
        key = view.pod.key
        self._tried = None
        gang = self.book.gang_of(key)
        if gang is None:
            return None
        if self.book.round is None and not self._free(gang):
            other = self._starving.before(gang, self._priorities.get(key, 0))
            if other is not None:
                return Refusal(f"gang {shown(other)} waits for room for longer, and others hold back for it")
        opens = self.book.round is None
        if opens:
            self._in_round.clear()
            self._planned.clear()
        why = self.book.begin(key)
        if why is not None:
            return Refusal(self._text(why, key))
        self._tried = key
        if opens:
            self.timings.begin(len(gang.pods))
        return self._plan(gang, view, alone=not opens) if opens or key not in self._planned else None

    def _plan(self, gang: Gang, view: PodView, *, alone: bool) -> Refusal | None:
        """Plan all pods of a round, where policy gathers the gang, or the one that goes by itself or came later; why they cannot be."""
        found = self.plan(gang, view, alone=alone)
        if isinstance(found, NoPlan):
            return Refusal(found.reason, filter=NETWORK)
        if found is not None:
            self._planned.update(found)
            promised_to = self._host.promises.promised_to
            self._host.release(*[key for key, node in found.items() if promised_to(key) not in (None, node)])
        return None

    def plan(
        self, gang: Gang, view: PodView, *, alone: bool = False, told: bool = False
    ) -> Mapping[PodKey, str] | NoPlan | None:
        """The nodes that pods of a gang are planned on now that this one has its turn, as `GatheredGang.plan` says. Raises CycleProblem."""
        how = gathering_of(self.book, gang)
        if how is None:
            return None
        gathered = GatheredGang(self._host, self.book, how)
        return gathered.plan(gang, view, self._views, alone=alone or self._free(gang), told=told)

    @property
    def _planned(self) -> dict[PodKey, str]:
        """The nodes that pods of the open round are planned on."""
        return self._host.cluster.network.planned

    def at_once(self) -> bool:
        """Whether the pods of the round are decided on in one go."""
        if self._policy.never_at_once:
            return False
        round_ = self.book.round
        if self._one_go[0] is not round_:
            gang = None if round_ is None else self.book.gangs.get(round_.gang)
            said = gang is not None and self._decisions.at_once(gang, self.book.group_of(gang))
            self._one_go = round_, said
        return self._one_go[1]

    def together(self, view: PodView) -> bool:
        """Whether a pod goes with others or not at all."""
        gang = self.book.gang_of(view.pod.key)
        return gang is not None and not self._free(gang)

    def company(self, view: PodView) -> list[PodView]:
        """The pods without a node that go with one or not at all."""
        gang = self.book.gang_of(view.pod.key)
        if gang is None or self._free(gang):
            return []
        return [
            self._views[pod]
            for one in self.book.together(gang)
            for pod in one.pods
            if pod != view.pod.key and pod in self._views
        ]

    def _free(self, gang: Gang) -> bool:
        return gang.parameters is not None and self._decisions.free(gang, self.book.group_of(gang))

    # --- room for all of them ---------------------------------------------------------------------

    def make_room(self, view: PodView) -> JobRoom | None:
        """Who goes for a gang of which a pod found no node; None where policy has nobody go, or the pod was not tried.

        Raises CycleProblem.
        """
        key, round_ = view.pod.key, self.book.round
        gang = self.book.gang_of(key)
        if gang is None or self._tried != key or round_ is None or round_.failed:
            return None
        since = self._host.now()
        found = self.room(view)
        if found is None:
            return None
        self.timings.searched(since, len(gang.pods), found=not isinstance(found, NoRoom))
        mine = (*self.book.pending_with(gang), *in_order(self.book.together(gang), "waiting"))
        if isinstance(found, NoRoom):
            if not found.waits:
                self._host.release(*mine)
        elif all(victim.waits for victim in found.victims):
            self._due = mine
        return as_told(gang.id, found)

    def rehearse_room(self, view: PodView) -> JobRoom | None:
        """The same for a pod without a node of a complete gang, as it would be now; nothing follows from it. Raises CycleProblem."""
        gang = self.book.gang_of(view.pod.key)
        if gang is None or self.book.lacks(gang):
            return None
        found = self.room(view)
        return None if found is None else as_told(gang.id, found)

    def room(self, view: PodView) -> PostFilterResult | NoRoom | None:
        """The same for a pod without a node, as it would be now; nothing follows from it. Raises CycleProblem."""
        gang = self.book.gang_of(view.pod.key)
        if gang is None or gang.parameters is None:
            return None
        group = self.book.group_of(gang)
        if not self._decisions.displaces(gang, group, view):
            return None
        how = gathering_of(self.book, gang)
        network = None if how is None else how.required
        if network is not None and self._planned:
            return NoRoom("its plan does not hold any more")
        if self._victims.graph is not self._host.graph:
            self._victims = GangVictims(self._host.graph)
        pods = [self._views[pod] for pod in self.book.pending_with(gang) if pod in self._views]
        wanted = Wanted(
            view,
            [view, *(one for one in pods if one.pod.key != view.pod.key)],
            tuple(in_order(self.book.together(gang), "waiting")),
            network,
            self._decisions.spares_budgets(gang, group),
            () if network is None else nodes_beside(self._host.cache, self.book, gang),
        )
        return RoomForGang(self._host, self._victims, self._company).find(wanted)

    def _company(self, key: PodKey) -> tuple[PodKey, ...]:
        """The pods with a node that are in one gang with another one."""
        gang = self.book.gang_of(key)
        return () if gang is None else (*gang.bound, *gang.waiting)

    def failed(self, view: PodView, decision: PodDecision) -> None:
        """A pod found no node, or was not tried."""
        key = view.pod.key
        gang = self.book.gang_of(key)
        if gang is None:
            return
        have = sum(len(one.waiting) for one in self.book.together(gang))
        first = decision.message.partition("\n")[0].removesuffix(".")
        text = f"{have} had a node when pod {'/'.join(key)} found none: {first}"
        if self.book.round is None:
            self._planned.clear()
        before = self.book.round.failed if self.book.round is not None else ""
        rejected = self.book.failed(key, text)
        if not before:
            self._does_not_fit(gang, text)
        self._give_back(rejected)

    def _does_not_fit(self, gang: Gang, text: str) -> None:
        for one in self.book.together(gang):
            self._failed[one.id] = text
            if one.id in self._by_object:
                self.changed[one.id] = None

    # --- on nodes ---------------------------------------------------------------------------------

    def reserve(self, view: PodView) -> PodKey | None:
        """A pod has a node."""
        key = view.pod.key
        if self.book.gang_of(key) is None:
            return None
        self._reserved.add(key)
        return key

    def undo(self, key: PodKey) -> None:
        """It does not get there."""
        self._reserved.discard(key)
        rejected = self.book.unreserved(key)
        if rejected and (gang := self.book.gang_of(key)) is not None:
            self._does_not_fit(gang, f"pod {'/'.join(key)} does not get to its node")
        self._ask_again(rejected)

    def permit(self, view: PodView, _node: str, _parameters: Parameters) -> Refusal | Wait | None:
        """Whether a pod may go to its node: it has just got it, or is asked about again."""
        key = view.pod.key
        gang = self.book.gang_of(key)
        if gang is None:
            return None
        if key in self._reserved:
            self._reserved.discard(key)
            open_ = self.book.round is not None
            said = self.book.permit(key)
            if isinstance(said, Permitted):
                if open_:
                    self.timings.placed(said.rounds + 1)
                self.timings.end(SUCCEEDED)
                self._planned.clear()
                self._in_round.clear()
                self._failed.pop(gang.id, None)
                self._host.permit(*[pod for pod in said.pods if pod != key])
                return None
            if self.book.round is not None:
                self._in_round.add(key)
        else:
            if key in gang.allowed:
                return None
            if key not in gang.waiting:
                unheard = key in self._unheard
                self._unheard.discard(key)
                why = self._failed.get(gang.id, "one of its pods does not get to its node")
                return Refusal(f"gang {shown(gang.id)} does not fit: {why}", unheard=unheard)
            said = Held(0 if gang.parameters is None else gang.parameters.wait)
        return Wait(self._host.now() + said.wait, partial(self._waits, gang))

    def annotations(self, key: PodKey) -> Mapping[str, str]:
        """With how many others a pod is bound, and of which gangs; nothing where it is bound by itself."""
        gang = self.book.gang_of(key)
        group = None if gang is None else self.book.group_of(gang)
        if group is None or key not in group.members or len(group.members) < 2:
            return NO_TEXT
        return bound_together(group)

    def _waits(self, gang: Gang) -> str:
        """For what pods of a gang wait on their nodes."""
        return waiting_text(list(self.book.together(gang))) or self.not_initialised(gang.id)

    # --- for the status of PodGroups ----------------------------------------------------------------

    def counted(self, named: str, succeeded: int, failed: int) -> GangPods:
        """What the pods of a gang do, with so many that are over and not watched."""
        gang = self.book.gangs.get(named)
        pods = () if gang is None else tuple(gang.pods)
        bound = 0 if gang is None else len(gang.bound)
        over = succeeded + failed
        running = sum(1 for pod in pods if self._phases.get(pod) == PHASE_RUNNING)
        return GangPods(len(pods) + over, bound + over, running, succeeded, failed)

    def not_initialised(self, named: str) -> str:
        """Why a gang cannot be placed of which not enough is said, or too much."""
        found = self._too_many.get(named)
        if found is not None:
            return too_many_text(named, found)
        return not_initialised_text(named, by_object=named in self._by_object)

    def is_placed(self, named: str) -> bool:
        """Whether as many pods of a gang as it needs are bound, or were once."""
        gang = self.book.gangs.get(named)
        if gang is None or gang.parameters is None:
            return False
        return self.book.group_of(gang).once_satisfied or len(gang.bound) >= gang.parameters.minimum

    def does_not_fit(self, named: str) -> str:
        """Why a gang did not fit when it was tried last, or is not tried as it names too many others; empty where neither is so."""
        return self.not_initialised(named) if named in self._too_many else self._failed.get(named, "")

    def owners(self, named: str) -> str:
        """The owners of one of its pods, as `NAMESPACE/NAME`, sorted and joined by commas."""
        return self._owners.get(named, "")

    def _give_back(self, pods: tuple[PodKey, ...]) -> None:
        """Pods do not keep the nodes that they wait at."""
        self._unheard.update(self._in_round.intersection(pods))
        self._ask_again(pods)

    # --- words ------------------------------------------------------------------------------------

    def _ask_again(self, pods: Iterable[PodKey]) -> None:
        found = tuple(pods)
        if found:
            self._host.reconsider(*found)

    def _text(self, why: Why, key: PodKey) -> str:
        gang = self.book.gang_of(key)
        if gang is None or why is Why.NOT_INITIALISED:
            return self.not_initialised("" if gang is None else gang.id)
        if why is Why.BASIC_CHECK:
            return lacking_text(self.book, gang)
        if why is Why.ROUND_FAILED and self.book.round is not None:
            return f"gang {shown(gang.id)} does not fit: {self.book.round.failed}"
        return f"another pod of gang {shown(gang.id)} waits in the queue for all of them"

    def status(self) -> dict[str, Any]:
        """What is shown: how many gangs there are, how many wait on nodes, how often in a row one was tried in vain at most, and
        whose round is open.
        """
        gangs = self.book.gangs.values()
        return {
            "gangs": len(gangs),
            "pods": sum(len(one.pods) for one in gangs),
            "waiting": sum(1 for one in gangs if one.waiting),
            "boundInPart": len(self._unfinished),
            "mostRounds": max((self.book.group_of(one).rounds for one in gangs), default=0),
            **({} if self.book.round is None else {"round": self.book.round.gang}),
        }
