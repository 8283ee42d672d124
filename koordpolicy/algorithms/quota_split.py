"""How quotas below one parent share what it has of one resource: guarantees first, the rest by weight, to the last unit."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuotaShare:
    """What one quota brings to the split of a resource, in its whole units (cpu: millicores).

    `request` is what it asks for within its max, `floor` what it gets before others are asked: its min, as far as that can
    be kept, or what is guaranteed above it. One that does not lend keeps its floor though it asks for less.
    """

    name: str
    request: int
    floor: int
    weight: int
    lends: bool = True

    @property
    def hungry(self) -> bool:
        """Whether it wants more than its floor."""
        return self.request > self.floor

    @property
    def first(self) -> int:
        """What it has before anything is shared by weight."""
        return self.floor if self.hungry or not self.lends else self.request

    @property
    def most(self) -> int:
        """What it has where there is enough for all: one without weight takes no part in what is left."""
        return self.request if self.hungry and self.weight > 0 else self.first


@dataclass(frozen=True, slots=True)
class SplitRound:
    """One round: what was left, the weight of all that were still hungry, what each of them was handed."""

    left: int
    weight: int
    handed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class QuotaSplit:
    """What comes of a split, by name, and the rounds that led there."""

    runtime: Mapping[str, int]
    rounds: tuple[SplitRound, ...]


def split(total: int, shares: Sequence[QuotaShare]) -> QuotaSplit:
    """Share `total` among quotas.

    Each has its `first`; nothing of it is taken back, though all together may be more than there is. What is left is handed
    to the hungry by weight. Who gets more than it wants gives that back for another round, without it. What nobody wants
    stays where it is.
    """
    runtime = {one.name: one.first for one in shares}
    hungry = [one for one in shares if one.hungry]
    left, rounds = total - sum(runtime.values()), []
    while left > 0 and hungry:  # a round that gives anything back has one hungry quota less
        weight = sum(one.weight for one in hungry if one.weight > 0)
        if weight <= 0:
            break
        handed = _by_weight(left, weight, hungry)
        rounds.append(SplitRound(left, weight, handed))
        left, still = 0, []
        for one in hungry:
            now = runtime[one.name] + handed.get(one.name, 0)
            if now >= one.request:
                left += now - one.request
                now = one.request
            else:
                still.append(one)
            runtime[one.name] = now
        hungry = still
    return QuotaSplit(runtime, tuple(rounds))


def scaled_mins(total: int, mins: Mapping[str, int], fixed: Collection[str] = ()) -> dict[str, int]:
    """The mins of quotas below a parent that has `total`: smaller in proportion where it has less than all of them.

    Those of `fixed` keep theirs, and the others share the rest. Fractions are cut off, as doubles come out.
    """
    if total >= sum(mins.values()):
        return dict(mins)
    left = total - _sum(mins, fixed)
    scaled = _sum(mins, mins.keys() - set(fixed))
    return {name: number if name in fixed else shrunk(number, left, scaled) for name, number in mins.items()}


def shrunk(least: int, left: int, scaled: int) -> int:
    """A min where `left` is there for mins that are `scaled` together."""
    return 0 if left <= 0 or scaled <= 0 else int(float(left) * float(least) / float(scaled))


def _sum(mins: Mapping[str, int], names: Iterable[str]) -> int:
    return sum(mins.get(name, 0) for name in names)


def _by_weight(left: int, weight: int, hungry: Iterable[QuotaShare]) -> dict[str, int]:
    """Shares of `left` in proportion to weights; units that are left over go to the largest remainders, then by name."""
    handed, remainders = {}, []
    for one in hungry:
        if one.weight > 0:
            handed[one.name], remainder = divmod(one.weight * left, weight)
            remainders.append((-remainder, one.name))
    remainders.sort()
    for _, name in remainders[: left - sum(handed.values())]:
        handed[name] += 1
    return handed
