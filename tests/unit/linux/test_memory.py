"""What a process may take: its own address space, and what its container has left."""

import mmap
from pathlib import Path

import pytest

from koordpolicy.linux import memory
from koordpolicy.runtime.trial.limits import TrialLimits


def test_the_address_space_grows_with_what_is_taken() -> None:
    before = memory.address_space()
    with mmap.mmap(-1, 64 << 20):  # what is merely allocated may stand where something stood before
        after = memory.address_space()
    assert before is not None
    assert after is not None
    assert after - before >= 64 << 20


@pytest.mark.parametrize(
    ("limit", "usage", "free"),
    [("1000", "400", 600), ("1000", "1400", 0), ("max", "400", None), ("none", "1", None)],
)
def test_what_is_left_is_what_bounds_a_trial(
    limit: str, usage: str, free: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "limit", tmp_path / "usage"
    for file, text in zip(files, (limit, usage), strict=True):
        file.write_text(f"{text}\n")
    missing = tmp_path / "missing"
    monkeypatch.setattr(memory, "_CGROUPS", ((missing, missing), files))
    assert memory.free_in_container() == free
    assert TrialLimits(memory=500).allowed_memory() == (500 if free is None else min(500, free * 8 // 10))
