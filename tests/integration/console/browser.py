"""A real Chromium without a window, driven over its DevTools protocol: keys, mouse, what the page says of itself."""

import asyncio
import base64
import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

PATIENCE = 20.0
_KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "Tab": ("Tab", 9, ""),
    " ": ("Space", 32, " "),
    "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "Home": ("Home", 36, ""),
    "End": ("End", 35, ""),
    ".": ("Period", 190, "."),
    ",": ("Comma", 188, ","),
    "/": ("Slash", 191, "/"),
}


class PageProblem(AssertionError):
    """The page did not come to what was waited for, or a script of it failed."""


class Page:
    """One tab. `problems` are errors of its scripts, and what its content security policy refused."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._next = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                self._answers.pop(told["id"]).set_result(told)
            elif told["method"] == "Runtime.exceptionThrown":
                details = told["params"]["exceptionDetails"]
                self.problems.append(details.get("exception", {}).get("description", details["text"]))
            elif told["method"] == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
                entry = told["params"]["entry"]
                self.problems.append(f"{entry['text']} {entry.get('url', '')}")
            elif told["method"] == "Network.requestWillBeSent":
                self.requests.append(told["params"]["request"]["url"])

    async def tell(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._next += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[self._next] = answer
        await self._socket.send_json({"id": self._next, "method": method, "params": parameters})
        told = await asyncio.wait_for(answer, 60)
        if "error" in told:
            raise PageProblem(f"{method}: {told['error']}")
        result: dict[str, Any] = told["result"]
        return result

    async def ask(self, expression: str) -> Any:
        """The value of JavaScript, promises waited for."""
        told = await self.tell(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in told:
            raise PageProblem(told["exceptionDetails"]["exception"].get("description", "an exception"))
        return told["result"].get("value")

    async def until(self, expression: str, patience: float = PATIENCE) -> Any:
        """Wait until JavaScript gives something that is true; that."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        # An element is handed over as an empty object, which Python takes for nothing.
        asked = f"((found) => (found instanceof Node ? true : found))({expression})"
        while not (found := await self._asked_meanwhile(asked)):
            if loop.time() > end:
                text = await self.ask("document.body.innerText.slice(0, 1500)")
                raise PageProblem(f"not so after {patience:.0f} s: {expression}\n{self.problems}\n{text}")
            await asyncio.sleep(0.05)
        return found

    async def _asked_meanwhile(self, expression: str) -> Any:
        """The value of JavaScript; nothing while the page goes somewhere else, or is being drawn anew."""
        try:
            return await self.ask(expression)
        except PageProblem as problem:
            if not any(words in str(problem) for words in ("navigated", "Cannot read properties of null")):
                raise
            return None

    async def go(self, address: str) -> None:
        await self.tell("Page.navigate", url=address)
        await self.until(
            f"location.href.startsWith({address.partition('#')[0]!r}) && document.readyState === 'complete'"
        )

    async def press(self, *keys: str) -> None:
        for key in keys:
            code, number, text = _KEYS.get(key, (key, ord(key[0].upper()), key))
            said = {"key": key, "code": code, "windowsVirtualKeyCode": number}
            await self.tell(
                "Input.dispatchKeyEvent", type="keyDown", **said, **({"text": text} if text else {})
            )
            await self.tell("Input.dispatchKeyEvent", type="keyUp", **said)

    async def chord(self, key: str) -> None:
        """A key together with Control."""
        code, number, _ = _KEYS.get(key, (key, ord(key[0].upper()), key))
        said = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": 2}
        await self.tell("Input.dispatchKeyEvent", type="rawKeyDown", **said)
        await self.tell("Input.dispatchKeyEvent", type="keyUp", **said)

    async def type(self, text: str) -> None:
        await self.tell("Input.insertText", text=text)

    async def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        await self.tell("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    async def click(self, x: float, y: float) -> None:
        await self.mouse("mouseMoved", x, y)
        await self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        await self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    async def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = 8) -> None:
        await self.mouse("mousePressed", *start, button="left", buttons=1, clickCount=1)
        for step in range(1, steps + 1):
            x, y = (a + (b - a) * step / steps for a, b in zip(start, end, strict=True))
            await self.mouse("mouseMoved", x, y, button="left", buttons=1)
        await self.mouse("mouseReleased", *end, button="left", clickCount=1)

    async def size(self, width: int, height: int, *, dark: bool = False, ratio: float = 1) -> None:
        await self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=ratio,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.tell("Emulation.setEmulatedMedia", features=[scheme])

    async def picture(self, file: Path) -> None:
        told = await self.tell("Page.captureScreenshot", format="png")
        await asyncio.to_thread(file.write_bytes, base64.b64decode(told["data"]))

    async def close(self) -> None:
        self._reading.cancel()
        await self._socket.close()


@asynccontextmanager
async def browser(program: str | Path) -> AsyncIterator[Page]:
    """A page of a browser of its own, which ends with the block and leaves nothing."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = _started(str(program), folder)
        try:
            port = await _port(Path(folder, "DevToolsActivePort"), process)
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json") as response:
                    targets = await response.json()
                target = next(one for one in targets if one["type"] == "page")
                async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    page = Page(socket)
                    for domain in ("Page", "Runtime", "Log", "Network"):
                        await page.tell(f"{domain}.enable")
                    try:
                        yield page
                    finally:
                        await page.close()
        finally:
            await asyncio.to_thread(_ended, process)


def _started(program: str, folder: str) -> "subprocess.Popen[bytes]":
    words = [
        program,
        "--headless=new",
        "--remote-debugging-port=0",
        f"--user-data-dir={folder}",
        "--no-first-run",
        "--disable-gpu",
        "--disable-extensions",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--no-proxy-server",
    ]
    if os.geteuid() == 0:
        words.append("--no-sandbox")  # which root has none of
    return subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def _ended(process: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
            return


async def _port(file: Path, process: "subprocess.Popen[bytes]") -> int:
    for _ in range(600):
        if lines := _words(file):
            return int(lines[0])
        if process.poll() is not None:
            raise PageProblem(f"the browser ended with {process.returncode}")
        await asyncio.sleep(0.05)
    raise PageProblem("the browser does not start")


def _words(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []
