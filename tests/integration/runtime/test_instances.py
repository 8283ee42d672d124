"""PolicyRevision objects on a real API server: true after kills, stops and bursts of commits."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.runtime.managers import Manager, Site, make_site, share
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

COMMITS = 40
PAUSE = 0.4
FILES = 1_000


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("instances")) as server:
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> Site:
    return make_site(server.access, tmp_path)


def said(site: Site) -> set[tuple[str, str]]:
    """Who is said to run what: instance and state, over all revisions."""
    return {entry for one in site.revisions().values() for entry in one["instances"].items()}


def complaints(*processes: Manager) -> list[str]:
    """What went wrong with reports, by the logs."""
    return [
        line
        for one in processes
        for line in one.running.tail(2000).splitlines()
        if "cannot be reported" in line or "Invalid" in line or "Traceback" in line
    ]


def test_who_is_killed_is_taken_back_and_who_is_stopped_takes_itself_back(site: Site) -> None:
    with site.manager("m1") as manager, site.process("scheduler", "s2") as stopped:
        with site.process("scheduler", "s1") as killed:
            everyone = {("m1", "Active"), ("s1", "Active"), ("s2", "Active")}
            site.eventually(lambda: said(site) == everyone, "all three are reported")
            assert {
                f"koordpolicy-instance-{name}" for name in ("manager-m1", "scheduler-s1", "scheduler-s2")
            } <= (site.leases())
            killed.running.signal(signal.SIGKILL)
            site.eventually(lambda: not killed.running.running, "the first has ended")
            took = site.eventually(
                lambda: said(site) == everyone - {("s1", "Active")}, "the dead one is gone"
            )
            print(f"taken back {took:.1f} s after it was killed")
        assert stopped.running.stop(30) == 0
        assert said(site) == {("m1", "Active")}
        site.eventually(
            lambda: (
                {name for name in site.leases() if "instance" in name} == {"koordpolicy-instance-manager-m1"}
            ),
            "no lease of theirs is left",
        )
        assert not complaints(manager, stopped)


@pytest.mark.soak
def test_a_scheduler_alone_leaves_a_status_that_the_server_takes(site: Site) -> None:
    with site.process("scheduler", "s1") as scheduler:
        site.eventually(
            lambda: [one["conditions"] for one in site.revisions().values()] == [{"Ready": "True"}],
            "it speaks for all, since no manager does",
        )
        for number in (2, 3):
            site.write("share.yaml", share(30 + number))
            site.eventually(lambda number=number: len(site.revisions()) == number, "another revision")  # type: ignore[misc]
        site.eventually(lambda: len(said(site)) == 1, "one runs")
        assert scheduler.running.stop(30) == 0
        assert not complaints(scheduler)
    assert said(site) == set()
    assert all(one["conditions"] for one in site.revisions().values())
    with site.process("scheduler", "s1") as scheduler:
        site.eventually(lambda: said(site) == {("s1", "Active")}, "it is reported again after a restart")
        scheduler.running.signal(signal.SIGKILL)
    with site.process("scheduler", "s2") as scheduler:
        site.eventually(lambda: said(site) == {("s2", "Active")}, "another takes back what the dead one said")
        assert not complaints(scheduler)


@pytest.mark.soak
def test_forty_commits_in_a_row_are_reported_as_they_are(site: Site) -> None:
    for number in range(FILES):
        name = f"file-{number}"
        site.write(f"{name}.yaml", share(30).replace("name: share", f"name: {name}").replace("spec:", (
            f"spec:\n  match: {{nodes: {{matchLabels: {{pool: {name}}}}}}}"
        )))  # fmt: skip
    with site.manager("m1") as manager, site.process("scheduler", "s1") as scheduler:
        both = {("m1", "Active"), ("s1", "Active")}
        site.eventually(lambda: said(site) == both, "both are reported")
        for number in range(COMMITS):
            site.write("share.yaml", share(20 + number))
            time.sleep(PAUSE)
        site.write("share.yaml", share(90))
        site.eventually(lambda: site.offered() == 90_000, "the last commit decides")

        def told() -> bool:
            found = site.revisions().values()
            ready = [one for one in found if one["conditions"].get("Ready") == "True"]
            return (
                said(site) == both
                and [set(one["instances"]) for one in ready] == [{"m1", "s1"}]
                and all(one["conditions"] for one in found)
            )

        site.eventually(told, "one revision runs in both, and each has conditions")
        manager.running.signal(signal.SIGKILL)
        site.eventually(lambda: not manager.running.running, "the manager has ended")
        with site.manager("m1") as again:
            site.eventually(told, "the same after a restart")
            assert not complaints(manager, scheduler, again)
