"""What quotas of one tree request, use and may use: sums up the tree, runtimes down it.

An event about one pod changes the sums of the quotas on its path, and nothing else: what they use, and what all pods below ask
for, at once; what of it each asks its parent for, once somebody wants to know. A runtime is worked out when it is asked for, along
the path again. The order of events does not matter: what comes before its parent counts as soon as that is there.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.algorithms.quota_columns import QuotaPart
from koordpolicy.algorithms.quota_level import QuotaLevel, ResourceSplit
from koordpolicy.algorithms.quota_limits import larger, masked
from koordpolicy.model.protocol import ROOT_QUOTA
from koordpolicy.model.reading import NOTHING, Amounts

_NO_PARTS: Final[Mapping[str, QuotaPart]] = {}


@dataclass(frozen=True, slots=True)
class QuotaTerms:
    """What holds of a quota, by policy: its place, what it may have, how it shares.

    The resources of `max` are those that it tracks. `lends` says whether others may use what it does not ask for of its
    min, `scales` whether its min shrinks where its parent has less than all mins, `guarantees` whether it is guaranteed what
    it uses.
    """

    name: str
    parent: str = ROOT_QUOTA
    min: Amounts = field(default_factory=lambda: NOTHING)
    max: Amounts = field(default_factory=lambda: NOTHING)
    weight: Amounts = field(default_factory=lambda: NOTHING)
    lends: bool = True
    scales: bool = True
    guarantees: bool = False


@dataclass(slots=True)
class QuotaAccount:
    """The sums of one quota, of its own pods and of quotas below it.

    `left` is what all these pods leave of what it may have, less than nothing where they ask for more. `child_request` is what they ask for
    as far as quotas may have it, `request` that raised to the min of one that does not lend, `limited` what of it its parent hears. To be
    changed by `QuotaSums` alone.
    """

    terms: QuotaTerms
    left: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    child_request: dict[str, int] = field(default_factory=dict)
    request: Amounts = field(default_factory=lambda: NOTHING)
    limited: Amounts = field(default_factory=lambda: NOTHING)
    used: dict[str, int] = field(default_factory=dict)
    reserved_request: dict[str, int] = field(default_factory=dict)
    """What pods request that are not preempted."""
    reserved_used: dict[str, int] = field(default_factory=dict)
    allocated: dict[str, int] = field(default_factory=dict)
    """What its own pods use and quotas below are guaranteed; of one that is guaranteed what it uses alone."""
    guaranteed: Amounts = field(default_factory=lambda: NOTHING)
    parent: "QuotaAccount | None" = None
    children: dict[str, "QuotaAccount"] = field(default_factory=dict)
    lefts: "tuple[dict[str, int], ...]" = ()
    """What the quota itself leaves and those above it, as far as they are known; empty until a pod below asks for something."""
    guarantees: bool = False
    heard: bool = True
    """Whether its parent has heard what it asks for now."""
    told: dict[str, int] | None = None
    """What quotas above have heard that it uses, where that is not what it uses by now."""
    level: QuotaLevel = field(default_factory=QuotaLevel)
    parts: Mapping[str, QuotaPart] = field(default_factory=lambda: _NO_PARTS)
    """What it brings to the split of its parent."""


class QuotaSums:
    """The quotas of one tree by name, below a root that has `capacity`."""

    def __init__(self, capacity: Amounts = NOTHING) -> None:
        self._capacity = capacity
        self._root = QuotaAccount(QuotaTerms(ROOT_QUOTA, ""))
        _leave_more(self._root, capacity, NOTHING)
        self._accounts: dict[str, QuotaAccount] = {ROOT_QUOTA: self._root}
        self._orphans: dict[str, dict[str, QuotaAccount]] = {}
        """Quotas whose parent is not there, by the parent's name."""
        self._circling: dict[str, QuotaAccount] = {}
        """Quotas that would stand below themselves."""
        self._keys: dict[str, int] = {}
        """How many quotas track a resource."""
        self._unsettled: list[QuotaAccount] = []
        """Quotas whose parents have not heard what they ask for now."""
        self._told: list[QuotaAccount] = []
        """Quotas of which those above do not know what they use by now."""
        self._uneven: set[str] = set()
        """Quotas that may get more or less than they ask for though there is enough for all."""
        self._over: set[str] = set()
        """Quotas, the root among them, whose pods ask for more than they may have together."""
        self.ample = True
        """Whether all quotas may certainly use all that they ask for: none is over, none uneven."""
        self._eased: dict[str, None] = {}
        self._paths: list[QuotaAccount] = []
        """The quotas whose `lefts` are kept."""

    def __len__(self) -> int:
        return len(self._accounts) - 1

    @property
    def capacity(self) -> Amounts:
        """What there is to be shared, to be set by whoever knows."""
        return self._capacity

    @capacity.setter
    def capacity(self, amounts: Amounts) -> None:
        _leave_more(self._root, amounts, self._capacity)
        self._capacity = amounts
        self._see_whether_over(self._root)

    def eased(self) -> Collection[str]:
        """The parents, the root among them, of which one right below asks for less of something, since this was asked last: only
        below these anybody may use more for that.
        """
        self._settle()
        eased, self._eased = self._eased, {}
        return eased

    def __contains__(self, name: str) -> bool:
        return name in self._accounts

    def __iter__(self) -> Iterator[QuotaAccount]:
        self._settle()
        return (one for one in self._accounts.values() if one is not self._root)

    def get(self, name: str) -> QuotaAccount | None:
        """The sums of a quota as they are now; of the root as well."""
        self._settle()
        return self._accounts.get(name)

    # --- quotas -----------------------------------------------------------------------------------

    def put(self, terms: QuotaTerms) -> None:
        """Take a quota, or other terms of it; what its pods request and use stays. The root has no terms."""
        self._settle()
        account = self._accounts.get(terms.name)
        if account is self._root or (account is not None and account.terms == terms):
            return
        before: Amounts = NOTHING
        if account is None:
            account = self._accounts[terms.name] = QuotaAccount(terms)
        else:
            before = account.terms.max
            self._leave(account)
        _leave_more(account, terms.max, before)
        account.terms, account.guarantees = terms, terms.guarantees
        if terms.guarantees:
            account.allocated = dict(account.used)
            for child in account.children.values():
                _add(account.allocated, child.used, -1)
                _add(account.allocated, child.guaranteed, 1)
        _add(self._keys, dict.fromkeys(terms.max, 1), 1)
        self._lift(account)
        self._guarantee(account)
        for child in self._orphans.pop(terms.name, {}).values():
            self._join(child, account)
        self._enter(account)
        for one in (account, *account.children.values()):
            self._see_whether_even(one)
        self._see_whether_over(account)
        self._try_circles()

    def remove(self, name: str) -> None:
        """Forget a quota with the sums of its own pods; nothing happens where there is none."""
        self._settle()
        account = self._accounts.get(name)
        if account is None or account is self._root:
            return
        self._leave(account)
        del self._accounts[name]
        self._uneven.discard(name)
        self._over.discard(name)
        self._see_whether_ample()
        for child in account.children.values():
            self._stands_elsewhere(child, None)
            child.parts = _NO_PARTS
        if account.children:
            self._orphans[name] = account.children
        self._try_circles()

    def path(self, name: str) -> list[QuotaAccount] | None:
        """The quotas from right below the root to this one; None where its way to the root is broken."""
        self._settle()
        found = list(self._upwards(self._accounts.get(name)))
        return found[-2::-1] if found and found[-1] is self._root else None

    def above(self, name: str) -> tuple[str, ...]:
        """The names of a quota and of those above it, as far as they are known."""
        return tuple([one.terms.name for one in self._upwards(self._accounts.get(name))])

    # --- pods -------------------------------------------------------------------------------------

    def add_request(self, name: str, amounts: Amounts, sign: int = 1, *, reserved: bool = False) -> None:
        """A pod of a quota asks for so much (`sign` -1: not any more), masked to what the quota tracks."""
        self.request_of(self._accounts[name], amounts, sign, reserved=reserved)

    def request_of(
        self, account: QuotaAccount, amounts: Amounts, sign: int = 1, *, reserved: bool = False
    ) -> None:
        """The same of a quota that is at hand: with many of them, finding one takes its time."""
        # Of many quotas each is met seldom: what is looked at here and there is what takes time, so that it is little.
        if account.heard:
            account.heard = False
            self._unsettled.append(account)
        if account.children:
            _add(account.child_request, amounts, sign)
        own, parent = account.left, account.parent
        lefts = () if parent is None else parent.lefts or self._lefts(parent)
        short = False
        for key, number in amounts.items():
            more = number if sign > 0 else -number
            own[key] = now = own[key] - more
            if now < 0:
                short = True
            for left in lefts:
                left[key] = now = left[key] - more
                if now < 0:
                    short = True
        if short or (sign < 0 and self._over):
            for one in self._upwards(account):
                self._see_whether_over(one)
        if reserved:
            for one in self._upwards(account):
                _add(one.reserved_request, amounts, sign)

    def add_used(self, name: str, amounts: Amounts, sign: int = 1, *, reserved: bool = False) -> None:
        """A pod of a quota has so much (`sign` -1: not any more), masked to what the quota tracks."""
        self.used_of(self._accounts[name], amounts, sign, reserved=reserved)

    def used_of(
        self, account: QuotaAccount, amounts: Amounts, sign: int = 1, *, reserved: bool = False
    ) -> None:
        """The same of a quota that is at hand."""
        if account.guarantees:
            _add(account.allocated, amounts, sign)
            self._guarantee(account)
        used = account.used
        if account.told is None:
            account.told = used.copy()
            self._told.append(account)
        if sign > 0:
            for key, number in amounts.items():
                if number:
                    used[key] = used.get(key, 0) + number
        else:
            _add(used, amounts, sign)
        if reserved:
            for one in self._upwards(account):
                _add(one.reserved_used, amounts, sign)

    # --- what may be used -------------------------------------------------------------------------

    def runtime(self, name: str) -> Amounts:
        """What a quota may use now, of the resources that it tracks; one that is missing has no limit.

        Nothing of anything for one whose way to the root is broken.
        """
        account = self._accounts[name]
        if account is self._root:
            return self.capacity
        self._settle()
        path = self.path(name)
        if path is None:
            return dict.fromkeys(account.terms.max, 0)
        return masked(self._totals(path)[-1], account.terms.max.keys())

    def has_all(self, name: str) -> bool:
        """Whether a quota may certainly use all that it asks for, so that its runtime need not be known.

        So it is where there is enough for all below the root, and nothing on the way down asks for more than its max. Most often
        that is known from what all pods ask for together.
        """
        account = self._accounts[name]
        if not self._uneven and self._all_asked_is_there(account):
            return True
        self._settle()
        while account.limited == account.request and (parent := account.parent) is not None:
            if not parent.level.even:
                return False
            if parent is self._root:
                return parent.level.enough(self.capacity)
            account = parent
        return False

    def _all_asked_is_there(self, account: QuotaAccount) -> bool:
        """Whether all that pods ask for is within each max on the way down to a quota, and all of the tree's within its capacity."""
        one = account
        while one.terms.name not in self._over:
            if one.parent is None:
                return one is self._root
            one = one.parent
        return False

    def scaled_min(self, name: str) -> Amounts:
        """The min of a quota as far as it can be kept."""
        self._settle()
        account, path = self._accounts[name], self.path(name)
        if path is None:
            return account.terms.min
        totals, parent = self._totals(path), self._accounts[account.terms.parent]
        above = totals[-2] if len(totals) > 1 else self.capacity
        return {key: parent.level.least(key, above.get(key), name) for key in account.terms.min}

    def splits(self, name: str) -> Iterator[tuple[str, str, ResourceSplit]]:
        """How runtimes come about on the way down to a quota: at each parent, for each resource, the split of all below it."""
        self._settle()
        path = self.path(name) or []
        totals = [self.capacity, *self._totals(path)]
        for parent, total in zip([self._root, *path[:-1]], totals, strict=False):
            for key in self._distributed(parent):
                yield parent.terms.name, key, parent.level.shared(key, total.get(key))

    def _totals(self, path: Iterable[QuotaAccount]) -> list[Amounts]:
        """What each quota of a path has to share."""
        parent, total, found = self._root, self.capacity, list[Amounts]()
        for account in path:
            name, level = account.terms.name, parent.level
            total = {key: level.runtime(key, total.get(key), name) for key in self._distributed(parent)}
            found.append(total)
            parent = account
        return found

    def _distributed(self, parent: QuotaAccount) -> Iterable[str]:
        """The resources that a parent shares out: those of its max; the root all that any quota tracks."""
        return parent.terms.max.keys() if parent is not self._root else self._keys

    # --- inner workings ---------------------------------------------------------------------------

    @staticmethod
    def _upwards(account: QuotaAccount | None) -> Iterator[QuotaAccount]:
        """A quota and those above it, as far as they are known."""
        while account is not None:
            yield account
            account = account.parent

    def _lefts(self, account: QuotaAccount) -> "tuple[dict[str, int], ...]":
        """What a quota leaves, and those above it, kept until any quota stands elsewhere."""
        account.lefts = found = tuple(one.left for one in self._upwards(account))
        self._paths.append(account)
        return found

    def _stands_elsewhere(self, account: QuotaAccount, parent: QuotaAccount | None) -> None:
        """Let a quota stand below another one, or below none."""
        account.parent = parent
        for one in self._paths:
            one.lefts = ()
        self._paths.clear()

    def _enter(self, account: QuotaAccount) -> None:
        """Let a quota stand below its parent, if that is there."""
        name, above = account.terms.name, account.terms.parent
        parent = self._accounts.get(above)
        if parent is None:
            self._orphans.setdefault(above, {})[name] = account
        elif any(one is account for one in self._upwards(parent)):
            self._circling[name] = account
        else:
            self._join(account, parent)

    def _leave(self, account: QuotaAccount) -> None:
        name, above, parent = account.terms.name, account.terms.parent, account.parent
        _add(self._keys, dict.fromkeys(account.terms.max, 1), -1)
        if parent is not None:
            del parent.children[name]
            self._stands_elsewhere(account, None)
            self._carry(account, parent, -1)
        elif self._circling.pop(name, None) is None:
            siblings = self._orphans[above]
            del siblings[name]
            if not siblings:
                del self._orphans[above]

    def _see_whether_even(self, account: QuotaAccount) -> None:
        """Whether a quota gets what it asks for where there is enough for all: it takes part in all that it tracks, as its parent does."""
        terms, parent = account.terms, account.parent
        if (
            terms.lends
            and not terms.guarantees
            and all(terms.weight.get(key, 0) > 0 for key in (*terms.max, *terms.min))
            and (parent is None or parent is self._root or terms.max.keys() <= parent.terms.max.keys())
        ):
            self._uneven.discard(terms.name)
        else:
            self._uneven.add(terms.name)
        self._see_whether_ample()

    def _see_whether_over(self, account: QuotaAccount) -> None:
        """Whether the pods of a quota ask for more than it may have."""
        if any(number < 0 for number in account.left.values()):
            self._over.add(account.terms.name)
        else:
            self._over.discard(account.terms.name)
        self._see_whether_ample()

    def _see_whether_ample(self) -> None:
        self.ample = not (self._over or self._uneven)

    def _try_circles(self) -> None:
        if self._circling:
            circling, self._circling = self._circling, {}
            for account in circling.values():
                self._enter(account)

    def _join(self, account: QuotaAccount, parent: QuotaAccount) -> None:
        parent.children[account.terms.name] = account
        self._stands_elsewhere(account, parent)
        self._carry(account, parent, 1)
        self._see_whether_even(account)

    def _carry(self, account: QuotaAccount, parent: QuotaAccount, sign: int) -> None:
        """Let a parent, and those above it, count a quota below it, or not any more."""
        asked = _asked(account)
        for one in self._upwards(parent):
            _add(one.used, account.used, sign)
            for key, number in asked.items():
                one.left[key] -= sign * number
            self._see_whether_over(one)
            _add(one.reserved_used, account.reserved_used, sign)
            _add(one.reserved_request, account.reserved_request, sign)
        parts = _parts(account) if sign > 0 else _NO_PARTS
        parent.level.put(account.terms.name, parts, account.parts)
        account.parts = parts
        _add(parent.child_request, account.limited, sign)
        _add(parent.allocated, account.guaranteed, sign)
        self._lift(parent)
        self._guarantee(parent)

    def _settle(self) -> None:
        """Let parents hear what is asked for, and what is used."""
        if self._told:
            self._tell()
        if self._unsettled:
            accounts, self._unsettled = self._unsettled, []
            for account in accounts:
                account.heard = True
                if not account.children:  # what its own pods ask for is all
                    account.child_request = _asked(account)
                self._lift(account)

    def _tell(self) -> None:
        """Let quotas above count what is used, once for all pods of a quota that have come and gone meanwhile."""
        while self._told:
            account = self._told.pop()
            more = dict(account.used)
            _add(more, account.told or NOTHING, -1)
            account.told = None
            for one in self._upwards(account.parent):
                _add(one.used, more, 1)
                if one.told is not None:
                    _add(one.told, more, 1)

    def _lift(self, account: QuotaAccount) -> None:
        """Carry what a quota asks for upwards, as far as that changes anything."""
        for one in self._upwards(account):
            before = one.limited
            one.request, one.limited = _requests(one)
            if one.parent is None or one.limited == before:
                return
            if any(one.limited.get(key, 0) < number for key, number in before.items()):
                self._eased[one.parent.terms.name] = None
            self._note(one, one.parent)
            _add(one.parent.child_request, before, -1)
            _add(one.parent.child_request, one.limited, 1)

    def _guarantee(self, account: QuotaAccount) -> None:
        """The same with what it is guaranteed."""
        for one in self._upwards(account):
            before = one.guaranteed
            one.guaranteed = _guaranteed(one)
            if one.parent is None or one.guaranteed == before:
                return
            self._note(one, one.parent)
            _add(one.parent.allocated, before, -1)
            _add(one.parent.allocated, one.guaranteed, 1)

    @staticmethod
    def _note(account: QuotaAccount, parent: QuotaAccount) -> None:
        parts = _parts(account)
        parent.level.put(account.terms.name, parts, account.parts)
        account.parts = parts


