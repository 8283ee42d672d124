"""Hands each test every implementation in turn."""

from collections.abc import Iterator

import pytest

from tests.contract.clusters import CLUSTERS, Case, InMemory, real_server


@pytest.fixture(scope="session")
def memory() -> Case:
    """The cluster inside the process."""
    return InMemory()


@pytest.fixture(scope="session")
def real(request: pytest.FixtureRequest) -> Iterator[Case]:
    """The API server; skips by name where it cannot be had."""
    with real_server(request) as case:
        yield case


@pytest.fixture(scope="session", params=CLUSTERS)
def case(request: pytest.FixtureRequest) -> Case:
    """Each implementation of the protocol in turn."""
    found: Case = request.getfixturevalue(request.param)
    return found
