"""The console in a real browser, by keyboard and mouse."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.integration.console.browser import Page
from tests.integration.console.console import console
from tests.integration.console.driving import Steps, axe, middle, opened
from tests.integration.console.manifests import HOSTILE, manifests
from tests.parts.deployed import install
from tests.parts.shared import SharedServer

TITLE = "document.querySelector('.panel h2')?.textContent"
TIME = "document.querySelector('.time')?.textContent"


@pytest.fixture(scope="module")
def demo() -> Iterator[str]:
    """The example, whose clock is at rest."""
    with console("--paused") as address:
        yield address


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of manifests."""
    file = tmp_path_factory.mktemp("cluster") / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": manifests()}))
    with console("-f", str(file)) as address:
        yield address


async def step(page: Page, moment: str) -> None:
    """Let a simulation go on by single reports to a moment."""
    for _ in range(20):
        if await page.ask(TIME) == moment:
            return
        before = await page.ask(TIME)
        await page.press(".")
        await page.until(f"{TIME} !== {before!r}")
    raise AssertionError(await page.ask(TIME))


def test_the_keyboard_does_everything(demo: str, drive: Callable[[Steps], None]) -> None:
    async def steps(page: Page) -> None:
        await opened(page, demo)
        await page.until(f"{TIME} === '00:00'")
        await step(page, "00:04")
        await page.press("m", "ArrowRight", "ArrowRight", "ArrowDown", "Enter")
        node = await page.until(TITLE)
        assert node.startswith("node-")
        assert node not in ("node-000", "node-001")
        await page.until("document.querySelectorAll('.panel tbody tr').length > 0")
        await page.press(",")
        await page.until(f"{TIME} === '00:02'")
        await page.press("Escape")
        await page.until("document.querySelector('.panel').hidden")
        # The clock goes faster or slower, on from the moment that is looked at, and rests.
        await page.ask("document.querySelector('.controls select').focus()")
        await page.press("End")
        chosen = "fetch('/api/state?after=9').then((answer) => answer.json()).then(({clock}) => [clock.speed, clock.paused])"
        await page.until(f"{chosen}.then(([speed]) => speed === 0)")
        await page.press("Home")
        await page.until(f"{chosen}.then(([speed]) => speed === 600)")
        await page.ask("document.activeElement.blur()")
        await page.press(" ")
        await page.until(f"{TIME} === '00:04'")
        await page.press(" ")
        await page.until(f"{TIME} > '00:04'")
        await page.press(" ")
        await page.until(f"{chosen}.then(([, paused]) => paused)")
        await page.press("/")
        await page.type("shop-1")
        await page.until(
            "document.querySelector('.hits [aria-selected=true] .hit')?.textContent === 'default/shop-1'"
        )
        await page.press("Enter")
        await page.until(f"{TITLE} === 'shop-1'")
        story = await page.until(
            "document.querySelectorAll('.story > li').length > 3 && document.querySelector('.story').innerText"
        )
        assert "Admitted" in story
        assert "of 100 nodes passed the filters" in story
        agent = await page.ask(
            "[...document.querySelectorAll('[data-hold]')].map((one) => one.textContent).join(' ')"
        )
        assert "CPU suppression: It is no best-effort pod, and is left alone." in agent
        assert "CPUSuppress.target" in agent
        place = await page.ask(
            "[...document.querySelectorAll('.story .line')].map((one) => one.title).join(' ')"
        )
        assert "agent/cpu-suppress.yaml:" in place
        await page.press("t")
        assert await page.ask("document.documentElement.dataset.theme") == "dark"
        await page.press("t", "2")
        await page.until("document.querySelector('.detail h2')?.textContent === 'CPUSuppress.target'")

    drive(steps)


