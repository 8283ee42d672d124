"""`koordpolicy explain pod` on a real cluster answers by what the cluster's scheduler decides by, and says so."""

import io
import json
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from tests.integration.scheduler.sites import BUNDLE, Site, profile

CLOSED = {
    "filters": [{"name": "closed", "require": {"cel": "node.name == 'none'"}, "reason": "closed by policy"}]
}
POLICIES = "/apis/koordpolicy.io/v1alpha1"


def explained(site: Site, *more: str, about: tuple[str, str] = ("pod", "p")) -> Any:
    out, err = io.StringIO(), io.StringIO()
    kubeconfig = str(site.access.kubeconfig("nobody"))
    arguments = ("explain", *about, "--kubeconfig", kubeconfig, "-o", "json", *more)
    assert main(arguments, Terminal(out, err)) == 0, err.getvalue()
    return json.loads(out.getvalue())


@pytest.fixture(autouse=True)
def _may_explain(site: Site) -> None:
    """Somebody who has the role for it and nothing else."""
    group = "rbac.authorization.k8s.io"
    site.do(
        "POST",
        f"/apis/{group}/v1/clusterrolebindings",
        {
            "metadata": {"name": "nobody-explains"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "koordpolicy-snapshot"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "nobody"}],
        },
        also=409,
    )


def reported(site: Site) -> bool:
    """Whether a scheduler says which revision it runs."""
    found = site.do("GET", f"{POLICIES}/policyrevisions")["items"]
    return any((one.get("status") or {}).get("instances") for one in found)


def test_policies_of_a_directory_answer_where_they_are_here_and_are_named_where_not(site: Site) -> None:
    site.node("a")
    site.write("own.yaml", profile(CLOSED))
    with site.scheduler("s1") as scheduler:
        site.pod("p")
        site.eventually(lambda: "closed by policy" in site.refusal("p")[1], "the live policy refuses it")
        site.eventually(lambda: reported(site), "its revision is reported")
        live = scheduler.status["policies"]["active"]["revision"]

        bare = explained(site)  # the directory is on this machine, as it is where the scheduler runs
        assert (bare["policies"]["origin"], bare["policies"]["live"]) == (str(site.policies), True)
        assert bare["policies"]["revision"] == live
        assert "1 closed by policy" in bare["message"]
        (decided,) = explained(site, about=("Overcommit/batch.cpu", "a"))
        assert decided["policies"] == bare["policies"]

        same = explained(site, "-p", str(site.policies))
        assert (same["policies"]["live"], same["policies"]["revision"]) == (True, live)
        assert same["node"] is None
        assert "1 closed by policy" in same["message"]

        draft = site.folder / "draft-policies"
        draft.mkdir()
        (draft / "koordpolicy.yaml").write_text(BUNDLE, "utf-8")
        other = explained(site, "-p", str(draft))
        assert (other["policies"]["live"], other["node"]) == (False, "a")
        assert f"decides by {live}" in other["policies"]["note"]

        elsewhere = site.policies.rename(site.folder / "elsewhere")
        try:
            bare = explained(site)
        finally:
            elsewhere.rename(site.policies)
        assert (bare["policies"]["origin"], bare["policies"]["live"]) == ("the built-in pack alone", False)
        assert f"scheduler s1 decides by {live}" in bare["policies"]["note"]
        assert (
            f"name a copy of {site.policies}, as it is where scheduler s1 runs, by `-p PATH`"
            in (bare["policies"]["note"])
        )


def test_policies_that_are_objects_answer_by_themselves(site: Site) -> None:
    site.node("a")
    bundle = {"apiVersion": "koordpolicy.io/v1alpha1", "kind": "PolicyBundle", "metadata": {"name": "own"}}
    site.do("POST", f"{POLICIES}/policybundles", {**bundle, "spec": {"extends": ["koordinator"]}})
    site.do("POST", f"{POLICIES}/schedulingprofiles", json.loads(profile(CLOSED)))
    try:
        with site.scheduler("s1", "--policies-from-cluster", policies=False) as scheduler:
            site.pod("p")
            site.eventually(lambda: "closed by policy" in site.refusal("p")[1], "the live policy refuses it")
            site.eventually(lambda: reported(site), "its revision is reported")
            live = scheduler.status["policies"]["active"]["revision"]
            for more in ((), ("--policies-from-cluster",)):
                found = explained(site, *more)
                assert (found["policies"]["origin"], found["policies"]["live"]) == ("the cluster", True)
                assert found["policies"]["revision"] == live
                assert "1 closed by policy" in found["message"]
        # Nobody runs it any more: what is asked for is there all the same, and is not called live.
        left = explained(site, "--policies-from-cluster")
        assert (left["policies"]["origin"], left["policies"]["live"]) == ("the cluster", None)
        assert "1 closed by policy" in left["message"]
    finally:
        for kind in ("policybundles", "schedulingprofiles"):
            site.do("DELETE", f"{POLICIES}/{kind}")


def test_gangs_and_quotas_are_explained_as_the_scheduler_has_them(site: Site) -> None:
    sigs = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default"
    for kind in ("podgroups", "elasticquotas"):
        site.do("DELETE", f"{sigs}/{kind}")
    site.node("a", {"cpu": "4", "memory": "8Gi", "pods": "20"})
    said = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1"}
    group = {**said, "kind": "PodGroup", "metadata": {"name": "train"}, "spec": {"minMember": 3}}
    site.do("POST", f"{sigs}/podgroups", group)
    bounds = {"min": {"cpu": "1"}, "max": {"cpu": "1"}}
    site.do(
        "POST", f"{sigs}/elasticquotas",
        {**said, "kind": "ElasticQuota", "metadata": {"name": "team"}, "spec": bounds},
    )  # fmt: skip
    with site.scheduler("s1", "--no-leader-elect"):
        for at in range(2):
            labels = {"quota.scheduling.koordinator.sh/name": "team"}
            site.pod(f"t{at}", "1", metadata={"labels": labels})
        site.eventually(lambda: "team: 1 of 1 cpu in use" in site.refusal(site.waiting()[0])[1], "one waits")
        team = explained(site, about=("quota", "team"))
        assert (team["limit"], team["used"], team["request"]) == ({"cpu": 1000}, {"cpu": 1000}, {"cpu": 2000})
        assert team["waiting"] == 1
        for at in range(3):
            site.pod(f"w{at}", "2", metadata={"labels": {"pod-group.scheduling.sigs.k8s.io": "train"}})
        site.eventually(
            lambda: any("Insufficient cpu" in site.refusal(f"w{at}")[1] for at in range(3)), "it does not fit"
        )
        gang = explained(site, about=("gang", "train"))
        assert (gang["minimum"], gang["pods"], gang["bound"], gang["placed"]) == (3, 3, 0, 1)
        (message,) = {one["message"] for one in gang["members"] if one["node"] is None}
        assert message == "0/1 nodes are available: 1 Insufficient cpu."
        site.resize("a", {"cpu": "8", "memory": "8Gi", "pods": "20"})
        site.eventually(lambda: len(site.where()) == 4, "there is room for all of it")
        gang = explained(site, about=("gang", "train"))
        assert (gang["bound"], {one["on"] for one in gang["members"]}) == (3, {"a"})
