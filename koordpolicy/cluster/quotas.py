"""Quotas as a scheduler keeps them: whose each pod is, what quotas request, use and may use.

Pods are counted here as they come: requested from when they are heard of until they are gone, used while they count on a node,
assumed ones included, so that trials and binding cycles take and give back what they take of nodes. Without any quota nothing
is kept.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final

from koordpolicy.algorithms.quota_limits import ABOVE_OTHERS, QuotaExcess, QuotaLimit, excess, less, masked
from koordpolicy.algorithms.quota_sums import QuotaSums
from koordpolicy.algorithms.quota_tree import QuotaTree
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import NO_FACTS
from koordpolicy.cluster.quota_of_pod import led_to, quota_record, same_claim, same_terms
from koordpolicy.cluster.quota_pods import HeldQuota, QuotaPod
from koordpolicy.cluster.quota_policy import KeptQuota, QuotaPolicy, builtin
from koordpolicy.cluster.undo_log import UndoLog
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.model.amounts import add_to
from koordpolicy.model.facts import Record
from koordpolicy.model.pod import PodKey
from koordpolicy.model.protocol import DEFAULT_QUOTA, ROOT_QUOTA, SYSTEM_QUOTA
from koordpolicy.model.quota import Quota
from koordpolicy.model.reading import NOTHING, Amounts

_BUILTIN: Final = (DEFAULT_QUOTA, SYSTEM_QUOTA)
"""The quotas that stand outside the tree: nothing is shared with them, what they use is not there to be shared."""


class Quotas:
    """All quotas of a cluster with their pods. `undo` is where changes are noted that are only tried.

    `policy` is by which they are kept, None for not at all; `pods` gives all pods, with whether each is on a node, when the
    first quota comes. `clock` gives nanoseconds since 1970.
    """

    def __init__(self, undo: UndoLog, namespaces: Mapping[str, Record]) -> None:
        self.tree: Final = QuotaTree()
        """The quotas by name: objects as heard of last, and those that policy gives."""
        self.policy: QuotaPolicy | None = None
        self.pods: Callable[[], Iterable[tuple[PodView, bool]]] = lambda: ()
        self.clock: Callable[[], int] = lambda: 0
        self.active = False
        """Whether pods are counted: whether there is any quota to hold them to."""
        self.changes = 0
        """Another number whenever quotas, not pods, are others."""
        self.freed = 0
        """Another number whenever any quota may have room for a pod that it had none for, for another reason than `eased` tells."""
        self._less_used: dict[str, None] = {}
        self.returned = 0
        """Another number whenever room is there again that was taken a moment ago, by pods that do not get it all together."""
        self._undo = undo
        self._namespaces = namespaces
        self._objects: dict[str, dict[str, Quota]] = {}
        self._given: dict[str, Quota] = {}
        self._leads: dict[str, Record] = {}
        """The facts of the quotas that namespaces lead to, as long as that holds."""
        self._offered: dict[str, Amounts] = {}
        self._total: dict[str, int] = {}
        self._clear()

    def _clear(self) -> None:
        self._quotas: dict[str, HeldQuota] = {}
        self._tracked: dict[frozenset[str], frozenset[str]] = {}
        self._sums: dict[str, QuotaSums] = {}
        self._outside = QuotaSums()
        self._members: dict[PodKey, QuotaPod] = {}
        self._of_namespace: dict[str, dict[PodKey, None]] = {}
        self._elsewhere: dict[str, dict[PodKey, None]] = {}
        """Pods that do not belong to the quota that they ask for, since it is not there, by its name."""
        self._capacity: dict[str, Amounts] = {}
        """What trees have to share out, as long as that holds."""
        self._stamp = 0
        """Another number whenever any sum is another."""
        self._found: tuple[QuotaPod, int, QuotaExcess | None] | None = None
        """What was found last of a pod, and when: a pod is asked about several times in a row."""
        self._sure_of: PodView | None = None
        self._sure_at = -1
        """The pod that was certainly within its quota last, and when."""
        self._roots: dict[str, KeptQuota] = {}
        """The quotas that say what there is in a tree, by its id."""

    def know(
        self,
        clock: Callable[[], int],
        placed: Callable[[], Iterable[tuple[PodView, str, int]]],
        waiting: Callable[[], Iterable[PodView]],
    ) -> None:
        """Learn the time, and where to ask for all pods when the first quota comes."""
        self.clock = clock
        self.pods = lambda: chain(
            ((view, True) for view, _, _ in placed()), ((view, False) for view in waiting())
        )

    # --- policy -----------------------------------------------------------------------------------

    def begin(self, policy: QuotaPolicy | None) -> None:
        """Keep quotas as a policy says from now on (None: not at all). Nodes and pods are to come anew."""
        self.policy = policy if policy is not None and policy.speaks else None
        self._offered, self._total = {}, {}
        before, self._given = self._given, {}
        if self.policy is not None:
            self._given = {one.name: one for one in self.policy.given()}
        for name in {**before, **self._given}:
            self._settle_object(name)
        self._begin_anew((), now_active=self._any())

    def _any(self) -> bool:
        """Whether there is a quota that holds pods to anything."""
        if self.policy is None:
            return False
        if any(one.name not in _BUILTIN and one.name != ROOT_QUOTA for one in self.tree):
            return True
        return not all(self.policy.kept(self._builtin(name)).by_runtime for name in _BUILTIN)

    def _begin_anew(self, pods: Iterable[tuple[PodView, bool]], *, now_active: bool) -> None:
        self._clear()
        self.changes += 1
        self.active = now_active
        if now_active:
            for name in _BUILTIN:
                self._keep(self._builtin(name))
            for quota in self.tree:
                if quota.name not in _BUILTIN:
                    self._keep(quota)
            for view, placed in pods:
                self._count(view, placed=placed)
        self.freed += 1

    def _builtin(self, name: str) -> Quota:
        return builtin(name, self.tree.get(name))

    # --- quotas -----------------------------------------------------------------------------------

    def set(self, quota: Quota) -> bool:
        """An object of a quota is new or has changed; whether that changes anything for pods."""
        known = self._objects.setdefault(quota.name, {})
        before = known.pop(quota.namespace, None)
        known[quota.namespace] = quota
        if before is not None and same_terms(before, quota):
            self._put_quota(quota)
            return False
        return self._changed(quota.name, before)

    def remove(self, namespace: str, name: str) -> bool:
        """An object of a quota is gone; whether that changes anything."""
        known = self._objects.get(name, {})
        before = known.pop(namespace, None)
        if not known:
            self._objects.pop(name, None)
        return self._changed(name, before)

    def _settle_object(self, name: str) -> None:
        """Put into the tree what holds of a name: the object heard of last, else what policy gives."""
        known = self._objects.get(name)
        quota = next(reversed(known.values())) if known else self._given.get(name)
        if quota is None:
            self.tree.remove(name)
            self._leads.clear()
        else:
            self._put_quota(quota)

    def _put_quota(self, quota: Quota) -> None:
        self.tree.put(quota)
        self._leads.clear()

    def _changed(self, name: str, before: Quota | None) -> bool:
        self._settle_object(name)
        if self.policy is None:
            return False
        active = self._any()
        if active != self.active:
            self._begin_anew(self.pods() if active else (), now_active=active)
            return True
        if not active:
            return False
        self.changes += 1
        now = self.tree.get(name)
        concerned = {**self.pods_of(name), **self._elsewhere.get(name, {})}
        for namespace in (
            name,
            *(() if before is None else before.namespaces),
            *(() if now is None else now.namespaces),
        ):
            concerned.update(self._of_namespace.get(namespace, {}))
        pods = [self._members[key] for key in concerned]
        for member in pods:
            self._drop(member.view.pod.key)
        self._unkeep(name)
        if name in _BUILTIN:
            self._keep(self._builtin(name))
        elif now is not None:
            self._keep(now)
        for member in pods:
            self._count(member.view, placed=member.placed)
        self.freed += 1
        return True

    def _keep(self, quota: Quota) -> None:
        assert self.policy is not None
        if quota.name == ROOT_QUOTA:
            return
        kept = self.policy.kept(quota)
        self._capacity.clear()
        self._stamp += 1
        sums = self._sums_of(kept)
        sums.put(kept.terms)
        account = sums.get(quota.name)
        assert account is not None
        shares = kept.by_runtime and kept.takes_pods and not kept.by_parents and sums is not self._outside
        tracked = frozenset(kept.terms.max)
        tracked = self._tracked.setdefault(tracked, tracked)
        self._quotas[quota.name] = HeldQuota(kept, kept.tree, sums, account, shares, tracked)
        if kept.tree and quota.is_root and quota.total is not None:
            self._roots[kept.tree] = kept

    def _unkeep(self, name: str) -> None:
        quota = self._quotas.pop(name, None)
        if quota is None:
            return
        kept = quota.kept
        quota.sums.remove(name)
        self._capacity.clear()
        self._stamp += 1
        if self._roots.get(kept.tree) is kept:
            del self._roots[kept.tree]

    def _sums_of(self, kept: KeptQuota) -> QuotaSums:
        if kept.quota.name in _BUILTIN:
            return self._outside
        found = self._sums.get(kept.tree)
        if found is None:
            found = self._sums[kept.tree] = QuotaSums()
        return found

    # --- nodes ------------------------------------------------------------------------------------

    def node_offers(self, name: str, amounts: Amounts | None) -> None:
        """A node offers so much now; None when it is gone."""
        before = self._offered.get(name)
        if before == amounts:
            return
        if before is not None:
            add_to(self._total, {key: -number for key, number in before.items()})
        if amounts is None:
            del self._offered[name]
        else:
            self._offered[name] = amounts
            add_to(self._total, amounts)
        self._capacity.clear()
        self._stamp += 1
        self.freed += 1

    def capacity(self, tree: str = "") -> Amounts:
        """What a tree has to share out: its root quota says so; of the default one, what nodes offer and nobody else has."""
        found = self._capacity.get(tree)
        if found is None:
            found = self._capacity[tree] = self._shared(tree)
            if tree in self._sums:
                self._sums[tree].capacity = found
        return found

    def _shared(self, tree: str) -> Amounts:
        if tree:
            root = self._roots.get(tree)
            return NOTHING if root is None else root.quota.total or NOTHING
        left = dict(self._total)
        for root in self._roots.values():
            if not root.quota.ignores_default_tree:
                add_to(left, {key: -number for key, number in (root.quota.total or NOTHING).items()})
        for one in self._outside:
            add_to(left, {key: -number for key, number in one.used.items()})
        return left

    # --- pods -------------------------------------------------------------------------------------

    def heard(self, view: PodView | Callable[[], PodView]) -> None:
        """A pod that is on no node is new or has changed; it may be made a view only where there are quotas."""
        if self.active:
            self._put(view if isinstance(view, PodView) else view(), placed=False)

    def came(self, view: PodView) -> None:
        """A pod counts on a node, or has changed there."""
        member = self._members.get(view.pod.key)
        if member is not None and member.view is view:
            if not member.placed:
                self._use(member, 1)
        elif self.active:
            self._put(view, placed=True)

    def left(self, view: PodView) -> None:
        """A pod does not count on its node any more; it is still there."""
        member = self._members.get(view.pod.key)
        if member is not None and member.placed:
            self._use(member, -1)

    def gone(self, key: PodKey) -> None:
        """A pod is gone."""
        if self.active:
            self._drop(key)

    def namespace_changed(self, namespace: str) -> None:
        """A namespace has other labels: its pods may belong elsewhere."""
        for key in list(self._of_namespace.get(namespace, ())):
            member = self._members[key]
            self._drop(key)
            self._count(member.view, placed=member.placed)

    def _put(self, view: PodView, *, placed: bool) -> None:
        member = self._members.get(view.pod.key)
        if member is None:
            self._count(view, placed=placed)
        elif member.view is view or same_claim(member.view, view):
            member.view = view
            if member.placed is not placed:
                self._use(member, 1 if placed else -1)
        else:
            self._drop(view.pod.key)
            self._count(view, placed=placed)

    def _count(self, view: PodView, *, placed: bool) -> None:
        """Count a pod that is not known, as far as policy can say where it belongs."""
        try:
            member = self.belonging(view)
        except CelError:
            return  # whoever decides on it will say what is wrong
        if member is None:
            return
        key = view.pod.key
        member.counted = True
        self._members[key] = member
        there = self._of_namespace.get(key[0])
        if there is None:
            there = self._of_namespace[key[0]] = {}
        there[key] = None
        if member.asked != member.quota:
            self._elsewhere.setdefault(member.asked, {})[key] = None
        home = member.home
        if home is not None:
            home.members[key] = member
            self._stamp += 1
            home.sums.request_of(home.account, member.request, reserved=member.reserved)
        if placed:
            self._use(member, 1)
        elif home is not None and home.shares and home.sums.ample and not member.reserved:
            self._sure_at = self._stamp if home.tree in self._capacity else -1
            self._sure_of = view

    def _drop(self, key: PodKey) -> None:
        """Count a pod no more; `placed` stays as it was, for whoever counts it again."""
        member = self._members.pop(key, None)
        if member is None:
            return
        member.counted = False
        if member.placed:
            self._use(member, -1)
            member.placed = True
        _forget(self._of_namespace, key[0], key)
        if member.asked != member.quota:
            _forget(self._elsewhere, member.asked, key)
        if member.home is not None:
            self._stamp += 1
            member.home.sums.request_of(member.home.account, member.request, -1, reserved=member.reserved)
            del member.home.members[key]
            self._less_used[member.quota] = (
                None  # whether it was on a node or waited: who waits for it is to forget it
            )

    def _use(self, member: QuotaPod, sign: int) -> None:
        member.placed = sign > 0
        quota = member.home
        if quota is None:
            return
        quota.sums.used_of(quota.account, member.request, sign, reserved=member.reserved)
        self._stamp += 1
        if quota.sums is self._outside:
            self._capacity.clear()
        if quota.preemptible is not None:
            quota.change(member, sign)
        if sign < 0 and not self._undo.depth:
            self._less_used[member.quota] = None
            self.freed += quota.sums is self._outside  # what is used there is not there for the trees

    @contextmanager
    def returning(self) -> Iterator[None]:
        """What is given back within is room for those alone that were refused while it was taken."""
        freed, less_used = self.freed, dict(self._less_used)
        yield
        self.freed, self._less_used, self.returned = freed, less_used, self.returned + 1

    # --- asked ------------------------------------------------------------------------------------

    def eased(self) -> tuple[Collection[str], Collection[str]]:
        """Since this was asked last: the quotas whose own pods use less or are fewer, and the parents below which somebody asks for
        less.
        """
        less_used, self._less_used = self._less_used, {}
        parents: dict[str, None] = {}
        for sums in self._sums.values():
            parents.update(dict.fromkeys(sums.eased()))
        return less_used, parents

    def above(self, name: str) -> tuple[str, ...]:
        """The quotas that one stands below, the root among them, itself first; nothing for one that is not there."""
        found = self._quotas.get(name)
        return () if found is None else found.sums.above(name)

    def __getitem__(self, name: str) -> KeptQuota:
        """A quota as it is kept. Raises KeyError."""
        return self._quotas[name].kept

    def __contains__(self, name: object) -> bool:
        return name in self._quotas

    def __iter__(self) -> Iterator[KeptQuota]:
        return (one.kept for one in self._quotas.values())

    def outside(self, name: str) -> bool:
        """Whether a quota, or none, stands outside the trees."""
        return name in _BUILTIN or name not in self._quotas

    def record(self, name: str) -> Record:
        """The facts of a quota; of one that is not there its name alone says anything."""
        found = self._quotas.get(name)
        return quota_record(name, None if found is None else found.kept.quota)

    def sums(self, name: str) -> QuotaSums:
        """The sums of the tree that a quota stands in, with what there is to share. Raises KeyError."""
        found = self._quotas[name]
        self.capacity(found.kept.tree)  # which the sums know from then on
        return found.sums

    def pods_of(self, name: str) -> Mapping[PodKey, QuotaPod]:
        """The pods of a quota itself."""
        found = self._quotas.get(name)
        return {} if found is None else found.members

    def member(self, key: PodKey) -> QuotaPod | None:
        """A pod as it is counted; None for one that is not."""
        return self._members.get(key)

    def member_of(self, view: PodView) -> QuotaPod | None:
        """A pod as it counts or would count; None where it belongs to no quota. Raises CelError."""
        known = self._members.get(view.pod.key)
        if known is None or not (known.view is view or same_claim(known.view, view)):
            known = self.belonging(view)
        return known if known is not None and known.quota else None

    def belonging(self, view: PodView) -> QuotaPod | None:
        """The same of a pod that is not counted, with no quota if so; None for one that does not count. Raises CelError."""
        policy = self.policy
        if policy is None:
            return None
        pod, facts, namespace = view.pod, view.facts, view.pod.namespace
        about, leads = self._namespaces.get(namespace, NO_FACTS), self._leads.get(namespace)
        if leads is None:
            leads = self._led_to(namespace)
        now = TIMES.timestamp(self.clock()) if policy.reads_time else NO_FACTS
        if pod.deleted_at is not None and not policy.counts(pod, facts, about, now, self.clock()):
            return None
        name = asked = policy.asked_by(facts, about, leads, now)
        found = self._quotas.get(name)
        if found is None or found.sums is self._outside:  # else the tree has it
            if asked not in self.tree and policy.holds(facts, about, now):
                name = policy.instead_of(asked, facts, about, now)
                found = self._quotas.get(name)
            if found is None:
                return QuotaPod(view, asked)
        request = masked(policy.whole_request(view, about, now), found.tracked)
        return QuotaPod(view, asked, name, request, not policy.preemptible(facts, about, now), home=found)

    def roots(self, view: PodView) -> Mapping[str, Any]:
        """The records of a decision about a pod of a quota."""
        namespace = view.pod.namespace
        leads = self._leads.get(namespace)
        return {
            "pod": view.facts,
            "namespaceObject": self._namespaces.get(namespace, NO_FACTS),
            "namespaceQuotas": self._led_to(namespace) if leads is None else leads,
            "now": TIMES.timestamp(self.clock()),
        }

    def _led_to(self, namespace: str) -> Record:
        found = self._leads[namespace] = led_to(self.tree, namespace)
        return found

    def limit(self, name: str) -> Amounts:
        """What the pods of a quota may have together now; a resource that is missing has no limit."""
        kept = self._quotas[name].kept
        if not kept.by_runtime:
            return kept.terms.max
        # Nothing is shared with those outside the tree: by their runtime they have no limit.
        return NOTHING if name in _BUILTIN else self.sums(name).runtime(name)

    def certainly_within(self, view: PodView) -> bool:
        """Whether a pod that counts is within its quota for the simple reason that there is all that anybody asks for."""
        if view is self._sure_of and self._sure_at == self._stamp:
            return True
        member = self._members.get(view.pod.key)
        if member is None or member.view is not view or member.placed or member.reserved:
            return False
        home = member.home
        if home is None or not home.shares:
            return False
        if home.tree not in self._capacity:
            self.capacity(home.tree)
        if not home.sums.ample:
            return False
        self._sure_of, self._sure_at = view, self._stamp
        return True

    def excess(
        self, member: QuotaPod, request: Amounts | None = None, *, without: int | None = None
    ) -> QuotaExcess | None:
        """What a pod would exceed, asking for its own or another `request`; None where it is within its quota.

        With `without`, those of its quota with a lower priority than that count as gone who may have to go.
        """
        plain = request is None and without is None
        last = self._found
        if plain and last is not None and last[0] is member and last[1] == self._stamp:
            return last[2]
        found = self._excess(member, request, without)
        if plain:
            self._found = member, self._stamp, found
        return found

    def _excess(self, member: QuotaPod, request: Amounts | None, without: int | None) -> QuotaExcess | None:
        quota = self._quotas[member.quota]
        kept, sums, account = quota.kept, quota.sums, quota.account
        if request is None and quota.shares and member.counted and not (member.placed or member.reserved):
            # All that its pods ask for is counted, this one's request among it: nothing is exceeded where there is all of it.
            self.capacity(kept.tree)
            if sums.ample or (not account.children and sums.has_all(member.quota)):
                return None
        if account.children:
            sums.get(member.quota)  # so that it knows what those below it use by now
        if not kept.takes_pods:
            return QuotaExcess(ABOVE_OTHERS, QuotaLimit(member.quota, account.used, NOTHING), ())
        asked = member.request if request is None else request
        going = self._preemptible(member.quota, without) if without is not None else NOTHING
        own = QuotaLimit(member.quota, less(account.used, going), self.limit(member.quota))
        reserved = (
            QuotaLimit(member.quota, account.reserved_used, kept.terms.min) if member.reserved else None
        )
        path = sums.path(member.quota) if kept.by_parents else None
        above = (
            QuotaLimit(one.terms.name, less(one.used, going), self.limit(one.terms.name))
            for one in reversed((path or [])[:-1])
        )
        return excess(asked, own, reserved, above)

    def _preemptible(self, name: str, below: int) -> Amounts:
        total: dict[str, int] = {}
        for priority, amounts in self._quotas[name].by_priority().items():
            if priority < below:
                add_to(total, amounts)
        return total


def _forget(index: dict[str, dict[PodKey, None]], name: str, key: PodKey) -> None:
    found = index[name]
    del found[key]
    if not found:
        del index[name]
