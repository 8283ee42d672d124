"""`koordpolicy status` and `koordpolicy doctor` on a real API server, with a manager and its webhooks."""

import gzip
import io
import json
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.model.protocol import THIRD_PARTY_ALLOCATIONS
from tests.integration.runtime.managers import PATIENCE
from tests.integration.webhooks.site import WebhookSite, make_webhook_site
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

NODE = "/api/v1/nodes"
METRIC = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"


@pytest.fixture(scope="module")
def site(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookSite]:
    need(pytestconfig, "etcd", "kube-apiserver", "kubectl")
    with DeployedServer(tmp_path_factory.mktemp("status")) as server:
        yield make_webhook_site(server.access, tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def running(site: WebhookSite) -> Iterator[WebhookSite]:
    with site.serving("m1"):
        yield site


def run(site: WebhookSite, *words: str, user: str = "admin") -> tuple[int, str]:
    """Exit code, and what is printed, with what is said beside it unless programs are to read it."""
    out, err = io.StringIO(), io.StringIO()
    code = main([words[0], "--kubeconfig", str(site.access.kubeconfig(user)), *words[1:]], Terminal(out, err))
    return code, out.getvalue() + ("" if "json" in words else err.getvalue())


def eventually(ask: Any, seconds: float = PATIENCE) -> Any:
    end = time.monotonic() + seconds
    while True:
        found = ask()
        if found or time.monotonic() > end:
            return found
        time.sleep(0.3)


def diagnosed(site: WebhookSite) -> dict[str, list[tuple[str, str]]]:
    """Outcomes and messages by subject."""
    found: dict[str, list[tuple[str, str]]] = {}
    for one in json.loads(run(site, "doctor", "-o", "json")[1]):
        found.setdefault(one["subject"], []).append((one["outcome"], one["message"]))
    return found


def test_nothing_runs_yet(site: WebhookSite) -> None:
    code, text = run(site, "status")
    assert code == 1
    assert "no process has reported a revision of policies" in text
    found = diagnosed(site)
    assert found["processes"][0][0] == "failed"
    assert [outcome for outcome, _ in found["definitions"]] == ["ok"]
    assert found["clock"][0][0] == "ok", found["clock"]
    assert [outcome for outcome, _ in found["permissions"]] == ["ok"] * 4


def test_a_manager_without_webhooks_leaves_their_configurations_empty(site: WebhookSite) -> None:
    def told() -> list[tuple[str, str]]:
        return diagnosed(site)["webhooks"]

    empty = "the configurations name no webhook: "
    ours = (
        "the manager that leads serves none (it runs without `--webhook`), or no policy speaks of any object"
    )
    assert told() == [("warning", f"{empty}no manager leads, or {ours}")]
    with site.manager("m0"):
        assert eventually(lambda: told() == [("warning", empty + ours)]), told()


def test_a_manager_with_webhooks_is_well(running: WebhookSite) -> None:
    def well() -> bool:
        found = diagnosed(running)
        return any("reaches them" in message for _, message in found["webhooks"]) and "manager" in found

    assert eventually(well), "\n".join(map(str, diagnosed(running).items()))
    found = diagnosed(running)
    assert found["manager"] == [("ok", "1 there, m1 leads")]
    assert any("holds for" in message for _, message in found["certificate"])
    assert all(outcome in ("ok", "absent") for one in found.values() for outcome, _ in one), found
    assert run(running, "doctor")[0] == 0


def test_the_revision_and_who_runs_it(running: WebhookSite) -> None:
    def told() -> bool:
        text = run(running, "status")[1]
        return "True" in text and "m1" in text

    assert eventually(told), run(running, "status")[1]
    data = json.loads(run(running, "status", "-o", "json")[1])
    [manager] = [one for one in data["processes"] if one["component"] == "manager"]
    assert manager["leads"] == ["koordpolicy-manager"]
    assert manager["runs"] == data["revisions"][0]["revision"]
    assert data["revisions"][0]["ready"] == "True"


def test_what_nodes_lend_and_hold_back(running: WebhookSite) -> None:
    access = running.access
    amounts = {
        "cpu": "10",
        "memory": "64Gi",
        "pods": "110",
        "kubernetes.io/batch-cpu": "4000",
        "kubernetes.io/batch-memory": "16Gi",
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
    access.request("POST", NODE, node)
    access.request("PATCH", f"{NODE}/n1/status", {"status": {"capacity": amounts, "allocatable": amounts}})
    assert eventually(lambda: access.request("GET", f"{METRIC}/n1")[0] == 200)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    status = {
        "updateTime": now,
        "nodeMetric": {"nodeUsage": {"resources": {"cpu": "3", "memory": "8Gi"}}},
        "bestEffort": {"allowed": {"cpu": "1500m"}},
    }
    code, said = access.request("PATCH", f"{METRIC}/n1/status", {"status": status})
    assert code == 200, said
    data = json.loads(run(running, "status", "-o", "json")[1])
    assert data["nodes"]["reporting"] == 1
    assert data["nodes"]["used"]["cpu"] == 3000
    held = data["suppressed"]
    assert held["told"] == 1
    if held["nodes"]:  # the manager may take batch resources away in the meantime
        assert held["allowed"] == 1500


def test_a_refused_revision_is_shown_with_its_place(running: WebhookSite) -> None:
    running.write(
        "bad.yaml",
        "apiVersion: koordpolicy.io/v1alpha1\nkind: AdmissionRule\nmetadata: {name: bad}\nspec: {message: m, require: {cel: nosuch}}\n",
    )
    try:
        text = eventually(lambda: one if "bad.yaml:4" in (one := said_of(running)) else "")
        assert text, said_of(running)
        assert "KP2" in text
        assert run(running, "status")[0] == 1
    finally:
        (running.policies / "bad.yaml").unlink()
    # Once the policies went back, nobody need look at what was wrong with it.
    assert eventually(
        lambda: "bad.yaml" not in said_of(running) and "not in force" not in said_of(running)
    ), said_of(running)


def test_a_source_that_has_nothing_to_give_is_told_of(running: WebhookSite) -> None:
    away = running.policies.with_name("away")
    running.policies.rename(away)
    try:
        told = eventually(lambda: one if "m1 gets no new policies" in (one := said_of(running)) else "")
        assert told, said_of(running)
    finally:
        away.rename(running.policies)
    assert eventually(lambda: "gets no new policies" not in said_of(running)), said_of(running)


def said_of(site: WebhookSite) -> str:
    return run(site, "status")[1]


def test_a_bundle_for_those_who_help_has_no_secrets(running: WebhookSite, tmp_path: Path) -> None:
    pod = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "m", "image": "i", "env": [{"name": "TOKEN", "value": "hunter2"}]}]},
    }
    assert running.access.request("POST", "/api/v1/namespaces/default/pods", pod)[0] == 201
    file = tmp_path / "bundle.tar.gz"
    assert run(running, "doctor", "--bundle", str(file))[0] == 0
    with tarfile.open(file) as archive:
        names = {Path(one.name).name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]
    assert set(names) == {"doctor.json", "objects.json", "snapshot.json.gz", "status.json", "version.txt"}
    whole = b"".join(names.values()) + gzip.decompress(names["snapshot.json.gz"])
    assert b'"p"' in whole
    assert b"hunter2" not in whole
    assert b"PRIVATE KEY" not in whole
    assert json.loads(names["status.json"])["processes"]


