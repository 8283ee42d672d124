"""`examples/10-own-hook`: what its README says is answered, and found where a name is wrong."""

import io
import shutil
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from tests.conftest import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "10-own-hook"


def blocks(language: str) -> list[str]:
    page = EXAMPLE.joinpath("README.md").read_text("utf-8")
    return [part.partition("```")[0] for part in page.split(f"```{language}\n")[1:]]


def called(*arguments: str, given: io.BytesIO | None = None) -> tuple[int, str]:
    out = io.StringIO()
    return main(arguments, Terminal(out, out, given)), out.getvalue()


def test_the_question_of_its_page_has_the_answer_of_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    command, _, text = blocks("sh")[0].partition(" <<'END'\n")
    given = text.removesuffix("END\n").encode()
    code, said = called(*command.removeprefix("koordpolicy ").split(), given=io.BytesIO(given))
    assert code == 0, said
    assert said.startswith(blocks("text")[0])


def test_a_name_that_is_none_is_found(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, policies := tmp_path / "policies")
    hook = policies / "worker-threads.yaml"
    hook.write_text(hook.read_text("utf-8").replace("'NODE_NAME'", "'NODE NAME'"), "utf-8")
    code, said = called("check", str(policies))
    assert code == 1
    assert said.startswith(blocks("text")[1])
