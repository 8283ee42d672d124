"""What is promised and reserved: one account a pod, which alone says what is assumed.

    promised   a node is kept for the pod, from which others have still to go
    reserved   it counts on a node: claims are being made
    waiting    a plugin has not permitted it yet
    binding    it may be written to the cluster
    confirmed  the cluster shows it on the node: what is left are claims that last as long as the pod

From reserved to binding a pod is *assumed* on its node. Whoever takes something for a pod enters a claim: data, with
the name of who made it and with what gives it back. A claim is given back exactly once, the latest first: when
its account is given up for whatever reason, be it a refusal, an error, a failed write, its time, or the end of the pod.
Or it is dropped, when the cluster itself shows what it stood for. Giving back cannot be stopped by an error of one claim.

Accounts take part in trials: whatever is done to them while one is under way, afterwards they are as before, and what was taken
meanwhile is given back.
"""

import heapq
import logging
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.undo_log import UndoLog
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.scheduler.decision import PodDecision, PostFilterResult
from koordpolicy.scheduler.plugins.base import Reason, Write

LOG: Final = logging.getLogger(__name__)

Undo = Callable[[Any], None]
"""Gives back what was claimed, or takes it again: it gets the claim's data."""

NO_PERMITS: Final[Mapping[str, Reason]] = MappingProxyType({})


class Stage(IntEnum):
    """How far a pod has come on its way to a node."""

    PROMISED = 0
    RESERVED = 1
    WAITING = 2
    BINDING = 3
    CONFIRMED = 4


class Claim(NamedTuple):
    """What was taken for a pod: by whom, what, and what gives it back, which gets this data again.

    `prebind` writes it before the pod is bound. A `lasting` one is held as long as the pod is there; others until the cluster confirms the pod on its node.
    `redo` takes again what was given back in a trial, at its end; without it, what was taken counts as taken until then. One that
    is `logged` stands in the log of the trial anyway, with both.
    """

    owner: str
    data: object
    undo: Undo
    prebind: Write | None = None
    lasting: bool = False
    redo: Undo | None = None
    logged: bool = False
    annotations: Mapping[str, str] | None = None
    """What is written on the pod with its binding."""


@dataclass(slots=True, eq=False)
class Account:
    """All that is held for a pod on a node, to be changed by the ledger alone. `claims` in the order in which they were made.

    `decision` is what it follows from, None where somebody else decided. `until` is when its stage ends by
    time alone, in nanoseconds, None for never. `permits` are the plugins that have to permit it, each with what says why it does not yet.
    """

    view: PodView
    node: str
    stage: Stage = Stage.RESERVED
    claims: list[Claim] = field(default_factory=list)
    decision: PodDecision | None = None
    until: int | None = None
    permits: Mapping[str, Reason] = field(default_factory=lambda: NO_PERMITS)

    @property
    def assumed(self) -> bool:
        """Whether the pod counts on the node, and the cluster has not confirmed it."""
        return self.stage < Stage.CONFIRMED

    @property
    def waits_for(self) -> Mapping[str, str]:
        """Why plugins do not permit it yet, as things stand now."""
        return {name: why if isinstance(why, str) else why() for name, why in self.permits.items()}

    @property
    def annotations(self) -> Mapping[str, str]:
        """What is written on the pod with its binding."""
        found: dict[str, str] = {}
        for claim in self.claims:
            found.update(claim.annotations or {})
        return found

    @property
    def writes(self) -> tuple[Write, ...]:
        """What its claims have to have written before the pod is bound."""
        return tuple([claim.prebind for claim in self.claims if claim.prebind])


