"""`examples/12-what-if`: its scripts, run as CI runs them, write the comment and hand it to who posts it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import REPOSITORY
from tests.parts.forges import OURS, Forge, serving

EXAMPLES = REPOSITORY / "examples"
EXAMPLE = EXAMPLES / "12-what-if"
README = EXAMPLE / "README.md"
_FIRST = re.compile(
    r"^ {4}(?P<command>koordpolicy simulate .*?)$.*?^```\n(?P<printed>.*?)^```$", re.MULTILINE | re.DOTALL
)
DAYS = {
    "github": "--generate 3:24 --until 20m --interval 10m --seeds 2",
    "gitlab": "--generate 1:4 --until 10m --interval 10m --seeds 1",  # the other run shows what is sure
}


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
    """Programs of a runner: the command as it is here."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "koordpolicy"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m koordpolicy.cli "$@"\n')
    command.chmod(0o755)
    return folder


def run_steps(where: str, steps: list[str], checkout: Path, programs: Path, forge: Forge) -> tuple[int, str]:
    """The steps as CI runs them, but for what is installed: exit code, and what is said. A step that fails skips
    none of those after it on GitHub, whose last says `always()`."""
    assert " pip install " in steps[0]  # what is here is asked instead
    said = {
        **forge.variables(checkout.parent),
        "WHAT_IF_DAY": DAYS[where],
        "TARGET": "refs/remotes/origin/main",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "origin/main",
        "KOORDPOLICY_COMMENT_TOKEN": OURS,
        "PYTHONPATH": str(REPOSITORY),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }
    scripts = steps[1:] if where == "github" else ["\n".join(steps[1:])]
    code, told = 0, ""
    for script in scripts:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=checkout,
            env={**os.environ, **said},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        code, told = code or done.returncode, told + done.stdout + done.stderr
    return code, told


@pytest.mark.parametrize(("where", "variables", "steps"), scripts(), ids=["github", "gitlab"])
def test_the_comment_is_written_and_posted(
    where: str, variables: dict[str, str], steps: list[str], checkout: Path, programs: Path
) -> None:
    assert "WHAT_IF_DAY" in variables
    with serving(where) as forge:
        code, told = run_steps(where, steps, checkout, programs, forge)
        assert code == 0, told
        comment = (checkout / "what-if.md").read_text(encoding="utf-8")
        decisions, simulated, effect = comment.partition("**Simulated: ")
        assert "1 decision changes**" in decisions.partition("\n")[0]
        assert simulated
        assert "origin/main" in effect
        sure = effect.partition("<details>")[0] if where == "github" else effect
        assert "| batch-cpu offered (cores) |" in sure
        [one] = forge.comments
        assert one["body"].partition("\n")[::2] == ("<!-- koordpolicy comment: what-if -->", comment)

        # The next push slips, and says so in the same comment.
        slip = (checkout / "policies/fuller.yaml").read_text("utf-8").replace("cpuReclaim:", "cpuReclaims:")
        (checkout / "policies/fuller.yaml").write_text(slip, encoding="utf-8")
        git(checkout, "commit", "--quiet", "--all", "-m", "slip")
        code, _ = run_steps(where, steps, checkout, programs, forge)
        assert code == 2
        [one] = forge.comments
        assert "**Refused: the policies of HEAD" in one["body"]
        assert "error[KP305]" in one["body"]


@pytest.mark.soak
def test_the_first_command_shows_a_difference_that_matters(request: pytest.FixtureRequest) -> None:
    """What it prints stands on the page, as far as it is shown, and jobs of CI simulate the same day."""
    page = README.read_text(encoding="utf-8")
    found = _FIRST.search(page)
    assert found is not None
    words = shlex.split(found["command"])
    day = words[words.index("--generate") : words.index("-p")]
    for _, variables, _ in scripts():
        assert shlex.split(variables["WHAT_IF_DAY"]) == day
    done = subprocess.run(
        [sys.executable, "-m", "koordpolicy.cli", *words[1:]],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    sure, not_sure, _ = done.stdout.partition("  the same, or not sure:\n")
    assert "  best-effort work " in sure
    printed = f"{sure}{not_sure}...\n"
    if request.config.getoption("--update-goldens"):
        README.write_text(page.replace(found["printed"], printed), encoding="utf-8")
    else:
        assert found["printed"] == printed


def test_faults_strike_both_revisions() -> None:
    before, after = (EXAMPLES / name / "policies" for name in ("01-colocated-day", "12-what-if"))
    command = [sys.executable, "-m", "koordpolicy.cli", "simulate", "--generate", "4:16", "--interval", "10m"]
    given = ["--faults", str(EXAMPLE / "faults.yaml"), "--seeds", "1", "--until", "20h", "-o", "json"]
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
    assert [one.split()[-4:-1] for one in holders] == [["what-if.md", "--about", "what-if;"]]
    assert "koordpolicy comment" in holders[0]
    for step in job["steps"]:
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
