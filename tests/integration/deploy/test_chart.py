"""The chart: the same objects as kustomize's, in ten ways to install, on a real API server from install to uninstall."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from koordpolicy import __version__
from koordpolicy.cli.main import parser
from tests.conftest import REPOSITORY
from tests.integration.deploy.chart import (
    CHART,
    VALUES,
    Object,
    by_key,
    helm,
    kustomized,
    rendered,
    without_helms_labels,
    workloads,
)
from tests.parts.apiserver import Access, ApiServer
from tests.parts.fixtures import need

LIKE_FOLDERS = {
    # folder -> what one says to the chart to have the same
    "policies-from-cluster": ["--set=policies.from=cluster"],
    "git-sync": [
        "--set=policies.from=gitSync",
        "--set=policies.gitSync.repo=https://git.example.com/platform/policies.git",
    ],
    "follow-slo-config": [
        "--set=manager.followSloConfig.enabled=true,scheduler.enabled=false,descheduler.enabled=false"
    ],
    "beside-yarn": [
        "--set=yarnOperator.enabled=true,yarnOperator.urls={http://resourcemanager.yarn.svc:8088},yarnOperator.user=yarn",
        "--set=scheduler.enabled=false,descheduler.enabled=false",
    ],
}
SAME = [
    "--set=image.tag=latest,agent.enabled=false,crds.managed=false,serving.delegatedAuth=true",
    "--set=serving.tlsSecretName=",
    "--skip-schema-validation",  # who may ask without TLS is refused otherwise; roles alone are compared
]


@pytest.fixture(scope="session", autouse=True)
def programs(pytestconfig: pytest.Config) -> None:
    need(pytestconfig, "helm", "kubectl")


@pytest.fixture(scope="session")
def sets() -> dict[str, list[Object]]:
    """Without definitions, which are long."""
    return {name: rendered(f"--values={file}", "--set=crds.managed=false") for name, file in VALUES.items()}


@pytest.mark.parametrize("folder", LIKE_FOLDERS)
def test_the_chart_and_the_folder_say_the_same(folder: str) -> None:
    ours = by_key(map(without_helms_labels, rendered(*SAME, *LIKE_FOLDERS[folder])))
    theirs = dict(by_key(kustomized(folder)))
    installed = {one["metadata"]["name"] for one in ours.values() if one["kind"] == "ServiceAccount"}
    if folder in {"follow-slo-config", "beside-yarn"}:
        theirs = {key: one for key, one in theirs.items() if "scheduler" not in key[2]}
    absent = {"koordpolicy-agent", *(["koordpolicy-yarn-operator"] if folder != "beside-yarn" else [])}
    theirs = {key: one for key, one in theirs.items() if key[2] not in absent}
    for one in theirs.values():
        if "subjects" in one:
            one["subjects"] = [subject for subject in one["subjects"] if subject["name"] in installed]
        if one["kind"] == "Namespace":
            one["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = (
                "restricted"  # for no agent is there
            )
    assert ours.keys() == theirs.keys()
    for key, one in ours.items():
        assert one == theirs[key], key


def test_definitions_are_wanted_one_by_one_and_may_stay() -> None:
    names = {
        one["metadata"]["name"]: one["metadata"].get("annotations", {})
        for one in rendered(f"--values={VALUES['cluster']}", "--show-only=templates/crds.yaml")
    }
    assert "reservations.scheduling.koordinator.sh" not in names
    assert len(names) == len(list((REPOSITORY / "deploy" / "crds").glob("*_*.yaml"))) - 1
    assert all(one["helm.sh/resource-policy"] == "keep" for one in names.values())
    beside = rendered(f"--values={VALUES['beside-koordinator']}", "--show-only=templates/crds.yaml")
    assert {one["spec"]["group"] for one in beside} == {"koordpolicy.io"}


def test_agents_definitions_and_network_policies_are_the_folders() -> None:
    ours = by_key(
        map(
            without_helms_labels,
            rendered(
                "--set=image.tag=latest,networkPolicies.enabled=true,monitoring.enabled=true",
                "--set=yarnOperator.enabled=true,yarnOperator.urls={http://rm:8088}",
            ),
        )
    )
    for folder in ("agent", "crds", "network-policies", "monitoring"):
        for key, one in by_key(kustomized(folder)).items():
            wanted = {**one, "metadata": {"labels": {}, **one["metadata"]}}
            assert ours[key] == wanted, key
    roles = {key for key in by_key(kustomized("rbac")) if key[2] == "koordpolicy-agent"}
    assert len(roles) == 5
    assert roles <= ours.keys()


@pytest.mark.parametrize("way", ["proxy", "nri"])
def test_an_agent_that_is_asked_is_the_folders(way: str) -> None:
    words = (f"--set=image.tag=latest,agent.hooks={way}", "--show-only=templates/agent.yaml")
    ours = by_key(map(without_helms_labels, rendered(*words)))
    assert ours == by_key(kustomized(f"hooks-by-{way}"))


def test_the_agent_of_a_proxy_is_asked_where_values_say() -> None:
    values = f"--values={VALUES['another-namespace']}"
    (agent,) = rendered(values, "--show-only=templates/agent.yaml")
    spec = agent["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert {"--hook-socket=/run/koord/koordlet/koordlet.sock", "--hook-dir=/opt/hookserver.d"} <= set(
        container["args"]
    )
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    there = {one["name"]: one.get("hostPath", {}).get("path") for one in spec["volumes"]}
    for name, place in (("hook-socket", "/run/koord/koordlet"), ("hook-servers", "/opt/hookserver.d")):
        assert mounted[name] == there[name] == place  # who asks is told of it by the node's name


@pytest.mark.parametrize("name", VALUES)
def test_commands_know_their_flags(name: str, sets: dict[str, list[Object]]) -> None:
    seen = []
    for one in workloads(sets[name]):
        spec = one["spec"]["template"]["spec"]
        volumes = [volume["name"] for volume in spec["volumes"]]
        assert len(volumes) == len(set(volumes))
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)
            paths = [mount["mountPath"] for mount in container["volumeMounts"]]
            assert len(paths) == len(set(paths))
            if container["name"] == "git-sync":
                continue
            command = container["command"][1]
            parser({command}).parse_args([command, *container["args"]])
            seen.append(command)
            if spec.get("automountServiceAccountToken", True):
                paths.append("/var/run/secrets/kubernetes.io/serviceaccount")  # which Kubernetes mounts
            words = [word.partition("=")[2] for word in container["args"]]
            for file in (word for word in words if word.startswith("/") and word not in paths):
                assert any(Path(file).is_relative_to(path) for path in paths), (container["name"], file)
    assert set(seen) == {
        *(["manager", "front", "scheduler", "descheduler"] if name != "shards" else ["scheduler"]),
        *(["yarn-operator"] if name in {"another-namespace", "cluster", "git-sync"} else []),
        *(["agent"] if name not in {"shards", "git-sync-ssh"} else []),
    }


@pytest.mark.parametrize("name", VALUES)
def test_pods_that_need_no_more_are_restricted(name: str, sets: dict[str, list[Object]]) -> None:
    for one in workloads(sets[name]):
        spec = one["spec"]["template"]["spec"]
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"]
            assert not context["allowPrivilegeEscalation"]
            assert context["capabilities"]["drop"] == ["ALL"]
            assert not context.get("privileged")
            assert {"requests", "limits"} & container["resources"].keys()
        assert one["kind"] == "DaemonSet" or spec["securityContext"]["runAsNonRoot"]


def said(sets: dict[str, list[Object]], name: str, workload: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The pod and its first container."""
    (one,) = [one for one in workloads(sets[name]) if one["metadata"]["name"] == f"koordpolicy-{workload}"]
    spec = one["spec"]["template"]["spec"]
    return spec, spec["containers"][0]


