"""What a pod's own annotation asks of caches and of memory's bandwidth: the lines of a group that is its own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from koordpolicy.agent.strategies.cache_isolation import Caches
from koordpolicy.algorithms.cache_part import (
    CachePartError,
    bandwidth_line,
    bandwidth_value,
    cache_line,
    cache_mask,
)
from koordpolicy.model.protocol import RESCTRL
from koordpolicy.model.reading import Json, embedded_object, mapping

PREFIX: Final = "koordlet-"
"""What the names of groups of single pods begin with, as Koordinator's agent names them."""


def own_lines(source: str, caches: Caches) -> tuple[list[str], list[str]]:
    """The lines of the pod's group, and what is wrong with those that are not there.

    A line is for all caches or not there at all. Raises ObjectError for an annotation that cannot be read.
    """
    said = embedded_object(source, RESCTRL)
    found, problems = [], []
    for name, value_of, line in (
        ("llc", lambda one: _mask(one, caches), cache_line),
        ("mb", lambda one: bandwidth_value(_number(one.get("percent")), caches.vendor), bandwidth_line),
    ):
        if name not in said:
            continue
        try:
            found.append(line(_by_cache(mapping(said, name, RESCTRL), caches, value_of)))
        except CachePartError as problem:
            problems.append(f"{name}: {problem}")
    return found, problems


def _by_cache(said: Json, caches: Caches, value_of: Callable[[Mapping[str, Any]], int]) -> dict[int, int]:
    """A value for each cache: that for all, and those of single caches over it. Raises CachePartError."""
    general = said.get("schemata")
    found: dict[int, int] = {}
    if general is not None:
        value = value_of(_fields(general))
        found = dict.fromkeys(caches.numbers, value)
    single = said.get("schemataPerCache") or ()
    if not isinstance(single, Sequence) or isinstance(single, str):
        raise CachePartError("`schemataPerCache` is not a list")
    for one in single:
        fields = _fields(one)
        cache = fields.get("cacheID")
        if not isinstance(cache, int) or cache not in caches.numbers:
            raise CachePartError(f"there is no cache {cache}")
        found[cache] = value_of(fields)
    missing = [cache for cache in caches.numbers if not found.get(cache)]
    if missing or not found:
        raise CachePartError(f"nothing is said of cache {missing[0]}" if missing else "there are no caches")
    return found


def _mask(said: Mapping[str, Any], caches: Caches) -> int:
    ends = said.get("range")
    if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 2:
        raise CachePartError("`range` is not a list of two percentages")
    start, end = map(_number, ends)
    return cache_mask(caches.full_mask, start, end)


def _fields(said: Any) -> Mapping[str, Any]:
    if not isinstance(said, Mapping):
        raise CachePartError("it is not a mapping")
    return said


def _number(said: Any) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float):
        raise CachePartError(f"{said!r} is not a percentage")
    return float(said)
