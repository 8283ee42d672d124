"""Rollouts of a scheduling profile: schedulers and managers as processes on a real API server."""

import io
import json
from collections.abc import Mapping
from typing import Any

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.runtime.rollout.canary import place_of
from tests.integration.runtime import managers
from tests.integration.scheduler.sites import Site, profile

PACKING = profile({"parameters": {"fitStrategy": "MostAllocated"}})
"""What is rolled out: pods go where others are already."""


def rollout(steps: list[Mapping[str, Any]], *guards: Mapping[str, Any]) -> str:
    return json.dumps(
        {
            "apiVersion": "koordpolicy.io/v1alpha1",
            "kind": "Rollout",
            "metadata": {"name": "careful"},
            "spec": {"every": "1s", "steps": steps, "guards": list(guards)},
        }
    )


SHADOW = {"name": "shadow", "shadow": {}, "hold": "1s"}
COMPARED = {
    "name": "compared",
    "require": {"cel": "rollout.step != 'shadow' || rollout.compared >= 3"},
    "patience": "10m",
}
"""The shadow is left once it has seen something."""
ALIKE = {
    "name": "alike",
    "require": {"cel": "rollout.compared == 0 || rollout.disagreement <= percent(10)"},
    "reason": "too many pods would go elsewhere",
}


def standing(site: Site) -> dict[str, Any]:
    """The newest rollout, as `koordpolicy rollout status` shows it; empty before the first."""
    out = io.StringIO()
    arguments = ["rollout", "status", "--output", "json", "--kubeconfig", str(site.access.kubeconfig())]
    assert main(arguments, Terminal(out, out)) == 0, out.getvalue()
    found = json.loads(out.getvalue())
    return dict(found[0]) if found else {}


def processes(site: Site) -> list[dict[str, Any]]:
    """What `koordpolicy status` tells of processes; whether all is well is not asked."""
    out = io.StringIO()
    main(["status", "--output", "json", "--kubeconfig", str(site.access.kubeconfig())], Terminal(out, out))
    return list(json.loads(out.getvalue())["processes"])


def two_nodes(site: Site) -> None:
    """One of which half is taken, of CPU as of memory, and one that is empty."""
    for name in ("busy", "empty"):
        site.node(name, {"cpu": "64", "memory": "1Gi", "pods": "100"})
    for at in range(8):
        site.pod(f"there-{at}", "4", nodeName="busy")


def placed(site: Site, names: list[str]) -> dict[str, str]:
    """Where new pods go that leave again at once."""
    for name in names:
        site.pod(name, "100m")
    site.eventually(lambda: set(names) <= set(site.where()), "the pods have nodes")
    found = {name: node for name, node in site.where().items() if name in names}
    for name in names:
        site.gone(name)
    return found


def active(status: Mapping[str, Any]) -> str:
    return str(status["policies"]["active"]["digest"])


def test_a_scheduler_alone_takes_a_guarded_revision_to_its_end(site: Site) -> None:
    site.write("rollout.yaml", rollout([SHADOW], COMPARED))
    two_nodes(site)
    with site.scheduler("s1") as scheduler:
        assert set(placed(site, ["before"]).values()) == {"empty"}
        before = active(scheduler.status)
        site.write("packing.yaml", PACKING)
        site.eventually(lambda: standing(site).get("stepName") == "shadow", "it begins without a manager")
        site.eventually(lambda: processes(site)[0]["shadows"], "status tells of the shadow")
        (process,) = processes(site)
        assert process["runs"] != process["shadows"] == standing(site)["revision"]
        assert set(placed(site, ["p-1", "p-2", "p-3", "p-4"]).values()) == {"empty"}
        site.eventually(lambda: standing(site)["phase"] == "Complete", "it ends by itself")
        site.eventually(lambda: active(scheduler.status) != before, "the new revision decides")
        assert set(placed(site, ["after"]).values()) == {"busy"}
        history = [entry["event"] for entry in standing(site)["history"]]
        assert history == ["Started", "Completed"]


def test_a_guard_returns_to_the_old_revision(site: Site) -> None:
    site.write("rollout.yaml", rollout([{**SHADOW, "hold": "10m"}], ALIKE))
    two_nodes(site)
    with site.scheduler("s1") as scheduler:
        before = active(scheduler.status)
        site.write("packing.yaml", PACKING)
        site.eventually(lambda: standing(site).get("stepName") == "shadow", "it begins")

        def aborted() -> bool:
            assert set(placed(site, ["p-1"]).values()) == {"empty"}
            return bool(standing(site)["phase"] == "Aborted")

        site.eventually(aborted, "the guard ends it")
        assert "too many pods would go elsewhere" in standing(site)["message"]
        site.eventually(lambda: scheduler.status["policies"].get("rejected"), "it is turned back")
        assert scheduler.status["policies"]["rejected"]["reason"] == "GuardRefused"
        assert active(scheduler.status) == before
        assert set(placed(site, ["p-2"]).values()) == {"empty"}


