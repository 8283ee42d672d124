"""Which paths a pattern means, and which files a bundle takes."""

import pytest

from koordpolicy.graph import Layer, compile_policies
from koordpolicy.graph.globs import matches
from tests.unit.graph.policies_text import document


@pytest.mark.parametrize(
    ("pattern", "path", "meant"),
    [
        ("**/*.yaml", "a.yaml", True),
        ("**/*.yaml", "a/b/c.yaml", True),
        ("**/*.yaml", "a.yml", False),
        ("*.yaml", "a/b.yaml", False),
        ("a/**", "a/b/c.txt", True),
        ("a/**", "ab/c", False),
        ("a/**/z.yaml", "a/z.yaml", True),
        ("a/**/z.yaml", "a/b/c/z.yaml", True),
        ("a/?.yaml", "a/b.yaml", True),
        ("a/?.yaml", "a/bb.yaml", False),
        ("a/?.yaml", "a//.yaml", False),
        ("./a.yaml", "a.yaml", True),
        ("a+(b).yaml", "a+(b).yaml", True),
        ("[ab].yaml", "a.yaml", False),
        ("**", "anything/at/all", True),
    ],
)
def test_patterns(pattern: str, path: str, meant: bool) -> None:
    assert matches(pattern, path) is meant


def bundle(spec: str) -> str:
    return document("PolicyBundle", "own", "  extends: []\n" + spec)


BROKEN = "kind: [\n"
FINE = document("CPUSuppress", "{}", "  minimumCPUs: 2\n  target: 1\n")


@pytest.mark.parametrize(
    ("spec", "taken"),
    [
        ("", ["a", "b", "c"]),
        ("  include: ['a/**']\n", ["a"]),
        ("  exclude: ['**/b.yaml', 'c/*']\n", ["a"]),
        ("  include: ['**/*.yaml']\n  exclude: ['a/**']\n", ["b", "c"]),
    ],
)
@pytest.mark.parametrize("root", ["", "deep/down/"])
def test_a_bundle_takes_the_files_it_names(spec: str, taken: list[str], root: str) -> None:
    files = {
        "koordpolicy.yaml": bundle(spec),
        "a/a.yaml": FINE.replace("{}", "a"),
        "x/b.yaml": FINE.replace("{}", "b"),
        "c/c.yaml": FINE.replace("{}", "c"),
    }
    done = compile_policies(Layer("own", {root + path: text for path, text in files.items()}))
    assert [unit.document.name for unit in done.units if unit.kind.name == "CPUSuppress"] == taken
    assert not len(done.found)


def test_findings_of_files_that_do_not_belong_are_nobodys_concern() -> None:
    files = {
        "koordpolicy.yaml": bundle("  exclude: ['drafts/**']\n"),
        "a.yaml": FINE.replace("{}", "a"),
        "drafts/x.yaml": BROKEN,
    }
    assert not len(compile_policies(Layer("own", files)).found)


def test_a_bundle_in_an_excluded_directory_is_not_a_second_one() -> None:
    files = {
        "koordpolicy.yaml": bundle("  exclude: ['examples/**']\n"),
        "a.yaml": FINE.replace("{}", "a"),
        "examples/koordpolicy.yaml": bundle(""),
    }
    assert not len(compile_policies(Layer("own", files)).found)


def test_files_beside_the_bundle_that_somebody_names_are_read() -> None:
    done = compile_policies(
        Layer("own", {"a/koordpolicy.yaml": bundle(""), "b/c.yaml": FINE.replace("{}", "c")})
    )
    assert [unit.document.name for unit in done.units] == ["c", "own"]
