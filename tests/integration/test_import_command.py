"""`koordpolicy import` and `export`: there and back, through files."""

import io
import json
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import Compiler
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from tests.conftest import REPOSITORY
from tests.parts.deployed import install
from tests.parts.shared import SharedServer

CONFIG = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "slo-controller-config"},
    "data": {
        "colocation-config": json.dumps({"enable": True, "cpuReclaimThresholdPercent": 70}),
        "cpu-burst-config": json.dumps(
            {
                "nodeStrategies": [
                    {"name": "front", "nodeSelector": {"matchLabels": {"pool": "front"}}, "policy": "auto"}
                ]
            }
        ),
        "system-config": json.dumps(
            {"clusterStrategy": {"watermarkScaleFactor": 150, "schedFeatures": {"A-B": True}}}
        ),
    },
}


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return pack_remembering()


def run(compiler: Compiler, *words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(words, Terminal(out, err), compiler), out.getvalue(), err.getvalue()


def test_no_name_leads_out_of_the_folder(tmp_path: Path, compiler: Compiler) -> None:
    profile = {
        "apiVersion": "config.koordinator.sh/v1alpha1",
        "kind": "ClusterColocationProfile",
        "metadata": {"name": "a\0b/../../c"},
        "spec": {"qosClass": "BE", "selector": {"matchLabels": {"a": "b"}}},
    }
    given = tmp_path / "profile.json"
    given.write_text(json.dumps(profile))
    bundle = tmp_path / "bundle"
    _, _, err = run(compiler, "import", str(given), "--write", str(bundle))
    assert sorted(one.name for one in bundle.rglob("*.yaml")) == [
        "clustercolocationprofile-a-b-.yaml",
        "koordpolicy.yaml",
    ], err


def test_there_and_back(tmp_path: Path, compiler: Compiler) -> None:
    given = tmp_path / "config.json"
    given.write_text(json.dumps({"kind": "List", "items": [CONFIG]}))
    bundle = tmp_path / "bundle"
    code, out, _ = run(compiler, "import", str(given), "--write", str(bundle))
    assert code == 6
    assert "cpu-burst-config.nodeStrategies[0] (front).policy\n  -> CPUBurst.policy" in out
    assert "schedFeatures.A-B\n  not taken: `A-B` is no name" in out
    assert run(compiler, "check", str(bundle))[0] == 0
    code, out, err = run(compiler, "export", str(bundle), "--output", "json")
    assert code == 0, err
    (config, *_) = json.loads(out)["items"]
    burst = json.loads(config["data"]["cpu-burst-config"])
    assert burst["nodeStrategies"] == [
        {"name": "front", "nodeSelector": {"matchLabels": {"pool": "front"}}, "policy": "auto"}
    ]
    assert json.loads(config["data"]["system-config"])["clusterStrategy"]["watermarkScaleFactor"] == 150
    again = tmp_path / "again.json"
    again.write_text(out)
    second = tmp_path / "second"
    assert run(compiler, "import", str(again), "-w", str(second))[0] == 0
    assert run(compiler, "export", str(second), "-o", "json")[1] == out


def test_files_with_nothing_of_it_are_told(tmp_path: Path, compiler: Compiler) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n")
    assert run(compiler, "import", str(other))[0] == 2
    assert run(compiler, "import", str(tmp_path / "none.yaml"))[0] == 2


SCHEDULER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: koord-scheduler
  pluginConfig:
  - name: LoadAwareScheduling
    args: {usageThresholds: {cpu: 55}}
  plugins:
    filter: {enabled: [{name: LoadAwareScheduling}, {name: SchedulingHint}]}
"""


@pytest.mark.parametrize("within", ["a file", "a ConfigMap"])
def test_a_scheduler_there_and_back(tmp_path: Path, compiler: Compiler, within: str) -> None:
    given, bundle = tmp_path / "scheduler.yaml", tmp_path / "bundle"
    config = {
        "kind": "ConfigMap",
        "metadata": {"name": "koord-scheduler-config"},
        "data": {"config": SCHEDULER},
    }
    given.write_text(SCHEDULER if within == "a file" else json.dumps(config))
    code, out, _ = run(compiler, "import", str(given), "--write", str(bundle))
    assert code == 6
    assert "filter.SchedulingHint\n  not taken: hints are followed anyhow" in out
    assert run(compiler, "check", str(bundle))[0] == 0
    code, out, err = run(compiler, "export", str(bundle), "--scheduler", "-o", "json")
    assert (code, err) == (0, "")
    (profile,) = json.loads(out)["profiles"]
    (arguments,) = [one["args"] for one in profile["pluginConfig"] if one["name"] == "LoadAwareScheduling"]
    assert arguments["usageThresholds"] == {"cpu": 55}


def test_admission_policies_are_exported_with_what_keeps_others_back(
    tmp_path: Path, compiler: Compiler
) -> None:
    code, out, err = run(
        compiler, "export", str(REPOSITORY / "policies"), "--admission-policies", "-o", "json"
    )
    objects = [(one["kind"], one["metadata"]["name"]) for one in json.loads(out)["items"]]
    assert ("ValidatingAdmissionPolicy", "whole-cpus.koordpolicy.io") in objects
    assert ("ValidatingAdmissionPolicyBinding", "whole-cpus.koordpolicy.io") in objects
    assert "AdmissionRule/pod-quota-is-leaf (" in err
    assert "it reads `quota.known`, which the object does not say" in err
    assert code == 6
    (tmp_path / "koordpolicy.yaml").write_text(BARE_BUNDLE)
    code, _, err = run(compiler, "export", str(tmp_path), "--admission-policies")
    assert "not written (of the pack `koordinator`): AdmissionRule/pod-quota-is-leaf (" in err
    assert code == 0


BARE_BUNDLE = """
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: fleet}
spec: {extends: [koordinator]}
"""


@pytest.mark.parametrize("flags", [(), ("--scheduler",)])
def test_what_is_only_the_packs_is_no_failure(
    tmp_path: Path, compiler: Compiler, flags: tuple[str, ...]
) -> None:
    (tmp_path / "koordpolicy.yaml").write_text(BARE_BUNDLE)
    code, _, err = run(compiler, "export", str(tmp_path), *flags)
    assert code == 0
    assert all(line.startswith("not written (of the pack `koordinator`): ") for line in err.splitlines())
    (tmp_path / "formula.yaml").write_text(FORMULA)
    code, _, err = run(compiler, "export", str(tmp_path))
    assert code == 6
    assert (
        f"not written: Overcommit/batch.cpu ({tmp_path}/formula.yaml:7): Koordinator decides it by a formula"
        in err
    )


FORMULA = """
apiVersion: koordpolicy.io/v1alpha1
kind: Overcommit
metadata: {name: batch}
spec:
  resource: batch
  cpu: {cel: "node.capacity.cpu * percent(10)"}