class Ledger:
    """The accounts of all pods, and the nodes that are promised. What is changed in a trial of `log` is taken back with it."""

    def __init__(self, log: UndoLog | None = None) -> None:
        self._log = log or UndoLog()
        self._accounts: dict[PodKey, Account] = {}
        self._promised: dict[PodKey, str] = {}
        self._by_node: dict[str, dict[PodKey, PodView]] = {}
        self.promise_changes = 0
        """A number that is another one after every change of what is promised to whom."""
        self._leaving: dict[PodKey, str] = {}
        self._waiting: dict[PodKey, Account] = {}
        self._times: list[tuple[int, int, Account]] = []
        self._tickets = count()
        self._copied = 0
        """The depth of the trial that has copies of the accounts of its own; 0 for none."""

    # --- promises -------------------------------------------------------------------------------

    def promise(self, view: PodView, node: str) -> None:
        """A pod waits for this node, and for no other."""
        key = view.pod.key
        if self._promised.get(key) != node:
            self.retract(key)
        self.promise_changes += 1
        self._promised[key] = node
        known = self._by_node.get(node)
        if known is None:
            known = self._by_node[node] = {}
            self._log.note(lambda: self._by_node.pop(node))
        before = known.get(key)
        known[key] = view
        self._log.note(lambda: self._unpromise(key, node, before))

    def _unpromise(self, key: PodKey, node: str, before: PodView | None) -> None:
        """Take a promise back that was only tried."""
        self.promise_changes += 1
        if before is not None:
            self._by_node[node][key] = before
        else:
            del self._promised[key], self._by_node[node][key]

    def retract(self, key: PodKey) -> str | None:
        """No node is promised to a pod any more; the one that was, if any."""
        node = self._promised.pop(key, None)
        if node is not None:
            self.promise_changes += 1
            pods = self._by_node[node]
            if self._log.depth:
                self._try_without(key, node)
                return node
            del pods[key]
            if not pods:
                del self._by_node[node]
        return node

    def _try_without(self, key: PodKey, node: str) -> None:
        """Retract a promise as long as a trial lasts. Its place in the order of promises stays."""
        before = self._by_node[node]
        self._by_node[node] = {other: view for other, view in before.items() if other != key}

        def undo() -> None:
            self.promise_changes += 1
            self._promised[key] = node
            self._by_node[node] = before

        self._log.note(undo)

    def promised_to(self, key: PodKey) -> str | None:
        """The node that is promised to a pod."""
        return self._promised.get(key)

    def promised_on(self, node: str) -> Mapping[PodKey, PodView]:
        """The pods that a node is promised to."""
        return self._by_node.get(node, {})

    @property
    def promises(self) -> Mapping[str, Mapping[PodKey, PodView]]:
        """All promises by node."""
        return self._by_node

    def made_room(self, view: PodView, found: PostFilterResult) -> None:
        """Some pods leave a node for another one, which it is promised to from now on, and to no weaker one."""
        for key in found.cleared:
            self.retract(key)
        self.promise(view, found.node)
        for victim in found.victims:
            before = self._leaving.get(victim.pod)
            self._leaving[victim.pod] = victim.uid
            self._log.note(lambda key=victim.pod, before=before: self._unleave(key, before))  # type: ignore[misc]

    def _unleave(self, key: PodKey, before: str | None) -> None:
        """A pod was only tried to leave its node."""
        if before is None:
            del self._leaving[key]
        else:
            self._leaving[key] = before

    def stays(self, key: PodKey) -> None:
        """A pod that was to leave its node does not, or has left."""
        before = self._leaving.pop(key, None)
        if before is not None:
            self._log.note(lambda: self._unleave(key, before))

    def leaves(self, pod: Pod) -> bool:
        """Whether a pod was chosen to leave its node."""
        return self._leaving.get(pod.key) == pod.uid

    # --- accounts -------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._accounts)

    def __iter__(self) -> Iterator[Account]:
        return iter(self._accounts.values())

    def get(self, key: PodKey) -> Account | None:
        """What is held for a pod, if anything is."""
        return self._accounts.get(key)

    def assumed(self, key: PodKey) -> Account | None:
        """The same for one that is assumed on its node."""
        found = self._accounts.get(key)
        # As `Account.assumed` says, without its call: this is asked several times of every pod.
        return found if found is not None and found.stage < Stage.CONFIRMED else None

    def stage(self, key: PodKey) -> Stage | None:
        """How far a pod has come; None for one that nothing is held for or promised to."""
        found = self._accounts.get(key)
        if found is not None:
            return found.stage
        return Stage.PROMISED if key in self._promised else None

    def open(self, view: PodView, node: str, stage: Stage = Stage.RESERVED) -> Account:
        """Hold a node for a pod. A promise stays until the account binds. What was held before is given up."""
        key = view.pod.key
        if key in self._accounts:
            self.give_up(key)
        if self._log.depth:
            self._keep()
        account = self._accounts[key] = Account(view, node, stage)
        return account

    def claim(self, account: Account, claim: Claim) -> None:
        """Something was taken for a pod."""
        if self._log.depth:
            self._keep(account)
        account.claims.append(claim)
        if self._log.depth and not claim.logged:
            self._log.note(partial(_call, claim.undo, account, claim))

    def decided(self, account: Account, decision: PodDecision) -> None:
        """It follows from this decision."""
        if self._log.depth:
            self._keep(account)
        account.decision = decision

    def renew(self, account: Account, view: PodView) -> None:
        """Its pod has changed."""
        self._keep(account)
        account.view = view

    def permit(self, account: Account, plugin: str, reason: Reason | None) -> None:
        """A plugin has to permit it, and does not yet for a reason; None for one that it need not wait for any more."""
        if reason is None and plugin not in account.permits:
            return
        if self._log.depth:
            self._keep(account)
        if reason is not None:
            account.permits = {**account.permits, plugin: reason}
        elif len(account.permits) == 1:
            account.permits = NO_PERMITS
        else:
            account.permits = {name: why for name, why in account.permits.items() if name != plugin}

    def wait(self, account: Account, until: int) -> None:
        """It has to be permitted, until then at the latest."""
        if self._log.depth:
            self._keep(account)
        account.stage = Stage.WAITING
        self._waiting[account.view.pod.key] = account
        self._end_at(account, until)

    def bind(self, account: Account, until: int | None = None) -> None:
        """It may be written, and is to be confirmed until then (None: whenever)."""
        key = account.view.pod.key
        if self._log.depth:
            self._keep(account)
        account.stage = Stage.BINDING
        account.permits = NO_PERMITS
        self._waiting.pop(key, None)
        if key in self._promised:
            self.retract(key)
        self._end_at(account, until)

    def confirm(self, key: PodKey, view: PodView) -> None:
        """The cluster shows a pod on its node, and so what was claimed for the way there; lasting claims stay."""
        self.retract(key)
        account = self._accounts.get(key)
        if account is None:
            return
        self._keep(account)
        account.claims = [claim for claim in account.claims if claim.lasting]
        account.view, account.stage, account.until = view, Stage.CONFIRMED, None
        account.decision = None
        self._waiting.pop(key, None)
        if not account.claims:
            del self._accounts[key]

    def give_up(self, key: PodKey) -> Account | None:
        """Nothing is held for a pod any more: its claims are given back, the latest first."""
        account = self._accounts.get(key)
        if account is not None:
            self._keep(account)
            del self._accounts[key]
            self._waiting.pop(key, None)
            self._give_back(account)
        return account

    def _give_back(self, account: Account) -> None:
        """Give back all claims of an account, the latest first."""
        trying = self._log.depth
        while account.claims:
            claim = account.claims.pop()
            if not trying or claim.logged:
                _call(claim.undo, account, claim)
            elif claim.redo is not None:
                _call(claim.undo, account, claim)
                self._log.note(partial(_call, claim.redo, account, claim))

    def _keep(self, account: Account | None = None) -> None:
        """Keep, in a trial, all accounts as they are before its first change of any, and the one that changes now."""
        if not self._log.depth:
            return
        if self._copied != self._log.depth:
            self._log.note(partial(self._restore_all, self._accounts, self._waiting, self._copied))
            self._accounts, self._waiting = dict(self._accounts), dict(self._waiting)
            self._copied = self._log.depth
        if account is not None:
            before = copy(account)
            before.claims = [*account.claims]
            self._log.note(lambda: self._restore(account, before))

    def _restore_all(
        self, accounts: dict[PodKey, Account], waiting: dict[PodKey, Account], copied: int
    ) -> None:
        self._accounts, self._waiting, self._copied = accounts, waiting, copied

    def _restore(self, account: Account, before: Account) -> None:
        for one in fields(Account):
            setattr(account, one.name, getattr(before, one.name))

    def waits(self, key: PodKey) -> bool:
        """Whether a pod has a node, and has to be permitted to go there."""
        return key in self._waiting

    @property
    def waiting(self) -> Mapping[PodKey, Account]:
        """The accounts that have to be permitted."""
        return self._waiting

    # --- time -----------------------------------------------------------------------------------

    def due(self, now: int) -> Iterator[Account]:
        """The accounts whose time is over, each once; they stay until they are given up or go on."""
        while (first := self._first()) is not None and first[0] <= now:
            heapq.heappop(self._times)
            first[2].until = None
            yield first[2]

    @property
    def timed(self) -> bool:
        """Whether any has a time."""
        return bool(self._times)

    def may_be_due(self, now: int) -> bool:
        """Whether the time of any may be over; a hint, asked of every decision."""
        return bool(self._times) and self._times[0][0] <= now

    def next_time(self) -> int | None:
        """When the next one is due."""
        first = self._first()
        return None if first is None else first[0]

    def _end_at(self, account: Account, until: int | None) -> None:
        account.until = until
        if until is not None and not self._log.depth:
            heapq.heappush(self._times, (until, next(self._tickets), account))

    def _first(self) -> tuple[int, int, Account] | None:
        """The first entry that counts; those before it are dropped."""
        assert not self._log.depth, "no time passes in a trial"
        while self._times:
            until, _, account = first = self._times[0]
            if account.until == until and self._accounts.get(account.view.pod.key) is account:
                return first
            heapq.heappop(self._times)
        return None


def _call(change: Undo, account: Account, claim: Claim) -> None:
    """Give back what was claimed, or take it again; an error in that concerns this claim alone."""
    try:
        change(claim.data)
    except Exception:
        pod = "/".join(account.view.pod.key)
        LOG.exception("what %s claims for pod %s: internal error, please report", claim.owner, pod)
