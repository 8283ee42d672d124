"""`koordpolicy diff` and `snapshot` as a user runs them, on a real Git repository."""

import asyncio
import io
import json
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NAMESPACES, NODE_METRICS, NODES, PODS
from koordpolicy.kube.snapshot import take_snapshot, write_snapshot

HERE = Path(__file__).parent
NOW = 1_767_225_600 * 10**9
BUNDLE = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: shop}
spec: {extends: [koordinator]}
"""
OLD = """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: night}
spec:
  match: {nodes: {matchLabels: {pool: night}}}
  parameters: {threshold: 80%}
"""
NEW = """\
# The night pool may be fuller.
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: night}
spec:
  match: {nodes: {matchLabels: {pool: night}}}
  parameters: {threshold: 85%}
---
apiVersion: koordpolicy.io/v1alpha1
kind: Overcommit
metadata: {name: gpu}
spec:
  resource: batch
  match: {nodes: {matchLabels: {pool: gpu}}}
  parameters: {cpuReclaim: 50%}
---
apiVersion: koordpolicy.io/v1alpha1
kind: ColocationProfile
metadata: {name: jobs}
spec:
  match: {namespaces: {matchLabels: {team: data}}}
  qosClass: BE
---
apiVersion: koordpolicy.io/v1alpha1
kind: SchedulingProfile
metadata: {name: quiet}
spec:
  schedulerName: koord-scheduler
  filters:
    - name: quiet
      match: {condition: pod.namespace == 'data'}
      require: {cel: node.load.cpu < node.allocatable.cpu * percent(40)}
      reason: too busy for batch work
