"""`examples/12-what-if`: its scripts, run as CI runs them, write the comment and hand it to who posts it."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
EXAMPLE = EXAMPLES / "12-what-if"
DAYS = {
    "github": "--generate 3:24 --until 20m --interval 10m --seeds 2",
    "gitlab": "--generate 1:4 --until 10m --interval 10m --seeds 1",  # the other run shows what is sure
}
POSTING = ("gh", "curl")
"""Programs that speak with GitHub and GitLab, which tests cannot reach: what they are given is written down instead."""


def read(name: str) -> Any:
    return YAML(typ="safe").load((EXAMPLE / name).read_text(encoding="utf-8"))


def scripts() -> list[tuple[str, dict[str, str], list[str]]]:
    job = read("github-workflow.yml")["jobs"]["what-if"]
    github = [step["run"] for step in job["steps"] if "run" in step]
    gitlab = read("gitlab-ci.yml")["what-if"]
    return [("github", job["env"], github), ("gitlab", gitlab["variables"], gitlab["script"])]


def git(folder: Path, *arguments: str) -> None:
    mine = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *mine, *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone of a repository on the branch of a merge request."""
    origin = tmp_path / "origin"
    shutil.copytree(EXAMPLES / "01-colocated-day" / "policies", origin / "policies")
    git(origin, "init", "--quiet", "--initial-branch=main")
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "-m", "before")
    clone = tmp_path / "work" / "clone"
    git(tmp_path, "clone", "--quiet", str(origin), str(clone))
    shutil.copy(EXAMPLE / "policies" / "fuller.yaml", clone / "policies")
    git(clone, "checkout", "--quiet", "-b", "fuller")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "-m", "fuller")
    return clone


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Programs of a runner: the command as it is here, and who posts."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "koordpolicy").write_text(f'#!/bin/sh\nexec {sys.executable} -m koordpolicy.cli "$@"\n')
    for name in POSTING:
        (folder / name).write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/posted\n')
    for program in folder.iterdir():
        program.chmod(0o755)
    return folder


@pytest.mark.parametrize(("where", "variables", "steps"), scripts(), ids=["github", "gitlab"])
def test_the_comment_is_written_and_posted(
    where: str, variables: dict[str, str], steps: list[str], checkout: Path, programs: Path, tmp_path: Path
) -> None:
    assert (
        steps[0] == 'python -P -m pip install --quiet "$KOORDPOLICY_PACKAGE"'
    )  # what is here is asked instead
    said = {
        "WHAT_IF_DAY": DAYS[where],
        "TARGET": "main",
        "NUMBER": "7",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "origin/main",
        "CI_API_V4_URL": "https://gitlab.example.org/api/v4",
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
        "WHAT_IF_TOKEN": "secret",
        "PYTHONPATH": str(REPOSITORY),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }
    assert "WHAT_IF_DAY" in variables
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(steps[1:])],
        cwd=checkout,
        env={**os.environ, **said},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    comment = (checkout / "what-if.md").read_text(encoding="utf-8")
    decisions, simulated, effect = comment.partition("**Simulated: ")
    assert "1 decision changes**" in decisions.partition("\n")[0]
    assert simulated
    assert ", from <code>origin/main" in effect
    sure = effect.partition("<details>")[0] if where == "github" else effect
    assert "| batch-cpu offered (cores) |" in sure
    posted = (tmp_path / "posted").read_text(encoding="utf-8")
    assert "what-if.md" in posted
    assert "/merge_requests/7/notes" in posted if where == "gitlab" else "--body-file" in posted


def test_faults_strike_both_revisions() -> None:
    before, after = (EXAMPLES / name / "policies" for name in ("01-colocated-day", "12-what-if"))
    command = [sys.executable, "-m", "koordpolicy.cli", "simulate", "--generate", "4:16", "--interval", "10m"]
    given = ["--faults", str(EXAMPLE / "faults.yaml"), "--seeds", "1", "--until", "16h", "-o", "json"]
    done = subprocess.run(
        [*command, "-p", str(after), "--against", str(before), *given],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [lost] = [
        one for one in json.loads(done.stdout)["measures"] if one["name"] == "pods lost with their nodes"
    ]
    assert lost["before"] > 0
    assert lost["after"] > 0


def test_only_who_posts_has_the_token_of_github() -> None:
    workflow = read("github-workflow.yml")
    job = workflow["jobs"]["what-if"]
    assert "env" not in workflow
    assert "github.token" not in str(job["env"])
    holders = [step.get("run", "") for step in job["steps"] if "github.token" in str(step)]
    assert [one.split()[:3] for one in holders] == [["gh", "pr", "comment"]]
    for step in job["steps"]:
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize(("where", "_", "steps"), scripts(), ids=["github", "gitlab"])
def test_a_module_of_the_branch_does_not_stand_for_pip(
    where: str, _: dict[str, str], steps: list[str], tmp_path: Path
) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit('the branch runs')\n", encoding="utf-8")
    install = steps[0].replace("python", shlex.quote(sys.executable), 1).partition(" install ")[0]
    done = subprocess.run(
        ["bash", "-c", f"{install} --version"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "the branch runs" not in done.stderr
