"""The hooks of `.pre-commit-hooks.yaml` in a user's repository, installed by pre-commit from this checkout."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.conftest import REPOSITORY
from tests.integration.ci.conftest import GOOD, SLIP, Sample

PACKAGED = (
    "koordpolicy",
    "policies",
    "schemas",
    "examples",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    ".pre-commit-hooks.yaml",
)
NO_INDEX = ("No matching distribution", "Could not find a version", "Connection", "Temporary failure")
CONFIGURATION = """\
repos:
  - repo: {repository}
    rev: {revision}
    hooks:
      - id: koordpolicy-check
        args: [policies]
      - id: koordpolicy-fmt
        files: ^policies/
      - id: koordpolicy-test
        args: [policies]
"""


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory, part: Callable[[str], Path]) -> tuple[Path, str, Path]:
    """A repository with what is packaged here, its commit, and the folder in which pre-commit keeps environments."""
    pytest.importorskip("pre_commit", reason="pre-commit is not in this environment")
    root = tmp_path_factory.mktemp("hooks") / "koordpolicy"
    root.mkdir()
    for name in PACKAGED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, root / name)
    git = part("git")
    names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for arguments in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "all")):
        subprocess.run([git, *arguments], cwd=root, env=environment, check=True, capture_output=True)
    said = subprocess.run([git, "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True, text=True)
    return root, said.stdout.strip(), tmp_path_factory.mktemp("environments")


def pre_commit(sample: Sample, hooks: tuple[Path, str, Path], *arguments: str) -> tuple[int, str]:
    root, revision, home = hooks
    configuration = CONFIGURATION.format(repository=root, revision=revision)
    sample.write(**{".pre-commit-config.yaml": configuration})
    sample.run("git", "add", "--all")
    # The hook's environment must get koordpolicy by its installation alone.
    outside = {**sample.environment, "PRE_COMMIT_HOME": str(home), "PATH": os.environ["PATH"]}
    outside.pop("PYTHONPATH")
    ran = Sample(sample.root, outside).run(sys.executable, "-m", "pre_commit", *arguments)
    output = ran.stdout + ran.stderr
    if "installed" not in output and any(sign in output for sign in NO_INDEX):
        pytest.skip("pre-commit cannot install packages here: " + output.strip().splitlines()[-1])
    return ran.returncode, output


@pytest.mark.soak
def test_the_hooks(sample: Sample, hooks: tuple[Path, str, Path]) -> None:
    """One test for all, since making the environment takes most of the time."""
    code, output = pre_commit(sample, hooks, "run", "--all-files")
    assert code == 0, output
    assert output.count("Passed") == 2, output

    sample.write(**{"policies/night.yaml": SLIP})
    sample.run("git", "add", "--all")
    code, output = pre_commit_again(sample, hooks, "koordpolicy-check")
    assert code == 1
    assert "error[KP305]" in output
    assert "policies/night.yaml:10:5" in output

    crooked = GOOD["policies/night.yaml"].replace("  name: night", "     name:   night")
    sample.write(**{"policies/night.yaml": crooked})
    sample.run("git", "add", "--all")
    code, output = pre_commit_again(sample, hooks, "koordpolicy-fmt")
    assert code == 1
    assert "files were modified by this hook" in output
    assert (sample.root / "policies/night.yaml").read_text() == GOOD["policies/night.yaml"]

    wrong = GOOD["policies/night.test.yaml"].replace("80%", "81%")
    sample.write(**{"policies/night.test.yaml": wrong})
    sample.run("git", "add", "--all")
    code, output = pre_commit_again(sample, hooks, "koordpolicy-test", "--hook-stage", "pre-push")
    assert code == 1
    assert "at night" in output


def pre_commit_again(
    sample: Sample, hooks: tuple[Path, str, Path], hook: str, *options: str
) -> tuple[int, str]:
    """One hook on all files as they stand."""
    outside = {**sample.environment, "PRE_COMMIT_HOME": str(hooks[2]), "PATH": os.environ["PATH"]}
    outside.pop("PYTHONPATH")
    ran = Sample(sample.root, outside).run(
        sys.executable, "-m", "pre_commit", "run", hook, "--all-files", *options
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_every_hook_is_complete() -> None:
    hooks = YAML(typ="safe").load(REPOSITORY / ".pre-commit-hooks.yaml")
    assert [hook["id"] for hook in hooks] == ["koordpolicy-check", "koordpolicy-fmt", "koordpolicy-test"]
    assert all({"name", "description", "entry", "language", "files"} <= set(hook) for hook in hooks)
