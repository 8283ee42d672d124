"""`koordpolicy explain pod` as users call it: on manifests, on a snapshot, on nothing that there is."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.kube.snapshot import Snapshot, write_snapshot
from koordpolicy.model.protocol import SELECTED_NODE

NOW = 1_750_000_000 * 10**9


def node(name: str, cpu: int, **spec: Any) -> dict[str, Any]:
    room = {"cpu": str(cpu), "memory": "8Gi", "pods": "10"}
    metadata = {"name": name, "labels": {"zone": name}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": spec,
        "status": {"allocatable": room},
    }


def pod(name: str, cpu: int, priority: int, **more: Any) -> dict[str, Any]:
    spec = {
        "schedulerName": "koord-scheduler",
        "priority": priority,
        "containers": [{"name": "main", "resources": {"requests": {"cpu": str(cpu)}}}],
        **more,
    }
    metadata = {"name": name, "namespace": "shop"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Pending"},
    }


NODES = [node("a", 4), node("b", 8, taints=[{"key": "db", "effect": "NoSchedule"}])]
PODS = [
    pod("there", 3, 5, nodeName="a"),
    pod("small", 1, 5),
    pod("large", 2, 5),
    pod("dear", 2, 9500),
    pod("stranger", 1, 5, schedulerName="default-scheduler"),
    pod("gated", 1, 5, schedulingGates=[{"name": "quota.example.com/wait"}, {"name": "second"}]),
]


def call(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(("explain", *arguments), Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("manifests") / "cluster.yaml"
    listed = {"apiVersion": "v1", "kind": "List", "items": PODS}
    file.write_text("\n---\n".join(json.dumps(one) for one in (*NODES, listed)), encoding="utf-8")
    return str(file)


def asked(manifests: str, name: str, *more: str) -> dict[str, Any]:
    code, text, said = call("pod", f"shop/{name}", "-f", manifests, "-o", "json", *more)
    assert (code, said) == (0, "")
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_pod_that_fits_shows_its_best_nodes(manifests: str) -> None:
    found = asked(manifests, "small")
    assert (found["node"], found["on"], found["message"]) == ("a", None, None)
    (best,) = found["best"]
    assert best["total"] == sum(best["scores"].values())
    assert all(score["rule"].count(":") == 2 for score in found["scores"])


def test_a_namespace_is_given_as_kubectl_takes_it(manifests: str) -> None:
    of_cluster = ("-f", manifests, "-o", "json")
    assert call("pod", "-n", "shop", "small", *of_cluster) == call("pod", "shop/small", *of_cluster)
    assert call("pod", "-n", "shop", "shop/small", *of_cluster) == call("pod", "shop/small", *of_cluster)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pod", "-n", "shop"), "`-n shop` is for the name of one: `koordpolicy explain pod -n shop NAME`"),
        (("node", "-n", "shop", "a"), "a node is asked for by its name alone, without `-n shop`"),
        (("pod", "-n", "shop", "other/small"), "`other/small` and `-n shop` name two namespaces"),
    ],
)
def test_a_namespace_that_says_nothing_is_refused(
    manifests: str, arguments: tuple[str, ...], said: str
) -> None:
    code, _, told = call(*arguments, "-f", manifests)
    assert code == 2
    assert said in " ".join(told.split())


def test_a_pod_that_waits_for_its_claims_says_so(tmp_path: Path) -> None:
    """It has been decided on: a node is selected for its claims, and nobody has made the volumes yet."""
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "made"},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }

    def claim(name: str, **annotations: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "shop", "annotations": annotations},
            "spec": {
                "storageClassName": "made",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }

    def using(*claims: str) -> list[dict[str, Any]]:
        return [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]

    objects = [
        node("a", 4),
        node("c", 4),
        storage,
        claim("data", **{SELECTED_NODE: "c"}),
        claim("logs", **{SELECTED_NODE: "c"}),
        claim("new"),
        pod("decided", 1, 5, volumes=using("data", "logs")),
        pod("undecided", 1, 5, volumes=using("new")),
    ]
    file = tmp_path / "cluster.yaml"
    file.write_text("\n---\n".join(map(json.dumps, objects)), encoding="utf-8")
    found = asked(str(file), "decided")
    assert (found["node"], found["waitingForClaims"]) == ("c", ["data", "logs"])
    assert asked(str(file), "undecided")["waitingForClaims"] == []
    _, text, _ = call("pod", "shop/decided", "-f", str(file))
    assert "shop/decided waits for its claims (binding), to go to c" in text
    assert "the claims data, logs, which have no volume there yet" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert "shop/undecided would go to" in call("pod", "shop/undecided", "-f", str(file))[1]


def test_a_pod_that_fits_nowhere_says_what_would_help(manifests: str) -> None:
    found = asked(manifests, "large")
    assert found["message"].startswith("0/2 nodes are available: 1 Insufficient cpu")
    assert found["preemption"] is None
    assert sorted(found["advice"]) == [
        "1 node: Insufficient cpu: nearest is a, where 1 more cpu would have to be free",
        "1 node: node(s) had untolerated taint(s): 1 would take it if the pod tolerated db:NoSchedule",
    ]
    code, text, _ = call("pod", "shop/large", "-f", manifests)
    assert code == 0
    assert "shop/large finds no node" in text
    assert "What would help:" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_dear_pod_says_who_would_have_to_go(manifests: str) -> None:
    found = asked(manifests, "dear")
    assert found["preemption"] == {"node": "a", "victims": ["shop/there"], "violations": 0}
    assert "shop/there would have to go" in call("pod", "shop/dear", "-f", manifests)[1]


def test_a_bound_pod_is_asked_of_as_if_it_came_anew(manifests: str) -> None:
    found = asked(manifests, "there")
    assert (found["on"], found["node"]) == ("a", "a")
    assert "shop/there is on a, where it would go again" in call("pod", "shop/there", "-f", manifests)[1]


def test_what_holds_a_bound_pod_back_is_told(manifests: str) -> None:
    found = asked(manifests, "there")["held"]
    assert found["node"] == "a"
    assert {one["title"] for one in found["holds"]} > {"CPU suppression", "Quota", "CPU burst", "CPU set"}
    text = call("pod", "shop/there", "-f", manifests)[1]
    assert "What holds it back on a" in text
    assert "No agent of koordpolicy says that it acts there" in text
    assert "CPU set: `main` runs on the CPUs that pods share" in text
    assert "held" not in asked(manifests, "small")


def test_policies_decide(manifests: str, tmp_path: Path) -> None:
    own = {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "SchedulingProfile",
        "metadata": {"name": "own"},
        "spec": {
            "schedulerName": "koord-scheduler",
            "filters": [
                {"name": "zone", "require": {"cel": "node.labels['zone'] == 'b'"}, "reason": "not in b"}
            ],
        },
    }
    (tmp_path / "own.yaml").write_text(json.dumps(own), encoding="utf-8")
    found = asked(manifests, "small", "-p", str(tmp_path))
    assert "1 not in b" in found["message"]


def test_one_that_a_plugin_keeps_out_of_the_queue_is_said_to_be(tmp_path: Path) -> None:
    member = pod("member", 1, 5)
    member["metadata"]["labels"] = {"pod-group.scheduling.sigs.k8s.io": "g1"}
    file = tmp_path / "cluster.yaml"
    file.write_text("\n---\n".join(json.dumps(one) for one in (*NODES, member)), encoding="utf-8")
    found = asked(str(file), "member")
    assert (found["keptOutOfQueue"], found["node"]) == ("Coscheduling: there is no PodGroup shop/g1", "a")
    _, text, _ = call("pod", "shop/member", "-f", str(file))
    said = " ".join(text.split())
    assert "shop/member is kept out of the queue, and would not be tried" in said
    assert "there is no PodGroup shop/g1. But for that it would go to a now." in said
    assert "shop/member would go to" not in said
    group = {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g1", "namespace": "shop"},
        "spec": {"minMember": 2},
    }
    file.write_text("\n---\n".join(json.dumps(one) for one in (*NODES, member, group)), encoding="utf-8")
    assert "does not have its 2 pods yet" in asked(str(file), "member")["keptOutOfQueue"]
    other = {**member, "metadata": {**member["metadata"], "name": "other"}}
    file.write_text(
        "\n---\n".join(json.dumps(one) for one in (*NODES, member, other, group)), encoding="utf-8"
    )
    assert asked(str(file), "member")["keptOutOfQueue"] is None


def test_a_gated_pod_is_said_to_be_gated(manifests: str) -> None:
    found = asked(manifests, "gated")
    assert (found["gates"], found["node"]) == (["quota.example.com/wait", "second"], "a")
    assert asked(manifests, "small")["gates"] == []
    _, text, _ = call("pod", "shop/gated", "-f", manifests)
    assert "shop/gated is gated, and would not be tried" in text
    assert "shop/gated would go to" not in text
    assert "quota.example.com/wait, second hold it back; without them it would go to a" in " ".join(
        text.split()
    )


def test_it_says_by_which_policies_it_answers(manifests: str, tmp_path: Path) -> None:
    found = asked(manifests, "small")["policies"]
    assert (found["origin"], found["live"]) == ("the built-in pack alone", None)
    text = " ".join(call("pod", "shop/small", "-f", manifests)[1].split())
    assert "policies: the built-in pack alone, sha256:" in text
    assert "Schedulers may decide by others: no cluster was asked. Name theirs by `-p PATH`" in text
    (tmp_path / "koordpolicy.yaml").write_text(
        "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyBundle\nmetadata: {name: own}\nspec: {extends: [koordinator]}\n",
        "utf-8",
    )
    found = asked(manifests, "small", "-p", str(tmp_path))["policies"]
    assert (found["origin"], found["live"]) == (str(tmp_path), None)
    assert found["revision"].startswith("sha256:")
    assert "-p PATH" not in found["note"]


def test_the_same_from_a_snapshot(manifests: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json.gz"
    write_snapshot(Snapshot(NOW, {"nodes": NODES, "pods": PODS}), file)
    code, text, _ = call("pod", "shop/large", "-s", str(file), "-o", "json")
    assert code == 0
    assert json.loads(text) == asked(manifests, "large")


def test_a_scheduler_without_a_profile_is_told(manifests: str) -> None:
    code, text, said = call("pod", "shop/stranger", "-f", manifests)
    assert code == 0
    assert "shop/stranger would go to a" in text
    assert said == "the policies have no profile `default-scheduler`; `koord-scheduler` is asked instead\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("pod", "nobody", "-f", "MANIFESTS"), "there is no pod `default/nobody`, of 6 pods"),
        (("pod", "small", "-f", "MANIFESTS"), "there is no pod `default/small`; there is `shop/small`"),
        (("pod", "shop/small", "-f", "nowhere.yaml"), "the manifests cannot be read"),
        (("pod", "shop/small", "-s", "nowhere.gz"), "`nowhere.gz` cannot be read"),
        (("pod", "shop/small", "-s", "x", "-f", "MANIFESTS"), "give `--snapshot` or `--filename`"),
        (("Overcommit", "--policies-from-cluster"), "is for questions about a cluster"),
        (("pod", "shop/small", "-p", "x", "--policies-from-cluster"), "give one of the two"),
        (("card", "a"), "a name stands after `pod`, `move`, `gang`, `quota`, `node` or a decision"),
    ],
)
def test_what_cannot_be_explained(manifests: str, arguments: tuple[str, ...], problem: str) -> None:
    code, _, said = call(*(manifests if one == "MANIFESTS" else one for one in arguments))
    assert code == 2
    assert problem in said


RULES = """
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: fleet}
spec: {extends: [koordinator]}
---
apiVersion: koordpolicy.io/v1alpha1
kind: AdmissionRule
metadata: {name: teamed}
spec:
  match: {namespaces: {matchLabels: {shared: "true"}}}
  require: {cel: "'team' in pod.labels"}
  reason: team-missing
  message: a team is missing
