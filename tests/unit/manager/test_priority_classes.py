"""PriorityClasses of bands: made, mended, taken away, and never those of others."""

import asyncio
import itertools
from typing import Any

import pytest

from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import Unreachable
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import Resource
from koordpolicy.manager.controllers.priority_classes import PriorityClasses
from tests.vectors.policies import document, graph


class Site:
    """A cluster, and who keeps its classes by these policies."""

    def __init__(self, policies: RuleGraph) -> None:
        self.policies = policies
        clock = itertools.count()
        self.store = Store(lambda: next(clock))
        self.kept = PriorityClasses(MemoryCluster(self.store), lambda: self.policies, Backoff(lambda: 0.0))

    def keep(self) -> int:
        """One look; how much was written."""
        before = self.kept.written
        asyncio.run(self.kept.keep())
        return self.kept.written - before

    def said(self) -> dict[str, tuple[int, str]]:
        listed = self.store.list(resources.PRIORITY_CLASSES).items
        return {
            one["metadata"]["name"]: (one["value"], one.get("preemptionPolicy", ""))
            for one in listed
            if not one["metadata"]["name"].startswith("system-")
        }

    def replace(self, name: str, **spec: Any) -> None:
        """What somebody can do with his hands: delete it and make another."""
        if self.store.find(resources.PRIORITY_CLASSES, name) is not None:
            self.store.delete(resources.PRIORITY_CLASSES, name)
        labels = spec.pop("labels", {})
        self.store.create(resources.PRIORITY_CLASSES, {"metadata": {"name": name, "labels": labels}, **spec})


def band(of: str, /, **priority_class: Any) -> dict[str, Any]:
    return document("PriorityBand", of, {"priorityClass": priority_class})


PACK = {
    "koord-prod": (9000, "PreemptLowerPriority"),
    "koord-mid": (7000, "PreemptLowerPriority"),
    "koord-batch": (5000, "PreemptLowerPriority"),
    "koord-free": (3000, "PreemptLowerPriority"),
}


def test_bands_have_their_classes_and_a_second_look_writes_nothing() -> None:
    site = Site(graph())
    assert site.keep() == 4
    assert site.said() == PACK
    assert site.keep() == 0
    assert site.kept.troubles == {}


def test_what_policies_say_anew_is_made_anew() -> None:
    site = Site(graph())
    site.keep()
    site.policies = graph(band("batch", value=5001, preemptionPolicy="Never"))
    assert site.keep() == 2
    assert site.said() == {**PACK, "koord-batch": (5001, "Never")}


def test_a_class_that_was_ours_is_mended() -> None:
    site = Site(graph())
    site.keep()
    labels = site.store.get(resources.PRIORITY_CLASSES, "koord-mid")["metadata"]["labels"]
    site.replace("koord-mid", value=1, labels=labels)
    site.store.delete(resources.PRIORITY_CLASSES, "koord-free")
    site.keep()
    assert site.said() == PACK


def test_a_class_of_others_stays_whatever_it_says() -> None:
    site = Site(graph())
    site.replace("koord-batch", value=42)
    site.replace("koord-mid", value=7000)
    site.keep()
    assert site.said()["koord-batch"] == (42, "PreemptLowerPriority")
    assert "has not made, with value 42" in site.kept.troubles["koord-batch"]
    assert set(site.kept.troubles) == {"koord-batch"}
    site.store.delete(resources.PRIORITY_CLASSES, "koord-batch")
    site.keep()
    assert site.said()["koord-batch"] == PACK["koord-batch"]
    assert site.kept.troubles == {}


def test_a_class_goes_with_its_band_or_its_name() -> None:
    site = Site(graph(band("batch", name="ours")))
    site.replace("koord-batch", value=5000)
    site.keep()
    assert site.said() == {**PACK, "ours": PACK["koord-batch"], "koord-batch": PACK["koord-batch"]}
    site.policies = graph()
    site.keep()
    assert site.said() == {**PACK, "koord-batch": PACK["koord-batch"]}
    site.policies = graph(*(band(name, kept=False) for name in ("prod", "mid", "batch", "free")))
    site.keep()
    assert site.said() == {"koord-batch": PACK["koord-batch"]}


def test_a_cluster_that_does_not_answer_is_told_of_as_such(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(_cut_off())
    assert [record.getMessage() for record in caplog.records] == ["PriorityClasses cannot be kept: cut off"]


async def _cut_off() -> None:
    async def before(_method: str, _resource: Resource) -> None:
        raise Unreachable("cut off")

    cluster = MemoryCluster(Store(lambda: 0), before_request=before)
    kept = PriorityClasses(cluster, graph, Backoff(lambda: 0.0, initial=0.01))
    running = asyncio.create_task(kept.run())
    await asyncio.sleep(0.1)
    assert kept.troubles == {"": "cut off"}
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
