"""The algorithms give Koordinator's own answers, asked directly with the policy as arguments."""

from pathlib import Path

import pytest

from tests.unit.algorithms.direct import RUNNERS
from tests.vectors.files import BESIDE, known_files, read
from tests.vectors.run import run

FILES = known_files()
MISSING = f"no vectors in {BESIDE}"


@pytest.mark.skipif(not FILES, reason=MISSING)
@pytest.mark.parametrize("path", FILES or [BESIDE], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_vector_of_an_algorithm_is_answered_to_the_digit(path: Path) -> None:
    kinds = {kind for _, kind in RUNNERS}
    results = list(run(read(path), kinds, RUNNERS, whole=False))
    own = [result for result in results if result.failure != "no runner for this kind"]
    assert [result.line for result in own if result.failure is not None] == []


@pytest.mark.skipif(not FILES, reason=MISSING)
def test_every_kind_with_a_runner_occurs() -> None:
    asked = {
        (result.vector.kind)
        for path in FILES
        for result in run(read(path), (), RUNNERS, whole=False)
        if result.failure is None
    }
    assert asked == {kind for _, kind in RUNNERS}