---
apiVersion: koordpolicy.io/v1alpha1
kind: ColocationProfile
metadata: {name: near}
spec:
  match: {pods: {matchLabels: {where: a}}}
  patch: {spec: {nodeSelector: {zone: a}}}
"""


def test_admission_comes_before_nodes(tmp_path: Path) -> None:
    """What would be refused goes nowhere, and what admission changes is decided on as it then is."""
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "koordpolicy.yaml").write_text(RULES)
    labelled = pod("labelled", 1, 5)
    labelled["metadata"]["labels"] = {"team": "a", "where": "a"}
    there = pod("there", 1, 5, nodeName="a")
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"shared": "true"}},
    }
    objects = [node("a", 4), node("c", 4), namespace, pod("bare", 1, 5), labelled, there]
    file, policies = tmp_path / "cluster.yaml", ("-p", str(tmp_path / "bundle"))
    file.write_text("\n---\n".join(map(json.dumps, objects)), encoding="utf-8")
    found = asked(str(file), "bare", *policies)
    assert (found["admission"]["allowed"], found["node"]) == (False, "c")
    assert [one["rule"] for one in found["admission"]["violations"]] == ["AdmissionRule/teamed"]
    _, text, _ = call("pod", "shop/bare", "-f", str(file), *policies)
    assert text.startswith("shop/bare would be refused at its creation; admitted, it would go to c")
    assert "Refused: team-missing: a team is missing" in text
    found = asked(str(file), "labelled", *policies)
    assert (found["admission"]["allowed"], found["node"]) == (True, "a")
    assert (
        "Admission changes it in 1 place first" in call("pod", "shop/labelled", "-f", str(file), *policies)[1]
    )
    assert asked(str(file), "there", *policies)["admission"] is None
    shown = {"nodes": objects[:2], "namespaces": [namespace], "pods": objects[3:]}
    write_snapshot(Snapshot(NOW, shown), tmp_path / "taken.gz")
    _, text, _ = call("pod", "shop/bare", "-s", str(tmp_path / "taken.gz"), *policies)
    assert "shop/bare would go to c" in text
    assert "It is there already; created anew, it would be refused:" in text
