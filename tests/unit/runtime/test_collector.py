"""The collector of cycles, kept out of the way of decisions."""

import gc
import os
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from koordpolicy.runtime.collector import (
    USUAL,
    QuietLooks,
    give_back,
    hold_back,
    keep_what_is_there,
    look_again,
    quiet_collector,
    seldom,
)


@pytest.fixture(autouse=True)
def _as_a_process_begins() -> Iterator[None]:
    """Whatever tests before these left of a process's setting."""
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
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


def _made(count: int) -> int:
    """How many of so many were found meanwhile."""
    _Loop.ends = 0
    for _ in range(count):
        _Loop()
    return _Loop.ends


@pytest.mark.parametrize("begin", [look_again, keep_what_is_there])
def test_cycles_are_found_all_the_same(begin: Callable[[], None]) -> None:
    begin()
    assert _made(2 * gc.get_threshold()[0]) > 0


def test_a_command_finds_cycles_and_leaves_all_as_it_was() -> None:
    before = gc.get_threshold()
    with seldom():
        assert gc.get_threshold()[0] > 10 * before[0]
        assert _made(2 * gc.get_threshold()[0]) > 0
    assert gc.get_threshold() == before


def test_nothing_is_left_to_walk_when_a_command_ends() -> None:
    kept = [[] for _ in range(1000)]  # type: ignore[var-annotated]
    with seldom():
        pass
    assert gc.get_freeze_count() > len(kept)


def test_a_graph_is_made_with_the_thresholds_of_the_process_and_leaves_them() -> None:
    look_again()
    before = gc.get_threshold()
    with quiet_collector():
        assert gc.get_threshold()[:2] == before[:2]
    assert gc.get_threshold() == before


def test_what_the_process_says_while_a_graph_is_made_holds_afterwards() -> None:
    hold_back()
    with quiet_collector():
        keep_what_is_there()
        said = gc.get_threshold()
    assert said[0] > 0
    assert gc.get_threshold() == said


def test_cycles_of_a_graph_that_is_made_are_found_though_nobody_looks_meanwhile() -> None:
    hold_back()
    with quiet_collector():
        assert _made(1000) == 0
    assert _Loop.ends == 1000


def test_nobody_looks_until_it_is_known_what_stays() -> None:
    hold_back()
    assert _made(100_000) == 0
    keep_what_is_there()
    assert gc.get_threshold()[0] > 0


def test_what_is_kept_is_not_looked_at_again() -> None:
    kept = [[] for _ in range(1000)]  # type: ignore[var-annotated]
    keep_what_is_there()
    assert gc.get_freeze_count() > len(kept)


_KIB = 1024


def _resident() -> int:
    """Bytes that this process holds."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists() or os.confstr("CS_GNU_LIBC_VERSION") is None,
    reason="a Linux with glibc: others keep free memory otherwise",
)
def test_memory_that_is_free_between_what_is_not_is_given_back() -> None:
    blocks = [bytearray(16 * _KIB) for _ in range(4_000)]
    for block in blocks:
        block[::_KIB] = bytes(16)  # touched, so that there are pages
    kept = blocks[::8]
    full = _resident()
    del blocks, block
    held = _resident()
    give_back()
    assert held - _resident() > 4_000 * 16 * _KIB // 2, f"of {full:,} bytes"
    assert len(kept) == 500


def test_looks_walk_nothing_old_and_still_leave_no_garbage_for_ever() -> None:
    quietly = QuietLooks(between=2)
    with quietly():
        assert gc.get_threshold()[1] > USUAL[1]
        young = weakref.ref(_Loop())
        gc.collect(0)
        assert young() is None
        late = weakref.ref(_Loop())
    assert gc.get_freeze_count() > 0
    gc.collect()
    assert late() is not None  # kept without being walked again, for now
    with quietly():
        pass
    assert late() is None