def test_the_mouse_chooses_pans_and_zooms(demo: str, drive: Callable[[Steps], None]) -> None:
    async def steps(page: Page) -> None:
        await opened(page, demo)
        await page.until("document.querySelector('.map canvas').width > 500")
        await asyncio.sleep(0.1)  # until the map has its first picture
        box = await page.ask(
            "(({x, y}) => [x, y])(document.querySelector('.map canvas').getBoundingClientRect())"
        )
        shot = "document.querySelector('.map canvas').toDataURL()"
        before = await page.ask(shot)
        await page.drag((box[0] + 400, box[1] + 200), (box[0] + 460, box[1] + 240))
        await page.until(f"{shot} !== {before!r}")
        await page.mouse("mouseWheel", box[0] + 400, box[1] + 200, deltaX=0, deltaY=-240)
        await page.press("0")
        await asyncio.sleep(0.4)  # until it has glided there
        at = (0.0, 0.0)
        for step_right in range(60):  # the first place to the right that has a node
            at = (box[0] + 300 + 5 * step_right, box[1] + 231 + step_right)
            await page.mouse("mouseMoved", *at)
            if await page.ask("document.querySelector('.map canvas').classList.contains('over')"):
                break
        await page.click(*at)
        assert (await page.until(TITLE)).startswith("node-")

    drive(steps)


def test_the_rule_graph_opens_whole_and_is_searched_zoomed_and_collapsed(
    demo: str, drive: Callable[[Steps], None]
) -> None:
    boxes = "[...document.querySelectorAll('.graph .box')]"
    stage = "document.querySelector('.graph').getBoundingClientRect()"
    inside = f"(({{left, top, right, bottom}}) => {boxes}.map((one) => one.getBoundingClientRect()).every((one) => one.left >= left && one.top >= top && one.right <= right && one.bottom <= bottom))({stage})"
    size = f"{boxes}.at(-1).getBoundingClientRect().height"

    async def steps(page: Page) -> None:
        for width in (390, 1280):
            await page.size(width, 800)
            await opened(page, demo, "policies")
            await page.until(f"{boxes}.length > 6")
            assert await page.ask(inside), width
            await page.go("about:blank")
        await opened(page, demo, "policies")
        await page.until(f"{boxes}.length > 6")
        assert await axe(page) == []
        whole = await page.ask(size)
        await page.click(
            *await middle(page, "document.querySelector('.graph-stage [aria-label=\"Zoom in\"]')")
        )
        assert await page.ask(size) > 1.4 * whole
        await page.ask("document.querySelector('.graph').focus()")
        await page.press("0")
        assert await page.ask(size) == pytest.approx(whole)

        # By keys to a fact, which is brought near; what has to do with it stays, all else is faint.
        for _ in range(30):
            await page.press("Tab")
            if await page.ask("document.activeElement.classList.contains('fact')"):
                break
        chosen = "document.activeElement.querySelector('.title')?.textContent"
        title = await page.until(chosen)
        await page.press("Enter")
        assert await page.ask(chosen) == title
        assert await page.ask("document.querySelectorAll('.graph .box.faint').length") > 0
        assert await page.ask(size) > 1.4 * whole
        near = "(({left, right}) => ((one) => one.left >= left && one.right <= right)(document.activeElement.getBoundingClientRect()))"
        assert await page.ask(f"{near}({stage})")
        await page.press("Escape")

        # Collapsed: without facts, then documents alone.
        count = await page.ask(f"{boxes}.length")
        facts = await page.ask("document.querySelectorAll('.graph .fact').length")
        await page.click(*await middle(page, "document.querySelector('.role.fact')"))
        assert await page.ask(f"{boxes}.length") == count - facts
        await page.click(*await middle(page, "document.querySelector('#overview')"))
        await page.until(f"{boxes}.length < {count - facts}")

        await page.press("f")
        await page.type("growth step agent")
        await page.until("document.querySelectorAll('.tree a').length === 1")
        await page.press("Tab", "Tab", "Tab", "Enter")
        await page.until("document.querySelector('.detail h2')?.textContent === 'CPUSuppress.growth.step'")
        await page.click(*await middle(page, "document.querySelector('.detail .line')"))
        here = await page.until("document.querySelector('dialog .here')?.innerText")
        assert "step" in here

    drive(steps)


