"""`/readyz` of real processes when a real API server is gone, stopped, or refuses them."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.runtime.managers import Manager, Site, make_site
from tests.parts.apiserver import SYSTEM_NAMESPACE, ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

GRACE = "2"


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("readiness")) as server:
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> Site:
    return make_site(server.access, tmp_path)


@pytest.fixture(params=["manager", "scheduler"])
def process(site: Site, request: pytest.FixtureRequest) -> Iterator[Manager]:
    with site.process(request.param, "one", "--unready-after", GRACE) as process:
        yield process


def unready(site: Site, process: Manager, why: str) -> None:
    """Wait until it says why it is not ready; it is alive all the time."""
    site.eventually(lambda: why in process.read("/readyz")[1], f"not ready: {why}")
    assert process.read("/readyz")[0] == 503
    assert process.read("/healthz") == (200, "ok\n")


def test_an_api_server_that_is_gone(site: Site, server: ApiServer, process: Manager) -> None:
    server.kill()
    unready(site, process, "apiserver: the API server does not answer, for ")
    server.start()
    site.eventually(lambda: process.read("/readyz") == (200, "ok\n"), "it is ready again")
    log = process.running.tail(400)
    assert "not ready: the API server does not answer" in log
    assert not [line for line in log.splitlines() if line.endswith(": ")], "a reason is empty"


def test_an_api_server_that_hangs(site: Site, server: ApiServer, process: Manager) -> None:
    os.kill(server.pid, signal.SIGSTOP)
    try:
        unready(site, process, "apiserver: the API server does not answer, for ")
    finally:
        os.kill(server.pid, signal.SIGCONT)
    site.eventually(lambda: process.read("/readyz") == (200, "ok\n"), "it is ready again")


def test_an_api_server_whose_etcd_hangs(site: Site, server: ApiServer) -> None:
    """It goes on with watches, and says which kinds it does not serve, without a look into etcd: leases are not renewed."""
    with site.process("scheduler", "one", "--unready-after", GRACE) as process:
        os.kill(server.etcd_pid, signal.SIGSTOP)
        try:
            unready(site, process, "apiserver: the API server answers no reads and writes")
        finally:
            os.kill(server.etcd_pid, signal.SIGCONT)
        site.eventually(lambda: process.read("/readyz") == (200, "ok\n"), "it is ready again")


def test_an_api_server_that_does_not_know_us(site: Site, server: ApiServer, process: Manager) -> None:
    file = server.folder / "tokens.csv"
    known = file.read_text("utf-8")
    file.write_text("".join(line for line in known.splitlines(True) if "koordpolicy-" not in line), "utf-8")
    try:
        server.restart()
        unready(site, process, "apiserver: the API server does not know us (401), for ")
    finally:
        file.write_text(known, "utf-8")
        server.restart()
    site.eventually(lambda: process.read("/readyz") == (200, "ok\n"), "it is ready again")


def test_an_api_server_that_forbids_what_is_needed(site: Site, process: Manager) -> None:
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/rolebindings"
    name = "koordpolicy-leader"
    _, binding = site.access.request("GET", f"{path}/{name}")
    site.access.request("DELETE", f"{path}/{name}")
    try:
        unready(site, process, "apiserver: the API server does not let us ")
    finally:
        metadata = {"name": name, "labels": binding["metadata"]["labels"]}
        body = {"metadata": metadata, "roleRef": binding["roleRef"], "subjects": binding["subjects"]}
        status, answer = site.access.request("POST", path, body)
        assert status == 201, answer
    site.eventually(lambda: process.read("/readyz") == (200, "ok\n"), "it is ready again")
