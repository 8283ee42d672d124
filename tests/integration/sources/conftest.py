"""A repository, a server for it, and a place to sync it to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.sources.repositories import GitServer, Upstream, serving


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "upstream")


@pytest.fixture
def server(upstream: Upstream) -> Iterator[GitServer]:
    with serving(upstream.bare.parent) as server:
        yield server


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"
