"""One API server for all tests of scheduler processes, with what is shipped applied; each test begins empty."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.scheduler.sites import Site, make_site
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need


@pytest.fixture(scope="package")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("schedulers")) as server:
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> Site:
    return make_site(server.access, tmp_path)
