"""`koordpolicy diff --simulate`: what a change decides and what it does, in one answer."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from tests.conftest import REPOSITORY

OLD = str(REPOSITORY / "examples" / "01-colocated-day" / "policies")
NEW = str(REPOSITORY / "examples" / "12-what-if" / "policies")
COURSE = ("--until", "20m", "--interval", "10m", "--seeds", "2")
DAY = ("--generate", "2:12", *COURSE)
BARE = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: bare}
spec: {}
"""


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    code = main(arguments, Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


def data(*arguments: str) -> Any:
    code, out, err = run(*arguments, "-o", "json")
    assert code == 0, err
    return json.loads(out)


def test_it_is_what_simulate_against_finds() -> None:
    found = data("diff", OLD, NEW, "--simulate", *DAY)
    apart = data("simulate", "-p", NEW, "--against", OLD, *DAY)
    assert found["decisions"]
    assert found["simulation"]["measures"] == apart["measures"]
    assert any(one["matters"] for one in found["simulation"]["measures"])
    assert found["simulation"]["before"]["policies"] == OLD
    assert found["simulation"]["seeds"] == 2


def test_one_comment_has_both() -> None:
    code, out, err = run("diff", OLD, NEW, "--simulate", *DAY, "-o", "markdown")
    assert code == 0, err
    decisions, _, effect = out.partition("**Simulated: ")
    assert "| decision | applies to |" in decisions
    assert "| batch-cpu offered (cores) |" in effect.partition("<details>")[0]
    code, out, _ = run("diff", OLD, NEW, "--simulate", *DAY)
    assert code == 0
    assert out.index("from") < out.index("What would be otherwise")


def test_a_cluster_is_simulated_where_nothing_else_is_named(tmp_path: Path) -> None:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]},
    }
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, pod]}))
    found = data("diff", OLD, NEW, "--simulate", "--cluster", str(cluster), *COURSE)
    assert found["simulation"]["workload"]["title"] == "cluster.json, cluster.json"
    assert found["simulation"]["workload"]["cpu"] == 8


def test_the_same_policies_are_not_simulated() -> None:
    found = data("diff", OLD, OLD, "--simulate", *DAY)
    assert found["different"] is False
    assert found["simulation"] is None
    assert "nothing was simulated" in run("diff", OLD, OLD, "--simulate", *DAY)[1]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--generate", "2"), "--generate says what to simulate: add --simulate"),
        (("--seeds", "5"), "--seeds says what to simulate: add --simulate"),
        (("--seed", "5"), "--seed says what to simulate: add --simulate"),
        (("--sample", "5%"), "--sample says what to simulate: add --simulate"),
        (("--simulate", "--nodes", "x.json"), "say what to simulate"),
        (("--simulate", "--nodes", "x.json", "--pods", "x.json"), "x.json: No such file"),
    ],
)
def test_slips(flags: tuple[str, ...], said: str) -> None:
    code, _, err = run("diff", OLD, NEW, *flags)
    assert code == 2
    assert said in err


def test_a_revision_without_a_profile_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "koordpolicy.yaml").write_text(BARE)
    code, out, err = run("diff", OLD, str(tmp_path), "--simulate")
    assert (code, out) == (2, "")
    assert f"the policies of {tmp_path} have no SchedulingProfile" in err