"""
BROKEN = "apiVersion: koordpolicy.io/v1alpha1\nkind: CPUSuppress\nmetadata: {name: x}\nspec: {targt: 1}\n"


@dataclass
class Repository:
    """A repository with a branch `main` and, ahead of it, a branch `change`."""

    root: Path
    program: Path

    def git(self, *arguments: str) -> str:
        names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a"}
        dates = {"GIT_COMMITTER_EMAIL": "a@b", "GIT_AUTHOR_DATE": f"{NOW // 10**9} +0000"}
        environment = {
            **os.environ,
            **names,
            **dates,
            "GIT_COMMITTER_DATE": f"{NOW // 10**9} +0000",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
        }
        ran = subprocess.run(
            [self.program, *arguments],
            cwd=self.root,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return ran.stdout.strip()

    def write(self, **files: str) -> None:
        for name, text in files.items():
            path = self.root / name.replace("__", "/").replace("_yaml", ".yaml")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def commit(self, message: str, **files: str) -> str:
        self.write(**files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, part: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository(tmp_path / "repository", part("git"))
    made.root.mkdir()
    made.git("init", "--quiet", "--initial-branch=main")
    # Other YAML of a repository is none of our business.
    made.commit(
        "old", policies__koordpolicy_yaml=BUNDLE, policies__night_yaml=OLD, values_yaml="image: {tag: 1}\n"
    )
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("new", policies__night_yaml=NEW)
    monkeypatch.chdir(made.root)
    return made


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    code = main(arguments, Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


def node(name: str, pool: str, cores: int) -> dict[str, Any]:
    amounts = {"cpu": str(cores), "memory": f"{cores * 4}Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": {"pool": pool}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def metric(name: str, cores: int) -> dict[str, Any]:
    usage = {"resources": {"cpu": str(cores), "memory": f"{cores * 4}Gi"}}
    return {
        "metadata": {"name": name},
        "status": {
            "updateTime": "2025-12-31T23:59:30Z",
            "nodeMetric": {"nodeUsage": usage, "systemUsage": {"resources": {"cpu": "1", "memory": "4Gi"}}},
        },
    }


def pod(namespace: str, name: str, on: str) -> dict[str, Any]:
    requests = {"requests": {"cpu": "2", "memory": "4Gi"}}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": on, "containers": [{"name": "main", "image": "a", "resources": requests}]},
        "status": {"phase": "Running"},
    }


async def _cluster() -> MemoryCluster:
    cluster = MemoryCluster(Store(lambda: NOW / 10**9))
    for name, labels in (("data", {"team": "data"}), ("shop", {})):
        await cluster.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
    for number in range(6):
        pool, name = ("night", "gpu", "web")[number % 3], f"node-{number}"
        await cluster.create(NODES, node(name, pool, 32 + 32 * (number // 3)))
        report = metric(name, 8 + number)
        await cluster.create(NODE_METRICS, report)
        await cluster.update(
            NODE_METRICS,
            {**await cluster.get(NODE_METRICS, name), "status": report["status"]},
            subresource="status",
        )
        for at in range(3):
            namespace = "data" if at == 0 else "shop"
            await cluster.create(PODS, pod(namespace, f"pod-{number}-{at}", name))
    return cluster


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    async def taken() -> None:
        write_snapshot(await take_snapshot(await _cluster(), NOW), tmp_path / "cluster.json.gz")

    asyncio.run(taken())
    return tmp_path / "cluster.json.gz"


@pytest.mark.parametrize(("format", "suffix"), [("text", "txt"), ("markdown", "md"), ("json", "json")])
def test_a_change_on_a_cluster(
    format: str,
    suffix: str,
    repository: Repository,
    snapshot: Path,
    golden: Callable[[Path, str], None],
) -> None:
    code, out, err = run(
        "diff", "main", "change", "--policies", "policies", "--cluster", str(snapshot), "-o", format
    )
    assert (code, err) == (0, "")
    if format == "text":
        assert max(map(len, out.splitlines())) <= 80
    # The digest is of the built-in pack too, which changes for reasons of its own.
    golden(HERE / f"expected.{suffix}", re.sub(r'"digest": "[0-9a-f]{64}"', '"digest": "DIGEST"', out))


def test_exit_codes(repository: Repository) -> None:
    assert run("diff", "main", "change", "-p", "policies")[0] == 0
    assert run("diff", "main", "change", "-p", "policies", "--exit-code")[0] == 4
    assert run("diff", "main", "main", "-p", "policies", "--exit-code")[0] == 0
    assert run("diff", "main", "nothing", "-p", "policies", "--exit-code")[0] == 2


def test_a_pull_request_shows_only_what_the_branch_did(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "main")
    repository.commit("meanwhile", policies__night_yaml=OLD.replace("80%", "70%"))
    _, both, _ = run("diff", "main..change", "-p", "policies")
    _, own, _ = run("diff", "main...change", "-p", "policies")
    assert "70% -> 85%" in both
    assert "80% -> 85%" in own
    assert "as change left it" in own


def test_the_working_tree(repository: Repository) -> None:
    assert run("diff", "HEAD", "-p", "policies")[1].startswith("nothing changes from HEAD")
    repository.write(policies__night_yaml=NEW.replace("85%", "90%"))
    assert "85% -> 90%" in run("diff", "HEAD", "-p", "policies")[1]


def test_from_a_folder_within(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository.root / "policies")
    code, out, _ = run("diff", "main", "change")
    assert code == 0
    assert "80% -> 85%" in out


def test_two_directories(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("one", OLD), ("two", NEW)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "koordpolicy.yaml").write_text(BUNDLE, encoding="utf-8")
        (tmp_path / name / "night.yaml").write_text(text, encoding="utf-8")
    code, out, _ = run("diff", "one", "two")
    assert code == 0
    assert "80% -> 85%" in out
    assert "two/night.yaml" in out


def test_text_of_policies_is_no_more_than_text_in_a_comment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = """\
apiVersion: koordpolicy.io/v1alpha1
kind: AdmissionRule
metadata: {name: owner}
spec:
  enforcement: warn
  require: {cel: "'owner' in pod.annotations"}
  reason: owner-required
  message: MESSAGE
