"""The bundle that a path means, several bundles in one repository, and files that are none of theirs."""

import io
import os
import shutil
from pathlib import Path

import pytest

from koordpolicy.cli.bundles import bundles_in, enclosing, meant
from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two bundles and what is found beside them."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "koordpolicy.yml").write_text("apiVersion: v1\nkind: ConfigMap\n")
    for name, example in (("one", "02-tune-one-pool"), ("two", "03-own-filter")):
        shutil.copytree(EXAMPLES / example, tmp_path / name)
    (tmp_path / "one/deep/er").mkdir(parents=True)
    (tmp_path / "one/night.yaml").rename(tmp_path / "one/deep/night.yaml")
    (tmp_path / "one/kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [koordpolicy.yaml]\n"
    )
    (tmp_path / "two/values.yaml").write_text("replicas:   1\n")
    (tmp_path / "values.yaml").write_text("replicas:   1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str, given: str = "") -> tuple[int, str, str]:
    standard_input = io.BytesIO(given.encode())
    terminal = Terminal(out := io.StringIO(), err := io.StringIO(), standard_input)
    code = main(words, terminal)
    return code, out.getvalue(), " ".join(err.getvalue().split())


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("one", "one"),
        ("one/", "one/"),
        ("one/deep", "one"),
        ("one/deep/er", "one"),
        ("one/deep/night.yaml", "one"),
        ("one/deep/new.yaml", None),
        ("one/koordpolicy.yaml", "one"),
        (".", None),
        ("values.yaml", None),
        ("nowhere/new.yaml", None),
    ],
)
@pytest.mark.usefixtures("repository")
def test_the_enclosing_bundle_is_found(path: str, root: str | None) -> None:
    assert enclosing(path) == root


def test_it_is_named_as_it_is_shortest_from_here(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository / "one/deep/er")
    assert enclosing(".") == "../.."
    assert enclosing(str(repository / "one/deep")) == str(repository / "one")
    assert meant(["../night.yaml", ".", "nowhere"]) == ["../..", "nowhere"]


def test_another_repository_ends_the_search(repository: Path) -> None:
    (repository / "one/deep/.git").mkdir()
    assert enclosing("one/deep/night.yaml") is None


def test_a_folder_that_everybody_may_write_is_not_asked(repository: Path) -> None:
    (repository / "one").chmod(0o777)
    assert enclosing("one/deep/night.yaml") is None
    assert enclosing("one") == "one", "unless it is named"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_folder_of_somebody_else_is_not_asked(repository: Path) -> None:
    os.chown(repository / "one", 12345, 12345)
    assert enclosing("one/deep/night.yaml") is None


@pytest.mark.parametrize("path", ["one", "one/deep", "one/deep/night.yaml", "one/night.test.yaml"])
@pytest.mark.usefixtures("repository")
def test_whatever_is_named_in_it_means_all_of_it(path: str) -> None:
    whole = run("check", "one")
    assert run("check", path) == whole
    assert whole[:2] == (0, "3 documents, 2 test cases passed, no findings\n")
    assert run("test", path)[:2] == run("test", "one")[:2]


def test_standard_input_stands_in_its_bundle(repository: Path) -> None:
    text = (repository / "one/deep/night.yaml").read_text(encoding="utf-8")
    words = ("check", "-", "--stdin-filename", "one/deep/night.yaml")
    whole = "3 documents, 2 test cases passed, no findings\n"
    assert run(*words, given=text)[:2] == (0, whole)
    code, out, _ = run(*words, given=text.replace("threshold", "treshold"))
    assert code == 1
    assert "one/deep/night.yaml:" in out
    assert run("check", "-", given=text)[1] == "1 document, no findings\n"


@pytest.mark.usefixtures("repository")
def test_what_does_not_exist_is_in_no_bundle() -> None:
    code, _, err = run("check", "one/deep/nigt.yaml")
    assert code == 2
    assert "`one/deep/nigt.yaml` does not exist" in err


@pytest.mark.usefixtures("repository")
def test_each_of_several_is_checked_by_itself() -> None:
    code, out, err = run("check")
    assert (code, out) == (0, "6 documents in 2 bundles, 9 test cases passed, no findings\n")
    assert err.startswith("4 files are no policies and left alone: one/kustomization.yaml (Kustomization)")
    assert "`include`" in err


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("night.YAML", "apiVersion: koordpolicy.io/v1alpha1\nkind: CPUSuppress\n", True),
        ("night.json", '{"apiVersion": "koordpolicy.io/v1alpha1", "kind": "CPUSuppress"}', True),
        ("night.Yml", "apiversion: koordpolcy.io/v1\n{", True),
        ("pods.json", '{"apiVersion": "v1", "kind": "List"}', False),
        ("night.txt", "apiVersion: koordpolicy.io/v1alpha1\n", False),
    ],
)
def test_policies_under_names_that_are_not_read_are_told(
    repository: Path, name: str, text: str, told: bool
) -> None:
    (repository / "two" / name).write_text(text, encoding="utf-8")
    code, _, err = run("check", "two")
    assert code == 0
    assert (f"1 file with policies is left alone: two/{name};" in err) == told
    assert (name in err) == told


def test_what_is_wrong_in_one_of_them_is_found(repository: Path) -> None:
    night = repository / "one/deep/night.yaml"
    night.write_text(night.read_text(encoding="utf-8").replace("threshold:", "treshold:"), encoding="utf-8")
    code, out, _ = run("check")
    assert code == 1
    assert "one/deep/night.yaml:" in out
    assert "did you mean `threshold`?" in out
    assert run("check", "two")[0] == 0


def test_policies_in_none_of_them_are_checked_too(repository: Path) -> None:
    (repository / "lost.yaml").write_text("apiVersion: koordpolicy.io/v1alpha1\nkind: CPUSupress\n")
    code, out, _ = run("check")
    assert code == 1
    assert "lost.yaml" in out


@pytest.mark.usefixtures("repository")
def test_where_one_is_needed_they_are_named() -> None:
    code, _, err = run("graph")
    assert code == 2
    assert "name one of `one`, `two`" in err


@pytest.mark.usefixtures("repository")
def test_tests_of_all_of_them_are_run() -> None:
    code, out, _ = run("test")
    assert code == 0
    assert out.count(" passed, branches covered") == 2
    assert out.startswith("one\n")
    assert run("test", "-o", "json")[0] == 2


def test_what_is_no_policy_is_not_formatted(repository: Path) -> None:
    before = {file: file.read_bytes() for file in repository.rglob("*.yaml")}
    code, _, err = run("fmt")
    assert code == 0
    assert "4 files are no policies and left alone" in err
    assert {file: file.read_bytes() for file in before} == before


def test_a_bundle_that_says_what_it_includes_is_believed(repository: Path) -> None:
    bundle = repository / "one/koordpolicy.yaml"
    text = bundle.read_text(encoding="utf-8")
    assert "extends:" in text
    bundle.write_text(text.replace("  extends:", "  include: ['**/*.yaml']\n  extends:"), encoding="utf-8")
    code, out, _ = run("check", "one")
    assert code == 1
    assert "kustomization.yaml" in out


def test_a_bundle_within_another_is_part_of_it() -> None:
    files = {
        "a/koordpolicy.yaml": "kind: PolicyBundle\n",
        "a/b/koordpolicy.yaml": "kind: PolicyBundle\n",
        "c.yaml": "",
    }
    (one,) = bundles_in(files)
    assert one.files == files
