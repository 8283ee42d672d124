"""The binding cycle of pods: from the choice of a node to the cluster's word that the pod is there.

What plugins need on the node is reserved, they permit the pod or let it wait, and it may be written; all of that is in the
ledger. A pod that is refused late comes back to the queue as if a filter had refused it, with the plugin's reason.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from koordpolicy.algorithms.zone_allocation import MILLI
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.pods import PodView, owning
from koordpolicy.cluster.prepared import NO_FACTS, Records
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.model.reading import ObjectError
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.decision import NO_CLAIMS, PodDecision, Refusals
from koordpolicy.scheduler.framework import Framework
from koordpolicy.scheduler.ledger import Account, Claim, Ledger, Stage
from koordpolicy.scheduler.plugin_states import PluginStates, claims_of
from koordpolicy.scheduler.profile import Profile
from koordpolicy.scheduler.waitlist import Waitlist

LOG: Final = logging.getLogger(__name__)

SLICE: Final = 16
"""Pods that wait for permits and are asked about, or whose time is over, in one go: others have their turn in between."""


@dataclass(frozen=True, slots=True)
class BindingSite:
    """What binding cycles need of their scheduler: its clock (nanoseconds since 1970), and who hears of events and deals with a
    pod after an error.
    """

    clock: Callable[[], int]
    happened: Callable[[Event, str], None]
    failed: Callable[[PodView, Exception], PodDecision]


class BindingCycles:
    """Those of all pods of one scheduler."""

    def __init__(self, ledger: Ledger, waitlist: Waitlist, site: BindingSite) -> None:
        self._ledger = ledger
        self._waitlist = waitlist
        self._site = site
        self._plugins = PluginStates(
            ledger,
            lambda: self._framework,
            site.clock,
            self._reconsider,
            self._release,
            waitlist.has_turn,
            self._permitted,
        )
        self._asked_again: dict[PodKey, set[str]] = {}
        """The pods that wait for a permit and are to be asked about again, by the filters concerned."""
        self._ended: deque[tuple[PodDecision, Pod, Account | None]] = deque()
        """The decisions on pods that waited for a permit; one that placed its pod with the account that must still be."""
        self._gated: dict[PodKey, Refusals] = {}
        """The pods before a gate, with whose it is."""
        self._gate_told: dict[PodKey, PodDecision] = {}
        """What is to be told of such pods yet: not of one whose gate opens before."""
        self.on_news: Callable[[], None] = lambda: None
        """Hears when a pod may be due for a reason other than an event."""
        self.on_gated: Callable[[PodKey], None] = lambda _key: None
        """Hears of a pod that is kept before a gate, for a reason that may be another one some time later."""
        self.jobs: Final = self._plugins.jobs
        """The plugins that look after pods that go together."""

    def begin(self, framework: Framework) -> None:
        """Go on by a profile from now on; who waits for a permit is asked about again."""
        self._framework = framework
        self.go_along(None)
        self._plugins.begin(framework)
        self._reconsider((), ())

    def go_along(self, framework: Framework | None) -> None:
        """Let another profile, beside the one that decides, place the pods that its decisions are about; None for no more."""
        self._ahead = framework
        self._plugins.go_along(None if framework is None else framework.profile)

    def _by(self, decision: PodDecision) -> Framework:
        return self._ahead if decision.ahead and self._ahead is not None else self._framework

    # --- before the queue -------------------------------------------------------------------------

    def gate(self, view: PodView, *, again: bool = False) -> bool:
        """Whether a pod is to stay out of the queue; it is told why, if that is new. `again`: it has been in it."""
        key = view.pod.key
        before = self._gated.pop(key, None) if self._gated else None
        try:
            gates = self._plugins.gates(view, again=again)
            if not gates:
                return False
            refused = self._plugins.gate(view, gates)
        except CycleProblem:
            return False  # the attempt will say what is wrong
        if refused is None:
            return False
        self._gated[key] = refused
        self.on_gated(key)
        if refused != before:
            nodes, why = len(self._framework.cache), f"{refused.filter}: {refused.reason}"
            found = PodDecision(
                key,
                view.pod.uid,
                "",
                nodes,
                0,
                remark=why,
                promised=self._ledger.promised_to(key) or "",
                digest=self._framework.profile.digest,
            )
            self._waitlist.last[key] = self._gate_told[key] = found
            self._ended.append((found, view.pod, None))
        return True

    def _try_gates(self, filters: Collection[str], pods: Collection[PodKey]) -> None:
        """Ask about pods again that are before the gates of these filters (none: all)."""
        for key in list(pods or self._gated):
            refused = self._gated.get(key)
            if refused is not None and (not filters or refused.filter in filters):
                view = self._waitlist.pods.get(key)
                if view is None:
                    del self._gated[key]
                else:
                    self._waitlist.enter(view)

    def gated_by(self, key: PodKey) -> Refusals | None:
        """The gate that is closed for a pod; None where none is."""
        return self._gated.get(key)

    def is_free(self, key: PodKey) -> bool:
        """Whether a pod that waits may be tried: it is before no gate but those of plugins that say who is next."""
        refused = self._gated.get(key)
        return refused is None or refused.filter in self.jobs.names()

    def passed(self, key: PodKey) -> None:
        """A pod is tried that may have been before a gate."""
        self._gated.pop(key, None)

    # --- on the way -----------------------------------------------------------------------------

    def reserve(self, cycle: Cycle, decision: PodDecision) -> PodDecision:
        """What follows from the choice of a node; the pod may have to wait for a permit. Raises CycleProblem.

        After an error the ledger may hold something for the pod.
        """
        account = self._ledger.open(cycle.view, decision.node)
        refused, until = None, None
        if parts := self._plugins.concerned(cycle):
            refused = self._plugins.reserve(cycle, self._framework.cache.table, account, parts)
        if refused is None:
            if account.claims:
                decision.claims = claims_of(account)  # nobody else has this decision yet
            self._ledger.decided(account, decision)
            self._place(account)
            if parts:
                refused, until, _ = self._plugins.permit(cycle, account, parts)
        if refused is not None:
            return self._refuse(account, decision, refused)
        self._waitlist.leave(decision.pod, keeping_attempts=until is not None)
        if until is None:
            self._bind(account, cycle.profile, cycle.records)
        else:
            self._ledger.wait(account, until)
        self._site.happened(Event.POD_PLACED, decision.node)
        return decision

    def awaits_permit(self, decision: PodDecision) -> bool:
        """Whether a pod that got its node by that decision waits for a permit."""
        account = self._ledger.waiting.get(decision.pod)
        return account is not None and account.decision is decision

    def assume(self, view: PodView, node: str) -> None:
        """Somebody else has decided that a pod goes to a node."""
        account = self._ledger.open(view, node)
        self._place(account)
        self._ledger.bind(account)
        self._site.happened(Event.POD_PLACED, node)

    def written(self, decision: PodDecision) -> None:
        """What a pod's claims had to have written is so: the time begins in which the cluster is to confirm it."""
        account = self._ledger.assumed(decision.pod)
        if account is not None and account.decision is decision:
            framework = self._by(decision)
            within = framework.profile.confirm_within(framework.cycle(account.view).records)
            self._ledger.bind(account, self._site.clock() + within if within else None)

    def take_back(self, account: Account) -> None:
        """What is held for a pod is held no more."""
        self._ledger.give_up(account.view.pod.key)
        self._site.happened(Event.POD_GONE, account.node)

    def send_back(self, key: PodKey, refused: Refusals) -> None:
        """A pod that waits for a permit gives its node back to others."""
        account = self._ledger.waiting.get(key)
        if account is not None and account.decision is not None:
            self._end_wait(account, account.decision, refused)

    def take_back_waiting(self) -> None:
        """The same for all pods that wait for permits, which come back to the queue."""
        accounts = list(self._ledger.waiting.values())
        for account in accounts:
            self._ledger.give_up(account.view.pod.key)
        # Once none of them waits, so that they are not asked about again for each other's sake.
        for account in accounts:
            self._site.happened(Event.POD_GONE, account.node)
            self._waitlist.again(account.view)

    # --- pods that are there already --------------------------------------------------------------

    def adopt(self, view: PodView, node: str) -> None:
        """Plugins take what a pod that is on its node holds there."""
        if not self._plugins.adopts:
            return
        key = view.pod.key
        account = self._ledger.get(key) or self._ledger.open(view, node, Stage.CONFIRMED)
        try:
            self._plugins.adopt(account)
        except ObjectError as error:
            LOG.warning(
                "what pod %s holds is not known and may be given away again: %s", "/".join(key), error
            )
        except Exception:
            LOG.exception("what pod %s holds is not known: internal error, please report", "/".join(key))
        if not account.claims:
            self._ledger.give_up(key)

    def renewed(self, view: PodView, node: str) -> None:
        """A pod on a node as another revision sees it."""
        account = self._ledger.get(view.pod.key)
        if account is not None:
            self._ledger.renew(account, view)
        if account is None or not account.assumed:
            self.adopt(view, node)

    # --- what comes of them -----------------------------------------------------------------------

    def heard(self, event: Event) -> None:
        """Something happened that may let a pod go that waits for a permit, or before a gate."""
        if event is Event.POD_GROUP_CHANGED and self.jobs.present:
            self.jobs.heard()
        if self._gated and event in self._plugins.gate_events:
            self._try_gates((), ())
        if self._ledger.waiting and event in self._plugins.events:
            for key, account in self._ledger.waiting.items():
                self._asked_again.setdefault(key, set()).update(account.permits)

    def next(self) -> tuple[PodDecision, Pod] | None:
        """A decision on a pod that has waited for a permit, and does not any more.

        Where many are to be asked about, one call asks about some, and `next_time` says that there are more.
        """
        while self._plugins.settle() and not self._ended and self._waitlist.idle:
            pass  # nobody is kept from a decision
        if self._ledger.timed and not self._ended and self._ledger.may_be_due(self._site.clock()):
            self._expire()
        if self._asked_again and not self._ended:
            self._ask_again()
        while self._ended:
            decision, pod, account = self._ended.popleft()
            if self._gate_told.get(pod.key) is decision:
                del self._gate_told[pod.key]
                if pod.key not in self._gated:
                    continue
            if account is None or self._ledger.get(pod.key) is account:
                return decision, pod
        return None

    def told(self, decision: PodDecision, pod: Pod) -> None:
        """A decision is made already, and is told when it is its turn."""
        self._ended.append((decision, pod, self._ledger.get(pod.key) if decision.placed else None))

    @property
    def to_ask(self) -> int:
        """How many pods that wait for permits are to be asked about again."""
        return len(self._asked_again)

    def next_time(self) -> int | None:
        """When the next one ends by time alone."""
        if self._ended or self._asked_again:
            return self._site.clock()
        return self._ledger.next_time()

    def status(self) -> dict[str, Any]:
        """What is shown of the plugins' states, by filter."""
        return self._plugins.status()

    # --- inner workings -------------------------------------------------------------------------

    def _release(self, pods: Sequence[PodKey]) -> None:
        """No node is promised to these pods any more."""
        for key in pods:
            node = self._ledger.retract(key)
            if node is not None:
                self._site.happened(Event.POD_GONE, node)

    def _reconsider(self, filters: Collection[str], pods: Sequence[PodKey]) -> None:
        """Ask these filters (none: all) again about these pods (none: all) that they hold up."""
        waiting = self._ledger.waiting
        for key in pods or waiting:
            account = waiting.get(key)
            asked = [name for name in account.permits if not filters or name in filters] if account else []
            if asked:
                self._asked_again.setdefault(key, set()).update(asked)
        if filters:
            self._try_gates(filters, pods)
        for key in [*(pods or self._waitlist.last)] if filters else ():
            last = self._waitlist.last.get(key)
            if last is not None and any(one.filter in filters for one in last.refusals):
                self._waitlist.reconsider(key)
        self.on_news()

    def _permitted(self, filters: Collection[str], pods: Sequence[PodKey]) -> None:
        """These filters permit pods that wait for them: who waits for nothing else may be written."""
        for key in pods:
            account = self._ledger.waiting.get(key)
            if account is None or account.decision is None:
                continue
            for name in filters:
                self._ledger.permit(account, name, None)
            if account.permits:
                continue
            self._asked_again.pop(key, None)
            framework = self._by(account.decision)
            alike = framework.profile.confirming.program is None
            self._bind(
                account, framework.profile, NO_FACTS if alike else framework.cycle(account.view).records
            )
            self._ended.append((account.decision, account.view.pod, account))

    def _ask_again(self) -> None:
        for key in list(islice(self._asked_again, SLICE)):
            names = self._asked_again.pop(key)
            account = self._ledger.waiting.get(key)
            if account is None or account.decision is None:
                continue
            view = account.view
            try:
                cycle = self._by(account.decision).cycle(view)
                refused, until, unheard = self._plugins.permit_again(cycle, account, names)
                if refused is not None:
                    self._end_wait(account, account.decision, refused, unheard=unheard)
                elif until is None:
                    self._bind(account, cycle.profile, cycle.records)
                    self._ended.append((account.decision, view.pod, account))
            except Exception as problem:  # noqa: BLE001  # one decision is the most that this may cost
                self._ended.append((self._site.failed(view, problem), view.pod, None))
                self._site.happened(Event.POD_GONE, account.node)

    def _expire(self) -> None:
        """Take back the pods that were not permitted in time, or that the cluster did not confirm on their nodes."""
        for account in islice(self._ledger.due(self._site.clock()), SLICE):
            if account.stage == Stage.WAITING and account.decision is not None:
                name, reason = next(iter(account.waits_for.items()))
                self._end_wait(account, account.decision, Refusals(name, reason, 1))
            else:
                self.take_back(account)
                self._waitlist.again(account.view)

    def _end_wait(
        self, account: Account, decision: PodDecision, refused: Refusals, *, unheard: bool = False
    ) -> None:
        """A pod that waited for a permit does not get it."""
        if unheard:
            with self._framework.cache.state.quotas.returning():
                found = self._refuse(account, decision, refused)
        else:
            found = self._refuse(account, decision, refused)
            self._site.happened(Event.POD_GONE, account.node)
        self._ended.append((found, account.view.pod, None))

    def _refuse(self, account: Account, decision: PodDecision, refused: Refusals) -> PodDecision:
        """A plugin does not want a pod on the node that all filters let pass."""
        view = account.view
        self._ledger.give_up(view.pod.key)
        found = replace(
            decision,
            node="",
            claims=NO_CLAIMS,
            refusals=(refused,),
            best=(),
            remark=f"{refused.filter} refused node {account.node}, which all filters let pass",
            promised=self._ledger.promised_to(view.pod.key) or "",
        )
        self._waitlist.refused(view, found)
        return found

    def _place(self, account: Account) -> None:
        """Count a pod on its node before the cluster does."""
        cache, key = self._framework.cache, account.view.pod.key
        view = self.counted(account.view) if account.claims else account.view
        cache.place(view, account.node, self._site.clock())
        self._ledger.claim(account, Claim("", key, self._displace, logged=True))

    def counted(self, view: PodView) -> PodView:
        """A pod as it counts on its node before its annotation says which CPUs it has."""
        cpus = self._framework.cache.state.cpus
        claim = cpus.claim_of(view.pod.key) if cpus.dealt else None
        if claim is None or not claim.allocation.cpus:
            return view
        return owning(view, MILLI * len(claim.allocation.cpus))

    def _displace(self, key: PodKey) -> None:
        self._framework.cache.displace(key)

    def _bind(self, account: Account, profile: Profile, records: Records) -> None:
        """A pod may be written. The time in which it is to be confirmed begins when its claims are `written`."""
        within = profile.confirm_within(records)
        self._ledger.bind(account, self._site.clock() + within if within and not account.writes else None)
