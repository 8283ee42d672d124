"""All gangs of a scheduler, and the round that is open: what each step of a pod means for the others of its gang."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain

from koordpolicy.algorithms.gang import (
    Gang,
    GangGroup,
    GangParameters,
    GangRules,
    Held,
    Permitted,
    Round,
    Turn,
    Why,
)
from koordpolicy.model.pod import PodKey


class GangBook:
    """The gangs that pods or objects speak of. Not for use by two threads.

    A pod that belongs to none is not known here. Steps of pods that are not known are passed over.

    A gang waits for all that it names. What becomes of it concerns those of them alone that are of its namespace, or name it as well:
    nobody moves other people's gangs by naming them, unless policy says that it takes them along.
    """

    def __init__(self, rules: GangRules) -> None:
        self.rules = rules
        self.round: Round | None = None
        self._gangs: dict[str, Gang] = {}
        self._groups: dict[tuple[str, ...], GangGroup] = {}
        self._gang_of: dict[PodKey, Gang] = {}

    # --- what there is ----------------------------------------------------------------------------

    @property
    def gangs(self) -> Mapping[str, Gang]:
        """All of them by id."""
        return self._gangs

    def gang_of(self, pod: PodKey) -> Gang | None:
        """The gang that a pod is in."""
        return self._gang_of.get(pod)

    def group_of(self, gang: Gang) -> GangGroup:
        """What a gang shares with those that are placed together with it; what holds of one that nobody has said enough of is
        its own.
        """
        found = gang.shared
        if found is not None and not found.forgotten:
            return found
        key = (gang.id,) if gang.parameters is None else gang.parameters.group
        found = self._groups.get(key)
        if found is None:
            found = GangGroup(key)
            if self._gangs.get(gang.id) is gang:
                self._groups[key] = found
        gang.shared = found
        return found

    def together(self, gang: Gang) -> Iterator[Gang]:
        """The gangs that are placed together with one, itself among them, as far as they are known and it concerns them."""
        if gang.parameters is None:
            yield gang
        else:
            for one in gang.parameters.group:
                found = self._gangs.get(one)
                if found is not None and _concerns(gang, found):
                    yield found

    def waiting_groups(self) -> int:
        """Of how many gang groups pods wait on nodes for others."""
        waiting = (one for one in self._gangs.values() if any(pod not in one.allowed for pod in one.waiting))
        return len({self.group_of(one).gangs for one in waiting})

    def pending_with(self, gang: Gang) -> tuple[PodKey, ...]:
        """The pods without a node of all gangs that are placed together with one."""
        return tuple([pod for one in self.together(gang) for pod in one.pending]) or tuple(gang.pending)

    def one_stands_for(self, gang: Gang) -> bool:
        """Whether one pod of it waits in the queue for all."""
        return gang.parameters is not None and self.rules.one_enters(gang, self.group_of(gang))

    # --- events -----------------------------------------------------------------------------------

    def set_gang(self, name: str, parameters: GangParameters | None) -> Gang:
        """A gang is placed by these parameters from now on. What pods it has stays, and what was once satisfied."""
        gang = self._gangs.get(name)
        if gang is None:
            gang = self._gangs[name] = Gang(name)
        if parameters is not None and name not in parameters.group and _names_others(name, parameters.group):
            # What the others share is not its own where they do not know of it.
            parameters = replace(parameters, group=tuple(sorted((*parameters.group, name))))
        before = self.group_of(gang)
        gang.parameters, gang.shared = parameters, None
        after = self.group_of(gang)
        if parameters is not None:
            gang.parameters = replace(parameters, group=after.gangs)  # one list of names for all of them
        if after is not before:
            after.once_satisfied |= bool(gang.bound) or (before.once_satisfied and before.gangs == (gang.id,))
            self._tidy(before)
        return gang

    def remove_gang(self, name: str) -> None:
        """A gang is not declared any more; its pods are not known from now on."""
        gang = self._gangs.pop(name, None)
        if gang is not None:
            for pod in gang.pods:
                self._gang_of.pop(pod, None)
            self._tidy(self.group_of(gang))

    def set_pod(self, pod: PodKey, name: str, *, bound: bool = False) -> Gang:
        """A pod is there, in the gang of that name, with a node or without."""
        gang = self._gangs.get(name)
        if gang is None:
            gang = self._gangs[name] = Gang(name)
        other = self._gang_of.get(pod)
        if other is not None and other is not gang:
            self.remove_pod(pod)
        self._gang_of[pod] = gang
        gang.pods[pod] = None
        if bound:
            self.bound(pod)
        elif pod not in gang.waiting and pod not in gang.bound:
            gang.pending[pod] = None
        return gang

    def bound(self, pod: PodKey) -> None:
        """A pod is on its node for good."""
        gang = self._gang_of.get(pod)
        if gang is None:
            return
        self._leave(gang, pod)
        gang.bound[pod] = None
        group = self.group_of(gang)
        group.once_satisfied, group.rounds = True, 0
        if group.representative == pod:
            group.representative = None

    def remove_pod(self, pod: PodKey) -> None:
        """A pod is gone."""
        gang = self._gang_of.pop(pod, None)
        if gang is None:
            return
        self._leave(gang, pod)
        gang.pods.pop(pod, None)
        gang.bound.pop(pod, None)
        group = self.group_of(gang)
        if group.representative == pod:
            group.representative = None

    def _leave(self, gang: Gang, pod: PodKey) -> None:
        """A pod is neither pending nor waiting any more."""
        gang.pending.pop(pod, None)
        gang.waiting.pop(pod, None)
        gang.allowed.discard(pod)
        self._all_gone(gang)

    def _all_gone(self, gang: Gang) -> None:
        """Nobody is bound together any more where nobody waits."""
        if not any(one.waiting for one in self.together(gang)):
            self.group_of(gang).members = frozenset()

    def _tidy(self, group: GangGroup) -> None:
        """Forget what gangs shared of which none is left."""
        for one in group.gangs:
            gang = self._gangs.get(one)
            if gang is not None and self.group_of(gang) is group:
                return
        group.forgotten = True
        self._groups.pop(group.gangs, None)

    # --- before and in the queue ------------------------------------------------------------------

    def may_enter(self, pod: PodKey) -> Why | None:
        """Why a pod is not to wait in the queue; None where it is."""
        found = self._as_a_whole(pod)
        if not isinstance(found, Gang):
            return found
        gang, group = found, self.group_of(found)
        if not self.rules.one_enters(gang, group):
            return None
        if self.round is not None and gang.id in self.round.group and pod not in self.round.attempted:
            return Why.NOT_ATTEMPTED_YET
        if pod not in gang.pending:
            return Why.NOT_PENDING
        if group.representative is None:
            group.representative = pod
        return None if group.representative == pod else Why.REPRESENTATIVE

    def _as_a_whole(self, pod: PodKey) -> Gang | Why | None:
        """The gang of a pod that goes with others; why it is not to be tried at all, None where it goes by itself."""
        gang = self._gang_of.get(pod)
        if gang is None or gang.parameters is None:
            return Why.NOT_INITIALISED
        group = self.group_of(gang)
        if self.rules.free(gang, group):
            return None
        if self.lacks(gang):
            if group.representative == pod:
                group.representative = None
            return Why.BASIC_CHECK
        return gang

    def lacks(self, gang: Gang) -> bool:
        """Whether any gang keeps one from being tried. The one that did so last is asked first, and those that come after it: while
        the gangs of a group get their pods, this takes a step or two.
        """
        if gang.parameters is None:
            return True
        group = self.group_of(gang)
        names = group.gangs
        if len(names) == 1 and names[0] == gang.id:  # as nearly always
            return not self.rules.complete(gang, group)
        last = group.found_lacking
        for at in chain(range(last, len(names)), range(last)):
            if not self._complete(names[at]):
                group.found_lacking = at
                return True
        return False

    def lacking(self, gang: Gang) -> tuple[str, ...]:
        """All gangs that keep one from being tried: unknown, with nothing said of them, or without enough pods."""
        if gang.parameters is None:
            return (gang.id,)
        return tuple([one for one in gang.parameters.group if not self._complete(one)])

    def _complete(self, name: str) -> bool:
        gang = self._gangs.get(name)
        return (
            gang is not None
            and gang.parameters is not None
            and self.rules.complete(gang, self.group_of(gang))
        )

    # --- rounds -----------------------------------------------------------------------------------

    def begin(self, pod: PodKey) -> Why | None:
        """A pod is tried: why it is not after all; None where it is. A round of its gang group begins, or goes on."""
        found = self._as_a_whole(pod)
        if not isinstance(found, Gang):
            return found
        if self.round is None:
            self.round = Round(found.id, self._tried_with(found), {pod})
            self.group_of(found).representative = None
        elif self.round.failed:
            return Why.ROUND_FAILED
        return None

    def _tried_with(self, gang: Gang) -> tuple[str, ...]:
        """The gangs whose pods are tried in a round of one."""
        assert gang.parameters is not None
        named, concerned = gang.parameters.group, [one.id for one in self.together(gang)]
        return named if len(concerned) == len(named) else tuple(concerned)

    def left(self) -> tuple[PodKey, ...]:
        """Who may be tried next for the round that is open: of the first gang that has any, those not tried yet."""
        round_ = self.round
        if round_ is None or round_.gang not in self._gangs:
            return ()
        for name in round_.group:
            gang = self._gangs.get(name)
            left = [] if gang is None else [one for one in gang.pending if one not in round_.attempted]
            if left:
                return tuple(left)
        return ()

    def first(self) -> PodKey | None:
        """The first of these."""
        round_ = self.round
        if round_ is not None and round_.gang in self._gangs:
            for name in round_.group:
                gang = self._gangs.get(name)
                for pod in () if gang is None else gang.pending:
                    if pod not in round_.attempted:
                        return pod
        return None

    def next(self) -> Turn:
        """The same; where nobody is left the round ends."""
        round_, left = self.round, self.left()
        if round_ is None or left:
            return Turn(left)
        self.round = None
        known = [self._gangs[name] for name in round_.group if name in self._gangs]
        return Turn(rejected=self._reject(known))

    def take(self, pod: PodKey) -> None:
        """A pod is tried for the round that is open."""
        if self.round is not None:
            self.round.attempted.add(pod)

    def close(self) -> None:
        """The round is over, whoever waits."""
        self.round = None

    # --- on nodes ---------------------------------------------------------------------------------

    def permit(self, pod: PodKey) -> Permitted | Held:
        """A pod has a node: it waits there, or all go that wait."""
        gang = self._gang_of.get(pod)
        if gang is None:
            return Permitted((pod,))
        gang.pending.pop(pod, None)
        gang.waiting[pod] = None
        if gang.parameters is None:
            return _held(0)
        group = self.group_of(gang)
        known = []
        for name in gang.parameters.group:
            one = self._gangs.get(name)
            if (
                one is None
                or one.parameters is None
                or not self.rules.satisfied(one, group if one is gang else self.group_of(one))
            ):
                return _held(gang.parameters.wait)
            known.append(one)
        known = [one for one in known if _concerns(gang, one)]
        going = tuple([found for one in known for found in one.waiting])
        for one in known:
            one.allowed.update(one.waiting)
        if not group.members:
            group.members = frozenset(going)
        rounds, self.round, group.rounds = group.rounds, None, 0
        return Permitted(going, rounds)

    def failed(self, pod: PodKey, text: str) -> tuple[PodKey, ...]:
        """A pod has no node: who gives back the one that he waits at."""
        gang = self._gang_of.get(pod)
        if gang is None:
            return ()
        group = self.group_of(gang)
        # Of a gang that nothing is said of, a pod that was ever bound is all that is known.
        if group.once_satisfied if gang.parameters is None else self.rules.free(gang, group):
            return ()
        if self.round is not None and not self.round.failed:
            self.round.failed = text
            group.rounds += 1
        if gang.parameters is not None and not self.rules.rejects_together(gang, group):
            return ()
        group.members = frozenset()
        return self._reject(list(self.together(gang)))

    def unreserved(self, pod: PodKey) -> tuple[PodKey, ...]:
        """A pod does not get to its node: it is pending again, and so are those who give theirs back with it."""
        gang = self._gang_of.get(pod)
        if gang is None or pod in gang.bound:
            return ()
        waited = pod in gang.waiting
        self._leave(gang, pod)
        gang.pending[pod] = None
        if not waited or gang.parameters is None:
            return ()
        group = self.group_of(gang)
        if not self.rules.rejects_together(gang, group) or self.rules.free(gang, group):
            return ()
        return self._reject(list(self.together(gang)))

    def _reject(self, gangs: list[Gang]) -> tuple[PodKey, ...]:
        """All who wait on nodes, and may not go yet, are pending again."""
        going = []
        for gang in gangs:
            for pod in [one for one in gang.waiting if one not in gang.allowed]:
                going.append(pod)
                self._leave(gang, pod)
                gang.pending[pod] = None
        return tuple(going)


def _concerns(gang: Gang, other: Gang) -> bool:
    """Whether what becomes of a gang concerns another one that it names."""
    mine, theirs = gang.parameters, other.parameters
    if other is gang or (mine is not None and theirs is not None and mine.group is theirs.group):
        return True  # as nearly always
    if (mine is not None and mine.takes_along) or _namespace(gang.id) == _namespace(other.id):
        return True
    return theirs is not None and gang.id in theirs.group


def _names_others(name: str, group: tuple[str, ...]) -> bool:
    """Whether any of these gangs is of another namespace than the one of this name."""
    own = _namespace(name)
    return any(_namespace(one) != own for one in group)


def _namespace(gang: str) -> str:
    namespace, slash, _ = gang.partition("/")
    return namespace if slash else ""


@lru_cache(maxsize=256)
def _held(wait: int) -> Held:
    """Most pods that wait do so for the same time."""
    return Held(wait)