"""
    hostile = "@all @o/team https://e.example/x www.e.example #1 !2 GH-3 ~~z~~ &commat;all &#64;all a_b_c <b>x</b> $y$ 0123abc"
    monkeypatch.chdir(tmp_path)
    for name, message in (("one", "say who"), ("two", f"say {hostile}"[:100]), ("three", hostile[80:])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "koordpolicy.yaml").write_text(BUNDLE, encoding="utf-8")
        (tmp_path / name / "rule.yaml").write_text(
            rule.replace("MESSAGE", json.dumps(message)), encoding="utf-8"
        )
    for other in ("two", "three"):
        code, out, _ = run("diff", "one", other, "-o", "markdown")
        assert code == 0
        assert "&#64;all" in out or "a\\_b\\_c" in out
        quoted = re.compile(r"```diff.*?```|`[^`\n]*`|<code>[^<>`]*</code>", re.DOTALL)
        left = quoted.sub("", out)
        marks = re.search(r"@|://|www|#|!\d|GH-|~~|&(?!amp;|lt;|gt;|#x27;|quot;)|(?<!\\)<b|\$|0123abc", left)
        assert marks is None, left


def test_a_link_in_the_repository_is_followed(repository: Repository) -> None:
    (repository.root / "live").symlink_to("policies")
    repository.commit("link")
    code, out, _ = run("diff", "HEAD", "-p", "live", "-p", "policies")
    assert (code, out.split()[:2]) == (0, ["nothing", "changes"])


def test_what_does_not_compile_is_shown_with_its_findings(repository: Repository) -> None:
    repository.commit("broken", policies__x_yaml=BROKEN)
    code, out, err = run("diff", "main", "HEAD", "-p", "policies")
    assert (code, out) == (2, "")
    assert "the policies of HEAD" in err
    assert "policies/x.yaml:4:8" in err
    code, out, err = run("diff", "main", "HEAD", "-p", "policies", "-o", "markdown")
    assert code == 2
    assert out.startswith("**Refused: the policies of HEAD (")
    assert " do not compile**\n\n```text\n" in out
    assert out.endswith("\n```\n")
    assert "policies/x.yaml:4:8" in out
    assert "policies/x.yaml:4:8" in err


def test_findings_in_a_comment_are_code_and_not_too_many(repository: Repository) -> None:
    slip = OLD.replace("threshold", "treshold").replace("80%", '"```\\n@all"  # ```')
    many = {f"policies__n{number}_yaml": slip.replace("night", f"n{number}") for number in range(200)}
    repository.commit("broken", **many)
    code, out, _ = run("diff", "main", "HEAD", "-p", "policies", "-o", "markdown")
    assert (code, out.count("```")) == (2, 2)
    assert len(out) < 30_000
    assert not re.search(r"@all", out.rpartition("```")[2])


def test_a_revision_that_is_not_there_is_no_comment(repository: Repository) -> None:
    assert run("diff", "nowhere", "-p", "policies", "-o", "markdown")[:2] == (2, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("main", "nowhere"), "neither a revision"),
        (("policies",), "name a second one"),
        (("--", "-x", "main"), "neither a revision"),
        (("main", "change", "-c", "nothing.json"), "cannot be read"),
        (("main", "change", "-p", "nowhere"), "no policy"),
        (("nowhere...main",), "no revision"),
    ],
)
def test_what_cannot_be_compared(arguments: tuple[str, ...], words: str, repository: Repository) -> None:
    code, out, err = run("diff", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_without_a_repository(
    tmp_path: Path, part: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    part("git")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    code, _, err = run("diff", "main", "change")
    assert code == 2
    assert "no Git repository" in err


MASK = """\
---
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyException
metadata: {name: sale}
spec:
  owner: shop@example.com
  reason: a sale
  expires: "2026-06-30"
  match: {nodes: {matchLabels: {pool: night}}}
  overrides: {CPUSuppress.parameters.threshold: 30%}