def test_a_slip_in_the_playground_is_found_where_it_stands(demo: str, drive: Callable[[Steps], None]) -> None:
    async def steps(page: Page) -> None:
        await opened(page, demo, "playground")
        await page.until(
            "document.querySelector('.check-state')?.textContent.startsWith('Compiles: the same')"
        )
        await page.ask(
            "[...document.querySelectorAll('button')].find((one) => one.textContent === 'New file').click()"
        )
        await page.until("document.querySelector('.tried .differs')")
        changed = await page.ask("document.querySelector('.tried .lead').textContent")
        assert "decisions differ" in changed
        # Asked of a pod, whose name is offered, as well as of a node.
        await page.ask("document.querySelector('.ask input').select()")
        await page.click(*await middle(page, "document.querySelector('.ask input')"))
        await page.chord("a")
        await page.type("default/shop-1")
        await page.until(
            "[...document.querySelectorAll('#playground-names option')].some((one) => one.value === 'default/shop-1')"
        )
        await page.ask("document.querySelector('.ask select').value = 'CPUBurst'")
        await page.press("Enter")
        await page.until("document.querySelector('.tried')?.innerText.includes('1000%')")
        await page.ask("document.querySelector('.ask select').value = 'CPUSuppress'")
        await page.ask("document.querySelector('.editor').shadowRoot.querySelector('.cm-content').focus()")
        await page.type("nonsense: 1\n")
        await page.until("document.querySelector('.check-state')?.textContent.startsWith('Does not compile')")
        finding = await page.until("document.querySelector('.findings .error')?.innerText")
        assert "try-1.yaml:1" in finding
        assert "KP" in finding

        # What differs from the live text, document by document.
        shown = (
            "[...document.querySelectorAll('.document')].map((one) => one.innerText.replaceAll(/\\s+/g, ' '))"
        )
        (tried,) = await page.ask(shown)
        assert tried.startswith("CPUSuppress/tried try-1.yaml, new +7 −0")
        await page.click(*await middle(page, "document.querySelector('.file[title$=\"batch.yaml\"]')"))
        await page.ask("document.querySelector('.editor').shadowRoot.querySelector('.cm-content').focus()")
        await page.chord("End")
        await page.type("# more")
        await page.until(f"{shown}.length === 2")
        changed = (await page.ask(shown))[0]
        assert changed.startswith("ColocationProfile/best-effort-pods batch.yaml +1 −0")
        assert changed.endswith("26 + # more")
        assert await page.ask("document.querySelector('.said').getBoundingClientRect().bottom <= innerHeight")
        assert await axe(page) == []
        await page.ask(
            "[...document.querySelectorAll('button')].find((one) => one.textContent === 'Back to live').click()"
        )
        await page.until(f"{shown}.length === 0")
        await page.ask("sessionStorage.clear()")  # which keeps what was edited

    drive(steps)