def test_each_way_to_policies_says_so_to_the_process(sets: dict[str, list[Object]]) -> None:
    ways = {
        "cluster": "--policies-from-cluster",
        "config-map": "--policies=/policies",
        "git-sync": "--policies=/policies/current",
        "git-sync-ssh": "--policies=/policies/current/clusters/one",
        "repository": "--policies-ssh-key=/etc/git-secret/ssh-key",
    }
    for name, flag in ways.items():
        more = ["yarn-operator"] if name in {"cluster", "git-sync"} else []
        for workload in ("manager", "scheduler", "descheduler", *more):
            assert flag in said(sets, name, workload)[1]["args"]
    spec, _ = said(sets, "git-sync-ssh", "manager")
    sidecar = spec["initContainers"][0]
    assert "--ssh-key-file=/etc/git-secret/ssh" in sidecar["args"]
    assert "--password-file=/etc/git-secret/password" not in sidecar["args"]
    spec, _ = said(sets, "git-sync", "scheduler")
    assert "--password-file=/etc/git-secret/password" in spec["initContainers"][0]["args"]
    assert spec["initContainers"][0]["image"] == "registry.example.com/mirror/git-sync:v4"


def test_values_reach_what_they_speak_of(sets: dict[str, list[Object]]) -> None:
    spec, manager = said(sets, "another-namespace", "manager")
    assert {"--namespace=colocation", "--follow-slo-config=koord", "--http=:8090"} <= set(manager["args"])
    assert manager["image"].endswith("@sha256:" + "0123456789abcdef" * 4)
    assert spec["hostNetwork"]
    front = spec["initContainers"][0]
    assert "--peers=koordpolicy-manager-peers.colocation.svc:9443" in front["args"]
    assert "--peer-name=koordpolicy-manager-webhook.colocation.svc" in front["args"]
    _, operator = said(sets, "another-namespace", "yarn-operator")
    assert {
        "--namespace=colocation",
        "--http=:8091",
        "--yarn-url=https://rm-0.yarn.svc:8090",
        "--yarn-url=https://rm-1.yarn.svc:8090",
        "--yarn-token-file=/etc/koordpolicy/yarn/token",
        "--yarn-ca-file=/etc/koordpolicy/yarn/ca.crt",
    } <= set(operator["args"])
    for one in sets["another-namespace"]:
        assert one["metadata"].get("namespace", "colocation") in {"colocation", "koord"}
        for subject in one.get("subjects", ()):
            assert subject["namespace"] == "colocation"
    _, agent = said(sets, "another-namespace", "agent")
    assert agent["securityContext"]["capabilities"]["add"] == ["SYS_RESOURCE"]
    assert "--kubelet-dir=/host/var/lib/kubelet" in agent["args"]
    _, quiet = said(sets, "beside-koordinator", "agent")
    assert "--dry-run" in quiet["args"]
    _, served = said(sets, "cert-manager", "scheduler")
    assert "--delegated-auth" in served["args"]
    assert "--http-anonymous-auth" not in served["args"]
    assert served["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"


def test_shards_are_schedulers_of_their_own(sets: dict[str, list[Object]]) -> None:
    shards = workloads(sets["shards"])
    flags = [one["spec"]["template"]["spec"]["containers"][0]["args"][-1] for one in shards]
    assert flags == ["--shard=0/3", "--shard=1/3", "--shard=2/3"]
    chosen = [one["spec"]["selector"]["matchLabels"] for one in shards]
    chosen += [
        one["spec"]["selector"]["matchLabels"]
        for one in sets["shards"]
        if one["kind"] == "PodDisruptionBudget"
    ]
    for labels in chosen:
        pods = [one["spec"]["template"]["metadata"]["labels"] for one in shards]
        assert sum(labels.items() <= one.items() for one in pods) == 1
    assert len(chosen) == 6


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("policies.from=gitsync", "/policies/from"),
        ("policies.from=gitSync", "policies.gitSync.repo: which repository"),
        ("policies.from=configMap", "policies.configMap.name: which ConfigMap"),
        ("serving.delegatedAuth=true", "tlsSecretName"),
        ("koordlet.enabled=false", "koordlet"),
        ("scheduler.shards=0", "shards"),
        ("yarnOperator.urls={resourcemanager:8088}", "/yarnOperator/urls/0"),
        ("yarnOperator.enabled=true", "/yarnOperator/urls"),
        ("yarnOperator.urls={http://rm:8088},yarnOperator.keys={token}", "/yarnOperator/urls/0"),
        (
            "yarnOperator.enabled=true,yarnOperator.urls={https://rm:8090},yarnOperator.keys={token}",
            "yarnOperator.secretName: which",
        ),
        ("manager.yarn.urls={http://rm:8088}", "yarn"),
    ],
)
def test_values_that_make_no_sense_are_refused(given: str, why: str) -> None:
    done = helm("template", "koordpolicy", CHART, "--kube-version=1.36.0", f"--set={given}")
    assert done.returncode != 0
    assert why in done.stderr


