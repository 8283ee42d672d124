"""The pictures of the console in README, made anew: `python -m tests.integration.console.screenshots [DIRECTORY]`.

The example's day is simulated up to the morning, report by report, and the playground has two edited documents. A simulation is the
same for the same seed, so that only what the page looks like changes the pictures.
"""

import asyncio
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.conftest import REPOSITORY
from tests.integration.console.browser import Page, browser
from tests.integration.console.console import console
from tests.integration.console.driving import opened

SITE: Final = REPOSITORY / "deploy" / "site"
REPORTS: Final = 180
"""Reports of agents, two minutes each, after which the clock rests."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A file, what it shows, and what is there once it is ready."""

    name: str
    view: str
    ready: str
    size: tuple[int, int]
    dark: bool = False
    then: str = ""
    """What is done before it is taken."""


CLUSTER: Final = (1440, 900)
PICTURES: Final = (
    Picture(
        "console-light",
        "cluster/node/node-042",
        "document.querySelectorAll('.panel tbody tr').length",
        CLUSTER,
    ),
    Picture(
        "console-dark",
        "cluster/node/node-042",
        "document.querySelectorAll('.panel tbody tr').length",
        CLUSTER,
        dark=True,
    ),
    Picture(
        "console-rules",
        "policies",
        "document.querySelector('.graph .box')",
        CLUSTER,
        then="[...document.querySelectorAll('.graph .box.variable')].at(-1).dispatchEvent(new MouseEvent('click'))",
    ),
    Picture("console-playground", "playground", "document.querySelector('.tried .differs')", CLUSTER),
    Picture(
        "console-narrow",
        "cluster",
        "document.querySelector('.map canvas')?.width > 300",
        (390, 844),
        dark=True,
    ),
)

_EDIT: Final = """
fetch("/api/files").then((answer) => answer.json()).then(({own}) => {
  const [file, text] = Object.entries(own).find(([file]) => file.endsWith("batch.yaml"));
  const added = "---\\napiVersion: koordpolicy.io/v1alpha1\\nkind: CPUSuppress\\nmetadata: {name: tried}\\nspec:\\n  parameters:\\n    threshold: 55%\\n";
  const now = text.replace("band: batch", "band: mid") + added;
  sessionStorage.setItem("koordpolicy-edited", JSON.stringify({[file]: now}));
})
"""


async def take(page: Page, address: str, folder: Path) -> None:
    """All pictures of a console whose clock is at rest at the beginning."""
    await opened(page, address)
    steer = "fetch('/api/clock', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(%s)})"
    await page.ask(steer % "{speed: 0}")
    for _ in range(REPORTS):
        await page.ask(steer % "{step: true}")
    await page.until(
        f"fetch('/api/state?after=99999').then((answer) => answer.json()).then(({{frames}}) => frames > {REPORTS})",
        300,
    )
    await page.ask(steer % "{speed: 3600}")
    await page.ask(_EDIT)
    for picture in PICTURES:
        await page.size(*picture.size, dark=picture.dark)
        await page.go("about:blank")
        await opened(page, address, picture.view)
        await page.until(picture.ready, 60)
        if picture.then:
            await page.ask(picture.then)
        await asyncio.sleep(1.5)  # until everything has glided to its place
        await page.picture(folder / f"{picture.name}.png")


def main(folder: Path) -> None:
    """Take the pictures into a folder."""
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("there is no Chromium (Debian: apt-get install chromium)")

    async def whole(address: str) -> None:
        async with browser(program) as page:
            await take(page, address, folder)

    with console("--paused") as address:
        asyncio.run(whole(address))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SITE)
