"""What the console tells of a pod that is moved, and of the one that comes in its place."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from koordpolicy.model.protocol import DESCHEDULING_PROFILE, EVICT_REASON, EVICT_TRIGGER, PASSED_ARBITRATION
from koordpolicy.model.time import time_text
from tests.integration.console.browser import Page
from tests.integration.console.console import console
from tests.integration.console.driving import Steps, axe, opened
from tests.unit.descheduler import clusters

HOSTILE = "<img src=x onerror=\"document.title='taken'\">"


def migration(name: str, pod: str, **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "PodMigrationJob",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": time_text(clusters.NOW - 60 * 10**9),
            "annotations": {
                EVICT_TRIGGER: "LowNodeLoad",
                EVICT_REASON: f"node is overutilized {HOSTILE}",
                DESCHEDULING_PROFILE: "koord-descheduler",
                PASSED_ARBITRATION: "true",
            },
        },
        "spec": {
            "podRef": {"namespace": "default", "name": pod},
            "mode": "ReservationFirst",
            "ttl": "300s",
            "reservationOptions": {"reservationRef": {"name": f"room-{pod}"}},
        },
        "status": status,
    }


def room(pod: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": f"room-{pod}", "uid": f"uid-room-{pod}"},
        "spec": {"template": {"spec": {"containers": []}}, "owners": []},
        "status": {"phase": "Available", "nodeName": "empty"},
    }


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`first` is being moved, `gone` was, and `heir` came in its place; `second` stays."""
    pods = [clusters.pod("first", "full"), clusters.pod("second", "full"), clusters.pod("heir", "empty")]
    for one in pods:
        one["spec"]["schedulerName"] = "koord-scheduler"
    heir = {"namespace": "default", "name": "heir"}
    items = [
        *({"apiVersion": "v1", "kind": "Node", **clusters.node(name)} for name in ("full", "empty")),
        *({"apiVersion": "v1", "kind": "Pod", **one} for one in pods),
        {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", **clusters.report("full", {})},
        migration("move-first", "first", phase="Running"),
        migration("move-gone", "gone", phase="Succeeded", nodeName="empty", podRef=heir),
        room("first"),
    ]
    file = tmp_path_factory.mktemp("moving") / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": items}))
    with console("-f", str(file)) as address:
        yield address


async def told(page: Page) -> str:
    """The chapter of the descheduler."""
    text: str = await page.until(
        "document.querySelector('.story') && ([...document.querySelectorAll('.story > li')].find((one) =>"
        " one.querySelector('h3').textContent === 'Descheduler')?.innerText ?? 'none')"
    )
    return " ".join(text.split())


def test_why_a_pod_moves_and_what_that_waits_for(moving: str, drive: Callable[[Steps], None]) -> None:
    async def steps(page: Page) -> None:
        await opened(page, moving)
        await page.press("/")
        await page.type("first")
        await page.until("document.querySelector('.hits [aria-selected=true]')?.innerText.includes('first')")
        await page.press("Enter")
        said = await told(page)
        assert f"LowNodeLoad of koord-descheduler: node is overutilized {HOSTILE}" in said
        assert "It goes to empty, where room-first keeps room." in said
        assert "its pod is to be let go next" in said
        assert "Migration.frequency.workload.most" in said
        assert "240 seconds are left" in said
        place = await page.ask(
            "[...document.querySelectorAll('.story .line')].map((one) => one.title).join(' ')"
        )
        assert "descheduling/migration.yaml:" in place
        assert await page.ask("document.querySelectorAll('img').length") == 0
        for width, dark in ((1280, False), (390, True)):
            await page.size(width, 900, dark=dark)
            await page.ask(f"document.documentElement.dataset.theme = {'dark' if dark else 'light'!r}")
            assert await axe(page) == []

    drive(steps)


def test_a_pod_that_was_moved_leads_to_the_one_in_its_place(
    moving: str, drive: Callable[[Steps], None]
) -> None:
    async def steps(page: Page) -> None:
        await opened(page, moving, "cluster/pod/default%2Fgone")
        said = await told(page)
        assert "It was to be moved, which is over. Succeeded" in said
        assert "Room was kept on empty" in said
        box = await page.ask(
            "(({x, y, width, height}) => [x + width / 2, y + height / 2])([...document.querySelectorAll('.story a')]"
            ".find((one) => one.textContent === 'default/heir').getBoundingClientRect())"
        )
        await page.click(*box)
        await page.until("document.querySelector('.panel h2')?.textContent === 'heir'")
        assert "It came in place of gone, which was moved." in await told(page)
        await opened(page, moving, "cluster/pod/default%2Fsecond")
        await page.until("document.querySelector('.panel h2')?.textContent === 'second'")
        assert await told(page) == "none"

    drive(steps)
