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


def explained(site: Site, *more: str) -> dict[str, Any]:
    out, err = io.StringIO(), io.StringIO()
    kubeconfig = str(site.access.kubeconfig("nobody"))
    arguments = ("explain", "pod", "p", "--kubeconfig", kubeconfig, "-o", "json", *more)
    assert main(arguments, Terminal(out, err)) == 0, err.getvalue()
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


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


def test_policies_of_a_directory_are_named_and_those_of_the_pack_are_said_to_be_others(site: Site) -> None:
    site.node("a")
    site.write("own.yaml", profile(CLOSED))
    with site.scheduler("s1") as scheduler:
        site.pod("p")
        site.eventually(lambda: "closed by policy" in site.refusal("p")[1], "the live policy refuses it")
        site.eventually(lambda: reported(site), "its revision is reported")
        live = scheduler.status["policies"]["active"]["revision"]

        bare = explained(site)
        assert (bare["policies"]["origin"], bare["policies"]["live"]) == ("the built-in pack alone", False)
        assert f"scheduler s1 decides by {live}" in bare["policies"]["note"]
        assert str(site.policies) in bare["policies"]["note"]
        assert "-p PATH" in bare["policies"]["note"]

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
