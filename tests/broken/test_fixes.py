"""What `check --fix` makes of the broken documents: a fix mends its own finding, and the file can be read as before."""

import pytest

from koordpolicy.cli.bundle import compile_tree, find_pack
from koordpolicy.cli.fixing import mend
from koordpolicy.graph import Compilation, Compiler
from koordpolicy.source import Tree, read_tree
from tests.broken.test_broken import DOCUMENTS, HERE


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler(find_pack)


@pytest.mark.parametrize("name", [document.relative_to(HERE).as_posix() for document in DOCUMENTS])
def test_fixes_mend(name: str, compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    tree = read_tree([name])

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
    trees = [read_tree([document]) for document in DOCUMENTS]
    fixes = [one.fix for tree in trees for one in compile_tree(tree, compiler).found if one.fix]
    assert sum(fix.safe for fix in fixes) >= 10
    assert sum(not fix.safe for fix in fixes) >= 20
