"""A console that answers by the policy objects of a real API server, and by others once they change."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.integration.console.browser import Page
from tests.integration.console.console import console
from tests.integration.console.driving import Steps, axe, opened
from tests.parts.apiserver import Access
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

KIND = "/apis/koordpolicy.io/v1alpha1/cpusuppresses"


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """An API server of its own: policy objects are the whole cluster's."""
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("policies")) as started:
        one = started.access
        node = {"metadata": {"name": "a"}, "status": {"capacity": {"cpu": "8", "memory": "16Gi"}}}
        assert one.request("POST", "/api/v1/nodes", node)[0] == 201
        pool = {
            "apiVersion": "koordpolicy.io/v1alpha1",
            "kind": "CPUSuppress",
            "metadata": {"name": "pool"},
            "spec": {"growth": {"step": "15%"}},
        }
        status, answer = one.request("POST", KIND, pool)
        assert status == 201, answer
        yield one


def change(server: Access, spec: dict[str, Any]) -> None:
    status, answer = server.request("PATCH", f"{KIND}/pool", {"spec": spec})
    assert status == 200, answer


def test_the_policies_of_the_cluster_are_followed_and_compared_with(
    server: Access, drive: Callable[[Steps], None]
) -> None:
    shadow = "document.querySelector('.editor')?.shadowRoot"
    source = f"{shadow}?.querySelector('.cm-content')?.innerText"

    async def steps(page: Page) -> None:
        await opened(page, address, "playground")
        await page.until(f"{source}?.includes('15%')")
        await page.until(
            "document.querySelector('.check-state')?.textContent?.startsWith('Compiles: the same')"
        )
        change(server, {"growth": {"step": "25%"}})
        await page.until(f"{source}?.includes('25%')")
        await page.until("document.getElementById('notice')?.textContent?.includes('policies have changed')")
        await page.until(
            "document.querySelector('.check-state')?.textContent?.startsWith('Compiles: the same')"
        )

        # What somebody has written stays, and is compared with what is live now.
        await page.ask(
            "[...document.querySelectorAll('button')].find((one) => one.textContent === 'New file').click()"
        )
        await page.until("document.querySelector('.tried .differs del')")
        await page.ask(f"{shadow}.querySelector('.cm-content').focus()")
        await page.chord("End")
        await page.type("# mine\n")
        change(server, {"growth": {"step": "35%"}})
        await page.until("document.querySelector('.tried')?.innerText?.includes('35%')")
        assert await page.ask("document.querySelectorAll('.tried .differs').length") == 1
        assert "# mine" in await page.ask(source)
        assert await axe(page) == []

        # Policies that do not compile change nothing but what is said.
        await page.press("Escape")
        await page.ask("document.activeElement.blur()")
        await page.press("5")
        digest = await page.until("document.querySelector('.card .small')?.textContent")
        change(server, {"target": {"cel": "node.nothing"}})
        await page.until("document.getElementById('trouble')?.textContent?.includes('do not compile')")
        said = await page.ask("document.getElementById('trouble').textContent")
        assert "node.nothing" in said or "`nothing`" in said
        assert "those before it answer" in said
        assert await page.until("document.querySelector('.card .small')?.textContent") == digest
        change(server, {"target": None, "growth": {"step": "45%"}})
        await page.until(f"document.querySelector('.card .small').textContent !== {digest!r}")
        await page.ask("sessionStorage.clear()")

    flags = (
        "--live",
        "--policies-from-cluster",
        "--every",
        "1s",
        "--kubeconfig",
        str(server.kubeconfig("admin")),
    )
    with console(*flags) as address:
        drive(steps)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--policies-from-cluster",), "say `--live`, too"),
        (("--live", "--policies-from-cluster", "-p", "."), "give one of the two"),
    ],
    ids=["of no cluster", "and of files"],
)
def test_flags_that_exclude_each_other(flags: tuple[str, ...], said: str) -> None:
    words = [sys.executable, "-m", "koordpolicy.cli", "console", "--http", "127.0.0.1:0", *flags]
    ended = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert said in ended.stderr


def test_a_cluster_without_policies_is_not_begun_with(server: Access) -> None:
    pool = server.request("GET", f"{KIND}/pool")[1]
    assert server.request("DELETE", f"{KIND}/pool")[0] == 200
    words = [sys.executable, "-m", "koordpolicy.cli", "console", "--http", "127.0.0.1:0"]
    words += ["--live", "--policies-from-cluster", "--kubeconfig", str(server.kubeconfig("admin"))]
    try:
        ended = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 2
        assert "there are no policy objects in the cluster" in ended.stderr
    finally:
        pool["metadata"] = {"name": "pool"}
        assert server.request("POST", KIND, pool)[0] == 201
