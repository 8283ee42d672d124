"""A short run of every fuzzer, and every input that showed a defect once. Longer: `python -m tests.fuzz all`."""

from pathlib import Path

import pytest

from tests.fuzz.driver import Hang, kept, run, run_one
from tests.fuzz.target import Defect, Target
from tests.fuzz.targets import TARGETS

INPUTS = 300


@pytest.mark.parametrize("name", TARGETS)
def test_a_short_run_shows_no_defect(name: str) -> None:
    totals = run(TARGETS[name], seconds=40.0, count=INPUTS, seed=20261123)
    assert totals.inputs > 0
    assert not totals.found, "\n".join(f"{one.data[:2000]!r}\n{one.trace}" for one in totals.found.values())


@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for name in TARGETS for case in kept(name)],
    ids=lambda one: getattr(one, "name", one),
)
def test_what_showed_a_defect_once_shows_none(name: str, case: Path) -> None:
    run_one(TARGETS[name], case.read_bytes())


def _refuse(data: bytes) -> None:
    if data == b"bad":
        raise Defect("as it should")
    while data == b"endless":
        pass


def test_defects_and_hangs_are_found_and_named() -> None:
    target = Target(
        "t",
        "",
        lambda: (b"good", b"bad", b"endless"),
        lambda chance, seeds: chance.choice(seeds),
        _refuse,
        0.05,
    )
    totals = run(target, seconds=20.0, count=20, seed=1)
    assert totals.inputs == 20
    assert {one.data for one in totals.found.values()} == {b"bad", b"endless"}
    with pytest.raises(Hang):
        run_one(target, b"endless")
