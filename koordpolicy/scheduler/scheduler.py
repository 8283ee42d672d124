"""The scheduler without its rim: objects in, decisions out, synchronously.

    scheduler = Scheduler(graph, clock=lambda: now)
    scheduler.set_node(node); scheduler.set_metric(metric); scheduler.set_pod(pod)     # as events come
    while (decision := scheduler.schedule_one()) is not None:
        ...                      # bind `decision.pod` to `decision.node`, or say why there is none
    scheduler.next_time()        # when to look again although nothing happens

A pod that got a node is assumed there from then on: it has an account in the ledger. When the cluster shows it bound,
`set_pod` confirms that; when binding fails, `forget` takes it back and queues it again. One that a plugin lets wait is
decided on once more when that permits or refuses it, and not shown before. All events are idempotent: `set_...`
says how an object is now, `remove_...` that it is gone. Values come from the readers of `koordpolicy.model`.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.pods import PodView, scheduler_of
from koordpolicy.cluster.state import ClusterState
from koordpolicy.cluster.undo_log import UndoLog
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.same import differs_for
from koordpolicy.language.facts import Component
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.model.protocol import OPERATING_MODE
from koordpolicy.model.reservation import schedulable
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.binding_cycle import BindingCycles, BindingSite
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.diagnosis import WaitlistDiagnosis
from koordpolicy.scheduler.evaluation import Evaluation, EvaluationCache
from koordpolicy.scheduler.framework import Framework
from koordpolicy.scheduler.hints import Hints
from koordpolicy.scheduler.job_room import JobsRoom
from koordpolicy.scheduler.ledger import Ledger, Stage
from koordpolicy.scheduler.passed_over import passed_over
from koordpolicy.scheduler.plugins.gang.gangs import Gangs
from koordpolicy.scheduler.pod_events import events_of
from koordpolicy.scheduler.role import ALONE, Role
from koordpolicy.scheduler.select_host import Draw, HostSelection, first_of
from koordpolicy.scheduler.waitlist import Waitlist

LOG: Final = logging.getLogger(__name__)

DEFAULT_PROFILE = "koord-scheduler"

Clock = Callable[[], int]
"""The time in nanoseconds since 1970."""

Ahead = tuple[RuleGraph, Callable[[str, Mapping[str, str]], bool]]
"""A revision that places some pods, and which: by `NAMESPACE/NAME` and labels."""

OnDecided = Callable[[Cycle, Evaluation | None, NodeTable, PodDecision], None]
"""Told of a decision with what it was made of; None where the cycle itself failed."""


class Scheduler:
    """Places the pods of one profile on the nodes of a cluster.

    `draw` breaks ties where policy wants a random node. `explained` is how many of the best nodes a
    decision lists. Without `refusals` only a pod that found no node says what refused it, which saves time; with `failing` one that
    found a node does, too, where a filter may have failed.
    With `diagnosing` it finds out about pods that wait, as far as `diagnosis.some` is called.
    `role` is its part in the work where there are other schedulers, and the plugins that policy may name.
    `framework` is the profile at work: whoever only asks asks that.
    Raises ProfileError when the graph has no such profile. Not for use by two threads.
    """

    def __init__(  # noqa: PLR0913 - what decisions show is chosen part by part
        self,
        graph: RuleGraph,
        clock: Clock,
        *,
        profile: str = DEFAULT_PROFILE,
        draw: Draw = first_of,
        explained: int = 3,
        refusals: bool = True,
        failing: bool = False,
        diagnosing: bool = False,
        role: Role = ALONE,
    ) -> None:
        self._clock = clock
        self._role = role
        self._diagnosing = diagnosing
        self._selection = HostSelection(draw, explained, refusals, failing)
        self._waitlist = Waitlist(clock)
        self._undo_log = UndoLog()
        self.ledger: Final = Ledger(self._undo_log)
        """What is promised and reserved. To be read by others; written here alone."""
        site = BindingSite(clock, self.happened, self._undo)
        self._binding = BindingCycles(self.ledger, self._waitlist, site)
        room = self._job_room = JobsRoom(self._binding, self.ledger, self._waitlist, lambda: self.cache)
        self._came, self._went = room.came, room.went
        self._waitlist.gate = self._binding.gate
        self.on_decided: OnDecided | None = None
        """Hears of each decision on a pod of the queue while the nodes are as they were evaluated."""
        self.ahead: Callable[[], Ahead | None] = lambda: None
        """The revision on its way that places some pods already, and which."""
        self._going: Ahead | None = None
        self._beside: Framework | None = None
        self._useless: RuleGraph | None = None
        self._more: frozenset[str] = frozenset()
        self._begin(graph, profile)

    def _begin(self, graph: RuleGraph, profile: str, before: ClusterCache | None = None) -> None:
        state = ClusterState(self._undo_log) if before is None else before.state.again()
        framework = self.framework = Framework(
            graph, profile, self._role, state, self.ledger, self._selection, self._clock, self._more
        )
        self.profile, self.cache = framework.profile, framework.cache
        state.quotas.know(self._clock, self.cache.pods, self._waitlist.pods.values)
        self.profile.keep(state, graph)
        company = self._binding.jobs.company
        hints = Hints(self.profile, self.cache, framework.post_filters, framework.records, company)
        self._waitlist.begin(self.profile, hints, framework.records)
        self._binding.begin(framework)
        self._beside = self._useless = None
        # Apart from decisions, so that what these remember stays as it is.
        own, others = EvaluationCache(), EvaluationCache()
        self.diagnosis = WaitlistDiagnosis(
            framework.limits, lambda cycle: self._asked(cycle).adviser, self._waitlist, self.cache.table, self._clock,
            lambda view: self._framework_of(view.pod).cycle(view),
            lambda cycle: self._asked(cycle).decided(cycle, own if self._asked(cycle) is framework else others), self._binding.jobs.together,
        )  # fmt: skip
        if self._diagnosing:
            self._binding.on_gated = self.diagnosis.gated

    def _asked(self, cycle: Cycle) -> Framework:
        """Whose profile a cycle asks."""
        beside = self._beside
        return beside if beside is not None and cycle.profile is beside.profile else self.framework

    def _framework_of(self, pod: Pod) -> Framework:
        """By which revision a pod is placed."""
        beside, going = self._beside, self._going
        if beside is None or going is None or not going[1]("/".join(pod.key), pod.labels):
            return self.framework
        return beside

    def _go_along(self) -> None:
        """See which revision places which pods from now on; not while a decision is made."""
        going = self.ahead()
        if going is not None and going[0] is self._useless:
            going = None
        if going is None:
            if self._going is not None:
                self._going = self._beside = None
                self._binding.go_along(None)
                self._try_others_again()
            return
        before, self._going = self._going, going
        if self._beside is None or self._beside.graph is not going[0]:
            self._beside = self._framework_beside(going[0])
            if self._beside is None:
                self._useless = going[0]
            self._binding.go_along(self._beside)
        if before is None or before[1] is not going[1]:
            self._try_others_again()

    def _framework_beside(self, graph: RuleGraph) -> Framework | None:
        """That of another revision; None for one that says the same to a scheduler."""
        if not differs_for(Component.SCHEDULER, self.framework.graph, graph):
            return None
        try:
            self.keep_facts(self._role.profile(graph, self.profile.name).node_facts)
            return Framework(
                graph,
                self.profile.name,
                self._role,
                self.framework,
                self.ledger,
                self._selection,
                self._clock,
            )
        except Exception:
            # The one that decides is not stopped by another one.
            LOG.exception("no pod is placed by a revision on its way: internal error, please report")
            return None

    def _try_others_again(self) -> None:
        """Pods that one revision refused and that the other one is to place now are tried again."""
        for key, last in list(self._waitlist.last.items()):
            view = self._waitlist.pods.get(key)
            if view is not None and last.ahead != (self._framework_of(view.pod) is self._beside):
                self._waitlist.reconsider(key)

    def replace_graph(self, graph: RuleGraph) -> None:
        """Go on with another revision: everything known stays, everything decided by policy is asked anew.

        Where the revisions do not differ in anything that a scheduler asks, nothing is: decisions only name the new one
        from now on. Raises ProfileError, and goes on with the old one, when the graph lacks the profile.
        """
        if not differs_for(Component.SCHEDULER, self.framework.graph, graph):
            self.framework.rename(graph)
            self.profile = self.framework.profile
            return
        self._role.profile(graph, self.profile.name)
        self._renew(graph)

    @property
    def kept_facts(self) -> frozenset[str]:
        """The facts that rows of nodes have."""
        return self.profile.node_facts | self._more

    def keep_facts(self, facts: frozenset[str]) -> None:
        """Keep these facts of nodes from now on, whether the profile reads them or not."""
        if not facts <= self.kept_facts:
            self._more |= facts
            self._renew(self.framework.graph)

    def _renew(self, graph: RuleGraph) -> None:
        before, pending = self.cache, list(self._waitlist.pods.values())
        promised = [(view, node) for node, pods in self.ledger.promises.items() for view in pods.values()]
        self._begin(graph, self.profile.name, before)
        for node in before.nodes():
            with passed_over("node", node.name):
                self.cache.set_node(node)
        for metric in before.metrics():
            with passed_over("metric of node", metric.name):
                self.cache.set_metric(metric)
        for view, node_name, since in before.pods():
            with passed_over("pod", *view.pod.key):
                now = self.framework.view(view.pod)
                assumed = self.ledger.assumed(now.pod.key) is not None
                self._came(now, "" if assumed else node_name)
                self.cache.place(self._binding.counted(now) if assumed else now, node_name, since)
                self._binding.renewed(now, node_name)
        for view, node_name in promised:
            with passed_over("pod", *view.pod.key):
                self.ledger.promise(self.framework.view(view.pod), node_name)
        for view in pending:
            with passed_over("pod", *view.pod.key):
                now = self.framework.view(view.pod)
                self._came(now)
                self.cache.state.quotas.heard(now)
                self._waitlist.enter(now)
        for one in self.cache.state.reservations.said:
            if not one.of_pod and schedulable(one):
                with passed_over("reservation", one.name):
                    self.set_pod(self.cache.state.reservations.pod(one))

    # --- events ---------------------------------------------------------------------------------

    def set_node(self, node: Node) -> None:
        """A node is new or has changed."""
        if node.name not in self.cache:
            self.cache.set_node(node)
            self.happened(Event.NODE_ADDED, node.name)
            return
        changed = self.cache.set_node(node)
        if changed:
            self.happened(Event.NODE_CHANGED, node.name, changed)

    def remove_node(self, name: str) -> None:
        """A node is gone; pods on it remain known until they are removed."""
        self.cache.remove_node(name)
        for key in self.ledger.promised_on(name):
            self._waitlist.reconsider(key)
        for account in [one for one in self.ledger.waiting.values() if one.node == name]:
            self.forget(account.view.pod)
        self.happened(Event.NODE_GONE)

    def set_metric(self, metric: NodeMetric) -> None:
        """A node has reported."""
        self.cache.set_metric(metric)
        self.happened(Event.METRIC_CHANGED, metric.name)

    def remove_metric(self, name: str) -> None:
        """A node's report is gone."""
        self.cache.remove_metric(name)
        self.happened(Event.METRIC_CHANGED, name)

    def set_state(self, change: Callable[[ClusterState], bool | None], event: Event | None) -> None:
        """Something beside nodes, reports and pods changes: namespaces, volumes and claims, controllers, budgets.

        `change` says whether anything is another now (None: it may be), `event` what that is for pods that wait.
        """
        if change(self.cache.state) is not False and event is not None:
            self.happened(event)

    def assumed(self, key: PodKey) -> tuple[PodView, str] | None:
        """A pod on a node that is not confirmed there; None, too, where policy's estimate reads where."""
        account = self.ledger.assumed(key)
        if account is None or self.framework.load.estimates_by("nodeName", "labels"):
            return None
        return account.view, account.node

    def set_pod(self, pod: Pod, bound: PodView | None = None) -> None:
        """A pod is new or has changed: bound (as `bound`, where known), waiting for this scheduler, or over."""
        key = pod.key
        known = self.cache.view(key)
        if known is not None and known.pod.uid != pod.uid:
            self.remove_pod(key)  # another pod of the same name: the end of the first one was not heard
            known = None
        if pod.terminal:
            self.remove_pod(key)
        elif pod.node_name:
            self._waitlist.leave(key)
            account = self.ledger.get(key)
            if account is not None and account.node != pod.node_name:
                self._binding.take_back(account)  # somebody else has bound it
                known = account = None
            view = bound or self.framework.view(pod)
            self._came(view, pod.node_name)
            operates = OPERATING_MODE in pod.labels and self.cache.state.reservations.operate(pod)
            self.cache.place(view, pod.node_name, self._clock())
            self.ledger.confirm(key, view)
            self.cache.state.quotas.came(view)
            if known is None:
                self._binding.adopt(view, pod.node_name)
            if operates:
                self.happened(Event.RESERVATION_CHANGED)
            for event in events_of(known, view):
                self.happened(event, pod.node_name)
        elif (found := self.ledger.assumed(key)) is not None and not (
            pod.terminating and found.stage == Stage.WAITING
        ):
            return  # what is on its way cannot be stopped by news from before
        elif scheduler_of(pod) != self.profile.name or pod.terminating or not self._role.holds(pod):
            self._waitlist.leave(key, keeping_attempts=key in self._waitlist.away)
            if found is not None:
                self._binding.take_back(found)
            self._went(key)
            self.cache.state.quotas.heard(lambda: self.framework.view(pod))
            if pod.nominated_node and not pod.terminating:
                self._heard_promise(self.framework.view(pod))
            else:
                self._no_longer_waits(key)
        else:
            view = self.framework.view(pod)
            self.cache.state.quotas.heard(view)
            self._heard_promise(view)
            self._came(view)
            if key in self._waitlist.away and key not in self._waitlist.pods:
                # It comes back from other shards: what they knew better reaches us, too, while it waits.
                self._waitlist.again(view)
            else:
                self._waitlist.update(view)

    def hold_back(self, pod: Pod) -> None:
        """A pod without a node cannot be read as a whole: it is not tried, and stays where it is assumed."""
        known = self.cache.view(pod.key)
        if known is not None and known.pod.uid != pod.uid:
            self.remove_pod(pod.key)
        self._waitlist.leave(pod.key)
        self._no_longer_waits(pod.key)
        if self.ledger.assumed(pod.key) is None:
            self._went(pod.key)

    def remove_pod(self, key: PodKey) -> None:
        """A pod is gone."""
        self._waitlist.leave(key)
        self.ledger.stays(key)
        self._no_longer_waits(key)
        node = self.cache.node_of(key)
        self.ledger.give_up(key)
        self._went(key)
        self.cache.state.quotas.gone(key)
        if node is not None:
            self.cache.state.reservations.operates_no_more(key)
            self.cache.displace(key)
            self.happened(Event.POD_GONE, node)
            if self._binding.jobs.present:
                self._job_room.free_of(node)
        elif self.cache.state.quotas.active:
            self.happened(Event.QUOTA_CHANGED)  # what it asked for is shared by others now

    def _no_longer_waits(self, key: PodKey) -> None:
        """A node is not promised to a pod any more."""
        node = self.ledger.retract(key)
        if node is not None:
            self.happened(Event.POD_GONE, node)

    def forget(self, pod: Pod) -> None:
        """A pod that was assumed on a node did not get there: take it back, and queue it again.

        Nothing happens where it is not assumed any more: the cluster's own news came first.
        """
        account = self.ledger.assumed(pod.key)
        if account is None or account.view.pod.uid != pod.uid:
            return
        self._binding.take_back(account)
        self._waitlist.again(self.framework.view(pod))

    def forget_waiting(self) -> None:
        """Take back all pods that wait for permits, and queue them again."""
        self._binding.take_back_waiting()

    def written(self, decision: PodDecision) -> None:
        """What a pod's claims had to have written is so: from now on the cluster may confirm it."""
        self._binding.written(decision)

    def call_off(self, decision: PodDecision) -> None:
        """The pods that had to go for another one could not be sent away: it does not wait for them any more."""
        if decision.preemption is not None:
            for victim in decision.preemption.victims:
                self.ledger.stays(victim.pod)
            for key in (decision.pod, *(key for key, _ in decision.preemption.beside)):
                self._no_longer_waits(key)
                self._waitlist.reconsider(key)

    # --- scheduling -----------------------------------------------------------------------------

    def schedule_one(self) -> PodDecision | None:
        """Decide on the next pod of the queue, and assume it where it goes; None when none is waiting."""
        while (found := self.schedule_next()) is not None:
            if not self.awaits_permit(found[0]):
                return found[0]
        return None

    def schedule_next(self) -> tuple[PodDecision, Pod] | None:
        """The same, one step at a time, with the pod as it was decided on: it may have to wait for a permit yet."""
        self._go_along()
        ended = self._binding.next()
        if ended is not None:
            return ended
        jobs, view = self._binding.jobs, None
        if jobs.present and jobs.open():
            to_ask = self._binding.to_ask
            view = self._next_together()
            if view is None and self._binding.to_ask > to_ask and (ended := self._binding.next()) is not None:
                return ended  # a round is over, and those who waited give their nodes back first
        if view is None:
            view = self._waitlist.next()
            if view is None:
                return None
            if self._binding.gate(view, again=True):
                return self._binding.next() or (self._waitlist.last[view.pod.key], view.pod)
        decision = self._decide(view)
        if not (jobs.present and jobs.open() and jobs.at_once()):
            return decision, view.pod
        waits = self.awaits_permit(decision)
        while jobs.open() and jobs.at_once() and (other := self._next_together()) is not None:
            if not self.awaits_permit(found := self._decide(other)):
                self._binding.told(found, other.pod)
        if waits and not self.awaits_permit(decision) and (ended := self._binding.next()) is not None:
            return ended  # the last of them let all others go, this one first
        return decision, view.pod

    def _next_together(self) -> PodView | None:
        """The pod that plugins want tried before the queue's first, if any."""
        waitlist, binding = self._waitlist, self._binding
        try:
            key = binding.jobs.next(
                lambda one: waitlist.may_be_tried(one) and binding.is_free(one), waitlist.is_due
            )
        except Exception:
            LOG.exception("nobody is tried out of turn: internal error, please report")
            return None
        if key is None:
            return None
        binding.passed(key)
        return waitlist.take(key)

    def _decide(self, view: PodView) -> PodDecision:
        """A decision on a pod that has left the queue, whatever happens."""
        try:
            return self._run_cycle(view)
        except Exception as problem:  # noqa: BLE001  # one decision is the most that this may cost
            return self._undo(view, problem)

    def awaits_permit(self, decision: PodDecision) -> bool:
        """Whether a pod that got its node by that decision waits for a permit; it is decided on once more then."""
        return self._binding.awaits_permit(decision)

    def _run_cycle(self, view: PodView) -> PodDecision:
        """A decision on a pod that has left the queue, and what follows from it."""
        framework = self._framework_of(view.pod)
        cycle, jobs = framework.cycle(view), self._binding.jobs
        grouped = jobs.present and jobs.concern(view)
        kept_back = jobs.begin_cycle(cycle, self.cache) if grouped else None
        evaluation, decision = (
            framework.decided(cycle) if kept_back is None else framework.kept_back(view, kept_back)
        )
        if framework is not self.framework:
            decision = replace(decision, ahead=True)
        if self.on_decided is not None and kept_back is None:
            self.on_decided(cycle, evaluation, self.cache.table, decision)
        if decision.placed:
            return self._binding.reserve(cycle, decision)
        if grouped and jobs.together(view):
            if not decision.problem and (evaluation is not None or kept_back is not None):
                decision = self._job_room.made(cycle, decision)
        elif evaluation is not None:
            decision = framework.without_node(cycle, evaluation, decision)
        decision = replace(decision, promised=self.ledger.promised_to(view.pod.key) or "")
        for other in () if decision.preemption is None else decision.preemption.cleared:
            self._waitlist.reconsider(other)  # what it waited for is another one's now
        if self._diagnosing and kept_back is None:
            decision = self.diagnosis.refused(decision)
        self._waitlist.refused(view, decision)
        if grouped:
            jobs.failed(view, decision)
        if decision.preemption is not None:
            self._job_room.give_back(decision)
        return decision

    def _undo(self, view: PodView, problem: Exception) -> PodDecision:
        """A decision after a failure somewhere in a cycle: nothing of the cycle holds, and the pod comes again."""
        self.ledger.give_up(view.pod.key)
        framework = self._framework_of(view.pod)
        framework.forget_answers()
        decision = replace(framework.problem(view.pod, problem), ahead=framework is not self.framework)
        self._waitlist.failed(view, decision)
        if self._binding.jobs.present:
            with passed_over("pod", *view.pod.key):
                self._binding.jobs.failed(view, decision)
        return decision

    # --- for others that decide -----------------------------------------------------------------

    def assume(self, pod: Pod, node: str) -> None:
        """Somebody else has decided that a pod goes to a node."""
        self._waitlist.leave(pod.key)
        if self.cache.node_of(pod.key) is None:
            self._binding.assume(self.framework.view(pod), node)

    def withdraw(self, pod: Pod) -> None:
        """A pod that was assumed so did not get there."""
        account = self.ledger.assumed(pod.key)
        if account is not None:
            self._binding.take_back(account)

    # --- what is shown --------------------------------------------------------------------------

    def next_time(self, *, retries: bool = True) -> int | None:
        """When something is due without anything happening; None when nothing is.

        Without `retries` the pods do not count that are tried again although nothing helps them.
        """
        times = [self._waitlist.next_time(retries=retries), self._binding.next_time()]
        return min((time for time in times if time is not None), default=None)

    @property
    def pending(self) -> Iterable[PodKey]:
        """The pods that wait for a node."""
        return self._waitlist.pods.keys()

    def waiting_view(self, key: PodKey) -> PodView | None:
        """A pod that waits for a node."""
        return self._waitlist.pods.get(key)

    @property
    def waiting(self) -> dict[str, int]:
        """How many pods wait: to be tried, for their back-off to end, for something to happen, for their gates."""
        return self._waitlist.counts

    def on_news(self, wake: Callable[[], None]) -> None:
        """Have `wake` called when a pod may be due for a reason other than an event: a plugin says so."""
        self._binding.on_news = wake

    @property
    def gangs(self) -> Gangs | None:
        """The gangs, where a plugin keeps them together."""
        return next((one for one in self._binding.jobs.states() if isinstance(one, Gangs)), None)

    def said_at_binding(self, key: PodKey) -> Mapping[str, str]:
        """What is written into the annotations of a pod when it is bound, of those that it goes with."""
        return self._binding.jobs.annotations(key)

    @property
    def plugins(self) -> dict[str, Any]:
        """What is shown of the plugins' states, by filter."""
        return self._binding.status()

    def last_decision(self, key: PodKey) -> PodDecision | None:
        """Why a pod that waits found no node when it was last looked at."""
        return self._waitlist.last.get(key)

    def kept_out(self, key: PodKey) -> str:
        """Which plugin keeps a pod out of the queue, and why; "" where none does."""
        refused = self._binding.gated_by(key)
        return "" if refused is None else f"{refused.filter}: {refused.reason}"

    # --- inner workings -------------------------------------------------------------------------

    def happened(self, event: Event, node: str | None = None, changed: Collection[str] | None = None) -> None:
        """Something happened that may help pods of the queue, or let one go that waits for a permit."""
        self._waitlist.happened(event, node, changed)
        self._binding.heard(event)

    def reported(self, nodes: Sequence[str]) -> None:
        """Many nodes have reported at once, and the cache knows it."""
        self._waitlist.reported(nodes)
        self._binding.heard(Event.METRIC_CHANGED)

    def _heard_promise(self, view: PodView) -> None:
        """News of a pod without a node: the node that the cluster says it waits for, if any."""
        # What we decided ourselves and the cluster does not show yet stays.
        node = view.pod.nominated_node or self.ledger.promised_to(view.pod.key)
        if node:
            self.ledger.promise(view, node)
