"""Rollouts of a real API server, steered from the page by whoever has the token, and by nobody else."""

import contextlib
import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.rollout.machine import begin
from koordpolicy.runtime.rollout.plan import RolloutPlan, RolloutStep
from koordpolicy.runtime.rollout.state import Phase, RolloutProgress, Subject, to_json
from tests.integration.console.browser import Page
from tests.integration.console.console import console
from tests.integration.console.driving import Steps, axe, middle, opened
from tests.parts.deployed import install
from tests.parts.shared import SharedServer

PATH = "/apis/koordpolicy.io/v1alpha1/policyrevisions"
MINUTE = 60 * 10**9
NAME = "steered-by-the-console"
TOKEN = "s3cret"
SUBJECT = Subject(NAME, "steered", "b" * 40, "d" * 64, "0" * 40, "b" * 40)
BEGUN = begin(SUBJECT, RolloutPlan((RolloutStep("shadow", 10 * MINUTE),), ()), now_ns())
CARD = f"[...document.querySelectorAll('.card')].find((one) => one.innerText.includes({NAME!r}))"


@pytest.fixture(scope="module")
def revision(apiserver: SharedServer) -> Iterator[None]:
    """A revision whose rollout goes on."""
    install(apiserver)
    spec = {
        "bundle": "steered",
        "revision": "b" * 40,
        "digest": "d" * 64,
        "commit": "b" * 40,
        "origin": "here",
    }
    kind = {"apiVersion": "koordpolicy.io/v1alpha1", "kind": "PolicyRevision"}
    status, answer = apiserver.request("POST", PATH, {**kind, "metadata": {"name": NAME}, "spec": spec})
    assert status == 201, answer
    try:
        yield
    finally:
        assert apiserver.request("DELETE", f"{PATH}/{NAME}")[0] == 200


def standing(apiserver: SharedServer, state: RolloutProgress) -> None:
    """The rollout stands so, and nothing is asked of it."""
    body = {"metadata": {"annotations": None}}
    assert apiserver.request("PATCH", f"{PATH}/{NAME}", body)[0] == 200
    status, answer = apiserver.request(
        "PATCH", f"{PATH}/{NAME}/status", {"status": {"rollout": to_json(state)}}
    )
    assert status == 200, answer


def asked(apiserver: SharedServer) -> Mapping[str, str]:
    """What stands in annotations of the revision."""
    found = apiserver.request("GET", f"{PATH}/{NAME}")[1]["metadata"].get("annotations") or {}
    return {name.removeprefix("koordpolicy.io/"): value for name, value in found.items()}


@pytest.fixture(scope="module")
def steered(apiserver: SharedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text(f"{TOKEN}\n")
    flags = ("--live", "--every", "1s", "--kubeconfig", str(apiserver.kubeconfig("admin")))
    with console(*flags, "--bearer-token-file", str(file)) as address:
        yield address


def told(address: str, headers: Mapping[str, str], body: Any) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=20)
    with contextlib.closing(connection):
        sent = {"Content-Type": "application/json", **headers}
        connection.request("POST", "/api/rollout", json.dumps(body), sent)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def button(action: str) -> str:
    return f"document.querySelector('[data-action=\"{NAME} {action}\"]')"


