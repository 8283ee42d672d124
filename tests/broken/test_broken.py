"""Documents that are wrong, one mistake each, and what `koordpolicy check` says of them.

A file says in its first lines what is found: `# expect: KP204 7:11`, with `warning` before the code where it
is one, in the order of the report. A line `# help: ...` says what a part of the advice of one of them is. To add a document,
write it, look at what is found, and put that down.

What `check --fix` makes of them is tried here, too: a fix mends its own finding, and the file can be read as before. Both
ask the same compilations, which are most of the work, one document after another.
"""

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.bundle import compile_tree, find_pack
from koordpolicy.cli.fixing import mend
from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.catalogue import CATALOGUE
from koordpolicy.graph import Compilation, Compiler, Layer
from koordpolicy.runtime.policies.pack_cache import kept_results
from koordpolicy.source import Tree, read_tree
from tests.conftest import REPOSITORY

HERE = Path(__file__).parent
DOCUMENTS = sorted(HERE.rglob("*.yaml"))
EXPECT = re.compile(rb"^# expect: (.+)$", re.MULTILINE)
HELP = re.compile(rb"^# help: (.+)$", re.MULTILINE)


class RememberingCompiler(Compiler):
    """Gives a compilation again to whoever asks about the same texts, until it is told to forget.

    What it has of the pack it keeps when a document goes without the pack, too.
    """

    def __init__(self) -> None:
        super().__init__(find_pack)
        self._pack = kept_results()
        self._known: dict[tuple[tuple[str, str], ...], Compilation] = {}

    def compile(self, own: Layer, *more: Any, **flags: Any) -> Compilation:
        key = tuple(sorted(own.files.items()))
        if key not in self._known:
            if len(self.kept()) > len(self._pack):
                self._pack = self.kept()
            self.learn(self._pack)
            self._known[key] = super().compile(own, *more, **flags)
        return self._known[key]

    def forget(self) -> None:
        self._known.clear()


@pytest.fixture(scope="module")
def compiler() -> RememberingCompiler:
    return RememberingCompiler()


@pytest.fixture(scope="module", params=DOCUMENTS, ids=lambda path: path.relative_to(HERE).as_posix())
def document(request: pytest.FixtureRequest, compiler: RememberingCompiler) -> Iterator[Path]:
    """Each document in turn, with all tests of it."""
    yield request.param
    compiler.forget()


def check(compiler: Compiler, *arguments: str) -> tuple[int, str]:
    """The exit code and output of `koordpolicy check`."""
    out, err = io.StringIO(), io.StringIO()
    code = main(["check", *arguments], Terminal(out, err), compiler)
    assert not err.getvalue()
    return code, out.getvalue()


def expected(document: Path) -> list[str]:
    """What the document says is found in it."""
    return [line.decode() for line in EXPECT.findall(document.read_bytes())]


def test_every_mistake_is_found_where_it_is(
    document: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    file = document.relative_to(REPOSITORY).as_posix()
    code, output = check(compiler, file, "--output", "json", "--limit", "0")
    report = json.loads(output)
    assert {found["file"] for found in report["findings"]} == {file}
    shown = [
        (f"{found['severity']} " if found["severity"] != "error" else "")
        + f"{found['code']} {found['start']['line']}:{found['start']['column']}"
        for found in report["findings"]
    ]
    assert shown == expected(document)
    advice = [found["help"] or "" for found in report["findings"]]
    for part in HELP.findall(document.read_bytes()):
        assert any(part.decode() in help for help in advice), advice
    assert code == (1 if report["counts"]["error"] else 0)
    if not report["counts"]["error"]:
        strict = check(compiler, file, "--strict")[0]
        assert strict == (1 if report["counts"]["warning"] else 0), (
            "a warning fails a strict check, a note does not"
        )


def test_fixes_mend(document: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    tree = read_tree([document.relative_to(REPOSITORY).as_posix()])

    def check(tree: Tree) -> Compilation:
        return compile_tree(tree, compiler)

    before = check(tree)
    for unsafe in (False, True):
        meant = [one for one in before.found if one.fix and (one.fix.safe or unsafe)]
        if not meant:
            continue
        mended = mend(tree, check, unsafe=unsafe)
        after = list(mended.compilation.found)
        assert mended.count >= len(meant)
        assert not [one for one in after if one.fix and (one.fix.safe or unsafe)]
        assert not {(one.code, one.message) for one in meant} & {(one.code, one.message) for one in after}
        assert len(after) <= len(before.found), "at most what the mistake hid comes to light"


def test_there_are_safe_ones_and_guesses(compiler: Compiler) -> None:
    """As many as it takes are looked for, and not one more."""
    safe = guessed = 0
    for document in DOCUMENTS:
        fixes = [one.fix for one in compile_tree(read_tree([document]), compiler).found if one.fix]
        safe += sum(fix.safe for fix in fixes)
        guessed += sum(not fix.safe for fix in fixes)
        if safe >= 10 and guessed >= 20:
            return
    pytest.fail(f"{safe} safe ones, {guessed} guesses")


ELSEWHERE = {"KP312"}
"""Codes that no document is reported with now: every field is acted on (tests/unit/graph/test_not_yet.py)."""


def test_every_code_occurs() -> None:
    found = {
        code
        for document in DOCUMENTS
        for line in expected(document)
        for code in line.split()
        if code[:2] == "KP"
    }
    assert found | ELSEWHERE == set(CATALOGUE)


def test_there_are_many() -> None:
    failing = [document for document in DOCUMENTS if any(line[:2] == "KP" for line in expected(document))]
    assert len(failing) >= 450


SHOWN = (
    "reading/flow-mapping-not-closed",
    "reading/not-utf8",
    "schema/several-things-at-once",
    "schema/unknown-key-in-spec",
    "expressions/in-folded-block",
    "expressions/in-double-quotes-with-escapes",
    "expressions/behind-wide-characters",
    "expressions/bare-number-compared-with-cpu",
    "expressions/fact-of-another-component",
    "graph/two-pools-may-meet",
    "graph/parameters-need-each-other",
    "graph/parameter-with-unit-of-memory",
    "meaning/bands-of-one-bundle-overlap",
    "meaning/threshold-of-one-pool",
    "policy-tests/value-of-one-bundle",
    "policy-tests/fact-of-another-type",
    "cost/loops-within-loops",
    "failing/pod-that-was-not-there",
)
"""Documents whose whole report is kept, so that a change of words is seen in review. None shows lines of the pack."""


@pytest.mark.parametrize("name", SHOWN)
def test_reports_read_well(
    name: str,
    compiler: Compiler,
    golden: Callable[[Path, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(HERE)
    _, output = check(compiler, f"{name}.yaml")
    assert max(len(line) for line in output.splitlines()) <= 80
    golden(HERE / "golden" / f"{name.replace('/', '-')}.txt", output)
