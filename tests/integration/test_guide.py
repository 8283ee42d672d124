"""The guide: its files are written, its commands run in order, and what they print is what it shows.

`pytest --update-goldens` writes what they print into the pages.
"""

import io
import re
import shlex
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import Compiler
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from tests.conftest import REPOSITORY

GUIDE = REPOSITORY / "schemas" / "guide"
PAGES = sorted(page.name for page in GUIDE.glob("*.md"))
_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (?P<name>[\w/.-]+\.yaml)\n")
_LINK = re.compile(r"\]\((?P<target>[^)#]+)(?:#[^)]*)?\)")
_REVISION = re.compile(r"^(revision +)[0-9a-f]{12}$", re.MULTILINE)
"""Depends on every word of the pack."""

_WIDEST = 80


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return pack_remembering()


def _printed(command: str, compiler: Compiler) -> str:
    """What a command prints, as a reader sees it."""
    program, *arguments = shlex.split(command)
    if program == "rm":
        for name in arguments:
            Path(name).unlink()
        return ""
    assert program == "koordpolicy", command
    out = io.StringIO()
    main(arguments, Terminal(out, out), compiler)
    shown = _REVISION.sub(r"\1...", out.getvalue().rstrip())
    return "".join(f"{line.rstrip()}\n" for line in shown.splitlines())


def _session(body: str, compiler: Compiler) -> str:
    """The commands of a block, each with what it prints; an empty line parts one from the next where both are long."""
    commands = [line.removeprefix("$ ") for line in body.splitlines() if line.startswith("$ ")]
    return "\n".join(f"$ {command}\n{_printed(command, compiler)}" for command in commands)


def _written(body: str) -> None:
    found = _FILE.match(body)
    if found is not None:
        file = Path(found["name"])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(body, encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_happens(
    page: str,
    compiler: Compiler,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    monkeypatch.chdir(bundle)
    text = (GUIDE / page).read_text(encoding="utf-8")

    def played(block: re.Match[str]) -> str:
        body = block["body"]
        if block["language"] == "yaml":
            _written(body)
        return f"```console\n{_session(body, compiler)}```" if block["language"] == "console" else block[0]

    shown = _BLOCK.sub(played, text)
    if request.config.getoption("--update-goldens"):
        (GUIDE / page).write_text(shown, encoding="utf-8")
    else:
        assert shown == text
    for block in _BLOCK.finditer(shown):
        if block["language"] == "console":
            assert max(map(len, block["body"].splitlines()), default=0) <= _WIDEST


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (GUIDE / page).read_text(encoding="utf-8")
    targets = [found["target"] for found in _LINK.finditer(text) if "://" not in found["target"]]
    assert [target for target in targets if not (GUIDE / target).exists()] == []


def test_the_first_page_names_all_others() -> None:
    text = (GUIDE / "README.md").read_text(encoding="utf-8")
    assert {found["target"] for found in _LINK.finditer(text) if "/" not in found["target"]} == {*PAGES} - {
        "README.md"
    }
