"""An API server with what is shipped in `deploy/`: definitions and roles."""

from collections.abc import Iterator

import pytest

from tests.parts.apiserver import Access
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need


@pytest.fixture(scope="session")
def deployed(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """A server of its own: everybody on a server sees policy objects, and components act on them."""
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("deployed")) as server:
        yield server.access
