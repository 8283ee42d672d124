"""The server: requests and notifications of the Language Server Protocol, each answered by a module beside this one."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from koordpolicy import __version__, resources
from koordpolicy.diagnostics import Diagnostic, Position, Severity, Span
from koordpolicy.diagnostics.catalogue import CATALOGUE
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.documents import Lines
from koordpolicy.language.manual.markdown import anchor
from koordpolicy.language_server.bundles import Bundle, Bundles, RootFinder, Snapshot, path_of
from koordpolicy.language_server.changes import (
    CannotRenameError,
    fixes_at,
    formatted,
    rename,
    renameable,
    safe_fixes,
)
from koordpolicy.language_server.completion import Offer, complete
from koordpolicy.language_server.cursor import cursor_at, documents_of
from koordpolicy.language_server.hover import hover
from koordpolicy.language_server.index import Mention, mention_at
from koordpolicy.language_server.positions import Coordinates
from koordpolicy.language_server.symbols import Symbol, symbols
from koordpolicy.language_server.tokens import TYPES, semantic_tokens

DEBOUNCE: Final = 0.15
"""Seconds without a change before a bundle is compiled."""

MOST_FINDINGS: Final = 1_000
"""Findings of one file that are published, errors first."""

_LOG = logging.getLogger(__name__)
_SEVERITIES: Final = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}
_RANKS: Final = {severity: rank for rank, severity in enumerate(Severity)}

T = TypeVar("T")
Clock = Callable[[], Timestamp]


class PolicyServer(LanguageServer):
    """The state of a connection. All but compiling happens in the event loop."""

    def __init__(self, clock: Clock, root_of: RootFinder) -> None:
        super().__init__("koordpolicy", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.clock = clock
        self.bundles = Bundles(root_of)
        self.coordinates = Coordinates()
        self._versions: dict[str, int] = {}
        self._compiling = ThreadPoolExecutor(1, thread_name_prefix="compile")
        self._due: dict[str, asyncio.Task[None]] = {}
        self._published: dict[str, set[str]] = {}

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Into the log alone: no window opens for what a user cannot help."""
        _LOG.error("%s: %s", getattr(source, "__name__", source), error)

    def opened(self, path: str, text: str, version: int) -> None:
        """A file is open, or its text another one."""
        self.bundles.buffers[path] = text
        self._versions[path] = version
        self.changed(path)

    def closed(self, path: str) -> None:
        """What stands on the disk counts again."""
        bundle = self.bundles.of(path)
        self.bundles.buffers.pop(path, None)
        self._versions.pop(path, None)
        if bundle is not None:
            self.schedule(bundle)

    async def in_worker(self, work: Callable[[], T]) -> T:
        """The result of work that takes its time, in the one thread that compiles."""
        return await asyncio.get_running_loop().run_in_executor(self._compiling, work)

    # --- texts ---------------------------------------------------------------------------------------

    def text(self, uri: str) -> tuple[str, Lines] | None:
        """Path and current text of an open file."""
        path = to_fs_path(uri)
        text = self.bundles.buffers.get(path) if path is not None else None
        return (path, Lines(path, text)) if path is not None and text is not None else None

    def at(self, uri: str, position: types.Position) -> tuple[str, Lines, int, Snapshot] | None:
        """Path, text and offset of a place in an open file, and what is known of its bundle."""
        found = self.text(uri)
        bundle = self.bundles.of(found[0]) if found is not None else None
        if found is None or bundle is None:
            return None
        path, lines = found
        return path, lines, self.coordinates.offset(lines, position), bundle.snapshot

    def location(self, span: Span, snapshot: Snapshot) -> types.Location | None:
        """Where a span is for the client."""
        path, lines = path_of(span.file), self.lines(span.file, snapshot)
        uri = from_fs_path(path) if path is not None else None
        if uri is None or lines is None:
            return None
        return types.Location(uri, self.coordinates.range(lines, span))

    def lines(self, file: str, snapshot: Snapshot) -> Lines | None:
        """The text that places in a snapshot refer to."""
        return snapshot.lines(file)

    # --- compiling -----------------------------------------------------------------------------------

    def changed(self, path: str) -> None:
        """A file is another one: its bundle is compiled when nothing more comes for a while."""
        bundle = self.bundles.of(path)
        if bundle is not None:
            self.schedule(bundle)

    def schedule(self, bundle: Bundle) -> None:
        """Compile a bundle soon."""
        waiting = self._due.get(bundle.root)
        if waiting is not None:
            waiting.cancel()
        self._due[bundle.root] = asyncio.get_running_loop().create_task(self._compile(bundle))

    async def _compile(self, bundle: Bundle) -> None:
        await asyncio.sleep(DEBOUNCE)
        await asyncio.shield(self.compile(bundle))

    async def compile(self, bundle: Bundle) -> None:
        """Compile now, in a thread of its own, and tell the client what was found."""
        versions = dict(self._versions)
        try:
            snapshot = await self.in_worker(partial(bundle.compile, dict(self.bundles.buffers), self.clock()))
        except Exception:  # noqa: BLE001  # a bundle that breaks the compiler must not end the server
            _LOG.exception("compiling %s failed", bundle.root)
            return
        bundle.snapshot = snapshot
        self.publish(bundle, versions)

    def publish(self, bundle: Bundle, versions: Mapping[str, int]) -> None:
        """Send the findings of each file, and none to files that have none any more."""
        snapshot = bundle.snapshot
        files = {file for file in snapshot.found if path_of(file) is not None}
        opened = {path for path in versions if path in snapshot.texts}
        for file in sorted(files | opened | self._published.get(bundle.root, set())):
            lines = self.lines(file, snapshot) or Lines(file, "")
            ordered = sorted(snapshot.found.get(file, ()), key=lambda one: (_RANKS[one.severity], one.order))
            shown = [self.diagnostic(one, lines, snapshot) for one in ordered[:MOST_FINDINGS]]
            uri = from_fs_path(path_of(file) or file)
            if uri is not None:
                self.text_document_publish_diagnostics(
                    types.PublishDiagnosticsParams(uri, shown, versions.get(file))
                )
        self._published[bundle.root] = files

    def diagnostic(self, found: Diagnostic, lines: Lines, snapshot: Snapshot) -> types.Diagnostic:
        """A finding for the client: the same words, code and places as in `check`."""
        related = []
        for note in found.notes:
            place = self.location(note.span, snapshot) if note.span is not None else None
            if place is not None:
                related.append(types.DiagnosticRelatedInformation(place, note.message))
        message = f"{found.message}\n{found.help}" if found.help else found.message
        link = manual_page(found.code)
        return types.Diagnostic(
            self.coordinates.range(lines, found.span),
            message,
            severity=_SEVERITIES[found.severity],
            code=found.code,
            code_description=types.CodeDescription(link) if link else None,
            source="koordpolicy",
            related_information=related or None,
        )


