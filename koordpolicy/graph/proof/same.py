"""When two answers are the same one."""

from typing import Any

from koordpolicy.language.cel.values import NONE, Optional


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are alike: 1, 1.0 and true are told apart, NaN is like NaN, 0.0 like -0.0.

    Maps are alike whatever the order of their keys.
    """
    if type(one) is not type(other):
        listed = isinstance(one, list | tuple) and isinstance(other, list | tuple)
        if not listed:
            return False
    if isinstance(one, float):
        return bool(one == other or (one != one and other != other))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same_value, one, other))
    if isinstance(one, dict):
        if len(one) != len(other):
            return False
        return all(key in other and same_value(value, other[key]) for key, value in one.items())
    if isinstance(one, Optional):
        if one is NONE or other is NONE:
            return one is other
        return same_value(one.value, other.value)
    return bool(one == other)
