"""What is said of words that a command line does not have, and of what it leaves out."""

import io
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal

POLICY = """apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: pool}
spec:
  match: {nodes: {matchLabels: {pool: a}}}
  parameters: {threshold: %s}
"""
KUSTOMIZATION = """apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../../base]
patches: [{path: pool.yaml}, {target: {kind: CPUSuppress}, path: operations.yaml}]
"""


def said(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(words, Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("chek .", "koordpolicy: there is no command `chek`; did you mean `check`?"),
        ("lint", "koordpolicy: there is no command `lint`; `koordpolicy --help` lists all"),
        ("check --stict .", "koordpolicy check: there is no flag `--stict`; did you mean `--strict`?"),
        ("check -f .", "there is no flag `-f`: files and directories are named without one, as in `koordpolicy check PATH`"),
        ("status --zzz", "there is no flag `--zzz`; `koordpolicy status --help` lists what it takes"),
        ("diff a b c", "`c` is one argument too many; `koordpolicy diff --help` lists what it takes"),
        ("explain move", "`koordpolicy explain move [NAMESPACE/]POD`"),
    ],
)  # fmt: skip
def test_a_slip_is_told_with_what_was_meant(words: str, answer: str) -> None:
    code, out, err = said(*words.split())
    assert (code, out) == (2, "")
    assert answer in err


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("simulate --until -1h", "argument --until: `-1h` is not more than nothing"),
        ("simulate --seed -1", "argument --seed: `-1` is not a number from 0"),
    ],
)
def test_a_value_below_nothing_is_told_by_what_is_wrong_with_it(
    words: str, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(words.split())
    assert answer in capsys.readouterr().err


@pytest.mark.parametrize("words", ["explain pod a", "explain gang a", "recommend"])
def test_without_a_cluster_a_picture_of_one_may_be_asked(
    words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    code, _, err = said(*words.split())
    assert code == 2
    assert "--kubeconfig FILE" in err
    assert "`-f FILE" in err


@pytest.fixture
def overlaid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A base of one policy and an overlay with two patches of it."""
    monkeypatch.chdir(tmp_path)
    overlay = tmp_path / "overlays/prod"
    overlay.mkdir(parents=True)
    (tmp_path / "base").mkdir()
    (tmp_path / "base/pool.yaml").write_text(POLICY % "75%", encoding="utf-8")
    (overlay / "kustomization.yaml").write_text(KUSTOMIZATION, encoding="utf-8")
    (overlay / "pool.yaml").write_text(POLICY % "60%", encoding="utf-8")
    (overlay / "operations.yaml").write_text("- {op: remove, path: /spec/match}\n", encoding="utf-8")
    return tmp_path


def test_patches_of_an_overlay_are_left_alone_and_said_how_to_be_checked(overlaid: Path) -> None:
    code, out, err = said("check", ".")
    assert (code, out) == (0, "1 document, no findings\n")
    assert "overlays/prod/pool.yaml (a patch of\n  overlays/prod/kustomization.yaml)" in err
    assert err.endswith("\n  kubectl kustomize overlays/prod | koordpolicy check -\n")


def test_what_is_both_a_resource_and_a_patch_is_checked(overlaid: Path) -> None:
    file = overlaid / "overlays/prod/kustomization.yaml"
    file.write_text(KUSTOMIZATION.replace("[../../base]", "[pool.yaml]"), encoding="utf-8")
    (overlaid / "overlays/prod/pool.yaml").write_text(POLICY % "60 %%", encoding="utf-8")
    code, out, _ = said("check", "overlays")
    assert code == 1
    assert "overlays/prod/pool.yaml:6:" in out


@pytest.mark.parametrize("folder", ["overlays", "empty"])
def test_where_no_policy_is_nothing_was_checked(overlaid: Path, folder: str) -> None:
    (overlaid / "empty").mkdir()
    (overlaid / "empty/a.yaml").write_text("# nothing yet\n", encoding="utf-8")
    code, out, err = said("check", folder)
    assert (code, out) == (2, "")
    assert f"nothing was found to check: no document below `{folder}` is a policy" in err
