"""`koordpolicy manager` as it runs in a cluster: with its shipped role, on a real API server."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.runtime.managers import BROKEN, NODE, Site, make_site, share
from tests.parts.apiserver import SYSTEM_NAMESPACE, ApiServer
from tests.parts.deployed import DEPLOY, DeployedServer, apply, manifests
from tests.parts.fixtures import need

DEAR = """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {{name: pool-{n}}}
spec:
  match: {{nodes: {{matchLabels: {{pool: p{n}}}}}}}
  target: {{cel: "node.capacity.cpu - millicores({n}) - max(node.usage.prod.cpu, millicores({n}))"}}
"""
"""Some thousand of these take many seconds to compile."""


FOLLOWED = """\
apiVersion: koordpolicy.io/v1alpha1
kind: ProfileReconciliation
metadata: {name: followed}
spec:
  parameters: {followed: true}
"""


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("managers")) as server:
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> Site:
    return make_site(server.access, tmp_path)


def test_a_change_in_the_directory_changes_the_node_and_a_bad_one_does_not(site: Site) -> None:
    log = site.folder / "decisions.jsonl"
    with site.manager("m1", "--decision-log", str(log), "--decision-log-every", "1") as manager:
        site.eventually(lambda: site.offered() == 60_000, "the pack decides")
        site.write("share.yaml", share(30))
        site.eventually(lambda: site.offered() == 30_000, "the change decides")
        site.write("share.yaml", BROKEN)
        site.eventually(lambda: manager.status["policies"]["rejected"], "the bad one is told")
        assert manager.read("/readyz")[0] == 200
        told = manager.status["policies"]["rejected"]
        assert (told["reason"], told["findings"][0]["file"]) == ("CompileFailed", "share.yaml")
        assert "error[KP305]" in manager.read("/statusz")[1]
        assert manager.metric('koordpolicy_reload_total{reason="CompileFailed",result="rejected"}') == 1

        def reported() -> bool:
            states = [sorted(one["instances"].items()) for one in site.revisions().values()]
            return [("m1", "Active")] in states and [("m1", "Rejected")] in states

        site.eventually(reported, "both revisions are reported")
        stalled = [one for one in site.revisions().values() if one["conditions"].get("Stalled") == "True"]
        assert [one["codes"] for one in stalled] == [["KP305"]]
        _, events = site.access.request("GET", "/api/v1/namespaces/default/events")
        reasons = {event["reason"] for event in events["items"]}
        assert {"PolicyRevisionActivated", "PolicyRevisionRejected"} <= reasons
        assert site.offered() == 30_000
        site.write("share.yaml", share(45))
        site.eventually(lambda: site.offered() == 45_000, "the fix heals it")
        assert manager.running.stop(30) == 0
    assert site.holder() == ""
    assert all(one["instances"] == {} for one in site.revisions().values())
    entries = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert {(one["subject"]["node"], one["component"]) for one in entries} == {(NODE, "manager")}
    values = [one["value"] for one in entries if one["decision"] == "Overcommit/batch.cpu"]
    assert {30_000, 45_000, 60_000} <= set(values)
    assert any(rule["place"].startswith("share.yaml:") for one in entries for rule in one["rules"])


CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BAND = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PriorityBand
metadata: {name: batch}
spec: {priorityClass: {value: 5001, preemptionPolicy: Never}}
"""


