"""Are two answers equal? If not, where do they differ first, in one line."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard


@dataclass(frozen=True, slots=True)
class Comparison:
    """How answers of a kind compare.

    Numbers may differ by `absolute`, or by `relative` times the larger. `zero_is_absent`: in mappings, a
    zero and a missing key are equal. `only_expected`: keys that are not expected are not looked at.
    """

    absolute: float = 0.0
    relative: float = 0.0
    zero_is_absent: bool = False
    only_expected: bool = False

    def difference(self, expected: object, found: object, at: str = "") -> str | None:
        """A phrase that says where and how they differ; None when they are equal."""
        if isinstance(expected, Mapping) and isinstance(found, Mapping):
            return self._mappings(expected, found, at)
        if _is_list(expected) and _is_list(found):
            return self._lists(expected, found, at)
        if self._same(expected, found):
            return None
        return f"{at or 'answer'}: expected {_shown(expected)}, found {_shown(found)}"

    def _mappings(self, expected: Mapping[str, object], found: Mapping[str, object], at: str) -> str | None:
        keys = [*expected, *(key for key in found if key not in expected and not self.only_expected)]
        for key in keys:
            place = f"{at}.{key}" if at else str(key)
            if key in expected and key in found:
                different = self.difference(expected[key], found[key], place)
                if different is not None:
                    return different
            elif key in expected and not self._absent(expected[key]):
                return f"{place}: expected {_shown(expected[key])}, found nothing"
            elif key in found and not self._absent(found[key]):
                return f"{place}: expected nothing, found {_shown(found[key])}"
        return None

    def _lists(self, expected: Sequence[object], found: Sequence[object], at: str) -> str | None:
        for index, (one, other) in enumerate(zip(expected, found, strict=False)):
            different = self.difference(one, other, f"{at}[{index}]")
            if different is not None:
                return different
        if len(expected) == len(found):
            return None
        return f"{at or 'answer'}: expected {len(expected)} items {_shown(expected)}, found {_shown(found)}"

    def _same(self, expected: object, found: object) -> bool:
        if _is_number(expected) and _is_number(found):
            if expected == found:
                return True
            return math.isclose(expected, found, rel_tol=self.relative, abs_tol=self.absolute)
        # True == 1 in Python, but they are different answers.
        return type(expected) is type(found) and expected == found

    def _absent(self, value: object) -> bool:
        return self.zero_is_absent and _is_number(value) and value == 0


EXACT = Comparison()
AMOUNTS = Comparison(zero_is_absent=True)
"""For answers that are resource maps."""


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def _shown(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 200 else text[:200] + "..."
