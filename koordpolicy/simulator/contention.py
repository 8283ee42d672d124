"""The parameters of contention, from a document in which each says where its value is from, as `work: {value: 2ms, source: measured}`.

`DEFAULT` ships beside this module; a document of one's own says all of its parameters, too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from koordpolicy.language.documents import Document
from koordpolicy.model.time import NANOSECONDS, parse_duration
from koordpolicy.simulator.one_document import one_document
from koordpolicy.simulator.workload import WorkloadError

DEFAULT: Final = Path(__file__).with_name("contention.yaml")
_MOST_SEARCHED: Final = 8192


@dataclass(frozen=True, slots=True)
class Contention:
    """Times in seconds, shares from 0 to 1.

    A request needs `work` in the mean, with the squared coefficient of variation `variation`, in turns of `turn`, whose
    ends are looked for every `tick`. Work that is let run where a worker
    wakes up runs for up to `quantum`; best-effort work is, for the share `missed` of the requests that meet it. `slowdown` is how much
    more CPU time a request needs where all other processors of the node work. A worker finds its processor taken when so are all of
    `searched`. A service violates its objective where its `quantile` is above what it is alone at its knee; what is not answered
    counts as `patience`.
    """

    work: float
    variation: float
    turn: float
    tick: float
    quantum: float
    missed: float
    slowdown: float
    searched: int
    quantile: float
    patience: float


def _seconds(value: Any) -> float:
    length = parse_duration(str(value))
    if length <= 0:
        raise ValueError("a duration of more than nothing is needed, such as `2ms`")
    return length / NANOSECONDS


def _share(value: Any) -> float:
    text = str(value)
    if text.endswith("%") and text[:-1].replace(".", "", 1).isdecimal() and 0 <= float(text[:-1]) <= 100:
        return float(text[:-1]) / 100
    raise ValueError("a percentage from 0% to 100% is needed, such as `3%`")


def _inner_share(value: Any) -> float:
    share = _share(value)
    if not 0 < share < 1:
        raise ValueError("a percentage between 0% and 100% is needed, such as `99%`")
    return share


def _amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_SEARCHED:
        raise ValueError(f"a number from 0 to {_MOST_SEARCHED:,} is needed")
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_SEARCHED:
        raise ValueError(f"a whole number from 1 to {_MOST_SEARCHED:,} is needed")
    return value


_READERS: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "work": ("work", _seconds),
    "variation": ("variation", _amount),
    "turn": ("turn", _seconds),
    "tick": ("tick", _seconds),
    "quantum": ("quantum", _seconds),
    "missed": ("missed", _share),
    "slowdown": ("slowdown", _share),
    "searched": ("searched", _count),
    "quantile": ("quantile", _inner_share),
    "patience": ("patience", _seconds),
}
"""By the name in a document: the field, and what reads the value or raises ValueError."""


def read_contention(file: Path = DEFAULT) -> Contention:
    """The parameters of a document. Raises WorkloadError with file, line and what is wrong."""
    return _parameters(one_document(file))


def _parameters(document: Document) -> Contention:
    def wrong(path: tuple[str, ...], message: str) -> WorkloadError:
        span = document.positions.value(path)
        return WorkloadError(f"{span.file}:{span.start.line}: {message}")

    whole = document.data
    known = ", ".join(f"`{one}`" for one in _READERS)
    said = whole.get("parameters")
    if not isinstance(said, dict) or len(whole) != 1:
        raise wrong((), f"`parameters` is needed, and nothing else; in it {known}")
    read: dict[str, Any] = {}
    for name, one in said.items():
        if name not in _READERS:
            raise wrong(("parameters", name), f"unknown parameter `{name}`; there are {known}")
        if not isinstance(one, dict) or set(one) != {"value", "source"} or not str(one["source"]).strip():
            raise wrong(
                ("parameters", name), f"`{name}` needs a `value` and a `source` that says where it is from"
            )
        field, reader = _READERS[name]
        try:
            read[field] = reader(one["value"])
        except ValueError as error:
            raise wrong(("parameters", name, "value"), f"`{name}`: {error}") from None
    missing = [f"`{name}`" for name in _READERS if name not in said]
    if missing:
        raise wrong(("parameters",), f"there is no {', '.join(missing)}")
    return Contention(**read)
