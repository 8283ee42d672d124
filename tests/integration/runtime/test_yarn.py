"""Batch resources of a node shared with a real YARN: manager and YARN operator with their shipped roles, on a real API server."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from tests.integration.runtime.managers import NODE, Manager, Site, make_site
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need
from tests.parts.yarn import Yarn

OFTEN = """\
apiVersion: koordpolicy.io/v1alpha1
kind: YARNNode
metadata: {name: often}
spec:
  overCommitTimeout: 2s
  pace: {interval: 500ms, timeout: 10s}
"""
PODS = "/api/v1/namespaces/default/pods"
THIRD_PARTY = "node.koordinator.sh/thirdPartyAllocations"
ALL = 60_000
"""Batch CPU of the node, in millicores."""


@pytest.fixture
def site(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Site]:
    need(pytestconfig, "etcd", "kube-apiserver", "hadoop-yarn")
    folder = tmp_path / "server"
    folder.mkdir()
    with DeployedServer(folder) as server:
        site = make_site(server.access, tmp_path)
        site.write("often.yaml", OFTEN)
        yield site


@pytest.fixture
def yarn(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Yarn]:
    with Yarn(need(pytestconfig, "hadoop-yarn")[0], tmp_path / "yarn") as yarn:
        yield yarn


@contextmanager
def _sharing(site: Site, *flags: str) -> Iterator[Manager]:
    """A manager, which publishes batch resources, and an operator with these flags, which is given."""
    with site.manager("m"), _operator(site, "y", *flags) as operator:
        yield operator


def _operator(site: Site, name: str, *flags: str) -> AbstractContextManager[Manager]:
    return site.process("yarn-operator", name, *flags)


def _ask(site: Site, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    status, answer = site.access.request(method, path, body)
    assert status < 300, answer
    return dict(answer)


def _claimed(site: Site) -> int:
    """Millicores that are kept from pods for YARN, by the node's annotation."""
    annotations = _ask(site, "GET", f"/api/v1/nodes/{NODE}")["metadata"].get("annotations", {})
    allocations = json.loads(annotations.get(THIRD_PARTY, "{}")).get("allocations", [])
    found = [
        one["resources"]["kubernetes.io/batch-cpu"] for one in allocations if one["name"] == "hadoop-yarn"
    ]
    return sum(int(one.removesuffix("k")) * (1000 if one.endswith("k") else 1) for one in found)


def _events(site: Site) -> set[str]:
    return {one["reason"] for one in _ask(site, "GET", "/api/v1/events")["items"]}


def _diagnosed(site: Site) -> list[tuple[str, str]]:
    """What `koordpolicy doctor` says of YARN: outcomes and messages."""
    out = io.StringIO()
    words = ["doctor", "-o", "json", "--kubeconfig", str(site.access.kubeconfig("admin"))]
    main(words, Terminal(out, io.StringIO()))
    found = json.loads(out.getvalue())
    return [(one["outcome"], one["message"]) for one in found if one["subject"] == "YARN"]


def _run_pod(site: Site, cpu: str) -> None:
    """A pod of batch work on the node, as a scheduler leaves it."""
    account = "/api/v1/namespaces/default/serviceaccounts"
    site.eventually(lambda: site.access.request("GET", "/api/v1/namespaces/default")[0] == 200, "a namespace")
    site.access.request("POST", account, {"metadata": {"name": "default"}})
    amounts = {"kubernetes.io/batch-cpu": cpu, "kubernetes.io/batch-memory": "1Gi"}
    container = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
    spec = {"nodeName": NODE, "automountServiceAccountToken": False, "containers": [container]}
    metadata = {"name": "job", "labels": {"koordinator.sh/qosClass": "BE"}}
    _ask(site, "POST", PODS, {"metadata": metadata, "spec": spec})


def _nothing_is_given_twice(site: Site, yarn: Yarn) -> None:
    """What YARN may use was taken from pods before."""
    vcores, left = yarn.offered()[1], site.offered()
    assert left is not None
    assert vcores * 1000 + left <= ALL


class Watching:
    """Asks questions while it looks each time whether anything is given twice. `seen` counts the looks that tell."""

    def __init__(self, site: Site, yarn: Yarn) -> None:
        self._site, self._yarn = site, yarn
        self.seen = 0
        self.least_claimed = ALL

    def until(self, question: Callable[[], object], what: str) -> None:
        def asked() -> object:
            self._look()
            return question()

        self._site.eventually(asked, what)

    def _look(self) -> None:
        """What YARN may use was taken from pods before; a look during which pods got more or less tells nothing."""
        before = self._site.offered()
        vcores = self._yarn.offered()[1]
        if before is None or vcores < 0 or self._site.offered() != before:
            return
        assert vcores * 1000 + before <= ALL
        self.least_claimed = min(self.least_claimed, _claimed(self._site))
        self.seen += 1


