"""Every known vector of a kind that has a runner is answered to the digit."""

from pathlib import Path

import pytest

from tests.vectors.files import BESIDE, known_files, read
from tests.vectors.run import find_runner, run

FILES = known_files()
MISSING = f"no vectors in {BESIDE}"


@pytest.mark.skipif(not FILES, reason=MISSING)
@pytest.mark.parametrize("path", FILES or [BESIDE], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_known_vectors(path: Path) -> None:
    supported = [vector for vector in read(path) if find_runner(vector) is not None]
    assert [result.line for result in run(supported) if result.failure is not None] == []
