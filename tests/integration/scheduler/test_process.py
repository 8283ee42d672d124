"""`koordpolicy scheduler` as it runs in a cluster: with its shipped role, on a real API server."""

import json
import random
import signal
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Self

import pytest

from tests.integration.scheduler.sites import Scheduler, Site, bindings, profile
from tests.parts.apiserver import SYSTEM_NAMESPACE, ApiServer

SEED = 20_240_817


class Storm:
    """Nodes that come, go and change while pods come, in a thread of its own, the same in every run.

    There is just room for all: four nodes stay, though they change.
    """

    def __init__(self, site: Site, pods: int, pause: float) -> None:
        self._site = site
        self._random = random.Random(SEED)  # the same storm in every run
        self._pods = pods
        self._pause = pause
        self._come = 0
        self._trouble: list[Exception] = []
        self._thread = threading.Thread(target=self._blow)
        for number in range(4):
            site.node(f"stays-{number}", {"cpu": "16", "memory": "64Gi", "pods": "60"})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    @property
    def over(self) -> bool:
        """Whether all pods are there. Raises what went wrong."""
        if self._trouble:
            raise self._trouble[0]
        return not self._thread.is_alive()

    def _blow(self) -> None:
        try:
            for number in range(self._pods):
                self._site.pod(f"p-{number}", self._random.choice(("100m", "250m", "500m")))
                if number % 5 == 0:
                    self._change()
                time.sleep(self._pause)
            for number in range(4):
                self._site.do("PATCH", f"/api/v1/nodes/stays-{number}", {"spec": {"unschedulable": None}})
        except Exception as error:  # noqa: BLE001  # raised again by whoever asks whether it is over
            self._trouble.append(error)

    def _change(self) -> None:
        what = self._random.randrange(4)
        if what == 0:
            self._site.node(f"comes-{self._come}", {"cpu": "2", "memory": "4Gi", "pods": "10"})
            self._come += 1
        elif what == 1 and self._come:
            name = f"comes-{self._random.randrange(self._come)}"
            self._site.do("DELETE", f"/api/v1/nodes/{name}", also=404)
        elif what == 2:
            labels = {"metadata": {"labels": {"turn": str(self._random.randrange(100))}}}
            self._site.do("PATCH", f"/api/v1/nodes/stays-{self._random.randrange(4)}", labels)
        else:
            cordoned = {"spec": {"unschedulable": self._random.random() < 0.5 or None}}
            self._site.do("PATCH", f"/api/v1/nodes/stays-{self._random.randrange(3)}", cordoned)


def test_a_burst_is_bound_while_nodes_come_go_and_change(site: Site) -> None:
    with site.scheduler("s1") as scheduler:
        with Storm(site, 150, 0.0) as storm:
            site.eventually(lambda: storm.over, "the pods are there")
        site.eventually(lambda: not site.waiting(), "all are bound")
        site.check_capacity()
        assert len(site.where()) == 150
        site.eventually(lambda: len(bindings(site)) == 150, "each binding is told")
        assert sorted(set(bindings(site))) == sorted(f"p-{number}" for number in range(150))
        assert scheduler.metric('koordpolicy_scheduler_attempts_total{result="scheduled"}') == 150
        assert scheduler.metric('koordpolicy_scheduler_attempts_total{result="error"}') == 0


@pytest.mark.soak
def test_killed_ten_times_nothing_is_lost_and_nothing_bound_twice(site: Site) -> None:
    chance = random.Random(SEED)
    with Storm(site, 200, 0.1) as storm:
        kills = 0
        while kills < 10:
            with site.scheduler("s1", "--no-leader-elect") as scheduler:
                had = len(site.where())
                if not storm.over or site.waiting():
                    site.eventually(lambda had=had: len(site.where()) > had or not site.waiting(), "it works")  # type: ignore[misc]
                time.sleep(chance.random())
                scheduler.running.kill()
                kills += 1
                site.check_capacity()
        with site.scheduler("s1", "--no-leader-elect"):
            site.eventually(lambda: storm.over, "the pods are there")
            site.eventually(lambda: not site.waiting(), "all are bound")
    site.check_capacity()
    assert len(site.where()) == 200
    versions = [one["metadata"]["resourceVersion"] for one in site.pods().values()]
    assert len(set(versions)) == 200
    # A binding that was told twice would be one that was made twice: the API server refuses a second one, too.
    assert len(bindings(site)) == len(set(bindings(site)))


