"""The policies of a link that a console follows, beside the revisions that a real API server tells of."""

from collections.abc import Callable
from pathlib import Path

from tests.integration.console.browser import Page
from tests.integration.console.console import console
from tests.integration.console.driving import Steps, axe, opened
from tests.parts.deployed import install
from tests.parts.shared import SharedServer
from tests.unit.cli.test_console_policies import digest_of_processes, led, written

PATH = "/apis/koordpolicy.io/v1alpha1/policyrevisions"
NAME = "followed-by-the-console"
CARD = "document.querySelector('[aria-label=\"What answers here\"]')?.innerText"


def test_revisions_say_whether_what_answers_is_live(
    apiserver: SharedServer, drive: Callable[[Steps], None], tmp_path: Path
) -> None:
    install(apiserver)
    one, two = written(tmp_path / ("a" * 40), "15%"), written(tmp_path / ("b" * 40), "25%")
    live = tmp_path / "live"
    live.symlink_to(one)

    async def steps(page: Page) -> None:
        digest = await digest_of_processes(two)
        spec = {"bundle": "ours", "revision": "b" * 40, "digest": digest, "commit": "b" * 40}
        kind = {"apiVersion": "koordpolicy.io/v1alpha1", "kind": "PolicyRevision"}
        status, answer = apiserver.request("POST", PATH, {**kind, "metadata": {"name": NAME}, "spec": spec})
        assert status == 201, answer
        instance = {
            "name": "one",
            "component": "scheduler",
            "state": "Active",
            "since": "2026-01-01T00:00:00Z",
        }
        told = {"status": {"instances": [instance]}}
        assert apiserver.request("PATCH", f"{PATH}/{NAME}/status", told)[0] == 200
        await opened(page, address, "revisions")
        await page.until(f"{CARD}?.includes('not what is live')")
        assert NAME in await page.ask(CARD)
        assert await axe(page) == []
        led(live, two)
        await page.until(f"{CARD}?.includes('The same content as {NAME}')")
        assert "not what is live" not in await page.ask(CARD)

    flags = ("--live", "--every", "1s", "-p", str(live), "--kubeconfig", str(apiserver.kubeconfig("admin")))
    try:
        with console(*flags) as address:
            drive(steps)
    finally:
        apiserver.request("DELETE", f"{PATH}/{NAME}")
