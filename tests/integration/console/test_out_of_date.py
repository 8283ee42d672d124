"""A console whose cluster is away: the page never shows old figures as live, whenever it was opened."""

from collections.abc import Callable

from tests.integration.console.browser import Page
from tests.integration.console.console import console
from tests.integration.console.driving import Steps, axe, opened
from tests.parts.shared import SharedServer

TOLD = "document.querySelector('#trouble[role=status]')?.textContent"
WORLD = "document.getElementById('world-title').textContent"


def test_what_is_shown_is_told_to_be_old_until_the_cluster_is_back(
    apiserver: SharedServer, drive: Callable[[Steps], None]
) -> None:
    async def steps(page: Page) -> None:
        await opened(page, address)
        assert await page.until(WORLD) == "live, read-only the cluster of the kubeconfig"
        assert await page.ask(TOLD) == ""
        proxy.refuse()
        proxy.cut()
        told = await page.until(TOLD)
        assert "What is shown is of " in told
        assert " and not newer: the cluster " in told
        assert "out of date" in await page.ask(WORLD)
        await page.tell("Page.reload")  # one who comes later sees it, too
        await page.until(f"{TOLD}?.includes('cannot be read')", 60)
        assert "out of date" in await page.ask(WORLD)
        assert await page.ask("document.getElementById('trouble').getBoundingClientRect().top < 100")
        assert await axe(page) == []
        proxy.accept()
        await page.until(f"{TOLD} === ''", 60)
        assert "live, read-only" in await page.ask(WORLD)

        # One that neither answers nor refuses, as a server whose store is away.
        proxy.hold()
        await page.until(f"{TOLD}?.includes('the cluster does not answer')", 30)
        proxy.release()
        await page.until(f"{TOLD} === ''", 60)

    with apiserver.proxy() as proxy:
        flags = ("--live", "--every", "1s", "--kubeconfig", str(proxy.kubeconfig()))
        with console(*flags) as address:
            drive(steps)
