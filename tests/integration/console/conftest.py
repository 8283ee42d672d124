"""One browser for each file of tests."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.integration.console.browser import browser
from tests.integration.console.driving import Steps


@pytest.fixture(scope="module")
def drive(part: Callable[[str], Path]) -> Iterator[Callable[[Steps], None]]:
    """Does something with the page of one browser; afterwards its scripts have failed nowhere, and nothing came from elsewhere."""
    program = part("chromium")
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        page = runner.run(stack.enter_async_context(browser(program)))

        def do(steps: Steps) -> None:
            async def whole() -> None:
                page.problems.clear()
                page.requests.clear()
                await page.size(1280, 800)
                try:
                    await steps(page)
                finally:
                    await page.tell("Page.navigate", url="about:blank")

            runner.run(whole())
            assert page.problems == []
            places = {
                address.split("/")[2].split(":")[0] for address in page.requests if address.startswith("http")
            }
            assert places == {"127.0.0.1"}

        try:
            yield do
        finally:
            runner.run(stack.aclose())
