"""A tree of quotas in three levels on a real API server: what is lent, what is taken back, and what objects and pods say of it."""

import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from koordpolicy.model.quantity import amount
from tests.integration.scheduler.sites import Site

PATH = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas"
PREFIX = "quota.scheduling.koordinator.sh"
PARENTS = {"vision": "research", "speech": "research", "web": "sales", "research": "org", "sales": "org"}
MINS = {"org": 8, "research": 4, "sales": 4, "vision": 2, "speech": 2, "web": 4}
MOST = 8
"""Cores that there are, and that any quota may have at most."""
ARGUMENTS = json.dumps(
    {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "QuotaTree",
        "metadata": {"name": "arguments"},
        "spec": {
            "parameters": {
                "enableCheckParentQuota": {"value": True},
                "monitorAllQuotas": {"value": True},
                "delayEvictTime": {"value": "1s"},
            }
        },
    }
)


class Teams:
    """The quotas and their pods on a site."""

    def __init__(self, site: Site, most: Mapping[str, int] = MappingProxyType({})) -> None:
        """`most` are cores that quotas may have at most, where that is not all."""
        self.site, self.most = site, most
        site.do("DELETE", PATH, also=404)
        for name, least in MINS.items():
            labels = {f"{PREFIX}/is-parent": str(name in PARENTS.values()).lower()}
            if name in PARENTS:
                labels[f"{PREFIX}/parent"] = PARENTS[name]
            bounds = {"min": {"cpu": str(least)}, "max": {"cpu": str(most.get(name, MOST))}}
            body = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "spec": bounds}
            site.do("POST", PATH, {**body, "metadata": {"name": name, "labels": labels}})

    def submit(self, team: str, count: int) -> None:
        """Pods of half a core."""
        for at in range(count):
            self.site.pod(
                f"{team}-{at}", metadata={"labels": {f"{PREFIX}/name": team}}, terminationGracePeriodSeconds=0
            )

    def used(self) -> Counter[str]:
        """Millicores that pods on nodes have, by quota. At no moment more than the rules allow, at any level."""
        found: Counter[str] = Counter()
        for one in self.site.pods().values():
            if one["spec"].get("nodeName"):
                team = one["metadata"]["labels"][f"{PREFIX}/name"]
                while team:
                    found[team] += 500
                    team = PARENTS.get(team, "")
        assert all(number <= 1000 * self.most.get(name, MOST) for name, number in found.items()), found
        return found

    def become(self, **cores: float) -> None:
        """Wait until the teams have so many cores."""

        def reached() -> bool:
            used = self.used()
            return all(used[team] == 1000 * number for team, number in cores.items())

        self.site.eventually(reached, f"{cores} of {dict(self.used())}")

    def object(self, name: str) -> Any:
        return self.site.do("GET", f"{PATH}/{name}")

    def told(self, name: str, what: str) -> int | None:
        """Millicores that an annotation of a quota says."""
        text = self.object(name)["metadata"].get("annotations", {}).get(f"{PREFIX}/{what}", "{}")
        found = json.loads(text).get("cpu")
        return None if found is None else amount("cpu", found)


def test_what_nobody_asks_for_is_lent_and_taken_back(site: Site) -> None:
    for name in ("a", "b"):
        site.node(name)
    site.write("arguments.yaml", ARGUMENTS)
    teams = Teams(site)
    with site.scheduler("s1", "--no-leader-elect") as first:
        teams.submit("web", 16)
        teams.become(web=8)
        teams.submit("vision", 8)
        teams.become(web=4, vision=4)
        teams.submit("speech", 8)
        teams.become(web=4, vision=2, speech=2)
        waiting = [name for name in site.waiting() if name.startswith("speech")]
        assert len(waiting) == 4
        site.eventually(
            lambda: all(" cpu in use, 500m more requested" in site.refusal(one)[1] for one in waiting),
            "pods say why they wait",
        )
        site.eventually(lambda: teams.told("speech", "runtime") == 2000, "the quota says what it may use")
        site.eventually(
            lambda: teams.object("org").get("status", {}).get("used", {}).get("cpu") == "8", "and has"
        )
        site.eventually(
            lambda: teams.told("research", "request") == 6000, "and what is asked for below one above"
        )
        assert first.status["plugins"]["ElasticQuota"] == {"speech": 4}
    with site.scheduler("s2", "--no-leader-elect"):
        # One that starts counts what is there.
        for name in list(site.where()):
            if name.startswith("web"):
                site.gone(name)
        teams.become(web=0, speech=4, vision=2)
        site.eventually(lambda: teams.told("speech", "runtime") == 4000, "what was lent is told of")


@pytest.mark.soak
def test_under_load_and_kills_no_quota_has_more_than_it_may(site: Site) -> None:
    for name in ("a", "b"):
        site.node(name)
    site.write("arguments.yaml", ARGUMENTS)
    teams = Teams(site, {"vision": 3, "speech": 5, "research": 6, "web": 7, "sales": 7})
    draw, made = random.Random(3), 0
    for _ in range(8):
        with site.scheduler("s1", "--no-leader-elect", ready=False) as scheduler:
            until = time.monotonic() + 5 + 2 * draw.random()
            while time.monotonic() < until:
                for name in draw.sample(sorted(site.pods()), min(3, len(site.pods()))):
                    site.gone(name)
                for team in draw.choices(("vision", "speech", "web"), k=5):
                    labels = {f"{PREFIX}/name": team}
                    site.pod(f"{team}-{made}", metadata={"labels": labels}, terminationGracePeriodSeconds=0)
                    made += 1
                teams.used()
                time.sleep(0.3)
            scheduler.running.kill()
        teams.used()
        site.check_capacity()
    with site.scheduler("s1", "--no-leader-elect"):
        for name in site.pods():
            site.gone(name)
        teams.submit("web", 16)
        teams.become(web=7)
        teams.submit("speech", 16)
        teams.become(web=4, speech=4)
        teams.submit("vision", 16)
        teams.become(web=4, speech=2, vision=2)
    site.check_capacity()
