"""What all tests share: where things lie, golden files, and how much hypothesis tries."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.parts.fixtures import apiserver, own_apiserver, part

__all__ = ["REPOSITORY", "apiserver", "own_apiserver", "part"]

REPOSITORY = Path(__file__).resolve().parent.parent

# Times vary on shared machines, so no test fails for being slow. On CI the examples are the same in every run;
# elsewhere each run tries new ones.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("long", settings.get_profile("default"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))

# What one test compiles, with the code as it changed that, no other test shall take.
os.environ.setdefault("KOORDPOLICY_CACHE", "off")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="rewrite golden files with what the code gives now; review them as a diff",
    )


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The directory of the vectors, which lies beside the checkout; skips where it does not."""
    directory = REPOSITORY.parent / "shared" / "vectors"
    if not directory.is_dir():
        pytest.skip("no vectors beside the checkout (../shared/vectors)")
    return directory


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a golden file, or rewrite the file under `--update-goldens`."""

    def compare(file: Path, actual: str) -> None:
        if request.config.getoption("--update-goldens"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(actual.encode())
            return
        assert file.exists(), f"{file} is missing; run pytest with --update-goldens and review it"
        assert actual == file.read_bytes().decode()

    return compare