def test_who_may_read_nothing_is_told_what_to_bind(site: WebhookSite) -> None:
    code, text = run(site, "status", user="nobody")
    assert code == 2
    assert "koordpolicy-snapshot" in text
    code, text = run(site, "doctor", user="nobody")
    assert code == 2, text
    assert "0 failed, 0 to look at, 1 ok, 7 unknown" in text
    assert "nothing can be said" in text
    code, text = run(site, "doctor", "-o", "json", user="nobody")
    assert (code, len(json.loads(text))) == (2, 8)


def test_a_koordinator_beside_us(running: WebhookSite) -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "koord-manager", "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "m", "image": "i"}]},
            },
        },
    }
    assert (
        running.access.request("POST", "/apis/apps/v1/namespaces/default/deployments", deployment)[0] == 201
    )
    try:
        found = diagnosed(running)["Koordinator"]
        assert ("warning" in {outcome for outcome, _ in found}) and "koord-manager" in found[0][1]
    finally:
        running.access.request("DELETE", "/apis/apps/v1/namespaces/default/deployments/koord-manager")


def test_a_yarn_beside_us(running: WebhookSite) -> None:
    def deployed(name: str, **labels: str) -> dict[str, Any]:
        template = {
            "metadata": {"labels": {"a": name}},
            "spec": {"containers": [{"name": "m", "image": "i"}]},
        }
        spec = {"selector": {"matchLabels": {"a": name}}, "template": template}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    access, path = running.access, "/apis/apps/v1/namespaces/default/deployments"
    labels = {"app.kubernetes.io/part-of": "koordpolicy", "app.kubernetes.io/component": "yarn-operator"}
    assert [outcome for outcome, _ in diagnosed(running)["YARN"]] == ["absent"]
    given = {"kubernetes.io/batch-cpu": "1500"}
    allocations = [{"name": "hadoop-yarn", "priority": "koord-batch", "resources": given}]
    keeps = {THIRD_PARTY_ALLOCATIONS: json.dumps({"allocations": allocations})}
    node = {"metadata": {"name": "kept", "annotations": keeps}}
    unreadable = {"metadata": {"name": "odd", "annotations": {THIRD_PARTY_ALLOCATIONS: "{"}}}
    try:
        for one in (node, unreadable):
            assert access.request("POST", NODE, one)[0] == 201
        odd, nobody, kept = sorted(diagnosed(running)["YARN"], key=lambda one: one[1], reverse=True)
        assert (odd[0], odd[1].startswith("node odd: ")) == ("warning", True)
        assert kept == ("ok", "1.5 cores and 0.0 GiB are kept for it on 1 node")
        assert nobody == (
            "warning",
            "no yarn-operator runs: what nodes keep for YARN is given back by nobody",
        )
        for one in (deployed("ours", **labels), deployed("koord-yarn-operator")):
            assert access.request("POST", path, one)[0] == 201
        found = diagnosed(running)
        assert nobody not in found["YARN"]
        assert [
            text
            for outcome, text in found["Koordinator"]
            if outcome == "warning"
            and text.startswith("koord-yarn-operator in `default` runs beside our yarn-operator")
        ]
        for gone in (f"{path}/koord-yarn-operator", f"{NODE}/kept", f"{NODE}/odd"):
            assert access.request("DELETE", gone)[0] == 200
        assert diagnosed(running)["YARN"] == [("ok", "no node keeps anything for it yet")]
    finally:
        for made in (f"{path}/ours", f"{path}/koord-yarn-operator", f"{NODE}/kept", f"{NODE}/odd"):
            access.request("DELETE", made)


