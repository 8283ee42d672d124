"""What kustomize and the chart ship: built by kubectl and helm, applied to a real API server, with flags that commands know."""

import subprocess
from collections.abc import Sequence
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.cli.front import settings_of
from koordpolicy.cli.main import parser
from tests.conftest import REPOSITORY
from tests.integration.deploy.chart import VALUES, rendered, workloads
from tests.parts.apiserver import SYSTEM_NAMESPACE, Access
from tests.parts.deployed import apply, manifests
from tests.parts.fixtures import need
from tests.parts.table import find

POLICIES = {
    "manager": None,
    "scheduler": None,
    "descheduler": None,
    "yarn-operator": None,
    "git-sync": ("policies", "/policies/current"),
    "policies-from-cluster": ("policies_from_cluster", True),
    "follow-slo-config": ("follow_slo_config", "koordinator-system"),
    "beside-yarn": ("yarn_url", ["http://resourcemanager.yarn.svc:8088"]),
}
"""The folders that are applied, with the flag by which each says its own, to all processes that take it."""


@pytest.fixture(scope="session")
def built(pytestconfig: pytest.Config) -> dict[str, list[dict[str, Any]]]:
    """The objects of each folder, as `kubectl apply -k` makes them."""
    need(pytestconfig, "kubectl")
    found = {}
    for name in POLICIES:
        done = subprocess.run(
            [str(find("kubectl").path), "kustomize", str(REPOSITORY / "deploy" / name)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found[name] = list(YAML(typ="safe").load_all(done.stdout))
    return found


def of_kind(objects: Sequence[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


@pytest.mark.parametrize("folder", POLICIES)
def test_an_api_server_takes_them(built: Any, folder: str, deployed: Access) -> None:
    for namespace in {one["metadata"].get("namespace", SYSTEM_NAMESPACE) for one in built[folder]}:
        deployed.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    apply(deployed, built[folder])
    for name, written in of_kind(built[folder], "Deployment").items():
        path = f"/apis/apps/v1/namespaces/{SYSTEM_NAMESPACE}/deployments/{name}"
        status, stored = deployed.request("GET", path)
        assert status == 200
        kept = stored["spec"]["template"]["spec"]
        wanted = written["spec"]["template"]["spec"]
        assert kept["containers"][0]["args"] == wanted["containers"][0]["args"]
        assert kept["containers"][0]["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert {one["name"] for one in kept.get("initContainers", ())} == {
            *(["git-sync"] if folder == "git-sync" else []),
            *(["front"] if "manager" in name else []),
        }
        deployed.request("DELETE", path)


def test_an_api_server_takes_the_chart_by_every_set_of_values(
    deployed: Access, pytestconfig: pytest.Config
) -> None:
    need(pytestconfig, "helm")
    # Tests of the same server find the roles of the folders again.
    try:
        _apply_every_set(deployed)
    finally:
        apply(deployed, manifests(REPOSITORY / "deploy" / "rbac"))


def _apply_every_set(deployed: Access) -> None:
    foreign = {"Issuer", "Certificate", "ServiceMonitor", "PrometheusRule"}  # of operators that are not here
    for name, file in VALUES.items():
        objects = rendered(f"--values={file}", "--set=crds.managed=false")
        for namespace in {one["metadata"].get("namespace") for one in objects} - {None}:
            deployed.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        mine = [one for one in objects if one["kind"] not in foreign]
        apply(deployed, mine)
        for one in workloads(mine):
            base = f"/apis/apps/v1/namespaces/{one['metadata']['namespace']}/{one['kind'].lower()}s"
            status, kept = deployed.request("GET", f"{base}/{one['metadata']['name']}")
            assert status == 200, name
            wanted = one["spec"]["template"]["spec"]["containers"][0]
            assert kept["spec"]["template"]["spec"]["containers"][0]["args"] == wanted["args"]
            deployed.request("DELETE", f"{base}/{one['metadata']['name']}")


@pytest.mark.parametrize("folder", POLICIES)
def test_commands_know_the_flags(built: Any, folder: str) -> None:
    told: list[str] = []
    for deployment in of_kind(built[folder], "Deployment").values():
        spec = deployment["spec"]["template"]["spec"]
        container = spec["containers"][0]
        component = container["name"]
        given = parser({component}).parse_args([component, *container["args"]])
        assert container["command"] == ["koordpolicy", component]
        said = POLICIES[folder]
        if said is not None and hasattr(given, said[0]):
            assert getattr(given, said[0]) == said[1]
            told.append(component)
        ports = {one["name"]: one["containerPort"] for one in container["ports"]}
        assert given.http == f":{ports['http']}"
        mounts = [one["mountPath"] for one in container["volumeMounts"]]
        assert str(given.state_dir) in mounts
        volumes = {one["name"] for one in spec["volumes"]}
        assert {one["name"] for one in container["volumeMounts"]} <= volumes
        if component == "manager":
            (front,) = [one for one in spec["initContainers"] if one["name"] == "front"]
            before = parser({"front"}).parse_args(["front", *front["args"]])
            assert front["command"] == ["koordpolicy", "front"]
            assert given.webhook == f"unix:{before.server}"
            assert str(before.server.parent) in mounts
            assert before.listen == f":{front['ports'][0]['containerPort']}"
            peers, port = settings_of(before).peers, settings_of(before).peer_port
            headless = of_kind(built[folder], "Service")[peers.partition(".")[0]]["spec"]
            assert (headless["clusterIP"], headless["ports"][0]["port"]) == ("None", port)
            assert before.peer_name == f"{given.webhook_service}.{given.namespace}.svc"
            (service,) = [
                one
                for name, one in of_kind(built[folder], "Service").items()
                if name == given.webhook_service
            ]
            assert service["metadata"]["namespace"] == given.namespace
            assert [one["port"] for one in service["spec"]["ports"]] == [443]
    assert told or POLICIES[folder] is None


@pytest.mark.parametrize("folder", POLICIES)
def test_services_and_budgets_select_the_pods(built: Any, folder: str) -> None:
    pods = [one["spec"]["template"] for one in of_kind(built[folder], "Deployment").values()]
    selectors = [one["spec"]["selector"] for one in of_kind(built[folder], "Service").values()]
    selectors += [
        one["spec"]["selector"]["matchLabels"]
        for one in of_kind(built[folder], "PodDisruptionBudget").values()
    ]
    assert len(selectors) >= 2 * len(pods)
    for selector in selectors:
        chosen = [one for one in pods if selector.items() <= one["metadata"]["labels"].items()]
        assert len(chosen) == 1
    for one in pods:
        containers = (*one["spec"]["containers"], *one["spec"].get("initContainers", ()))
        names = {port["name"] for container in containers for port in container.get("ports", ())}
        for service in of_kind(built[folder], "Service").values():
            if service["spec"]["selector"].items() <= one["metadata"]["labels"].items():
                assert {port["targetPort"] for port in service["spec"]["ports"]} <= names


def test_what_git_sync_links_is_what_is_followed(built: Any) -> None:
    for deployment in of_kind(built["git-sync"], "Deployment").values():
        spec = deployment["spec"]["template"]["spec"]
        (sidecar,) = [one for one in spec["initContainers"] if one["name"] == "git-sync"]
        said = dict(one.removeprefix("--").partition("=")[::2] for one in sidecar["args"])
        flags = dict(one.removeprefix("--").partition("=")[::2] for one in spec["containers"][0]["args"])
        assert flags["policies"] == f"{said['root']}/{said['link']}"
        assert sidecar["restartPolicy"] == "Always"


def test_the_agent_knows_its_flags_and_asks_for_no_more_than_is_explained() -> None:
    folder = REPOSITORY / "deploy" / "agent"
    spec = YAML(typ="safe").load(folder / "daemonset.yaml")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    given = parser({"agent"}).parse_args(["agent", *container["args"]])
    assert given.policies_from_manager
    assert not given.kubelet_insecure_tls, "it would send its token to whoever listens there"
    assert str(given.kubelet_ca_file) == "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
    assert container["command"] == ["koordpolicy", "agent"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not container["securityContext"].get("privileged")
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert str(given.cgroup_root) == mounts["cgroup"]
    assert str(given.state_dir) == mounts["state"]
    explained = (folder / "README.md").read_text("utf-8")
    for volume in spec["volumes"]:
        if "hostPath" in volume:
            assert f"`{volume['hostPath']['path']}`" in explained
    rules = [
        rule
        for one in YAML(typ="safe").load_all(REPOSITORY / "deploy" / "rbac" / "agent.yaml")
        for rule in one.get("rules", ())
    ]
    named = {resource for rule in rules for resource in rule["resources"]}
    assert {one for one in named if f"`{one}`" not in explained} == set()
