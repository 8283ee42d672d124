"""By which policies questions are answered where schedulers follow something that the cluster does not hold."""

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from koordpolicy.cli.pod_policies import ClusterPolicies, LiveRevision, policies_of
from koordpolicy.model.policy_revision import PolicyRevision
from koordpolicy.source.revision import digest_of

BUNDLE = (
    "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyBundle\n"
    "metadata: {name: own}\nspec: {extends: [koordinator]}\n"
)
FILES = {"koordpolicy.yaml": BUNDLE}
ASKED = argparse.Namespace(policies=[], policies_from_cluster=False, compiler=None, at=None)


def heard(origin: str, digest: str = digest_of(FILES), commit: str = "") -> ClusterPolicies:
    revision = PolicyRevision("own", f"sha256:{digest}", digest, origin=origin)
    return ClusterPolicies(LiveRevision(replace(revision, commit=commit), ("s1",)))


@pytest.fixture
def followed(tmp_path: Path) -> str:
    (tmp_path / "koordpolicy.yaml").write_text(BUNDLE)
    return str(tmp_path)


def test_the_directory_that_is_followed_answers_where_it_is_here_with_the_same_content(followed: str) -> None:
    found = policies_of(ASKED, heard(followed))
    assert (found.origin, found.live, found.note) == (
        followed,
        True,
        f"The same as scheduler s1 decides by: own-{digest_of(FILES)[:12]}.",
    )


def test_one_of_the_same_name_with_other_content_does_not(followed: str) -> None:
    found = policies_of(ASKED, heard(followed, "f" * 64))
    assert (found.origin, found.live) == ("the built-in pack alone", False)
    assert f"name a copy of {followed}, as it is where scheduler s1 runs, by `-p PATH`" in found.note


@pytest.mark.parametrize("origin", ["https://git.example.com/fleet.git@main", "/nowhere/policies"])
def test_a_commit_is_what_to_check_out(origin: str) -> None:
    found = policies_of(ASKED, heard(origin, commit="c" * 40))
    assert found.live is False
    assert "name a checkout of commit cccccccccccc, by `-p PATH`" in found.note
    assert origin in found.note


def test_a_path_of_elsewhere_is_not_taken_for_one_below_the_working_directory(
    followed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(followed).parent)
    found = policies_of(ASKED, heard(Path(followed).name))
    assert found.origin == "the built-in pack alone"
    assert "name a copy of what they follow, by `-p PATH`" in found.note
