"""The fast reader gives what the YAML library gives, or declines."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy import resources
from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.documents.build import build
from koordpolicy.language.documents.faults import SyntaxFault
from koordpolicy.language.documents.quick import quick
from koordpolicy.language.documents.split import split
from koordpolicy.language.documents.text import Lines, decode
from koordpolicy.language.documents.tree import Place

POLICY = """\
# yaml-language-server: $schema=../../schemas/CPUSuppress.json
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata:
  name: default
  annotations: {koordpolicy.io/description: Best-effort work yields CPU first.}
spec:
  match:                              # optional
    nodes: {matchLabels: {pool: colocated}}
    condition: node.capacity.cpu >= cpu("4")
  variables:
    - name: protected
      expression: |
        node.usage.prod.cpu
          + node.usage.system.cpu

    - {name: 'other', expression: "a ? b : c"}
  mechanism: cpuset
  target: {cel: node.capacity.cpu * percent(65) - variables.protected}
  list: [1, -2.5, true, "x", {a: ~}]
  shape: {0%: 0, 100%: 10}
  steps:
    80%: 1
  folded: >-
    one
    two

      three
"""

PIECES = st.sampled_from(
    [
        "a",
        "é",
        " ",
        "  ",
        "\n",
        "\n  ",
        "\n    ",
        "\n\n",
        "'",
        '"',
        "\\n",
        "|",
        ">",
        "-",
        "1",
        "5%",
        "5%: ",
        ".5",
        "#",
        " #c",
        ": ",
        ":",
        "- ",
        "\t",
        "&x ",
        "*x",
        "!",
        "[",
        "]",
        "{",
        "}",
        ", ",
        ",",
        "? ",
        "true",
        "null",
        "~",
        "key: ",
        "F/s.l[a].b: ",
        "a(b)%: ",
        "<<: ",
        "\nkey: ",
        "\nk[a]: ",
        "\n  key: ",
        "\n  - ",
        "\n- ",
        "{a: b}",
        "[1, 2]",
        '"q"',
        "'q'",
        "|\n    ",
        ">-\n  ",
        "|+\n   ",
        "%",
        "=",
        "x(y)",
        "a.b/c: ",
        ".inf",
        "0x1f",
        "1e3",
        "- - ",
        "{}",
        "[]",
        "{a: {b: [c, 'd']}, e: 1}",
    ]
)
HEADS = st.sampled_from(
    [
        "k: ",
        "k:\n  j: ",
        "- ",
        "k: |\n",
        "k: >-\n",
        "- k: x\n",
        "k: {a: ",
        "k: [",
        "a: b\n",
        "x:\n- y\n",
        "a:\n  - b: c\n    d: e\n",
        "a: |\n  x\n\n   y\n",
        "a:\n  b: >\n    p\n    q\n\n  c: d\n",
        "---\nk: ",
    ]
)


def shown(place: Place | None, text: str) -> Any:
    """Everything about a tree that anybody can see."""
    if place is None:
        return None
    keys = {name: (key.start, key.end, key.style) for name, key in (place.keys or {}).items()}
    children = place.children
    below: Any = None
    if isinstance(children, dict):
        below = {name: shown(child, text) for name, child in children.items()}
    elif children is not None:
        below = [shown(child, text) for child in children]
    block = decode(text, place.start, place.text_end or 0, place.style) if place.style in ("|", ">") else None
    return place.start, place.end, place.style, repr(place.data), keys, below, block


def by_library(text: str) -> Any:
    found = Diagnostics()
    try:
        place = build(Lines("f", text), 0, text, found)
    except SyntaxFault as fault:
        return fault.problem
    return [one.message for one in found] or shown(place, text)


def test_it_reads_what_policies_look_like() -> None:
    place = quick(POLICY, 0)
    assert place is not None
    assert shown(place, POLICY) == by_library(POLICY)


@given(HEADS, st.lists(PIECES, max_size=10).map("".join), st.sampled_from(["", "\n", "\nz: y\n", "}", "]\n"]))
def test_it_reads_as_the_library_does_or_not_at_all(head: str, body: str, tail: str) -> None:
    text = head + body + tail
    place = quick(text, 0)
    if place is not None:
        assert shown(place, text) == by_library(text)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), PIECES, st.sampled_from(["k{}: ", "- ", "- k{}: ", ""])), max_size=12
    )
)
def test_it_reads_layouts_as_the_library_does(lines: list[tuple[int, str, str]]) -> None:
    text = "".join(
        "  " * indent + head.format(number) + rest.strip("\n") + "\n"
        for number, (indent, rest, head) in enumerate(lines)
    )
    place = quick(text, 0)
    if place is not None:
        assert shown(place, text) == by_library(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: &x 1\n",
        "a: *x\n",
        "a: !t 1\n",
        "a:\tb\n",
        "a: 1\r\n",
        "a: 1\na: 2\n",
        "1: a\n",
        "true: a\n",
        "a: .inf\n",
        "- a\n",
        "just text\n",
        "a: b\n  c\n",
        'a: "x\\n"\n',
        "a: 'it''s'\n",
        "a: [1,\n2]\n",
        "? a\n: b\n",
        "",
        "{a: 1}\n",
        "a: |2\n   x\n",
        "a: b: c\n",
        "-\n  a\n",
        "a:\n  b: 1\n c: 2\n",
    ],
)
def test_it_declines_what_it_does_not_know(text: str) -> None:
    assert quick(text, 0) is None


def test_offsets_count_from_the_file() -> None:
    place = quick("a:\n- b: |\n    c\n", 100)
    assert place is not None
    item = place.child("a")
    assert item is not None and item.start == 103
    entry = item.child(0)
    assert entry is not None and entry.keys is not None
    assert entry.keys["b"].start == 105


def test_it_reads_all_of_the_built_in_packs() -> None:
    texts = [
        text for path in sorted(resources.policies().rglob("*.yaml")) for _, text in split(path.read_text())
    ]
    assert texts
    assert not [text for text in texts if quick(text, 0) is None], (
        "every command would import the YAML library"
    )