def test_yarn_gets_what_pods_do_not_request_and_gives_it_back(site: Site, yarn: Yarn) -> None:
    patch = {"metadata": {"annotations": {"node.yarn.koordinator.sh": yarn.node()["id"]}}}
    _ask(site, "PATCH", f"/api/v1/nodes/{NODE}", patch)
    with _sharing(site, "--yarn-url", yarn.url, "--yarn-user", "root") as operator:
        site.eventually(lambda: yarn.offered() == (16640, 15), "a quarter of what the node has")
        _nothing_is_given_twice(site, yarn)
        assert (_claimed(site), site.offered()) == (15_000, 45_000)

        yarn.run("sleep 600", 8192, 8)
        site.eventually(lambda: yarn.used() == (8192, 8), "a container")
        site.eventually(lambda: yarn.offered()[1] == 23, "a quarter more than is used")
        _nothing_is_given_twice(site, yarn)

        _run_pod(site, "37k")
        site.write(
            "more.yaml",
            OFTEN.replace("often", "more").replace("spec:", "spec:\n  parameters: {headroom: 100%}"),
        )
        site.eventually(lambda: yarn.offered()[0] > 60_000, "all memory that is free")
        assert yarn.offered()[1] == 23  # 60 - 37
        (site.policies / "more.yaml").unlink()

        site.write("often.yaml", OFTEN + "  enabled: false\n")
        site.eventually(lambda: yarn.offered() == (0, 0), "everything is taken back")
        site.eventually(lambda: yarn.used() == (0, 0), "the container is ended after its grace")
        site.eventually(lambda: _claimed(site) == 0 and site.offered() == ALL, "pods may have all of it")
        assert operator.metric('koordpolicy_yarn_requests_total{request="update",result="200"}')


@pytest.mark.soak
def test_a_resource_manager_that_is_killed_changes_nothing_and_starts_anew_without_its_memory(
    site: Site, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    with Yarn(need(pytestconfig, "hadoop-yarn")[0], tmp_path / "yarn") as yarn:
        annotations = {"node.yarn.koordinator.sh": yarn.node()["id"]}
        _ask(site, "PATCH", f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": annotations}})
        with _sharing(site, "--yarn-url", yarn.url, "--yarn-user", "root") as operator:
            site.eventually(lambda: yarn.offered()[1] == 15, "an offer")
            yarn.run("sleep 600", 8192, 8)
            site.eventually(lambda: yarn.offered()[1] == 23, "a quarter more than is used")
            yarn.kill("resourcemanager")
            site.eventually(lambda: operator.metric("koordpolicy_yarn_reachable") == 0, "it is told")
            assert (_claimed(site), site.offered()) == (23_000, 37_000)
            site.eventually(lambda: "YARNUnreachable" in _events(site), "an Event")
            assert operator.status["yarn"]["problem"]
            kept, failed = _diagnosed(site)
            assert kept == ("ok", "23.0 cores and 24.2 GiB are kept for it on 1 node")
            assert failed[0] == "failed"
            assert "does not answer" in failed[1]

            yarn.start("resourcemanager")  # which knows nothing of the container, nor of what was offered
            watching = Watching(site, yarn)
            watching.until(lambda: operator.metric("koordpolicy_yarn_reachable") == 1, "it answers again")
            watching.until(lambda: yarn.used() == (0, 0), "the container's application is forgotten")
            watching.until(lambda: yarn.offered() == (16640, 15), "a quarter of what the node has, as before")
            watching.until(lambda: (_claimed(site), site.offered()) == (15_000, 45_000), "pods get the rest")
            assert watching.seen
            assert watching.least_claimed >= 15_000
            site.eventually(lambda: "YARNReachable" in _events(site), "an Event")
            assert operator.status["yarn"] == {"nodes": 1, "problem": ""}
            assert {outcome for outcome, _ in _diagnosed(site)} == {"ok"}


@pytest.mark.soak
def test_a_node_manager_that_nobody_knows_is_told(site: Site, yarn: Yarn) -> None:
    annotations = {"node.yarn.koordinator.sh": "elsewhere:8041"}
    _ask(site, "PATCH", f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": annotations}})
    with _sharing(site, "--yarn-url", yarn.url):
        site.eventually(lambda: "YARNNodeUnknown" in _events(site), "an Event")
        assert yarn.offered() == (1024, 1)
        assert _claimed(site) == 0


@pytest.mark.soak
def test_it_follows_policies_as_other_components_do_and_a_standby_goes_on(site: Site, yarn: Yarn) -> None:
    annotations = {"node.yarn.koordinator.sh": yarn.node()["id"]}
    _ask(site, "PATCH", f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": annotations}})
    decisions = site.folder / "decisions"
    flags = ("--yarn-url", yarn.url, "--yarn-user", "root", "--decision-log", str(decisions))
    with (
        _sharing(site, *flags, "--decision-log-every", "1") as first,
        _operator(site, "z", *flags[:4]) as second,
    ):
        site.eventually(lambda: yarn.offered() == (16640, 15), "a quarter of what the node has")
        assert (first.leads, second.leads) == (True, False)
        entry = json.loads(decisions.read_text("utf-8").splitlines()[0])
        assert (entry["component"], entry["subject"]) == ("yarn-operator", {"node": NODE})
        assert entry["decision"].startswith("YARNNode.offer.")

        site.write("often.yaml", OFTEN + "  parameters: {noSuchParameter: 1%}\n")
        site.eventually(lambda: "error[KP305]" in first.read("/statusz")[1], "it is refused")

        def reported() -> bool:
            states = [one["instances"] for one in site.revisions().values()]
            return any(one.get("y") == one.get("z") == "Rejected" for one in states)

        site.eventually(reported, "PolicyRevisions say so")
        assert (yarn.offered(), _claimed(site)) == ((16640, 15), 15_000)

        first.running.kill()
        site.write("often.yaml", OFTEN + "  parameters: {headroom: 50%}\n")
        watching = Watching(site, yarn)
        watching.until(lambda: yarn.offered()[1] == 30, "the standby goes on, by what holds now")
        assert second.leads
        assert watching.seen