def test_what_could_stand_at_the_cursor_is_offered(demo: str, drive: Callable[[Steps], None]) -> None:
    shadow = "document.querySelector('.editor').shadowRoot"
    offers = f"[...{shadow}.querySelectorAll('.cm-tooltip-autocomplete .cm-completionLabel')].map((one) => one.textContent)"
    text = f"{shadow}.querySelector('.cm-content').innerText"

    async def steps(page: Page) -> None:
        await opened(page, demo, "playground")
        await page.until("document.querySelector('.check-state')?.textContent.startsWith('Compiles')")
        await page.ask(
            "[...document.querySelectorAll('button')].find((one) => one.textContent === 'New file').click()"
        )
        await page.until("document.querySelector('.tried .differs')")
        await page.ask(f"{shadow}.querySelector('.cm-content').focus()")
        await page.chord("End")
        await page.type(
            "# 😀😀\n  enab"
        )  # two letters that are four in JavaScript; a field of the kind, by its beginning
        await page.until(f"{offers}.length > 0")
        assert await page.ask(offers) == ["enabled"]
        await asyncio.sleep(0.1)  # a list that has just come takes no Enter, which was meant for the text
        await page.press("Enter")
        await page.until(f"{text}.includes('  enabled: ')")
        await page.type("{cel: node.cap")
        await page.until(f"{offers}.includes('capacity')")
        assert await axe(page) == []
        await page.press("Escape")
        await page.until(f"{offers}.length === 0")
        await page.chord(" ")
        await page.until(f"{offers}.includes('capacity')")
        box = await page.ask(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({shadow}.querySelector('.cm-tooltip-autocomplete li').getBoundingClientRect())"
        )
        await page.click(*box)
        await page.until(f"{text}.includes('node.capacity')")
        await page.ask("sessionStorage.clear()")

    drive(steps)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(demo: str, drive: Callable[[Steps], None], *, dark: bool) -> None:
    async def steps(page: Page) -> None:
        await page.size(1280, 800, dark=dark)
        for view, ready in (
            ("cluster/node/node-003", "document.querySelector('.panel h2')"),
            ("cluster/pod/shop-2", "document.querySelector('.story')"),
            ("policies", "document.querySelector('.graph .box')"),
            ("playground", "document.querySelector('.tried details')"),
            ("groups", "document.querySelectorAll('.groups section h2').length === 3"),
            ("revisions", "document.querySelector('.card')"),
        ):
            await opened(page, demo, view)
            await page.ask(f"document.documentElement.dataset.theme = {'dark' if dark else 'light'!r}")
            await page.until(ready)
            assert await axe(page) == [], view
        await page.press("/")
        await page.until("document.querySelector('.hits li')")
        assert await axe(page) == [], "search"
        await page.press("Escape")
        await page.size(420, 800, dark=dark)
        await opened(page, demo, "cluster")
        await page.until("document.querySelector('.map canvas')?.width > 300")
        assert await axe(page) == [], "narrow"
        assert await page.ask("document.documentElement.scrollWidth") == 420

    drive(steps)


def test_hostile_names_are_only_text(manifest: str, drive: Callable[[Steps], None]) -> None:
    async def steps(page: Page) -> None:
        await page.size(600, 800)  # where the view is narrow, too
        for view in (
            "cluster",
            "cluster/node/" + quoted(HOSTILE),
            "cluster/pod/" + quoted(f"{HOSTILE}/{HOSTILE}"),
            "groups/quota/" + quoted(HOSTILE),
        ):
            await opened(page, manifest, view)
            await page.until("!document.body.innerText.includes('Asking')")
        await opened(page, manifest, "cluster/node/" + quoted(HOSTILE))
        assert await page.until(TITLE) == HOSTILE
        await page.until("document.querySelector('.panel tbody a')")
        assert await page.ask("document.querySelectorAll('img').length") == 0
        assert await page.ask("document.title") != "taken"

    drive(steps)


def test_quotas_say_who_lends_what_to_whom(manifest: str, drive: Callable[[Steps], None]) -> None:
    async def steps(page: Page) -> None:
        await opened(page, manifest, "groups")
        cells = "[...document.querySelectorAll('.lent tbody tr')].map((row) => [row.dataset.quota, row.lastElementChild.innerText])"
        await page.until(f"{cells}.length === 3")
        assert dict(await page.ask(cells)) == {
            HOSTILE: "lends 6 to borrower",
            "borrower": f"borrows 6 from {HOSTILE}",
            "full": "",
        }
        await page.click(*await middle(page, "document.querySelector('.lent a[href$=borrower]')"))
        await page.until(f"document.querySelector('.detail').innerText.includes({HOSTILE!r})")
        assert f"borrower borrows 6 from {HOSTILE}" in await page.ask(
            "document.querySelector('.detail').innerText"
        )
        assert await axe(page) == []

    drive(steps)