@pytest.mark.usefixtures("revision")
def test_whoever_has_the_token_pauses_resumes_and_aborts(
    apiserver: SharedServer, steered: str, drive: Callable[[Steps], None]
) -> None:
    standing(apiserver, BEGUN)

    async def steps(page: Page) -> None:
        await page.go(f"{steered}/#/revisions")
        await page.until("document.activeElement?.id === 'token'")
        await page.click(*await middle(page, "document.querySelector('dialog [aria-label=Close]')"))
        await page.until("document.querySelector('main').innerText.includes('owners of its token alone')")
        assert await axe(page) == []
        await page.click(*await middle(page, "document.querySelector('main button')"))
        await page.until("document.activeElement?.id === 'token'")
        page.problems.clear()  # the browser tells of the answer that a token is wanted
        await page.type(TOKEN)
        await page.press("Enter")
        await page.until(button("pause"))
        assert not await page.ask(button("resume"))
        for _ in range(60):  # to the button by keys alone
            await page.press("Tab")
            if await page.ask(f"document.activeElement === {button('pause')}"):
                break
        await page.press("Enter")
        await page.until("document.querySelector('dialog')?.innerText.includes('stays in the present step')")
        assert await axe(page) == []
        assert asked(apiserver) == {}
        await page.press("Tab", "Enter")  # past the cross that closes
        await page.until(f"{CARD}.innerText.includes('Asked to pause by ')")
        wanted = asked(apiserver)
        assert wanted["rollout"] == "pause"
        assert wanted["rollout-by"].endswith(" in the console")
        assert len(wanted["rollout-id"]) == 12

        standing(apiserver, replace(BEGUN, phase=Phase.PAUSED, paused_at=now_ns(), message="somebody asked"))
        await page.until(button("resume"))  # without anything pressed
        await page.click(*await middle(page, button("abort")))
        await page.until("document.querySelector('dialog')?.innerText.includes('cannot go on afterwards')")
        await page.press("Escape")
        await page.until("!document.querySelector('dialog')")
        assert asked(apiserver) == {}
        await page.click(*await middle(page, button("abort")))
        await page.click(*await middle(page, "document.querySelector('dialog .primary')"))
        await page.until(f"{CARD}.innerText.includes('Asked to abort by ')")
        assert asked(apiserver)["rollout"] == "abort"
        for width, dark in ((1280, False), (390, True)):
            await page.size(width, 900, dark=dark)
            await page.ask(f"document.documentElement.dataset.theme = {'dark' if dark else 'light'!r}")
            assert await axe(page) == []
            assert await page.ask("document.documentElement.scrollWidth") == width

        standing(apiserver, replace(BEGUN, phase=Phase.ABORTED))
        await page.until(f"!{button('abort')}")
        await page.ask("sessionStorage.clear()")

    drive(steps)


@pytest.mark.usefixtures("revision")
def test_nobody_else_does(apiserver: SharedServer, steered: str) -> None:
    standing(apiserver, BEGUN)
    body, token = {"name": NAME, "action": "abort"}, {"Authorization": f"Bearer {TOKEN}"}
    assert told(steered, {}, body)[0] == 401
    assert told(steered, {"Authorization": "Bearer another"}, body)[0] == 401
    assert told(steered, {**token, "Origin": "http://elsewhere.example"}, body)[0] == 403
    assert told(steered, {**token, "Sec-Fetch-Site": "cross-site"}, body)[0] == 403
    assert told(steered, {**token, "Host": "elsewhere.example"}, body)[0] == 421
    assert told(steered, {**token, "Content-Type": "text/plain"}, body)[0] == 415
    assert asked(apiserver) == {}
    for wrong, said in (
        ({"name": NAME, "action": "delete"}, "`action` is one of pause, resume, abort"),
        ({"name": NAME, "action": "resume"}, "is not paused"),
        ({"name": "not-there", "action": "abort"}, "there is no rollout of `not-there`"),
        ({"action": "abort"}, "`name` is a PolicyRevision's"),
    ):
        status, text = told(steered, token, wrong)
        assert status == 404
        assert said in text
    assert asked(apiserver) == {}
    standing(apiserver, replace(BEGUN, phase=Phase.COMPLETE))
    assert "is over" in told(steered, token, body)[1]


@pytest.mark.usefixtures("revision")
def test_without_a_token_nothing_can_be_asked(
    apiserver: SharedServer, drive: Callable[[Steps], None]
) -> None:
    standing(apiserver, BEGUN)

    async def steps(page: Page) -> None:
        await opened(page, address, "revisions")
        await page.until(f"{CARD}?.querySelector('.rollout')")
        assert not await page.ask(button("pause"))
        assert "read-only" in await page.ask("document.querySelector('#world-title').innerText")

    with console("--live", "--kubeconfig", str(apiserver.kubeconfig("admin"))) as address:
        assert told(address, {}, {"name": NAME, "action": "abort"})[0] == 404
        drive(steps)
    assert asked(apiserver) == {}