def test_the_cluster_is_filled_to_the_last_place_and_no_further(site: Site) -> None:
    for number in range(5):
        site.node(f"n-{number}", {"cpu": "1", "memory": "8Gi", "pods": "4"})
    with site.scheduler("s1", "--no-leader-elect") as first:
        for number in range(24):
            site.pod(f"p-{number}", "250m")
        site.eventually(lambda: len(site.where()) >= 5, "it works")
        first.running.kill()
    with site.scheduler("s1", "--no-leader-elect") as scheduler:
        site.eventually(lambda: len(site.where()) == 20, "the cluster is full")
        site.eventually(lambda: all(site.refusal(name)[0] for name in site.waiting()), "the others are told")
        site.check_capacity()
        reason, message = site.refusal(site.waiting()[0])
        assert reason == "Unschedulable"
        assert message.startswith("0/5 nodes are available: 5 Insufficient cpu, 5 Too many pods")

        def told() -> bool:
            return {name for name, why, _, _ in site.events() if why == "FailedScheduling"} >= set(
                site.waiting()
            )

        site.eventually(told, "Events tell it, too")
        assert scheduler.metric('koordpolicy_scheduler_attempts_total{result="unschedulable"}') >= 4
        # One that goes makes room for one of those that wait, at once and not after five minutes.
        site.gone(next(iter(site.where())))
        site.eventually(lambda: len(site.waiting()) == 3, "the room is taken", 30)
        # Looked at again, for a node that has grown by too little.
        site.resize("n-0", {"cpu": "1100m", "memory": "8Gi", "pods": "4"})
        site.eventually(
            lambda: any(number > 1 for _, why, _, number in site.events() if why == "FailedScheduling"),
            "what is told again is counted",
        )
        site.resize("n-0", {"cpu": "2", "memory": "8Gi", "pods": "8"})
        site.eventually(lambda: not site.waiting(), "so is that of a node that has grown", 30)
        site.check_capacity()


def test_the_standby_takes_over(site: Site) -> None:
    site.node("a", {"cpu": "64", "memory": "64Gi", "pods": "500"})
    with ExitStack() as stack:
        first = stack.enter_context(site.scheduler("s1"))
        site.eventually(lambda: first.leads, "the first leads")
        second = stack.enter_context(site.scheduler("s2"))
        for number in range(20):
            site.pod(f"before-{number}", "10m")
        site.eventually(lambda: not site.waiting(), "the first places them")
        assert not second.leads
        assert second.metric('koordpolicy_scheduler_attempts_total{result="scheduled"}') == 0
        site.eventually(lambda: second.status["pods"] == 20, "the second knows them")
        first.running.kill()
        for number in range(20):
            site.pod(f"after-{number}", "10m")
        took = site.eventually(lambda: not site.waiting(), "the second places the others")
        print(f"taken over after the first was killed: {took:.1f} s")
        # A placement counts once its answer is there, a moment after others see the pod bound.
        placed = 'koordpolicy_scheduler_attempts_total{result="scheduled"}'
        site.eventually(lambda: second.metric(placed) == 20, "each is counted once")
        third = stack.enter_context(site.scheduler("s3"))
        assert second.running.stop(30) == 0
        site.pod("last", "10m")
        took = site.eventually(lambda: not site.waiting(), "the third places the last one")
        print(f"taken over after the second was stopped: {took:.1f} s")
        assert third.leads
        site.check_capacity()


def test_a_killed_api_server_stops_nothing_for_good(site: Site, server: ApiServer) -> None:
    for number in range(3):
        site.node(f"n-{number}", {"cpu": "8", "memory": "16Gi", "pods": "110"})
    for number in range(300):
        site.pod(f"p-{number}", "50m")
    with site.scheduler("s1", "--in-flight", "1") as scheduler:
        site.eventually(site.where, "it works")
        server.kill()
        time.sleep(1)
        assert scheduler.read("/healthz")[0] == 200
        server.start()
        took = site.eventually(lambda: not site.waiting(), "all are bound")
        print(f"all bound after the API server was back: {took:.1f} s")
        site.pod("after", "100m")
        site.eventually(lambda: not site.waiting(), "it goes on")
        site.check_capacity()
        assert scheduler.running.running