def test_a_followed_slo_config_changes_node_slo_and_agents_and_a_bad_edit_does_not(site: Site) -> None:
    place = "/api/v1/namespaces/koordinator-system/configmaps"
    site.access.request("POST", "/api/v1/namespaces", {"metadata": {"name": "koordinator-system"}})
    apply(site.access, [one for one in manifests(DEPLOY / "follow-slo-config") if "Role" in one["kind"]])

    def edit(**data: object) -> None:
        texts = {key.replace("_", "-"): json.dumps(one) for key, one in data.items()}
        config = {"metadata": {"name": "slo-controller-config"}, "data": texts}
        if site.access.request("PATCH", f"{place}/slo-controller-config", config)[0] == 404:
            assert site.access.request("POST", place, config)[0] == 201

    def threshold() -> object:
        _, slo = site.access.request("GET", f"/apis/slo.koordinator.sh/v1alpha1/nodeslos/{NODE}")
        return slo.get("spec", {}).get("resourceUsedThresholdWithBE", {}).get("cpuSuppressThresholdPercent")

    def events() -> set[str]:
        _, found = site.access.request("GET", "/api/v1/namespaces/koordinator-system/events")
        return {one["message"] for one in found["items"] if one["reason"] == "SLOConfigRefused"}

    def published() -> str:
        _, pointer = site.access.request(
            "GET", f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps/koordpolicy-agents"
        )
        return str(pointer.get("data", {}).get("digest"))

    strategy = {"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 47}}
    with site.manager("m1", "--follow-slo-config") as manager:
        site.eventually(lambda: site.offered() == 60_000 and threshold() == 65, "the pack decides")
        before = published()
        edit(
            colocation_config={"enable": True, "cpuReclaimThresholdPercent": 30},
            resource_threshold_config=strategy,
        )
        site.eventually(lambda: site.offered() == 30_000 and threshold() == 47, "the ConfigMap decides")
        site.eventually(lambda: published() != before, "agents are told")
        edit(
            colocation_config={"enable": True, "cpuReclaimThresholdPercent": "all"},
            resource_threshold_config={"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 0}},
        )
        site.eventually(lambda: len(events()) == 2, "both are refused")
        assert any("colocation-config.cpuReclaimThresholdPercent" in one for one in events())
        assert len(manager.status["sloConfig"]["refused"]) == 2
        assert manager.metric('koordpolicy_slo_config_refused{document="colocation-config"}') == 1
        assert (site.offered(), threshold()) == (30_000, 47)
        assert site.access.request("DELETE", f"{place}/slo-controller-config")[0] == 200
        site.eventually(lambda: site.offered() == 60_000 and threshold() == 65, "the pack decides again")


def test_nodes_have_a_say_and_bands_have_their_classes(site: Site) -> None:
    def said(name: str) -> tuple[object, ...]:
        _, found = site.access.request("GET", f"{CLASSES}/{name}")
        return found.get("value"), found.get("preemptionPolicy")

    def labelled(ratio: str | None) -> None:
        body = {"metadata": {"labels": {"node.koordinator.sh/cpu-reclaim-ratio": ratio}}}
        assert site.access.request("PATCH", f"/api/v1/nodes/{NODE}", body)[0] == 200

    with site.manager("m1"):
        site.eventually(lambda: said("koord-batch") == (5000, "PreemptLowerPriority"), "the class is made")
        site.write("band.yaml", BAND)
        site.eventually(lambda: said("koord-batch") == (5001, "Never"), "it says what policies say")
        site.access.request("DELETE", f"{CLASSES}/koord-mid")
        site.eventually(lambda: said("koord-mid") == (7000, "PreemptLowerPriority"), "it is made again")
        labelled("0.7")
        site.eventually(lambda: site.offered() == 70_000, "the node's label decides")
        labelled(None)
        site.eventually(lambda: site.offered() == 60_000, "the pack decides again")


def test_pods_that_wait_follow_a_profile_once_policy_wants_it(site: Site) -> None:
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "waits"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    profile = {
        "apiVersion": "config.koordinator.sh/v1alpha1",
        "kind": "ClusterColocationProfile",
        "metadata": {"name": "all", "labels": {"config.koordinator.sh/controller-managed": "true"}},
        "spec": {"selector": {}, "labels": {"tier": "back"}, "schedulerName": "koord-scheduler"},
    }
    profiles = "/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles"
    for path, obj in ((pods, pod), (profiles, profile)):
        status, answer = site.access.request("POST", path, obj)
        assert status == 201, answer

    def kept() -> tuple[object, object]:
        _, found = site.access.request("GET", f"{pods}/waits")
        return (found["metadata"].get("labels") or {}).get("tier"), found["spec"]["schedulerName"]

    with site.manager("m1"):
        site.eventually(lambda: site.offered() == 60_000, "the manager leads")
        assert kept() == (None, "default-scheduler")
        site.write("followed.yaml", FOLLOWED)
        site.eventually(lambda: kept() == ("back", "default-scheduler"), "the pod follows")


def test_a_revision_that_takes_too_much_is_refused_and_the_manager_goes_on(site: Site) -> None:
    huge = "---\n".join(DEAR.format(n=n) for n in range(4_000))
    with site.manager("m1", "--policy-trial-cpu", "2") as manager:
        site.eventually(lambda: site.offered() == 60_000, "the pack decides")
        site.write("share.yaml", huge)
        site.eventually(lambda: manager.status["policies"]["rejected"], "the large one is told")
        told = manager.status["policies"]["rejected"]
        assert told["reason"] == "LimitExceeded"
        assert told["message"].startswith("it takes more than 2 s of CPU time, while ")
        assert manager.metric("koordpolicy_event_loop_held_total") in (None, 0)
        site.write("share.yaml", share(30))
        site.eventually(lambda: site.offered() == 30_000, "the fix heals it")
        assert manager.running.stop(30) == 0


def test_a_restart_over_a_bad_directory_goes_on_with_the_last_good_policies(site: Site) -> None:
    site.write("share.yaml", share(30))
    with site.manager("m1") as manager:
        site.eventually(lambda: site.offered() == 30_000, "the change decides")
        site.eventually(lambda: site.keeps("m1", share(30)), "the change is kept")
        manager.running.kill()
    site.write("share.yaml", BROKEN)
    with site.manager("m1", "--no-leader-elect") as manager:
        active = manager.status["policies"]["active"]
        assert active["reason"] == "StartedFromCache"
        path = f"/api/v1/nodes/{NODE}/status"
        drift = {
            "allocatable": {"kubernetes.io/batch-cpu": "7"},
            "capacity": {"kubernetes.io/batch-cpu": "7"},
        }
        site.access.request("PATCH", path, {"status": drift})
        site.eventually(lambda: site.offered() == 30_000, "the last good policies decide")


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_the_standby_takes_over(end: signal.Signals, site: Site) -> None:
    with site.manager("m1") as first:
        site.eventually(lambda: first.leads and site.offered() == 60_000, "the first leads")
        with site.manager("m2") as second:
            assert not second.leads
            assert site.holder() == first.status["leader"]["identity"]
            assert second.read("/readyz")[0] == 200
            first.running.signal(end)
            site.eventually(lambda: not first.running.running, "the first has ended")
            site.write("share.yaml", share(30))
            took = site.eventually(lambda: site.offered() == 30_000, "the standby decides")
            assert site.holder() == second.status["leader"]["identity"]
            print(f"taken over after the first was {end.name}: {took:.1f} s")


def test_a_killed_api_server_stops_nothing_for_good(site: Site, server: ApiServer) -> None:
    with site.manager("m1") as manager:
        site.eventually(lambda: site.offered() == 60_000, "the pack decides")
        server.kill()
        site.write("share.yaml", share(30))
        site.eventually(
            lambda: len(manager.status["policies"]["history"]) == 2, "policies are followed all the same"
        )
        assert manager.read("/healthz")[0] == 200
        server.start()
        took = site.eventually(lambda: site.offered() == 30_000, "the node follows")
        print(f"converged after the API server was back: {took:.1f} s")
        assert manager.running.running


def test_an_outage_costs_leadership_once(site: Site, server: ApiServer) -> None:
    with site.manager("m1") as manager:
        site.eventually(lambda: manager.leads and site.offered() == 60_000, "it leads")
        began, ended = "leading koordpolicy-system/koordpolicy-manager as m1_", "not leading"
        server.kill()
        site.eventually(lambda: not manager.leads, "it stops leading")
        assert manager.status["leader"]["holder"] == "", "who does not lead is not said to"
        server.start()
        site.eventually(lambda: manager.leads, "it leads again")
        time.sleep(15)  # longer than a lease that was won too late would last
        assert manager.leads
        log = manager.running.tail(500)
        assert (log.count(began), log.count(ended)) == (2, 1)
        (lost,) = [line for line in log.splitlines() if "was not given back: " in line]
        assert not lost.endswith(": "), "a reason is empty"


def test_one_that_cannot_start_says_why(site: Site) -> None:
    with site.manager("m1", "--context", "nowhere", ready=False) as manager:
        site.eventually(lambda: not manager.running.running, "it ends")
        assert "manager cannot start: no cluster:" in manager.running.tail()
        assert "Traceback" not in manager.running.tail()
        assert manager.running.stop() == 2