def test_it_reads_well_at_80_columns(running: WebhookSite, tmp_path: Path) -> None:
    for command in ("status", "doctor"):
        assert max(map(len, run(running, command)[1].splitlines())) <= 100


def test_policies_from_the_cluster_are_tried_and_a_dead_manager_is_found(
    site: WebhookSite, running: WebhookSite
) -> None:
    """The doctor tries a policy that must be refused; once nobody answers any more, it says so."""
    bundle = {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "PolicyBundle",
        "metadata": {"name": "fleet"},
        "spec": {"extends": ["koordinator"]},
    }
    assert site.kubectl("apply", "-f", "-", given=json.dumps(bundle))[0] == 0
    running.managers[0].running.kill()
    code, text = run(site, "doctor")
    assert code == 1, text
    assert "does not reach them" in " ".join(text.split()), text
    with site.serving("m2", "--policies-from-cluster") as second:
        reached = ("ok", "the API server reaches them: one answered")
        assert eventually(lambda: reached in diagnosed(site)["webhooks"]), diagnosed(site)["webhooks"]
        second.running.kill()
        assert eventually(lambda: any(outcome == "failed" for outcome, _ in diagnosed(site)["webhooks"])), (
            diagnosed(site)["webhooks"]
        )
        assert run(site, "doctor")[0] == 1