def _asked(account: QuotaAccount) -> dict[str, int]:
    """What the pods of a quota, and of those below it, ask for; not of the root."""
    most = account.terms.max
    asked = {key: most.get(key, 0) - number for key, number in account.left.items()}
    return {key: number for key, number in asked.items() if number}


def _leave_more(account: QuotaAccount, most: Amounts, before: Amounts) -> None:
    """A quota may have so much, and had another amount before."""
    for key in {**before, **most}:
        account.left[key] += most.get(key, 0) - before.get(key, 0)


def _requests(account: QuotaAccount) -> tuple[Amounts, Amounts]:
    """What a quota asks for, and what of it is within its max."""
    terms = account.terms
    request: Amounts = account.child_request if terms.lends else larger(account.child_request, terms.min)
    limited = {
        key: max(0, min(number, terms.max[key])) if key in terms.max else number
        for key, number in request.items()
    }
    return dict(request), limited


def _guaranteed(account: QuotaAccount) -> Amounts:
    return larger(account.allocated, account.terms.min) if account.terms.guarantees else NOTHING


def _parts(account: QuotaAccount) -> Mapping[str, QuotaPart]:
    terms, limited, guaranteed = account.terms, account.limited, account.guaranteed
    return {
        key: QuotaPart(
            limited.get(key, 0), terms.min.get(key, 0), guaranteed.get(key, 0), terms.weight.get(key, 0), terms.lends, terms.scales
        )
        for key in {**limited, **terms.min, **guaranteed, **terms.max}
    }  # fmt: skip


def _add(total: dict[str, int], amounts: Amounts, sign: int) -> None:
    """Add amounts to a sum, exactly; what comes to nothing is not kept."""
    for key, number in amounts.items():
        now = total.get(key, 0) + sign * number
        if now:
            total[key] = now
        else:
            total.pop(key, None)
