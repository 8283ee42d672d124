"""The console's map in a real Chromium: frames while panning, beside those of the same page when nothing is drawn.

The browser has no window and draws without a graphics card, which is the hardest case: what a user has is faster. Shift and an
arrow key pan, as a user does; the time between two frames is taken from the browser's own clock. `at rest` is the peer: what
this browser gives on this machine, now, to a page that draws nothing.
"""

import asyncio
import json
import shutil
from collections.abc import Iterator
from typing import Any, Final

from tests.benchmarks.measure import Row
from tests.integration.console.browser import Page, browser
from tests.integration.console.console import console

SIZES: Final = (1_000, 5_000)
SECONDS: Final = 4

_FRAMES: Final = """
new Promise((done) => {
  const canvas = document.querySelector(".map canvas");
  const times = [];
  const begin = performance.now();
  let pressed = begin;
  let right = true;
  const frame = (now) => {
    times.push(now);
    if (PAN && now - pressed > 90) {
      pressed = now;
      if (times.length % 40 === 0) right = !right;
      canvas.dispatchEvent(new KeyboardEvent("keydown", { key: right ? "ArrowRight" : "ArrowLeft", shiftKey: true, bubbles: true }));
    }
    if (now - begin < SECONDS * 1000) requestAnimationFrame(frame);
    else done(JSON.stringify(times.slice(1).map((one, at) => one - times[at])));
  };
  requestAnimationFrame(frame);
})
"""


def run(divide: int = 1) -> Iterator[Row]:
    """A row a size and what is done. Raises RuntimeError where there is no Chromium."""
    program = shutil.which("chromium")
    if program is None:
        raise RuntimeError("there is no Chromium (Debian: apt-get install chromium)")
    for nodes in SIZES:
        with console("--generate", f"{nodes // divide}:{nodes // divide}", "--paused") as address:
            yield from asyncio.run(_measured(program, address, nodes // divide))


async def _measured(program: str, address: str, nodes: int) -> list[Row]:
    async with browser(program) as page:
        await page.size(1440, 900)
        await page.go(f"{address}/#/cluster")
        await page.until("document.querySelector('.time')?.textContent === '00:00'", 60)
        rows: list[Row] = []
        for name, pan, zooms in (
            ("at rest", False, 0),
            ("panning, all nodes", True, 0),
            ("panning, close by", True, 4),
        ):
            await page.press("m", *["+"] * zooms)
            await asyncio.sleep(1)
            rows.append({"nodes": nodes, "map": name, **_figures(await _times(page, pan=pan))})
        return rows


async def _times(page: Page, *, pan: bool) -> list[float]:
    script = _FRAMES.replace("PAN", "true" if pan else "false").replace("SECONDS", str(SECONDS))
    found: list[float] = json.loads(await page.ask(script))
    return sorted(found)


def _figures(times: list[float]) -> dict[str, Any]:
    return {
        "frames/s": round(1000 * len(times) / sum(times), 1),
        "median ms": round(times[len(times) // 2], 1),
        "p99 ms": round(times[min(len(times) - 1, len(times) * 99 // 100)], 1),
    }
