"""Who lends to whom below one parent: guarantees that are not used, and quotas that use more than theirs.

No unit of a resource is marked as somebody's, so most of it is settled by definition. A quota that uses more than its floor has
that first from what nobody is guaranteed: only what goes beyond that is lent, which is what would be missing if all lenders
wanted their floors back now. So all that is lent together follows from the sums. Who lends it to whom does not, where there are
several: lenders then lend in proportion to what they leave, borrowers have of each source in proportion to what they use above
their floors, to the last unit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from koordpolicy.algorithms.quota_level import ResourceSplit
from koordpolicy.algorithms.quota_split import QuotaShare
from koordpolicy.algorithms.quota_sums import QuotaSums


@dataclass(frozen=True, slots=True)
class QuotaLoan:
    """So many units of the floor of `lender` that `borrower` uses."""

    lender: str
    borrower: str
    amount: int


@dataclass(frozen=True, slots=True)
class QuotaLending:
    """Where quotas have what they use above their floors.

    `loans` is what others are guaranteed, `free` by name what nobody is; `beyond` by name is more than there is: pods stay where
    they are though their parent has less by now, or others have a floor that they do not lend.
    """

    loans: tuple[QuotaLoan, ...]
    free: Mapping[str, int]
    beyond: Mapping[str, int]


def lending(total: int, shares: Sequence[QuotaShare], used: Mapping[str, int], own: int = 0) -> QuotaLending:
    """Who lends to whom of the `total` of a parent whose own pods use `own` of it; all in whole units (cpu: millicores)."""
    over = {one.name: max(0, used.get(one.name, 0) - one.floor) for one in shares}
    left = {one.name: max(0, one.floor - used.get(one.name, 0)) for one in shares if one.lends}
    needs = {name: over[name] for name in sorted(over) if over[name]}
    free = _taken(max(0, total - own - sum(one.floor for one in shares)), needs)
    lenders = {name: left[name] for name in sorted(left) if left[name]}
    loans = []
    for lender, amount in in_proportion(min(sum(needs.values()), sum(lenders.values())), lenders).items():
        loans += [QuotaLoan(lender, name, part) for name, part in _taken(amount, needs).items()]
    return QuotaLending(tuple(loans), free, {name: need for name, need in needs.items() if need})


def lending_below(sums: QuotaSums, parent: str, resource: str, found: ResourceSplit) -> QuotaLending:
    """The same of a resource whose split below a parent is known. Raises KeyError."""
    account = sums.get(parent)
    if account is None:
        raise KeyError(parent)
    used = {name: child.used.get(resource, 0) for name, child in account.children.items()}
    own = max(0, account.used.get(resource, 0) - sum(used.values()))
    return lending(found.total or 0, found.shares, used, own)


def _taken(amount: int, needs: dict[str, int]) -> dict[str, int]:
    """What each has of an amount, in proportion to what it still needs, which is less by that afterwards."""
    parts = in_proportion(min(amount, sum(needs.values())), needs)
    for name, part in parts.items():
        needs[name] -= part
    return {name: part for name, part in parts.items() if part}


def in_proportion(amount: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """An amount of at most the sum of sizes in parts, none greater than its size; left over units go to the largest remainders."""
    whole = sum(sizes.values())
    if amount <= 0 or whole <= 0:
        return {}
    parts, remainders = {}, []
    for name, size in sizes.items():
        parts[name], remainder = divmod(amount * size, whole)
        remainders.append((-remainder, name))
    for _, name in sorted(remainders)[: amount - sum(parts.values())]:
        parts[name] += 1
    return parts