def test_a_canary_places_its_share_of_pods_until_it_is_aborted(site: Site) -> None:
    """Which pods go ahead follows from their names alone."""
    few = {"name": "few", "canary": {"share": "50%"}, "hold": "1s", "untilResumed": True}
    site.write("rollout.yaml", rollout([few]))
    two_nodes(site)
    names = [f"q-{at}" for at in range(8)]
    expected = {name: "busy" if place_of(f"default/{name}") < 50 else "empty" for name in names}
    assert set(expected.values()) == {"busy", "empty"}
    with site.scheduler(
        "s1", "--decision-log", str(site.folder / "log"), "--decision-log-every", "1"
    ) as scheduler:
        assert set(placed(site, names[:2]).values()) == {"empty"}
        before = active(scheduler.status)
        site.write("packing.yaml", PACKING)
        site.eventually(lambda: standing(site).get("phase") == "Paused", "the canary waits to be resumed")
        site.eventually(lambda: placed(site, names) == expected, "each pod is placed by its revision")
        entries = [json.loads(line) for line in (site.folder / "log").read_text().splitlines()]
        told = {entry["subject"]["pod"]: entry["revision"] for entry in entries[-len(names) :]}
        assert len(set(told.values())) == 2, "the log names the revision that placed a pod"
        assert {told[f"default/{name}"] for name, node in expected.items() if node == "busy"} == {
            standing(site)["revision"]
        }
        out = io.StringIO()
        kubeconfig = str(site.access.kubeconfig())
        assert main(["rollout", "abort", "--kubeconfig", kubeconfig], Terminal(out, out)) == 0, out.getvalue()
        site.eventually(lambda: standing(site)["phase"] == "Aborted", "somebody ends it")
        site.eventually(
            lambda: set(placed(site, names).values()) == {"empty"}, "all go where they went before"
        )
        assert active(scheduler.status) == before


def test_a_canary_whose_decisions_fail_is_turned_back_by_itself(site: Site) -> None:
    few = {"name": "few", "canary": {"pods": {"matchLabels": {"try": "it"}}}, "hold": "10m"}
    sound = {"name": "sound", "require": {"cel": "rollout.failures == 0"}, "reason": "decisions fail"}
    site.write("rollout.yaml", rollout([few], sound))
    two_nodes(site)
    failing = {"name": "own", "value": 1, "weight": {"cel": "1 / (pod.labels.size() - 1)"}}
    with site.scheduler("s1"):
        assert set(placed(site, ["before"]).values()) == {"empty"}
        site.write("failing.yaml", profile({"scores": [failing]}))
        site.eventually(lambda: standing(site).get("stepName") == "few", "the canary begins")
        site.pod("tried", "100m", metadata={"labels": {"try": "it"}})
        assert set(placed(site, ["others"]).values()) == {"empty"}, "others are placed meanwhile"
        site.eventually(lambda: standing(site)["phase"] == "Aborted", "the guard ends it")
        assert "decisions fail" in standing(site)["message"]
        site.eventually(
            lambda: site.where().get("tried") == "empty", "and the pod is placed by the old revision"
        )


NO_AGENTS = json.dumps(
    {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "MetricCollection",
        "metadata": {"name": "default"},
        "spec": {"enabled": False},
    }
)
"""Nobody fills the NodeMetric objects that a manager makes, and a node with an empty one takes no pods."""


def test_with_a_manager_both_go_the_same_way(site: Site) -> None:
    site.write("no-agents.yaml", NO_AGENTS)
    site.write("rollout.yaml", rollout([SHADOW], COMPARED))
    two_nodes(site)
    managing = managers.Site(site.access, site.folder)
    with managing.manager("m1") as manager, site.scheduler("s1") as scheduler:
        assert set(placed(site, ["before"]).values()) == {"empty"}
        before = active(scheduler.status)
        site.write("packing.yaml", PACKING)
        site.eventually(lambda: standing(site).get("stepName") == "shadow", "the manager begins")

        def compared() -> int:
            placed(site, [f"p-{at}" for at in range(4)])
            return int(standing(site)["kinds"].get("SchedulingProfile", {}).get("compared", 0))

        site.eventually(lambda: compared() >= 3, "what the scheduler compares the manager hears")
        site.eventually(lambda: standing(site)["phase"] == "Complete", "it ends by itself")
        site.eventually(lambda: active(scheduler.status) != before, "the scheduler runs it")
        site.eventually(lambda: active(manager.status) == active(scheduler.status), "and so does the manager")
        assert set(placed(site, ["after"]).values()) == {"busy"}