def test_a_graceful_stop_leaves_nothing_half_done(site: Site) -> None:
    site.node("a", {"cpu": "640", "memory": "640Gi", "pods": "1000"})
    for number in range(300):
        site.pod(f"p-{number}", "10m")
    with site.scheduler("s1", "--in-flight", "4") as scheduler:
        site.eventually(site.where, "it works")
        scheduler.running.signal(signal.SIGTERM)
        began = time.monotonic()
        site.eventually(lambda: not scheduler.running.running, "it ends", 30)
        print(f"stopped after {time.monotonic() - began:.1f} s")
        assert scheduler.running.stop() == 0
        log = scheduler.running.tail(1000)
        assert "Traceback" not in log
        placed = set(site.where())
        assert site.holder() == "", "the lease is given back"
        # What was decided was written, and told.
        assert set(bindings(site)) == placed


def test_a_claim_that_nobody_serves_holds_up_no_change_of_the_lead(site: Site) -> None:
    """Its pod waits, is shown to wait, and waits for the same claim with whoever leads next."""
    site.node("a")
    storage = {"metadata": {"name": "made"}, "provisioner": "disk.example.com"}
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    site.do("POST", classes, {**storage, "volumeBindingMode": "WaitForFirstConsumer"})
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    room = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    site.do("POST", claims, {"metadata": {"name": "c"}, "spec": {"storageClassName": "made", **room}})
    try:
        with site.scheduler("s1") as first:
            site.eventually(lambda: first.leads, "the first leads")
            site.pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
            site.eventually(lambda: first.status["waitingForClaims"] == 1, "the pod waits for its claim")
            with site.scheduler("s2") as second:
                site.eventually(lambda: "standing by" in second.running.tail(), "the second stands by")
                began = time.monotonic()
                assert first.running.stop(30) == 0
                print(f"stopped after {time.monotonic() - began:.1f} s")
                site.eventually(lambda: second.leads, "the second leads")
                print(f"taken over after {time.monotonic() - began:.1f} s")
                site.eventually(lambda: second.status["waitingForClaims"] == 1, "it waits for the claim")
                assert (second.status["writing"], second.status["pending"]) == (0, 0)
                site.pod("q")
                site.eventually(lambda: "q" in site.where(), "others go on")
                assert site.waiting() == ["p"]
                assert [told for told in site.events() if told[1] == "FailedBinding"] == []
    finally:
        site.do("DELETE", f"{claims}/c")
        site.do("DELETE", f"{classes}/made")


def test_silence_of_the_api_server_does_not_hold_up_the_stop(site: Site) -> None:
    site.node("a")
    with site.access.proxy() as proxy, hidden(site, proxy.kubeconfig("koordpolicy-scheduler")) as scheduler:
        site.pod("p")
        site.eventually(lambda: not site.waiting(), "it works")
        proxy.hold()
        site.pod("q")
        began = time.monotonic()
        scheduler.running.stop(40)
        took = time.monotonic() - began
        print(f"stopped after {took:.1f} s of silence")
        assert took < 32, "Kubernetes gives thirty seconds"
        proxy.release()


@contextmanager
def hidden(site: Site, kubeconfig: object) -> Iterator[Scheduler]:
    """A scheduler that reaches the server another way."""
    with site.scheduler("s1", "--kubeconfig", str(kubeconfig)) as scheduler:
        site.eventually(lambda: scheduler.leads, "it leads")
        yield scheduler


def test_what_it_shows(site: Site) -> None:
    site.node("a")
    site.pod("fits")
    site.pod("large", "100")
    with site.scheduler("s1") as scheduler:
        site.eventually(lambda: "fits" in site.where() and site.refusal("large")[0], "both are decided on")
        assert scheduler.read("/healthz") == (200, "ok\n")
        assert scheduler.read("/readyz") == (200, "ok\n")
        status = scheduler.status
        assert {key: status[key] for key in ("profile", "nodes", "pods", "pending")} == {
            "profile": "koord-scheduler", "nodes": 1, "pods": 1, "pending": 1,
        }  # fmt: skip
        leader = status["leader"]
        assert leader["leading"]
        assert leader["holder"] == leader["identity"] == site.holder()
        assert site.holder().startswith("s1_")
        text = scheduler.read("/statusz")[1]
        assert "koordpolicy scheduler" in text
        assert "pending: 1" in text
        for line, value in (
            ('koordpolicy_scheduler_attempts_total{result="scheduled"}', 1),
            ('koordpolicy_leader{lease="koordpolicy-scheduler"}', 1),
            ('koordpolicy_ready{condition="cluster"}', 1),
        ):
            assert scheduler.metric(line) == value
        assert scheduler.metric('koordpolicy_scheduler_attempts_total{result="unschedulable"}') >= 1