"""


def test_from_a_live_cluster(apiserver: SharedServer, tmp_path: Path, compiler: Compiler) -> None:
    install(apiserver)
    path = "/api/v1/namespaces"
    apiserver.request("POST", path, {"metadata": {"name": "imported-from"}})
    status, answer = apiserver.request("POST", f"{path}/imported-from/configmaps", CONFIG)
    assert status < 300, answer
    config = ("--kubeconfig", str(apiserver.kubeconfig()))
    bundle = tmp_path / "bundle"
    code, out, err = run(
        compiler, "import", "--from-cluster", "-n", "imported-from", *config, "--write", str(bundle)
    )
    assert code == 6, err
    assert "cpu-burst-config.nodeStrategies[0] (front).policy\n  -> CPUBurst.policy" in out
    assert (bundle / "koordpolicy.yaml").exists()
    config = ("--kubeconfig", str(apiserver.kubeconfig("koordpolicy-scheduler")))
    _, _, err = run(compiler, "import", "--from-cluster", "-n", "imported-from", *config)
    assert "not read: configmaps: " in err


def test_files_or_a_cluster(tmp_path: Path, compiler: Compiler) -> None:
    given = tmp_path / "config.json"
    given.write_text(json.dumps(CONFIG))
    for words in ((), (str(given), "--from-cluster")):
        code, _, err = run(compiler, "import", *words)
        assert code == 2
        assert "one of the two" in err


def test_a_policy_of_kubernetes_descheduler_is_told_apart(tmp_path: Path, compiler: Compiler) -> None:
    given = tmp_path / "policy.yaml"
    given.write_text("apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: []\n")
    code, _, err = run(compiler, "import", str(given))
    assert code == 2
    assert "examples/09-rebalance/README.md" in err