def manual_page(code: str) -> str | None:
    """The address of a code's page in the manual that is installed."""
    page = CATALOGUE.get(code)
    try:
        file = resources.schemas() / "manual" / "diagnostics.md"
    except resources.MissingResourceError:
        return None
    uri = from_fs_path(str(file))
    return f"{uri}#{anchor(f'{page.code}: {page.title}')}" if page is not None and uri is not None else None


def make_server(clock: Clock, root_of: RootFinder) -> PolicyServer:
    """A server that waits to be started; `clock` says at which moment exceptions are judged, `root_of` finds bundles."""
    server = PolicyServer(clock, root_of)
    feature = server.feature

    @feature(types.INITIALIZE)
    def _initialize(ls: PolicyServer, params: types.InitializeParams) -> None:
        encoding = ls.workspace.position_encoding
        ls.coordinates = Coordinates(str(getattr(encoding, "value", encoding)))

    @feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def _opened(ls: PolicyServer, params: types.DidOpenTextDocumentParams) -> None:
        path = to_fs_path(params.text_document.uri)
        if path is not None:
            ls.opened(path, params.text_document.text, params.text_document.version)

    @feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def _changed(ls: PolicyServer, params: types.DidChangeTextDocumentParams) -> None:
        path = to_fs_path(params.text_document.uri)
        if path is not None and params.content_changes:
            ls.opened(path, params.content_changes[-1].text, params.text_document.version)

    @feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def _closed(ls: PolicyServer, params: types.DidCloseTextDocumentParams) -> None:
        path = to_fs_path(params.text_document.uri)
        if path is not None:
            ls.closed(path)

    @feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def _saved(ls: PolicyServer, params: types.DidSaveTextDocumentParams) -> None:
        if path := to_fs_path(params.text_document.uri):
            ls.changed(path)

    @feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def _watched(ls: PolicyServer, params: types.DidChangeWatchedFilesParams) -> None:
        for bundle in ls.bundles.all():
            ls.schedule(bundle)

    _register_reading(server)
    _register_changing(server)
    return server