def test_lint_and_package(tmp_path: Path) -> None:
    done = helm("lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout
    packed = helm("package", CHART, "--destination", tmp_path)
    assert packed.returncode == 0, packed.stderr
    (archive,) = tmp_path.glob("*.tgz")
    whole = helm("template", "koordpolicy", archive, "--kube-version=1.36.0")
    assert whole.returncode == 0, whole.stderr  # the links' files are in it
    assert (
        whole.stdout == helm("template", "koordpolicy", CHART, "--kube-version=1.36.0").stdout
    )  # and nothing else


def test_versions_are_one() -> None:
    text = (CHART / "Chart.yaml").read_text("utf-8")
    assert f"appVersion: {__version__}" in text


LISTS = (
    "/api/v1/namespaces",
    "/api/v1/serviceaccounts",
    "/api/v1/services",
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/daemonsets",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/networking.k8s.io/v1/networkpolicies",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
)


def ours(access: Access) -> set[tuple[str, str]]:
    """What is there of the chart and of helm; a server makes objects of its own for a while, none named like ours."""
    found = set()
    for path in LISTS:
        status, answer = access.request("GET", path)
        assert status == 200, answer
        for one in answer["items"]:
            name = f"{one['metadata'].get('namespace', '')}/{one['metadata']['name']}"
            mine = "koord" in name or path.endswith("/customresourcedefinitions")
            if mine and "deletionTimestamp" not in one["metadata"]:
                found.add((path, name))
    return found


def test_install_upgrade_uninstall(own_apiserver: Callable[..., ApiServer]) -> None:
    access = own_apiserver().access
    kubeconfig = access.kubeconfig("admin")
    assert ours(access) == set()

    tried = helm("install", "koordpolicy", CHART, "--dry-run=server", kubeconfig=kubeconfig)
    assert tried.returncode == 0, tried.stderr
    assert "kubectl -n koordpolicy-system rollout status" in tried.stdout
    assert ours(access) == set()

    done = helm("install", "koordpolicy", CHART, kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stderr
    names = {name for _, name in ours(access)}
    assert {
        "/koordpolicy-system",
        "koordpolicy-system/koordpolicy-manager",
        "/policybundles.koordpolicy.io",
    } <= names

    # What the manager wrote into its webhook configurations and its Secret stays, and definitions follow the chart.
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/koordpolicy"
    hook = {
        "name": "pods.koordpolicy.io",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "namespaceSelector": {"matchLabels": {"no": "such"}},
    }
    assert access.request("PATCH", hooks, {"webhooks": [hook]})[0] == 200
    secret = "/api/v1/namespaces/koordpolicy-system/secrets/koordpolicy-webhook-cert"
    assert access.request("PATCH", secret, {"data": {"tls.crt": "eA=="}})[0] == 200
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/policybundles.koordpolicy.io"
    assert access.request("PATCH", definition, {"spec": {"names": {"shortNames": ["old"]}}})[0] == 200
    words = ("--set=scheduler.shards=2", "--set=policies.from=cluster", "--set=networkPolicies.enabled=true")
    done = helm("upgrade", "koordpolicy", CHART, *words, kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stderr
    names = {name for _, name in ours(access)}
    assert "koordpolicy-system/koordpolicy-scheduler-1" in names
    assert ("/apis/apps/v1/deployments", "koordpolicy-system/koordpolicy-scheduler") not in ours(access)
    assert access.request("GET", hooks)[1]["webhooks"][0]["name"] == "pods.koordpolicy.io"
    assert access.request("GET", secret)[1]["data"] == {"tls.crt": "eA=="}

    done = helm("rollback", "koordpolicy", "1", kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stderr
    assert "koordpolicy-system/koordpolicy-scheduler-1" not in {name for _, name in ours(access)}

    done = helm("uninstall", "koordpolicy", kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stderr
    assert ours(access) == set()
