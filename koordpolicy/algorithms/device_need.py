"""What a pod asks for of one sort of devices: how many of them, and how much of each.

Amounts are whole numbers by resource name; what counts in percent has 100 for one device. Which names there are, and
how they go together, arrives as a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from koordpolicy.model.reading import Amounts

WHOLE: Final = 100
"""All of a device, of a resource that counts in percent."""

_NO_WORDS: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType({})


class DeviceRequestError(ValueError):
    """What is asked for is nothing that any device could give. The message says why."""


class HintStrategy(StrEnum):
    """What a pod's hint makes of an amount that is not of whole devices."""

    NONE = ""
    APPLY_FOR_ALL = "ApplyForAll"
    REQUESTS_AS_COUNT = "RequestsAsCount"


@dataclass(frozen=True, slots=True)
class DeviceWords:
    """In which words a sort of devices is asked for.

    A request names exactly one of the `combinations`. `converts` says what one of a resource stands for in others. Of
    `percents` a request has at most one device's, or whole devices; `counter` is the resource that says how many
    devices the others are spread over, `measured` the one whose hundreds say so else, `sized` are those that make a
    device shared where nothing is `measured`. `at_most` limits others beside a resource.
    """

    combinations: frozenset[frozenset[str]]
    converts: Mapping[str, Amounts] = field(default_factory=lambda: _NO_WORDS)
    percents: frozenset[str] = frozenset()
    counter: str = ""
    measured: str = ""
    sized: frozenset[str] = frozenset()
    at_most: Mapping[str, Amounts] = field(default_factory=lambda: _NO_WORDS)

    names: frozenset[str] = field(init=False)
    """All resources by which the devices are asked for."""
    ways: Mapping[frozenset[str], "_Way"] = field(init=False, repr=False, compare=False)
    """What has to be looked at of each of the combinations."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset().union(*self.combinations))
        object.__setattr__(self, "ways", {names: _way(names, self) for names in self.combinations})


class _Way(NamedTuple):
    """What is to be looked at where pods ask in one way."""

    percents: tuple[str, ...]
    at_most: tuple[tuple[str, int], ...]
    converts: bool
    sized: bool


def _way(names: frozenset[str], words: DeviceWords) -> _Way:
    return _Way(
        tuple(sorted(names & words.percents)),
        tuple(
            limit for name in sorted(names & words.at_most.keys()) for limit in words.at_most[name].items()
        ),
        not names.isdisjoint(words.converts),
        not names.isdisjoint(words.sized),
    )


@dataclass(frozen=True, slots=True)
class DeviceNeed:
    """So many devices, and so much of `each` of them. `asked` is the whole of it, in the words of devices.

    `shared` means that others may have the rest of them.
    """

    count: int
    each: Amounts
    shared: bool
    asked: Amounts


def device_need(request: Amounts, words: DeviceWords) -> DeviceNeed | None:
    """What a pod's request asks for; None for nothing. Raises DeviceRequestError."""
    asked = {name: number for name, number in request.items() if number and name in words.names}
    if not asked:
        return None
    way = words.ways.get(frozenset(asked))
    if way is None:
        raise DeviceRequestError(f"invalid resource device requests: [{' '.join(sorted(asked))}]")
    spread = asked.get(words.counter, 0)
    for name in way.percents:
        _check_percent(name, asked[name], spread)
    for other, most in way.at_most:
        if asked.get(other, 0) > most:
            raise DeviceRequestError(f"invalid resource unit {other}: {asked[other]}, at most {most}")
    converted = _converted(asked, words) if way.converts else asked
    measured = converted.get(words.measured)
    count = 1
    if spread > 0:
        count = spread
    elif measured is not None and measured > WHOLE and measured % WHOLE == 0:
        count = measured // WHOLE
    each = {name: number // count for name, number in converted.items() if name != words.counter}
    shared = way.sized if measured is None else measured // count < WHOLE
    return DeviceNeed(count, each, shared, converted)


def _check_percent(name: str, number: int, spread: int) -> None:
    if spread > 0:
        if number % spread or number // spread > WHOLE:
            raise DeviceRequestError(f"invalid resource unit {name}: {number} for {spread} shared devices")
    elif number > WHOLE and number % WHOLE:
        raise DeviceRequestError(f"invalid resource unit {name}: {number}")


def _converted(asked: Amounts, words: DeviceWords) -> Amounts:
    found: dict[str, int] = {}
    for name, number in asked.items():
        for target, factor in words.converts.get(name, {name: 1}).items():
            found[target] = found.get(target, 0) + number * factor
    return found


def by_strategy(need: DeviceNeed, strategy: str, devices: int, *, alone: bool = False) -> DeviceNeed:
    """The need as a hint has it, on a node that has so many devices of the sort; `alone`: none is shared with others.

    An amount of whole devices stays what it is.
    """
    if need.count > 1 or strategy not in tuple(HintStrategy) or strategy == HintStrategy.NONE:
        return need
    if strategy == HintStrategy.APPLY_FOR_ALL:
        return DeviceNeed(devices, need.each, need.shared, need.asked)
    count = max(need.each.values(), default=0)
    return DeviceNeed(count, dict.fromkeys(need.each, WHOLE if alone else 1), not alone, need.asked)