"""


@pytest.mark.parametrize(
    ("format", "shown"),
    [
        (
            "text",
            ["nothing changes now, but 1 later, from", "from 2026-07-01, when exceptions", "80% -> 85%"],
        ),
        ("markdown", ["but 1 later,**", "**From 2026-07-01, when", "| 80% | **85%** |"]),
        ("json", ['"different": true', '"from": "2026-07-01T00:00:00Z"', '"value": "85%"']),
    ],
)
def test_a_change_behind_an_exception_is_a_difference(
    format: str, shown: list[str], repository: Repository
) -> None:
    repository.commit("masked", policies__night_yaml=OLD + MASK)
    repository.write(policies__night_yaml=OLD.replace("80%", "85%") + MASK)
    code, out, err = run("diff", "HEAD", "-p", "policies", "--exit-code", "--at", "2026-02-01", "-o", format)
    assert (code, err) == (4, "")
    for words in shown:
        assert words in out
    assert run("diff", "HEAD", "HEAD", "-p", "policies", "--exit-code", "--at", "2026-02-01")[0] == 0


@pytest.mark.parametrize(
    ("format", "shown"),
    [
        ("text", ["from 2026-07-01, on the same nodes and pods CPUSuppress.target: 2 of 6 nodes change"]),
        (
            "markdown",
            ["**From 2026-07-01, on the same nodes and pods**", "`CPUSuppress.target` | 2 of 6 nodes"],
        ),
    ],
)
def test_a_change_that_begins_later_is_counted_on_the_cluster(
    format: str, shown: list[str], repository: Repository, snapshot: Path
) -> None:
    repository.commit("masked", policies__night_yaml=OLD + MASK)
    repository.write(policies__night_yaml=OLD.replace("80%", "85%") + MASK)
    asked = ("diff", "HEAD", "-p", "policies", "-c", str(snapshot), "--at", "2026-02-01")
    _, out, _ = run(*asked, "-o", format)
    for words in shown:
        assert words in " ".join(out.split())
    data = json.loads(run(*asked, "-o", "json")[1])["cluster"]
    [later] = data["later"]
    assert later["from"] == "2026-07-01T00:00:00Z"
    assert data["decisions"] == []
    # On the day itself the same is counted as what changes now.
    now = json.loads(run(*asked[:-1], "2026-07-01", "-o", "json")[1])["cluster"]["decisions"]
    assert later["decisions"] == now
    assert [(one["decision"], one["changed"]) for one in now] == [("CPUSuppress.target", 2)]


UNTOLD = "could not be told on {} of 6 nodes: no value for `node.usage.total.cpu`"


@pytest.mark.parametrize(
    ("measured", "shown", "absent"),
    [
        # Nothing of usage: what reads it is no "same", and the parameter behind it is counted by itself.
        (
            0,
            ["CPUSuppress.target: " + UNTOLD.format(6), "threshold: 2 of 6 nodes change", "80% -> 85%: 2"],
            "same",
        ),
        # Node 0 is of the changed pool: a change is seen, and the rest is told beside it.
        (1, ["CPUSuppress.target: 1 of 6 nodes change", UNTOLD.format(5)], "threshold: 2 of"),
        (6, ["CPUSuppress.target: 2 of 6 nodes change"], "could not be told"),
    ],
)
def test_what_could_not_be_told_is_not_the_same(
    measured: int, shown: list[str], absent: str, repository: Repository, tmp_path: Path
) -> None:
    repository.write(policies__night_yaml=OLD.replace("80%", "85%"))

    async def taken() -> None:
        cluster = await _cluster()
        for number in range(measured, 6):
            await cluster.delete(NODE_METRICS, f"node-{number}")
        write_snapshot(await take_snapshot(cluster, NOW), tmp_path / "cluster.json.gz")

    asyncio.run(taken())
    for format in ("text", "markdown", "json"):
        code, out, _ = run(
            "diff", "HEAD~1", "-p", "policies", "-c", str(tmp_path / "cluster.json.gz"), "-o", format
        )
        assert code == 0
        if format == "json":
            by_name = {one["decision"]: one for one in json.loads(out)["cluster"]["decisions"]}
            assert by_name["CPUSuppress.target"]["failing"] == 6 - measured
            assert (by_name["CPUSuppress.target"]["why"] is None) == (measured == 6)
        else:
            text = " ".join(out.replace("\\", "").split())
            assert absent not in text
            for words in shown if format == "text" else shown[-1:] if measured == 1 else ():
                assert words in text
            if measured == 0:
                assert UNTOLD.format(6) in text


def test_the_json_is_for_programs(repository: Repository, snapshot: Path) -> None:
    _, out, _ = run("diff", "main", "change", "-p", "policies", "-c", str(snapshot), "-o", "json")
    data = json.loads(out)
    assert data["different"] is True
    by_name = {one["decision"]: one for one in data["cluster"]["decisions"]}
    assert by_name["CPUSuppress.target"]["changed"] == 2
    assert by_name["CPUSuppress.target"]["total"] == 6
    assert by_name["ColocationProfile/jobs.qosClass"]["changed"] == 6


FAILING = """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: night}
spec:
  match: {condition: "int(node.labels['pool']) > 2"}
  target: {cel: node.capacity.cpu}
"""


@pytest.mark.parametrize(
    ("old", "new", "where", "places"),
    [
        (OLD, FAILING, " in the working tree", ["policies/night.yaml:5:22"]),
        (FAILING, OLD, " in HEAD", ["policies/night.yaml:5:22"]),
        (FAILING, FAILING.replace("capacity", "allocatable"), "", ["policies/night.yaml:5:22"]),
        (OLD, NEW, "", []),
    ],
    ids=["new", "old", "both", "none"],
)
def test_evaluations_that_failed_on_a_cluster_are_told_at_the_top(
    old: str, new: str, where: str, places: list[str], repository: Repository, snapshot: Path
) -> None:
    repository.commit("before", policies__night_yaml=old)
    repository.write(policies__night_yaml=new)
    for format in ("text", "markdown", "json"):
        code, out, _ = run("diff", "HEAD", "-p", "policies", "-c", str(snapshot), "-o", format)
        assert code == 0
        if format == "json":
            found = json.loads(out)["cluster"]["failedEvaluations"]
            assert [(one["place"], one["on"], one["total"]) for one in found] == [
                (place, 6, 6) for place in places
            ]
            assert [(one["inOld"], one["inNew"]) for one in found] == [(old == FAILING, new != OLD)] * len(
                places
            )
            continue
        text = " ".join(re.sub(r"\\|</?code>", "", out).split())
        assert ("valuations that failed on cluster.json.gz" in text) == bool(places)
        for place in places:
            words = (
                rf"{where}[^:]*: the condition at {place}, on 6 of 6 nodes, such as node-0: invalid_argument"
            )
            found = re.search(words, text)
            assert found is not None
            assert found.start() < text.index("CPUSuppress.target")
