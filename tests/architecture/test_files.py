"""The tree stays what it says it is: few files at the top, none too long, every code with its page."""

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

from koordpolicy.diagnostics.catalogue import CATALOGUE
from tests import conftest
from tests.architecture.source import SOURCES
from tests.conftest import REPOSITORY

LONGEST = 600
"""Lines of a Python file. Near 150 is usual; a longer one has usually two subjects."""

AT_THE_TOP = {
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "deploy",
    "examples",
    "koordpolicy",
    "policies",
    "pyproject.toml",
    "requirements.lock",
    "schemas",
    "tests",
}


def test_nothing_else_at_the_top() -> None:
    ignored = [line.strip("/") for line in (REPOSITORY / ".gitignore").read_text().split()]
    there = {path.name for path in REPOSITORY.iterdir() if not path.name.startswith(".")}
    assert {
        name for name in there - AT_THE_TOP if not any(fnmatch(name, pattern) for pattern in ignored)
    } == set()


def test_no_file_is_too_long() -> None:
    files = [source.path for source in SOURCES] + sorted((REPOSITORY / "tests").rglob("*.py"))
    lengths = {path.relative_to(REPOSITORY).as_posix(): path.read_text().count("\n") for path in files}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_files_that_are_tested_first_are_there() -> None:
    assert [name for name in (*conftest.LONGEST, *conftest.WAITING) if not (REPOSITORY / name).exists()] == []


def test_every_code_has_a_page() -> None:
    used = {(source.name, code) for source in SOURCES for code in re.findall(r"\bKP\d{3}\b", source.text)}
    assert {(name, code) for name, code in used if code not in CATALOGUE} == set()


def test_the_package_says_that_it_is_typed() -> None:
    assert (REPOSITORY / "koordpolicy" / "py.typed").exists()


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement_name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return normal(match[0])


class TestLockFile:
    text = (REPOSITORY / "requirements.lock").read_text()
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]

    def test_holds_whatever_the_project_names(self) -> None:
        locked = {normal(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", self.text, re.MULTILINE)}
        named = [*self.project["dependencies"], *self.project["optional-dependencies"]["dev"]]
        assert {requirement_name(requirement) for requirement in named} <= locked, "run `make lock`"

    def test_every_requirement_has_a_hash(self) -> None:
        entries = re.split(r"^(?=[A-Za-z0-9])", self.text, flags=re.MULTILINE)[1:]
        assert len(entries) > 10
        assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []

    def test_names_no_host(self) -> None:
        assert (
            re.findall(
                r"^.*(?:://|--(?:extra-)?index-url|--find-links|--trusted-host).*$", self.text, re.MULTILINE
            )
            == []
        )


def test_no_two_test_files_are_one_module() -> None:
    """pytest names a module from the last folder without `__init__.py`; of two with one name it would run the first twice."""
    found: dict[tuple[str, ...], list[Path]] = {}
    for file in sorted((REPOSITORY / "tests").rglob("test_*.py")):
        folder = file.parent
        name: tuple[str, ...] = (file.stem,)
        if not (folder / "__init__.py").exists():
            continue
        while (folder / "__init__.py").exists():
            folder, name = folder.parent, (folder.name, *name)
        found.setdefault(name, []).append(file)
    assert [files for files in found.values() if len(files) > 1] == []