def test_cards_and_zones_of_a_node_say_whose_they_are(manifest: str, drive: Callable[[Steps], None]) -> None:
    async def steps(page: Page) -> None:
        await opened(page, manifest, "cluster/node/n0")
        text = await page.until(
            "((text) => text?.includes('Zones') && text)(document.querySelector('.panel')?.innerText)"
        )
        for said in ("gpu 0", "gpu 1", "65 %", "half 40 %", "pinned 25 %", "CPUs 0-3, 2 free", "has 0-1"):
            assert said in text
        assert await axe(page) == []

    drive(steps)


def test_a_rollout_says_what_the_new_revision_decides_otherwise(
    apiserver: SharedServer, drive: Callable[[Steps], None]
) -> None:
    install(apiserver)
    path = "/apis/koordpolicy.io/v1alpha1/policyrevisions"
    kind = {"apiVersion": "koordpolicy.io/v1alpha1", "kind": "PolicyRevision"}
    name, now = "shown-in-the-console", "2026-01-02T03:04:05Z"
    spec = {"bundle": "ours", "revision": "abc", "digest": "abc", "origin": "here"}
    status, answer = apiserver.request("POST", path, {**kind, "metadata": {"name": name}, "spec": spec})
    assert status == 201, answer

    def observed(process: str, step: str, compared: int, different: int) -> dict[str, Any]:
        tally = {"kind": "CPUSuppress", "compared": compared, "different": different, "failed": 0}
        times = {"activeMicroseconds": 100, "candidateMicroseconds": 150}
        return {"name": process, "step": step, "canary": False, **times, "kinds": [tally]}

    told = {
        "phase": "Progressing",
        "step": 1,
        "stepName": "shadow",
        "message": "it waits for <b>answers</b>",
        "failing": [{"guard": "disagreement", "since": now}],
        "history": [{"time": now, "event": "Started", "message": "it began", "by": "koordpolicy"}],
        "observations": [
            observed("a", "shadow", 1000, 20),
            observed("b", "shadow", 1000, 30),
            observed("c", "before", 5, 5),
        ],
    }
    status, answer = apiserver.request("PATCH", f"{path}/{name}/status", {"status": {"rollout": told}})
    assert status == 200, answer

    async def steps(page: Page) -> None:
        await opened(page, address, "revisions")
        # Others may have rollouts on the same server: each is a landmark with the name of its own.
        shown = f"document.querySelector('section[aria-label=\"Rollout of {name}\"]')"
        row = await page.until(f"{shown}?.querySelector('.shadow tbody tr')?.innerText")
        assert row.split() == ["CPUSuppress", "2,000", "50", "0", "2.5", "%"]
        card = await page.ask(f"{shown}.innerText")
        for said in ("Progressing", "step shadow", "<b>answers</b>", "Guard disagreement fails", "150 %"):
            assert said in card
        assert await axe(page) == []

    try:
        with console("--live", "--kubeconfig", str(apiserver.kubeconfig("admin"))) as address:
            drive(steps)
    finally:
        assert apiserver.request("DELETE", f"{path}/{name}")[0] == 200


def test_a_thousand_nodes_are_there_at_once(drive: Callable[[Steps], None]) -> None:
    async def steps(page: Page) -> None:
        await opened(page, address)
        await page.until(f"{TIME} === '00:00'")
        await step(page, "00:02")
        await page.press("m", "End", "Enter")
        await page.until(f"{TITLE} === 'node-00999'")
        await page.until("Number(document.querySelectorAll('.sums dd')[5].textContent) > 10")

    with console("--generate", "1000:400", "--paused") as address:
        drive(steps)


def quoted(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())
