"""The collector of cycles, kept out of the way of decisions."""

import gc
from collections.abc import Iterator

import pytest

from koordpolicy.runtime.collector import keep_what_is_there, look_rarely, quiet_collector


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


class _Loop:
    """Something that only the collector gets rid of."""

    ends = 0

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        _Loop.ends += 1


def test_cycles_are_found_all_the_same() -> None:
    look_rarely()
    _Loop.ends = 0
    for _ in range(2 * gc.get_threshold()[0]):
        _Loop()
    assert _Loop.ends > 0


def test_a_graph_is_made_with_the_thresholds_of_the_process_and_leaves_them() -> None:
    look_rarely()
    before = gc.get_threshold()
    with quiet_collector():
        assert gc.get_threshold()[:2] == before[:2]
    assert gc.get_threshold() == before


def test_nobody_looks_at_everything_until_it_is_known_what_stays() -> None:
    before = gc.get_threshold()
    look_rarely()
    assert gc.get_threshold()[2] > 1000 * before[2]
    keep_what_is_there()
    assert gc.get_threshold()[2] == before[2]


def test_what_is_kept_is_not_looked_at_again() -> None:
    kept = [[] for _ in range(1000)]  # type: ignore[var-annotated]
    keep_what_is_there()
    assert gc.get_freeze_count() > len(kept)
