"""What tests of the page do with it, and how it is looked over."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.conftest import REPOSITORY
from tests.integration.console.browser import Page

AXE = (REPOSITORY / "tests/data/axe/axe.min.js").read_text(encoding="utf-8")

Steps = Callable[[Page], Awaitable[None]]


async def opened(page: Page, address: str, view: str = "cluster") -> None:
    await page.go(f"{address}/#/{view}")
    await page.until("document.querySelector('#tabs a[aria-current]')")


async def axe(page: Page) -> list[Any]:
    """What axe-core finds wrong."""
    await page.tell("Runtime.evaluate", expression=AXE)
    found: list[Any] = json.loads(
        await page.ask(
            "axe.run(document, {resultTypes: ['violations']}).then(({violations}) => JSON.stringify(violations.map("
            "(one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html + node.failureSummary)])))"
        )
    )
    return found


async def middle(page: Page, element: str) -> tuple[float, float]:
    """Where the middle of an element is on the page, for the mouse."""
    x, y = await page.ask(
        f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({element}.getBoundingClientRect())"
    )
    return x, y
