"""`koordpolicy init`: what it writes is right at once, and nothing that is there is touched."""

import io
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import Compiler
from koordpolicy.runtime.policies.pack_cache import pack_remembering


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return pack_remembering()


def run(compiler: Compiler, *words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(words, Terminal(out, err), compiler), out.getvalue(), err.getvalue()


def written(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def test_it_passes_at_once(tmp_path: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "Our Policies!"
    assert run(compiler, "init", str(root))[0] == 0
    monkeypatch.chdir(root)
    for words in ("check --strict", "test --coverage", "fmt --check ."):
        code, out, err = run(compiler, *words.split())
        assert code == 0, out + err
    assert "name: our-policies" in (root / "koordpolicy.yaml").read_text()
    assert run(compiler, "test", "--coverage")[1].count("100 %") >= 2


def test_ci_runs_commands_that_there_are(
    tmp_path: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(compiler, "init", str(tmp_path), "--name", "ours")[0] == 0
    monkeypatch.chdir(tmp_path)
    workflow = YAML(typ="safe").load((tmp_path / ".github/workflows/policies.yml").read_text())
    lines = [step.get("run", "") for step in workflow["jobs"]["policies"]["steps"]]
    lines += YAML(typ="safe").load((tmp_path / ".gitlab-ci.yml").read_text())["policies"]["script"]
    hooks = YAML(typ="safe").load((tmp_path / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    lines += [hook["entry"] for hook in hooks]
    commands = [line.partition(" > ")[0] for line in lines if line.startswith("koordpolicy ")]
    assert len(commands) == 9
    for line in commands:
        code, out, err = run(compiler, *shlex.split(line)[1:])
        assert code == 0, line + out + err


@pytest.mark.parametrize(
    ("service", "others"), [("github", ".gitlab-ci.yml"), ("gitlab", ".github"), ("none", ".git")]
)
def test_one_service_alone(service: str, others: str, tmp_path: Path, compiler: Compiler) -> None:
    assert run(compiler, "init", str(tmp_path), "--ci", service)[0] == 0
    assert not [path for path in written(tmp_path) if path.startswith(others)]


def test_what_is_there_is_kept(tmp_path: Path, compiler: Compiler) -> None:
    (tmp_path / "README.md").write_text("mine")
    _, _, err = run(compiler, "init", str(tmp_path))
    assert (tmp_path / "README.md").read_text() == "mine"
    assert "kept" in err and err.count("wrote") == 6
    assert run(compiler, "init", str(tmp_path))[2].count("kept  ") == 7


def test_a_name_that_cannot_be(tmp_path: Path, compiler: Compiler) -> None:
    assert run(compiler, "init", str(tmp_path), "--name", "No Name")[0] == 2
    assert not written(tmp_path)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        (".github", "is a link, and nothing is written through links"),
        ("koordpolicy.yaml", "is a link to nothing"),
        (".github/workflows/policies.yml", "is a link to nothing"),
    ],
)
def test_nothing_is_written_through_links(
    tmp_path: Path, compiler: Compiler, link: str, message: str
) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    (root / link).parent.mkdir(parents=True)
    if link == ".github":
        elsewhere.mkdir()
    (root / link).symlink_to(elsewhere)
    code, _, err = run(compiler, "init", str(root), "--name", "ours")
    assert code == 2
    assert message in err
    assert not elsewhere.exists() or not list(elsewhere.iterdir())
