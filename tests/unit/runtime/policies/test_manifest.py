"""Objects of the cluster as texts: the same data, without what servers and tools add, with fields by line."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.documents import read_documents
from koordpolicy.runtime.policies.manifest import field_at, manifest
from koordpolicy.source import read_tree
from tests.conftest import REPOSITORY


def read(text: str) -> dict[str, Any]:
    found = Diagnostics()
    documents = read_documents("object.yaml", text, found)
    assert not len(found), list(found)
    (document,) = documents
    return document.data


POLICIES = [
    (file, document.data)
    for file, text in read_tree([REPOSITORY / "policies"]).files.items()
    for document in read_documents(file, text, Diagnostics())
]


@pytest.mark.parametrize(("file", "data"), POLICIES, ids=[Path(file).stem for file, _ in POLICIES])
def test_every_built_in_policy_comes_back_the_same(file: str, data: dict[str, Any]) -> None:
    assert read(manifest(data)) == data


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")) | st.sampled_from("\n:#-'\" "))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_whatever_an_object_says_comes_back_the_same(spec: Any) -> None:
    obj = {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "Library",
        "metadata": {"name": "x"},
        "spec": spec,
    }
    assert read(manifest(obj)) == obj


def test_what_servers_and_tools_add_is_left_out() -> None:
    obj = {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "Library",
        "metadata": {
            "name": "shared",
            "uid": "1",
            "resourceVersion": "7",
            "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"manager": "kubectl"}],
            "labels": {"team": "a", "kustomize.toolkit.fluxcd.io/name": "policies"},
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "argocd.argoproj.io/tracking-id": "x",
                "koordpolicy.io/revision": "abc",
                "owner": "night shift",
            },
        },
        "spec": {"constants": {}},
        "status": {"conditions": []},
    }
    assert read(manifest(obj)) == {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "Library",
        "metadata": {"name": "shared", "labels": {"team": "a"}, "annotations": {"owner": "night shift"}},
        "spec": {"constants": {}},
    }


MANIFEST = """\
apiVersion: koordpolicy.io/v1alpha1
kind: Overcommit
metadata:
  name: batch
spec:
  cpu:
    cel: |-
      node.capacity.cpu -
        spec: 1

      node.usage.total.cpu
  variables:
    - name: a
      expression: "x: y"
    - name: b
      expression: c
  "odd.key: x": 1
  values:
    - 1
    - - 2
      - deep: 3
  last: true
"""


@pytest.mark.parametrize(
    ("fragment", "path"),
    [
        ("name: batch", "metadata.name"),
        ("  cpu:", "spec.cpu"),
        ("    cel:", "spec.cpu.cel"),
        ("        spec: 1", "spec.cpu.cel"),
        ("usage.total", "spec.cpu.cel"),
        ("- name: a", "spec.variables[0].name"),
        ("x: y", "spec.variables[0].expression"),
        ("- name: b", "spec.variables[1].name"),
        ("expression: c", "spec.variables[1].expression"),
        ('"odd', "spec.odd.key: x"),
        ("- 1", "spec.values[0]"),
        ("- - 2", "spec.values[1][0]"),
        ("- deep", "spec.values[1][1].deep"),
        ("last", "spec.last"),
    ],
)
def test_a_line_has_a_field(fragment: str, path: str) -> None:
    lines = MANIFEST.split("\n")
    (line,) = [number for number, line in enumerate(lines, 1) if fragment in line][:1]
    assert field_at(MANIFEST, line) == path


def test_the_example_is_what_an_object_looks_like() -> None:
    assert manifest(read(MANIFEST)) == MANIFEST


@given(VALUES)
def test_any_line_of_any_object_has_a_field(spec: Any) -> None:
    text = manifest({"apiVersion": "v1", "kind": "Library", "metadata": {"name": "x"}, "spec": spec})
    for number in range(1, text.count("\n") + 1):
        path = field_at(text, number)
        assert re.match(r"apiVersion$|kind$|metadata|spec", path)
