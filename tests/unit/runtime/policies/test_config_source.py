"""A ConfigMap `slo-controller-config` that is followed: above the policies, as far as it makes sense, and no longer than it is there."""

import asyncio
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import Unreachable
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.port import MergePatch, ObjectList
from koordpolicy.kube.resources import CONFIG_MAPS, EVENTS, NAMESPACES
from koordpolicy.language.cel.meter import DEFAULT_BUDGET
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.config_source import ConfigSource
from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.policies.lastgood import LastGood, kept_above
from koordpolicy.runtime.policies.live import LivePolicies, Options
from koordpolicy.runtime.policies.proposing import checked_by
from koordpolicy.runtime.policies.revisions import Reason
from koordpolicy.runtime.reports.slo_config import SLOConfigReport
from tests.unit.runtime.scenes import running, until

NAMESPACE = "koordinator-system"
NAME = "slo-controller-config"
ROOT = """apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: ours}
spec: {extends: [koordinator]}
"""
RECLAIM = """apiVersion: koordpolicy.io/v1alpha1
kind: Overcommit
metadata: {name: colocation-batch}
spec:
  resource: batch
  precedence: 100
  parameters: {cpuReclaim: 50%}
---
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyTest
metadata: {name: ours}
spec: {cases: [{name: reclaim, expect: {Overcommit/batch.parameters.cpuReclaim: 50%}}]}
"""
COLOCATION = {
    "enable": True,
    "cpuReclaimThresholdPercent": 70,
    "nodeConfigs": [
        {"name": "a", "nodeSelector": {"matchLabels": {"pool": "a"}}, "cpuReclaimThresholdPercent": 80}
    ],
}


class Away(MemoryCluster):
    """A cluster that does not answer while it is away."""

    away = False

    async def list(self, *arguments: Any, **options: Any) -> ObjectList:
        if self.away:
            raise Unreachable("nobody answers")
        return await super().list(*arguments, **options)


class Site:
    """A bundle that says 50 % and tests it, and a ConfigMap above it or none."""

    def __init__(self, folder: Path) -> None:
        self.cluster = Away(Store(lambda: 1_800_000_000.0))
        self.metrics = Metrics("test")
        self.recorder = Recorder(
            self.cluster, component="c", instance="i", now_ns=lambda: 10**18, backoff=self._backoff()
        )
        self.report = SLOConfigReport(NAMESPACE, self.metrics, self.recorder, lambda: True)
        self.below = FixedSource("memory", {"koordpolicy.yaml": ROOT, "reclaim.yaml": RECLAIM})
        self.store = LastGood(folder)
        self.patience = 60.0
        self.live = self._live()

    @staticmethod
    def _backoff() -> Backoff:
        return Backoff(random.random, initial=0.001)

    def _live(self) -> LivePolicies:
        source = ConfigSource(
            self.below,
            self.cluster,
            NAMESPACE,
            self._backoff(),
            check=checked_by(None, DEFAULT_BUDGET),
            told=self.report.tell,
            before=kept_above(self.store),
        )
        live = LivePolicies(source, self.metrics, store=self.store, options=Options(patience=self.patience))
        live.subscribe_rejected(self.report.rejected)
        return live

    def restart(self) -> None:
        self.below = FixedSource("memory", {"koordpolicy.yaml": ROOT, "reclaim.yaml": RECLAIM})
        self.live = self._live()

    async def say(self, **data: Any) -> None:
        """Edit the ConfigMap; `_` in keys stands for `-`."""
        texts = {
            key.replace("_", "-"): value if isinstance(value, str) else json.dumps(value)
            for key, value in data.items()
        }
        await self.cluster.patch(CONFIG_MAPS, NAME, MergePatch({"data": texts}), namespace=NAMESPACE)

    def reclaim(self, labels: Mapping[str, str] = {}) -> str:
        node = {"labels": dict(labels), "annotations": {}, "name": "n"}
        return str(self.live.graph.value("Overcommit/batch.parameters.cpuReclaim", node=node))

    @property
    def told(self) -> Any:
        return self.report.status()["sloConfig"]

    async def events(self) -> list[tuple[str, str]]:
        page = await self.cluster.list(EVENTS, namespace=NAMESPACE)
        return [(one["reason"], one["message"]) for one in page.items]


def test_it_lies_above_the_policies_and_what_makes_no_sense_changes_nothing(tmp_path: Path) -> None:
    asyncio.run(_it_lies_above_the_policies(Site(tmp_path)))


