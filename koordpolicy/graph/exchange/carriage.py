"""How a value of Koordinator's configuration is written in a policy, and how a decision's value stands in configuration."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from koordpolicy.language.cel.values import Duration
from koordpolicy.model.quantity import Notation, Quantity, QuantityError, parse_quantity
from koordpolicy.model.slo_config import duration_text, is_percent
from koordpolicy.model.time import NANOSECONDS, parse_duration

_MINUTE: Final = 60 * NANOSECONDS


class NotCarriedError(ValueError):
    """A value that policies cannot say. The message says why, as a phrase."""


@dataclass(frozen=True, slots=True)
class Carriage:
    """`write` makes the literal of a policy from a configured value, raising `NotCarriedError`; `show` does the opposite."""

    write: Callable[[Any], Any]
    show: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _percent_text(points: Any) -> str:
    return f"{Decimal(str(points)).normalize():f}%"


def _share(ratio: Any) -> str:
    return _percent_text(Decimal(str(ratio)) * 100)


def _ratio(points: float) -> float:
    return float(f"{points / 100:.15g}")


def _switch(number: int) -> bool:
    if number not in (0, 1):
        raise NotCarriedError(f"{number} is neither 0 nor 1")
    return bool(number)


def _time(unit: int) -> Carriage:
    return Carriage(lambda number: _time_text(number * unit), lambda value: int(_nanoseconds(value) / unit))


def _time_text(nanoseconds: int) -> str:
    if abs(nanoseconds) >= 2**63:
        raise NotCarriedError("it is longer than 292 years")
    for unit, word in ((NANOSECONDS, "s"), (10**6, "ms"), (10**3, "us")):
        if nanoseconds % unit == 0:
            return f"{nanoseconds // unit}{word}"
    return f"{nanoseconds}ns"


def _nanoseconds(value: Any) -> int:
    return value.ns if isinstance(value, Duration) else parse_duration(str(value))


def _bandwidth(text: str) -> int:
    nanos = parse_quantity(text).nanos
    if nanos % 10**9:
        raise NotCarriedError("it is no whole number of bits per second")
    bits = nanos // 10**9
    if not 0 <= bits < 2**53:
        raise NotCarriedError("it is beyond what a bandwidth can be")
    return bits


def bandwidth_text(bits: int) -> str:
    """The shorter of the decimal and the binary text of a quantity."""
    texts = [str(Quantity.of(bits, notation)) for notation in (Notation.DECIMAL, Notation.BINARY)]
    return min(texts, key=len)


def _network(value: Any) -> str:
    if is_percent(value):
        if value < 0:
            raise NotCarriedError("it is below 0")
        return f"{value}%"
    try:
        text = str(parse_quantity(value))
    except QuantityError as error:
        raise NotCarriedError(str(error)) from None
    if not re.fullmatch(r"[0-9]+(?:\.[0-9]+)?(?:[kMGTPE]|[KMGTPE]i)?", text):
        raise NotCarriedError("it is no whole number of bits per second")
    return text


def _network_shown(text: str) -> Any:
    return int(text[:-1]) if text.endswith("%") else text


def _words(policy: Mapping[str, str]) -> Carriage:
    """Words that are others in policies."""
    back = {word: configured for configured, word in policy.items()}

    def write(word: str) -> str:
        if word not in policy:
            raise NotCarriedError(f"`{word}` is none of {', '.join(f'`{known}`' for known in policy)}")
        return policy[word]

    return Carriage(write, back.__getitem__)


def _column(name: str) -> Carriage:
    """One ratio of each CPU model, of a mapping from models to their ratios."""
    return Carriage(
        lambda models: {"value": {model: one[name] for model, one in models.items() if name in one}},
        lambda ratios: {model: {name: ratio} for model, ratio in ratios.items()},
    )


def among(*words: str) -> Carriage:
    """Words of which there are only these."""
    return _words({word: word for word in words})


def renamed(**words: str) -> Carriage:
    """Words that are others in policies: configured=policy."""
    return _words(words)


PLAIN: Final = Carriage(_same, _same)
RATIOS: Final = Carriage(lambda ratios: {"value": dict(ratios)}, dict)
BASE, TURBO, HYPER_THREAD, HYPER_THREAD_TURBO = map(
    _column,
    ("baseRatio", "turboEnabledRatio", "hyperThreadEnabledRatio", "hyperThreadTurboEnabledRatio"),
)
PERCENT: Final = Carriage(_percent_text, int)
RATIO: Final = Carriage(_share, _ratio)
SWITCH: Final = Carriage(_switch, int)
SECONDS: Final = _time(NANOSECONDS)
MINUTES: Final = _time(_MINUTE)
NANOS: Final = _time(1)
BANDWIDTH: Final = Carriage(_bandwidth, bandwidth_text)
NETWORK: Final = Carriage(_network, _network_shown)
DURATION: Final = Carriage(
    lambda text: _time_text(parse_duration(text)), lambda value: duration_text(_nanoseconds(value))
)
DURATIONS: Final = Carriage(
    lambda texts: [DURATION.write(text) for text in texts],
    lambda values: [DURATION.show(value) for value in values],
)