def _register_reading(server: PolicyServer) -> None:
    """What tells of a text without changing it."""
    feature = server.feature

    @feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", " ", "'", '"', "{"])
    )
    def _completion(ls: PolicyServer, params: types.CompletionParams) -> types.CompletionList | None:
        found = ls.at(params.text_document.uri, params.position)
        if found is None:
            return None
        path, lines, offset, snapshot = found
        offers = complete(path, lines.text, offset, snapshot.compilation, snapshot.graph)
        if offers is None:
            return None
        place = ls.coordinates.between(lines, offers.start, offers.end)
        return types.CompletionList(False, [_item(one, place) for one in offers.offers])

    @feature(types.TEXT_DOCUMENT_HOVER)
    def _hover(ls: PolicyServer, params: types.HoverParams) -> types.Hover | None:
        found = ls.at(params.text_document.uri, params.position)
        cursor = cursor_at(documents_of(found[0], found[1].text), found[2]) if found is not None else None
        if found is None or cursor is None:
            return None
        _, lines, offset, snapshot = found
        said = hover(cursor, offset, snapshot.compilation, snapshot.values)
        if said is None:
            return None
        text, start, end = said
        return types.Hover(
            types.MarkupContent(types.MarkupKind.Markdown, text), ls.coordinates.between(lines, start, end)
        )

    @feature(types.TEXT_DOCUMENT_DEFINITION)
    def _definition(ls: PolicyServer, params: types.DefinitionParams) -> list[types.Location]:
        found = _mention(ls, params.text_document.uri, params.position)
        if found is None:
            return []
        mention, snapshot = found
        spans = [one.span for one in snapshot.mentions if one.definition and one.name == mention.name]
        graph = snapshot.graph
        if mention.name.space == "decision" and graph is not None:
            rules = (
                rule
                for key, one in graph.decisions.items()
                if str(key) == mention.name.name
                for rule in one.rules
            )
            spans = [rule.span for rule in rules]
        return _locations(ls, spans, snapshot)

    @feature(types.TEXT_DOCUMENT_REFERENCES)
    def _references(ls: PolicyServer, params: types.ReferenceParams) -> list[types.Location]:
        found = _mention(ls, params.text_document.uri, params.position)
        if found is None:
            return []
        mention, snapshot = found
        declared = params.context.include_declaration
        same = (one for one in snapshot.mentions if one.name == mention.name)
        return _locations(ls, [one.span for one in same if declared or not one.definition], snapshot)

    @feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def _symbols(ls: PolicyServer, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        found = ls.text(params.text_document.uri)
        if found is None:
            return []
        path, lines = found
        return [
            _symbol(one, lines, ls.coordinates, top=True) for one in symbols(documents_of(path, lines.text))
        ]

    @feature(
        types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL,
        types.SemanticTokensLegend(token_types=list(TYPES), token_modifiers=[]),
    )
    def _tokens(ls: PolicyServer, params: types.SemanticTokensParams) -> types.SemanticTokens:
        found = ls.text(params.text_document.uri)
        if found is None:
            return types.SemanticTokens([])
        path, lines = found
        return types.SemanticTokens(semantic_tokens(documents_of(path, lines.text), ls.coordinates))


def _register_changing(server: PolicyServer) -> None:
    """What gives edits."""
    feature = server.feature

    @feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def _prepare(
        ls: PolicyServer, params: types.PrepareRenameParams
    ) -> types.PrepareRenamePlaceholder | None:
        found = _mention(ls, params.text_document.uri, params.position)
        if found is None:
            return None
        mention, snapshot = found
        try:
            renameable(mention, snapshot)
        except CannotRenameError as error:
            ls.window_show_message(types.ShowMessageParams(types.MessageType.Warning, str(error)))
            return None
        place = ls.location(mention.span, snapshot)
        return types.PrepareRenamePlaceholder(place.range, mention.name.name) if place is not None else None

    @feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def _rename(ls: PolicyServer, params: types.RenameParams) -> types.WorkspaceEdit | None:
        path = to_fs_path(params.text_document.uri)
        bundle = ls.bundles.of(path) if path is not None else None
        if bundle is None:
            return None
        await ls.compile(bundle)  # names must be those of the texts as they are now
        found = _mention(ls, params.text_document.uri, params.position)
        if found is None:
            return None
        mention, snapshot = found
        try:
            edits = await ls.in_worker(
                partial(rename, mention, params.new_name, bundle, snapshot, ls.clock())
            )
        except CannotRenameError as error:
            ls.window_show_message(types.ShowMessageParams(types.MessageType.Warning, str(error)))
            return None
        changes: dict[str, list[types.TextEdit]] = {}
        for file, own in edits.items():
            lines, uri = ls.lines(file, snapshot), from_fs_path(file)
            if lines is not None and uri is not None:
                changes[uri] = [types.TextEdit(ls.coordinates.range(lines, span), new) for span, new in own]
        return types.WorkspaceEdit(changes=changes)

    @feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(
            code_action_kinds=[types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll]
        ),
    )
    def _actions(ls: PolicyServer, params: types.CodeActionParams) -> list[types.CodeAction]:
        found = ls.at(params.text_document.uri, params.range.start)
        if found is None:
            return []
        path, lines, offset, snapshot = found
        if snapshot.texts.get(path) != lines.text:
            return []  # the findings are of another text
        end = lines.position(ls.coordinates.offset(lines, params.range.end))
        return list(_fixing(ls, params, path, lines, (lines.position(offset), end), snapshot))

    @feature(types.TEXT_DOCUMENT_FORMATTING)
    def _formatting(ls: PolicyServer, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        found = ls.text(params.text_document.uri)
        if found is None:
            return []
        path, lines = found
        text = formatted(path, lines.text)
        if text is None or text == lines.text:
            return []
        return [types.TextEdit(ls.coordinates.whole(lines), text)]


def _fixing(
    ls: PolicyServer,
    params: types.CodeActionParams,
    path: str,
    lines: Lines,
    stretch: tuple[Position, Position],
    snapshot: Snapshot,
) -> Any:
    wanted = params.context.only

    def edit(fixes: list[Any]) -> types.WorkspaceEdit:
        edits = [types.TextEdit(ls.coordinates.range(lines, fix.span), fix.replacement) for fix in fixes]
        return types.WorkspaceEdit(changes={params.text_document.uri: edits})

    if wanted is None or types.CodeActionKind.QuickFix in wanted:
        for fix in fixes_at(snapshot, path, *stretch):
            yield types.CodeAction(
                fix.description, types.CodeActionKind.QuickFix, edit=edit([fix]), is_preferred=fix.safe
            )
    if wanted is None or types.CodeActionKind.SourceFixAll in wanted or types.CodeActionKind.Source in wanted:
        fixes = safe_fixes(snapshot, lines)
        if fixes:
            yield types.CodeAction(
                "mend what needs no guessing", types.CodeActionKind.SourceFixAll, edit=edit(fixes)
            )


def _mention(ls: PolicyServer, uri: str, position: types.Position) -> tuple[Mention, Snapshot] | None:
    """The name at a place, as of when the bundle was last compiled."""
    found = ls.at(uri, position)
    if found is None:
        return None
    path, _, _, snapshot = found
    lines = snapshot.lines(path)
    if lines is None:
        return None
    place = lines.position(ls.coordinates.offset(lines, position))
    mention = mention_at(snapshot.mentions, path, place.line, place.column)
    return (mention, snapshot) if mention is not None else None


def _locations(ls: PolicyServer, spans: list[Span], snapshot: Snapshot) -> list[types.Location]:
    placed = (ls.location(span, snapshot) for span in sorted(set(spans)))
    return [place for place in placed if place is not None]


def _item(offer: Offer, place: types.Range) -> types.CompletionItem:
    page = types.MarkupContent(types.MarkupKind.Markdown, offer.page) if offer.page else None
    return types.CompletionItem(
        offer.name,
        kind=offer.sort,
        detail=offer.detail or None,
        documentation=page,
        filter_text=offer.name,
        text_edit=types.TextEdit(place, offer.inserted),
    )


def _symbol(one: Symbol, lines: Lines, coordinates: Coordinates, *, top: bool) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        one.name or "?",
        types.SymbolKind.Class if top else types.SymbolKind.Field,
        coordinates.between(lines, *one.whole),
        coordinates.between(lines, *one.name_place),
        detail=one.detail or None,
        children=[_symbol(inner, lines, coordinates, top=False) for inner in one.children],
    )
