"""Frames: shares in bytes, what leads on a node, and not too many of them."""

import numpy as np

from koordpolicy.console import frames
from koordpolicy.console.frames import NOBODY, Frame, Frames, leading, share


def test_shares_are_half_percents_and_end_where_a_byte_does() -> None:
    found = share(np.array([0, 250, 1000, 2000, 5]), np.array([1000, 1000, 1000, 1000, 0]))
    assert found.tolist() == [0, 50, 200, 255, 0]


def test_what_has_most_weight_leads() -> None:
    weight = np.array([1, 5, 2, 2])
    assert leading([0, 0, 0, 2], [0, 1, 0, 3], weight, 3).tolist() == [1, NOBODY, 3]
    assert leading([], [], np.array([]), 2).tolist() == [NOBODY, NOBODY]


def test_frames_become_rarer_before_they_are_too_many() -> None:
    kept = Frames()
    size = frames._MOST_BYTES // 8
    rows = bytes(size)
    for time in range(40):
        kept.add(Frame(time, rows, {}))
    assert len(kept.kept) <= 9
    times = [frame.time for frame in kept.kept]
    assert times[0] == 0
    assert times == sorted(times)
    assert kept.generation > 0


def test_rows_are_those_that_were_asked_for() -> None:
    kept = Frames()
    for time in range(5):
        kept.add(Frame(time, bytes([time, time]), {"used": time}))
    assert kept.rows(1, 3) == bytes([1, 1, 2, 2])
    assert kept.rows(4, 99) == bytes([4, 4])
    assert kept.rows(9, 12) == b""
    assert [one["used"] for one in kept.series(3)] == [3, 4]
