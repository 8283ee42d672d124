"""`examples/07-training-jobs` on a real API server: what one team lends another, and how its own job takes it back, as the README says."""

import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.scheduler.sites import Site, make_site
from tests.parts.controllers import FAKE_NODE, controller_manager, kwok
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need
from tests.parts.table import find

EXAMPLE = Path(__file__).parents[2] / "examples" / "07-training-jobs"
CORES = 8
"""Of each pod."""


@pytest.fixture
def site(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Site]:
    need(pytestconfig, "etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kwok")
    with DeployedServer(tmp_path / "cluster") as server:
        folder = tmp_path / "site"
        folder.mkdir()
        with controller_manager(server.access), kwok(server.access):
            yield make_site(server.access, folder)


def kubectl(site: Site, *arguments: str) -> str:
    command = [str(find("kubectl").path), f"--kubeconfig={site.access.kubeconfig('admin')}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def has(site: Site) -> Counter[str]:
    """Cores that each job has on nodes; a pod on its way out still has them."""
    found: Counter[str] = Counter()
    for one in site.pods().values():
        if one["spec"].get("nodeName"):
            found[one["metadata"]["labels"]["app"]] += CORES
    assert found["sweep"] + found["bert"] <= 256
    return found


def become(site: Site, **cores: int) -> None:
    site.eventually(
        lambda: {name: has(site)[name] for name in cores} == cores, f"{cores} of {dict(has(site))}", 180
    )


def test_what_is_lent_is_taken_back_by_a_job_of_the_owner(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLE)
    text = EXAMPLE.joinpath("README.md").read_text("utf-8")
    lent, back = (
        one for one in re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) if "MAY-USE" in one
    )
    command = shlex.split(next(line for line in text.splitlines() if "MAY-USE:" in line))[1:]
    for file in EXAMPLE.joinpath("policies").glob("*.yaml"):
        site.write(file.name, file.read_text("utf-8"))
    kubectl(site, "apply", "-f", "cluster.yaml")
    for node in site.do("GET", "/api/v1/nodes")["items"]:
        # Without a node controller nobody takes away the taint of a new node.
        path = f"/api/v1/nodes/{node['metadata']['name']}"
        site.do("PATCH", path, {"metadata": {"annotations": FAKE_NODE}, "spec": {"taints": None}})
    with site.scheduler("s1", "--no-leader-elect"):
        kubectl(site, "apply", "-f", "teams.yaml")
        become(site, sweep=192)
        site.eventually(lambda: kubectl(site, *command) == lent, "quotas are as the README shows them", 60)
        kubectl(site, "apply", "-f", "bert.yaml")
        become(site, sweep=128, bert=128)
        site.eventually(lambda: kubectl(site, *command) == back, "quotas are as the README shows them", 60)
        waiting = site.waiting()
        assert len(waiting) == 8
        site.eventually(
            lambda: all(
                re.search(r"speech: \d+ of 128 cpu in use, 8 more requested", site.refusal(one)[1])
                for one in waiting
            ),
            "those that were evicted are told why they wait",
        )
        kubectl(site, "delete", "-f", "bert.yaml")
        become(site, sweep=192, bert=0)