def test_another_revision_decides_about_pods_that_wait(site: Site) -> None:
    site.node("a")
    site.measured("a", "3900m")
    with site.scheduler("s1") as scheduler:
        site.pod("p", "100m")
        site.eventually(lambda: "usage exceed threshold" in site.refusal("p")[1], "it is refused")
        site.write("profile.yaml", profile({"parameters": {"usageThresholds": {"value": {"cpu": "0%"}}}}))
        site.eventually(lambda: "p" in site.where(), "it is placed")
        site.write("profile.yaml", profile({"parameters": {"noSuchParameter": 1}}))
        site.eventually(lambda: scheduler.status["policies"]["rejected"], "the bad one is told")
        site.pod("q", "100m")
        site.eventually(lambda: "q" in site.where(), "the last good one decides")


def test_room_is_made_for_the_important(site: Site) -> None:
    site.node("a", {"cpu": "1", "memory": "8Gi", "pods": "10"})
    with site.scheduler("s1"):
        site.pod("low", "800m")
        site.eventually(lambda: not site.waiting(), "it is placed")
        site.pod("high", "800m", priorityClassName="important")

        def leaves() -> bool:
            low = site.pods().get("low")
            return low is None or "deletionTimestamp" in low["metadata"]

        site.eventually(leaves, "it has to go")
        assert site.pods()["high"]["status"].get("nominatedNodeName") == "a"
        low = site.pods().get("low")
        assert low is None or any(c["type"] == "DisruptionTarget" for c in low["status"]["conditions"])
        site.gone("low")
        site.eventually(lambda: site.where().get("high") == "a", "the other one has its place")
        assert any(reason == "Preempted" for _, reason, _, _ in site.events())
        told = [(about, message) for about, reason, message, _ in site.events() if reason == "Preempting"]
        assert told == [("high", "Preempts default/low on a")]


def test_a_pod_of_another_scheduler_is_left_alone_but_counts(site: Site) -> None:
    site.node("a", {"cpu": "1", "memory": "8Gi", "pods": "10"})
    with site.scheduler("s1"):
        site.pod("theirs", "800m", scheduler="another")
        site.pod("ours", "800m")
        site.eventually(lambda: site.where() == {"ours": "a"}, "ours is placed")
        binding = {"metadata": {"name": "theirs"}, "target": {"kind": "Node", "name": "a"}}
        site.do("POST", "/api/v1/namespaces/default/pods/theirs/binding", binding)
        site.gone("ours")
        site.pod("next", "800m")
        site.eventually(lambda: "Insufficient cpu" in site.refusal("next")[1], "theirs counts")
        assert site.where() == {"theirs": "a"}


def test_decisions_are_written_down_with_their_reasons(site: Site) -> None:
    for number in range(3):
        site.node(f"n{number}")
    log = site.folder / "decisions.jsonl"
    with site.scheduler("s1", "--decision-log", str(log), "--decision-log-every", "1") as scheduler:
        for number in range(6):
            site.pod(f"p{number}")
        site.pod("large", "100")
        site.eventually(lambda: len(site.where()) == 6 and site.refusal("large")[0], "all are decided on")
        assert scheduler.running.stop(30) == 0
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    entries = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    placed = {one["subject"]["pod"]: one for one in entries if one["result"] == "scheduled"}
    assert {name: one["value"] for name, one in placed.items()} == {
        f"default/{name}": node for name, node in site.where().items()
    }
    for one in placed.values():
        assert one["best"][0]["node"] == one["value"]
        assert one["feasible"] == one["nodes"] == 3
        assert one["rules"] and one["facts"]
        assert all(rule["place"].count(":") >= 2 for rule in one["rules"])
    refused = next(one for one in entries if one["subject"]["pod"] == "default/large")
    assert (refused["value"], refused["result"]) == (None, "unschedulable")
    assert [(one["reason"], one["nodes"]) for one in refused["refusals"]] == [("Insufficient cpu", 3)]


def test_one_whose_profile_no_commit_can_bring_ends(site: Site) -> None:
    with site.scheduler("s1", "--profile", "nope", policies=False, ready=False) as scheduler:
        site.eventually(lambda: not scheduler.running.running, "it ends")
        assert "cannot start: the built-in pack: the policies have no scheduling profile `nope`" in (
            scheduler.running.tail()
        )
        assert scheduler.running.stop() == 2
    # It counts as gone at once, not when its lease runs out.
    lease = (
        f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases/koordpolicy-instance-scheduler-s1"
    )
    assert site.access.request("GET", lease)[0] == 404
