"""Lists of objects that are longer than a document may be."""

import pytest

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.documents import read_manifests
from koordpolicy.language.documents.read import MAX_CHARACTERS

LONG = "x" * (MAX_CHARACTERS // 10)
COUNT = 12


def _item(at: int, kind: str, indent: str) -> str:
    lines = (
        *(("apiVersion: v1", f"kind: {kind}") if kind else ()),
        "metadata:",
        f"  name: o{at}",
        "  annotations:",
        f"    long: {LONG}",
        "    block: |",
        "      - no item",
        "      kind: List",
        "",
        "      # no comment",
        "spec:",
        "  list:",
        "  - a: 1",
        "    b: 2",
        "  - a: 3",
    )
    return "".join(f"{indent}{'- ' if not index else '  '}{line}\n" for index, line in enumerate(lines))


def _list(kind: str, item: str, indent: str) -> str:
    items = "".join(_item(at, item, indent) for at in range(COUNT))
    return f"apiVersion: v1\nitems:\n{items}kind: {kind}\nmetadata:\n  resourceVersion: ''\n"


def _names(text: str) -> tuple[list[tuple[object, object]], list[str]]:
    found = Diagnostics()
    data = [one.data for one in read_manifests("f.yaml", text, found)]
    for one in data:
        assert one["spec"] == {"list": [{"a": 1, "b": 2}, {"a": 3}]}
        assert one["metadata"]["annotations"]["block"] == "- no item\nkind: List\n\n# no comment\n"  # type: ignore[index,call-overload]
    return [(one.get("kind"), one["metadata"]["name"]) for one in data], [  # type: ignore[index,call-overload]
        f"{one.code}:{one.span.start.line}: {one.message}" for one in found
    ]


@pytest.mark.parametrize("indent", ["", "  "])
@pytest.mark.parametrize(("kind", "item"), [("List", "Pod"), ("PodList", ""), ("NodeList", "Pod")])
def test_each_item_is_read_by_itself(kind: str, item: str, indent: str) -> None:
    text = _list(kind, item, indent)
    assert len(text) > MAX_CHARACTERS
    expected = [("Pod", f"o{at}") for at in range(COUNT)]
    assert _names(text) == (expected, [])
    assert _names("\ufeff" + text) == (expected, [])
    other = _item(0, "Pod", "")[2:].replace("\n  ", "\n")
    assert _names(f"{text}---\n{other}") == ([*expected, ("Pod", "o0")], [])


def test_a_fault_is_where_it_stands_and_spoils_its_item_alone() -> None:
    text = _list("List", "Pod", "").replace("name: o7", "name: @o7")
    names, found = _names(text)
    assert [name for _, name in names] == [f"o{at}" for at in range(COUNT) if at != 7]
    line = text[: text.index("name: @o7")].count("\n") + 1
    assert [one.split(":")[:2] for one in found] == [["KP002", str(line)]]


def test_what_is_no_list_or_has_too_long_an_item_is_refused() -> None:
    long = "x" * MAX_CHARACTERS
    assert _names(f"a: {long}\n")[1] == [
        "KP004:1: the document has 1,000,004 characters, more than 1,000,000"
    ]
    names, found = _names(_list("List", "Pod", "").replace("name: o3\n", f"name: {long}\n"))
    assert len(names) == COUNT - 1
    assert [one.partition(": the document")[0] for one in found] == ["KP004:51"]
