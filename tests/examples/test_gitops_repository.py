"""The eleventh example as its README tells it, with Git's own program, a shell, and keys that are made on the way."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import REPOSITORY, SWITCH

EXAMPLE = REPOSITORY / "examples" / "11-gitops-repository"
README = EXAMPLE / "README.md"
_CONSOLE = re.compile(r"^```console\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "-- the next command --"
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_COMMIT = re.compile(r"\b[0-9a-f]{7,40}\b(?= \()")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where commands keep the compiled pack, and what was proved: as they do for users."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def environment(tmp_path: Path, kept: Path, part: Callable[[str], Path]) -> Mapping[str, str]:
    """A shell of somebody who has `koordpolicy`, `git`, `kubectl` and nothing of ours in the configuration."""
    programs = tmp_path / "programs"
    programs.mkdir()
    command = programs / "koordpolicy"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m koordpolicy.cli "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    paths = (str(programs), str(part("git").parent), str(part("kubectl").parent), os.environ["PATH"])
    return {
        **os.environ,
        "PATH": os.pathsep.join(paths),
        "PYTHONPATH": str(REPOSITORY),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(kept),
        SWITCH: "on",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "EXAMPLE": str(EXAMPLE),
        "LC_ALL": "C.UTF-8",
    }


def walked(commands: list[str], folder: Path, environment: Mapping[str, str]) -> list[str]:
    """What each of the commands prints, in one shell. None may fail but one that says how it ended."""
    script = "set -u\n" + "".join(f"{{ {one}\n}} 2>&1 || exit 9\necho '{_MARK}'\n" for one in commands)
    folder.mkdir()
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    printed = ran.stdout.split(f"{_MARK}\n")[:-1]
    assert len(printed) == len(commands)
    return [_COMMIT.sub("...", _MOMENT.sub("...", one)) for one in printed]


def test_the_walk_goes_as_the_readme_shows(
    tmp_path: Path, environment: Mapping[str, str], request: pytest.FixtureRequest
) -> None:
    text = README.read_text(encoding="utf-8")
    blocks = [
        [line.removeprefix("$ ") for line in block["body"].splitlines() if line.startswith("$ ")]
        for block in _CONSOLE.finditer(text)
    ]
    printed = iter(walked([one for block in blocks for one in block], tmp_path / "walk", environment))

    def played(block: re.Match[str]) -> str:
        commands = [line for line in block["body"].splitlines() if line.startswith("$ ")]
        return "```console\n" + "".join(f"{one}\n{next(printed)}" for one in commands) + "```"

    shown = _CONSOLE.sub(played, text)
    if request.config.getoption("--update-goldens"):
        README.write_text(shown, encoding="utf-8")
    else:
        assert shown == text


def _scripts(value: Any) -> str:
    """All commands of a workflow, in one text."""
    if isinstance(value, dict):
        return "\n".join(_scripts(one) for one in value.values())
    if isinstance(value, list):
        return "\n".join(map(_scripts, value))
    return str(value)


@pytest.mark.parametrize("file", [".github/workflows/policies.yml", ".gitlab-ci.yml"])
def test_ci_runs_the_scripts_of_the_walk(file: str) -> None:
    said = _scripts(YAML(typ="safe").load(EXAMPLE / "repository" / file))
    for script in sorted(EXAMPLE.joinpath("repository/ci").iterdir()):
        assert os.access(script, os.X_OK)
        assert f"ci/{script.name} " in said or script.name == "render"
    assert "build/review.md" in said


def test_the_review_of_gitlab_is_kept_where_a_check_fails(
    tmp_path: Path, environment: Mapping[str, str]
) -> None:
    job = YAML(typ="safe").load(EXAMPLE / "repository" / ".gitlab-ci.yml")["review"]
    block = next(_CONSOLE.finditer(README.read_text(encoding="utf-8")))["body"]
    begin = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    change = [
        "git switch --quiet -c greedy && sed -i 's/55%/95%/' overlays/staging/tuning.yaml",
        "git commit --quiet --all -m 'Sell nearly all'",
        "export CI_MERGE_REQUEST_DIFF_BASE_SHA=$(git rev-parse main)",
    ]
    script = "\n".join(("set -eo pipefail", *job["script"]))
    printed = walked(
        [*begin[:6], *change, f'bash -c {shlex.quote(script)}; echo "ends with $?"'],
        tmp_path / "walk",
        environment,
    )
    assert "ends with 1" in printed[-1]
    assert "a-fifth-is-kept" in (tmp_path / "walk/policies" / job["artifacts"]["paths"][0]).read_text("utf-8")
