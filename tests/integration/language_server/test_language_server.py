"""`koordpolicy lsp` as an editor sees it: a real client over standard streams, its questions from `cases.yaml`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from ruamel.yaml import YAML

from tests.integration.language_server.editor import MARK, Editor, apply, cut

DATA: dict[str, Any] = YAML(typ="safe").load(Path(__file__).with_name("cases.yaml"))


def cases(group: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", DATA[group], ids=lambda case: case["name"])


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    root = tmp_path_factory.mktemp("bundle").resolve()
    for name, text in DATA["bundle"].items():
        (root / name).write_text(text)
    editor = Editor(root)
    yield editor
    assert editor.stop() == 0


@pytest.fixture(autouse=True)
def as_it_was(editor: Editor) -> Iterator[None]:
    """Each case begins with the bundle as it is on the disk."""
    yield
    editor.messages.clear()
    for name in list(editor._texts):
        editor.close(name)


def at(editor: Editor, case: dict[str, Any]) -> dict[str, Any]:
    """Open the file of the bundle, with the cursor where the case says."""
    text = DATA["bundle"][case["file"]]
    plain = case["at"].replace(MARK, "")
    assert text.count(plain) == 1, plain
    return editor.marked(case["file"], text.replace(plain, case["at"]))


def places(editor: Editor, found: Any) -> list[list[str | None]]:
    shown: list[list[str | None]] = []
    for one in found or []:
        path = Path(one.uri.removeprefix("file://"))
        own = path.is_relative_to(editor.root)
        name = path.relative_to(editor.root).as_posix() if own else "/".join(path.parts[-2:])
        text = editor._texts.get(name) or path.read_text()
        shown.append([name, cut(text, one.range, editor.encoding)])
    return sorted(shown, key=str)


@cases("completion")
def test_completion(editor: Editor, case: dict[str, Any]) -> None:
    editor.write("koordpolicy.yaml", DATA["bundle"]["koordpolicy.yaml"])
    where = editor.marked(case["file"], case["text"])
    found = editor.run(editor.client.text_document_completion_async(types.CompletionParams(**where)))
    items = {one.label: one for one in found.items} if isinstance(found, types.CompletionList) else {}
    assert set(case.get("has", ())) <= set(items)
    assert not set(case.get("not", ())) & set(items)
    if "all" in case:
        assert set(items) == set(case["all"])
    for label, detail in case.get("details", {}).items():
        assert items[label].detail == detail
    for item in items.values():
        assert isinstance(item.text_edit, types.TextEdit)
        assert item.text_edit.range.end == where["position"], "what is typed is replaced"


@cases("hover")
def test_hover(editor: Editor, case: dict[str, Any]) -> None:
    found = editor.run(editor.client.text_document_hover_async(types.HoverParams(**at(editor, case))))
    assert found is not None and isinstance(found.contents, types.MarkupContent) and found.range is not None
    assert [part for part in case["has"] if part not in found.contents.value] == [], found.contents.value
    assert editor.cut(editor.uri(case["file"]), found.range) in case["at"].replace(MARK, "")


@cases("definition")
def test_definition(editor: Editor, case: dict[str, Any]) -> None:
    found = editor.run(
        editor.client.text_document_definition_async(types.DefinitionParams(**at(editor, case)))
    )
    shown = places(editor, found)
    wanted = [one for one in case["to"] if one[0] is not None]
    assert [
        one for one in wanted if not any(a == one[0] and (b or "").find(one[1]) >= 0 for a, b in shown)
    ] == []
    assert len(wanted) < len(case["to"]) or len(shown) == len(wanted)


@cases("references")
def test_references(editor: Editor, case: dict[str, Any]) -> None:
    params = types.ReferenceParams(types.ReferenceContext(include_declaration=True), **at(editor, case))
    assert places(editor, editor.run(editor.client.text_document_references_async(params))) == case["to"]


@cases("rename")
def test_rename(editor: Editor, case: dict[str, Any]) -> None:
    where = at(editor, case)
    found = editor.run(
        editor.client.text_document_rename_async(types.RenameParams(new_name=case["new"], **where))
    )
    if "refused" in case:
        assert found is None
        assert case["refused"] in editor.messages[0]
        return
    assert found is not None
    after = editor.edited(found)
    assert {
        name: text.count(case["new"]) - DATA["bundle"][name].count(case["new"])
        for name, text in after.items()
    } == case["files"]
    found_after = [one for name, text in after.items() for one in editor.write(name, text)]
    assert [one.message for one in found_after if one.severity == types.DiagnosticSeverity.Error] == []


@pytest.mark.parametrize("broken", [True, False])
def test_before_a_new_name_is_typed_it_says_why_there_can_be_none(editor: Editor, *, broken: bool) -> None:
    editor.write("koordpolicy.yaml", DATA["bundle"]["koordpolicy.yaml"])
    if broken:
        editor.write("pool.yaml", DATA["bundle"]["pool.yaml"] + "  parameters: {")
    where = at(editor, {"file": "half.yaml", "at": "- variables.ke▮pt"})
    found = editor.run(editor.client.text_document_prepare_rename_async(types.PrepareRenameParams(**where)))
    assert (found is None) == broken
    assert [message for message in editor.messages if "can be read: mend " in message] == editor.messages
    assert bool(editor.messages) == broken


@cases("findings")
def test_findings(editor: Editor, case: dict[str, Any]) -> None:
    editor.write("koordpolicy.yaml", DATA["bundle"]["koordpolicy.yaml"])
    found = editor.write(case["file"], case["text"])
    uri = editor.uri(case["file"])
    assert [[one.code, editor.cut(uri, one.range)] for one in found] == case["found"]
    for one in found:
        assert one.code_description is not None and one.code_description.href.startswith("file:///")
        page, _, heading = one.code_description.href.partition("#")
        titles = Path(page.removeprefix("file://")).read_text()
        assert str(one.code) in titles and heading.startswith(str(one.code).lower())


@cases("actions")
def test_actions(editor: Editor, case: dict[str, Any]) -> None:
    editor.write("koordpolicy.yaml", DATA["bundle"]["koordpolicy.yaml"])
    where = editor.marked(case["file"], case["text"])
    place = types.Range(where["position"], where["position"])
    params = types.CodeActionParams(where["text_document"], place, types.CodeActionContext([]))
    found = editor.run(editor.client.text_document_code_action_async(params)) or []
    actions = {
        types.CodeActionKind(one.kind).value: one
        for one in found
        if isinstance(one, types.CodeAction) and one.kind is not None
    }
    assert set(actions) == set(case["kinds"])
    for kind, wanted in case["kinds"].items():
        edit = actions[kind].edit
        assert edit is not None
        assert wanted in editor.edited(edit)[case["file"]]


def test_formatting(editor: Editor) -> None:
    text = DATA["bundle"]["pool.yaml"]
    editor.write("pool.yaml", text.replace("  match:\n    nodes", "  match:\n          nodes"))
    params = types.DocumentFormattingParams(
        types.TextDocumentIdentifier(editor.uri("pool.yaml")), types.FormattingOptions(2, True)
    )
    edits = editor.run(editor.client.text_document_formatting_async(params)) or []
    assert apply(editor._texts["pool.yaml"], list(edits), "utf-16") == text
    editor.write("pool.yaml", "a: [\n")
    assert editor.run(editor.client.text_document_formatting_async(params)) in ((), [])


def test_symbols(editor: Editor) -> None:
    editor.write("half.yaml", DATA["bundle"]["half.yaml"])
    params = types.DocumentSymbolParams(types.TextDocumentIdentifier(editor.uri("half.yaml")))
    found = editor.run(editor.client.text_document_document_symbol_async(params)) or []
    (document,) = found
    assert isinstance(document, types.DocumentSymbol)
    assert (document.name, document.detail) == ("half", "Overcommit")
    assert [one.name for one in document.children or []] == [
        "resource",
        "match",
        "parameters",
        "variables",
        "cpu",
    ]
    variables = (document.children or [])[3]
    assert [one.name for one in variables.children or []] == ["kept"]


def test_tokens(editor: Editor) -> None:
    text = "kind: CPUSuppress\nspec:\n  target: {cel: \"'😀' == node.name && size(x) > 1 ? a : b\"}\n"
    editor.write("half.yaml", text)
    params = types.SemanticTokensParams(types.TextDocumentIdentifier(editor.uri("half.yaml")))
    found = editor.run(editor.client.text_document_semantic_tokens_full_async(params))
    provider = editor.server.capabilities.semantic_tokens_provider
    assert found is not None and provider is not None
    legend = provider.legend.token_types
    line = column = 0
    shown = []
    for number in range(0, len(found.data), 5):
        down, along, length, kind, _ = found.data[number : number + 5]
        line, column = line + down, along if down else column + along
        place = types.Range(types.Position(line, column), types.Position(line, column + length))
        shown.append((editor.cut(editor.uri("half.yaml"), place), legend[kind]))
    assert shown[:5] == [
        ("'😀'", "string"),
        ("==", "operator"),
        ("node", "variable"),
        ("name", "property"),
        ("&&", "operator"),
    ]
    assert ("size", "function") in shown and ("1", "number") in shown


def test_open_files_stand_for_those_on_the_disk(editor: Editor) -> None:
    editor.write("half.test.yaml", DATA["bundle"]["half.test.yaml"])
    found = editor.write("half.yaml", DATA["bundle"]["half.yaml"].replace("value: 10%", "value: 30%"))
    assert not found
    failing = editor.write("half.test.yaml", DATA["bundle"]["half.test.yaml"])
    assert [one.code for one in failing] == ["KP501"]


NASTY = [
    "",
    "\ufeff",
    "a: &a [*a]",
    "{{ helm }}",
    "- " * 500,
    "[" * 2000,
    "kind: CPUSuppress\nspec: 5\n",
    "kind: [CPUSuppress]\nspec: {match: 3, variables: {a: 1}}\n",
    "kind: PolicyTest\nspec: {cases: [1, {expect: 3}, {expect: {a: 1}, given: 7}]}\n",
    "kind: Library\nspec: {functions: [1, {name: 2}], constants: 3}\n",
    "kind: CPUSuppress\nspec: {target: {cel: 'a.b.c[?(('}}\n",
    "kind: CPUSuppress\nspec: {target: {cel: '" + "(" * 3000 + "'}}\n",
    "kind: CPUSuppress\nspec:\n  target:\n    cel: |\n\n\n",
    'metadata: {name: "\\ud800"}\nkind: x\n',
    "a: !tag b\n<<: *x\n---\n---\n...\n%YAML 9\n",
    "x" * 2_000_000,
    "\r\n\r\r\n\u2028a: b\u0085c: d\x0c",
]


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_no_text_ends_the_server(editor: Editor, text: str) -> None:
    editor.write("koordpolicy.yaml", DATA["bundle"]["koordpolicy.yaml"])
    editor.write("nasty.yaml", text)
    name = types.TextDocumentIdentifier(editor.uri("nasty.yaml"))
    client = editor.client
    for line, column in ((0, 0), (0, 3), (1, 30), (2, 4), (9, 9), (10**6, 10**6)):
        where: dict[str, Any] = {"text_document": name, "position": types.Position(line, column)}
        editor.run(client.text_document_completion_async(types.CompletionParams(**where)))
        editor.run(client.text_document_hover_async(types.HoverParams(**where)))
        editor.run(client.text_document_definition_async(types.DefinitionParams(**where)))
        editor.run(client.text_document_prepare_rename_async(types.PrepareRenameParams(**where)))
    editor.run(client.text_document_document_symbol_async(types.DocumentSymbolParams(name)))
    editor.run(client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(name)))
    editor.run(
        client.text_document_formatting_async(
            types.DocumentFormattingParams(name, types.FormattingOptions(2, True))
        )
    )


def test_files_that_are_no_policies_are_left_alone(editor: Editor, tmp_path: Path) -> None:
    other = Editor(tmp_path)
    try:
        item = types.TextDocumentItem(other.uri("values.yaml"), "yaml", 1, "a: 1\n")
        other._loop.call_soon_threadsafe(
            other.client.text_document_did_open, types.DidOpenTextDocumentParams(item)
        )
        where: dict[str, Any] = {
            "text_document": types.TextDocumentIdentifier(item.uri),
            "position": types.Position(0, 0),
        }
        assert other.run(other.client.text_document_hover_async(types.HoverParams(**where))) is None
        assert not other.found
        found = other.write("one.yaml", "apiVersion: koordpolicy.io/v1alpha1\nkind: CPUSuppres\n")
        assert [one.code for one in found] == ["KP103"]
    finally:
        assert other.stop() == 0


@pytest.mark.parametrize("encoding", ["utf-8", "utf-32"])
def test_other_encodings(encoding: str, tmp_path: Path) -> None:
    editor = Editor(tmp_path.resolve(), encoding)
    try:
        assert editor.server.capabilities.position_encoding == encoding
        case = DATA["findings"][1]
        found = editor.write("new.yaml", case["text"])
        assert [[one.code, editor.cut(editor.uri("new.yaml"), one.range)] for one in found] == case["found"]
        where = editor.marked("new.yaml", case["text"].replace("node.nam", f"node.{MARK}nam"))
        hover = editor.run(editor.client.text_document_completion_async(types.CompletionParams(**where)))
        assert isinstance(hover, types.CompletionList) and "labels" in {one.label for one in hover.items}
    finally:
        assert editor.stop() == 0
