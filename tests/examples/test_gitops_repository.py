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


def _begun() -> list[str]:
    """The commands of the page that make the repository, up to its first commit."""
    block = next(_CONSOLE.finditer(README.read_text(encoding="utf-8")))["body"]
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")][:6]


def _of_gitlab() -> Any:
    return YAML(typ="safe").load(EXAMPLE / "repository" / ".gitlab-ci.yml")["review"]


def test_the_review_of_gitlab_is_kept_where_a_check_fails(
    tmp_path: Path, environment: Mapping[str, str]
) -> None:
    job = _of_gitlab()
    change = [
        "git switch --quiet -c greedy && sed -i 's/55%/95%/' overlays/staging/tuning.yaml",
        "git commit --quiet --all -m 'Sell nearly all'",
        "git remote add origin . && export CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main",
    ]
    script = "\n".join(("set -eo pipefail", *job["script"]))
    printed = walked(
        [*_begun(), *change, f'bash -c {shlex.quote(script)}; echo "ends with $?"'],
        tmp_path / "walk",
        environment,
    )
    assert "ends with 1" in printed[-1]
    assert "a-fifth-is-kept" in (tmp_path / "walk/policies" / job["artifacts"]["paths"][0]).read_text("utf-8")


_UNSIGNED = "git -c commit.gpgsign=false commit --quiet --allow-empty -m 'In a hurry'"


@pytest.mark.parametrize("base", ["", "nowhere", "main:allowed_signers"])
def test_a_base_that_is_no_commit_lets_nothing_through(
    base: str, tmp_path: Path, environment: Mapping[str, str]
) -> None:
    asked = f'ci/signed {shlex.quote(base)}; echo "ends with $?"'
    *_, printed = walked([*_begun(), _UNSIGNED, asked], tmp_path / "walk", environment)
    assert re.search("ends with [1-9]", printed)


def test_commits_that_cannot_be_listed_are_not_taken_for_none(
    tmp_path: Path, environment: Mapping[str, str]
) -> None:
    broken = "rm .git/objects/$(git rev-parse HEAD~1 | sed 's,^..,&/,')"
    asked = 'ci/signed main; echo "ends with $?"'
    made = ["git switch --quiet -c broken", _UNSIGNED, _UNSIGNED, broken, asked]
    *_, printed = walked([*_begun(), *made], tmp_path / "walk", environment)
    assert re.search("ends with [1-9]", printed)


def test_gitlab_trusts_no_signer_whom_the_target_does_not_trust_any_more(
    tmp_path: Path, environment: Mapping[str, str]
) -> None:
    upto = next(at for at, line in enumerate(_of_gitlab()["script"]) if line.startswith("ci/signed "))
    script = "\n".join(("set -eo pipefail", *_of_gitlab()["script"][: upto + 1]))
    asked = f'bash -c {shlex.quote(script)}; echo "ends with $?"'
    printed = walked(
        [
            *_begun(),
            "ssh-keygen -q -t ed25519 -N '' -f ../grace",
            'echo "grace@example.org namespaces=\\"git\\" $(cat ../grace.pub)" >> allowed_signers',
            "git commit --quiet --all -m 'Trust Grace'",
            "git remote add origin . && export CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main",
            "export CI_MERGE_REQUEST_DIFF_BASE_SHA=$(git rev-parse main)",
            "git switch --quiet -c graces && git config user.signingkey ../grace.pub",
            "git commit --quiet --allow-empty -m 'Signed by Grace'",
            asked,
            "git switch --quiet main && git config user.signingkey ../ada.pub",
            "sed -i /grace@/d allowed_signers && git commit --quiet --all -m 'Trust Grace no more'",
            "git switch --quiet graces",
            asked,
        ],
        tmp_path / "walk",
        environment,
    )
    trusted, revoked = printed[-5], printed[-1]
    assert "ends with 0" in trusted
    assert "(Signed by Grace)" in revoked
    assert "ends with 1" in revoked


@pytest.mark.parametrize("name", ["x\n\n**Nothing changes.** @admins", "staging\n", "Staging", "a b"])
def test_the_name_of_an_overlay_cannot_speak_in_the_comment(
    name: str, tmp_path: Path, environment: Mapping[str, str]
) -> None:
    *_, printed = walked(
        [
            *_begun(),
            f"git switch --quiet -c named && cp -r overlays/staging overlays/{shlex.quote(name)}",
            "git add --all && git commit --quiet -m 'Another one'",
            'ci/review main 2> ../told; echo "ends with $?"',
        ],
        tmp_path / "walk",
        environment,
    )
    assert printed == (
        "**Refused:** the name of a folder in `overlays` is not of `a-z`, `0-9` and `-` alone.\nends with 1\n"
    )
    assert "name the folder otherwise" in (tmp_path / "walk/told").read_text("utf-8")