async def _it_lies_above_the_policies(site: Site) -> None:
    await site.cluster.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    async with running(site.recorder.run()), running(site.live.run()):
        await until(site.live.ready.is_set)
        plain = site.reclaim()
        assert not site.told["found"]

        body = {"metadata": {"name": NAME}, "data": {"colocation-config": json.dumps(COLOCATION)}}
        await site.cluster.create(CONFIG_MAPS, body, namespace=NAMESPACE)
        await until(lambda: site.reclaim() != plain)
        assert (plain, site.reclaim(), site.reclaim({"pool": "a"})) == ("50.0", "70.0", "80.0")
        asked = site.live.graph.ask("Overcommit/batch.parameters.cpuReclaim", node={"labels": {"pool": "a"}})
        assert asked.provenance.rules[0].layer == NAME
        assert asked.provenance.rules[0].span.file == f"ConfigMap/{NAMESPACE}/{NAME}/colocation-config.yaml"
        active = site.live.active
        assert active is not None
        assert (active.bundle, set(active.revision.files)) == ("ours", {"koordpolicy.yaml", "reclaim.yaml"})

        # Each document by itself: one that cannot be read, one that policies refuse, one that is taken.
        await site.say(
            colocation_config={**COLOCATION, "cpuReclaimThresholdPercent": "most"},
            resource_threshold_config={"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 0}},
            cpu_burst_config={"clusterStrategy": {"policy": "auto", "cpuBurstPercent": 300}},
            unheard_of={},
            host_application_config={"nodeConfigs": [{"name": f"n{number}"} for number in range(501)]},
        )
        await until(lambda: "cpu-burst-config" in site.told["documents"])
        await until(lambda: site.live.graph.value("CPUBurst.burst", node={"labels": {}}) is not None)
        refused = {one["place"]: one["reason"] for one in site.told["refused"]}
        assert refused == {
            "colocation-config": "colocation-config.cpuReclaimThresholdPercent: expected a whole number of 64 bits",
            "host-application-config": "it has 501 entries for nodes; at most 500 are followed",
            "resource-threshold-config.clusterStrategy.cpuSuppressThresholdPercent": refused[
                "resource-threshold-config.clusterStrategy.cpuSuppressThresholdPercent"
            ],
        }
        assert "KP406" in str(refused)
        assert [one["place"] for one in site.told["leftOut"]] == ["unheard-of"]
        assert site.reclaim({"pool": "a"}) == "80.0"
        assert site.told["documents"] == ["colocation-config", "cpu-burst-config"]
        for key in ("colocation-config", "resource-threshold-config"):
            assert site.metrics.value("koordpolicy_slo_config_refused", document=key) == 1
        await site.recorder.flush()
        events = await site.events()
        assert sum("expected a whole number" in message for _, message in events) == 1
        assert {reason for reason, _ in events} == {"SLOConfigFollowed", "SLOConfigRefused"}

        # Policies that are no good leave all of it as it was, and it may change nevertheless.
        site.below.give({"koordpolicy.yaml": ROOT, "reclaim.yaml": RECLAIM.replace("50%", "51%", 1)})
        await until(lambda: site.live.rejected is not None)
        assert site.live.rejected is not None
        assert site.live.rejected.reason is Reason.TESTS_FAILED
        assert site.reclaim() == "70.0"
        await site.say(colocation_config={**COLOCATION, "cpuReclaimThresholdPercent": 71})
        await until(lambda: site.reclaim() == "71.0")
        await until(lambda: site.live.rejected is not None)
        await site.say(colocation_config="{")
        site.below.give({"koordpolicy.yaml": ROOT, "reclaim.yaml": RECLAIM})
        await until(lambda: site.live.rejected is None)
        await until(lambda: site.store.load() is not None)

    # A new process that finds it spoiled goes by what was good; one that is gone says nothing any more.
    site.restart()
    async with running(site.live.run()):
        await until(site.live.ready.is_set)
        await until(lambda: site.told["found"])
        assert (site.reclaim(), len(site.told["refused"])) == ("71.0", 3)
        await site.say(
            colocation_config={"enable": True}, resource_threshold_config="", host_application_config=""
        )
        await until(lambda: site.reclaim() == plain)
        assert site.metrics.value("koordpolicy_slo_config_refused", document="colocation-config") is None
        await site.cluster.delete(CONFIG_MAPS, NAME, namespace=NAMESPACE)
        await until(lambda: not site.told["found"])
        await until(lambda: not site.live.active.revision.above)  # type: ignore[union-attr]  # it is ready


def test_while_it_cannot_be_read_the_kept_policies_decide_and_none_without_it(tmp_path: Path) -> None:
    asyncio.run(_while_it_cannot_be_read(Site(tmp_path)))


async def _while_it_cannot_be_read(site: Site) -> None:
    await site.cluster.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    body = {"metadata": {"name": NAME}, "data": {"colocation-config": json.dumps(COLOCATION)}}
    await site.cluster.create(CONFIG_MAPS, body, namespace=NAMESPACE)
    site.cluster.away = True
    async with running(site.live.run()):
        await until(lambda: "nobody answers" in str(site.live.trouble))
        assert not site.live.ready.is_set()
        site.cluster.away = False
        await until(site.live.ready.is_set)
        assert (site.reclaim(), site.live.trouble) == ("70.0", None)
    site.cluster.away, site.patience = True, 0.01
    site.restart()
    async with running(site.live.run()):
        await until(site.live.ready.is_set)
        assert site.live.active is not None
        assert (site.reclaim(), site.live.active.reason) == ("70.0", Reason.STARTED_FROM_CACHE)
