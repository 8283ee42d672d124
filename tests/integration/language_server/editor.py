"""An editor: pygls' own client, speaking to `koordpolicy lsp` over its standard streams."""

import asyncio
import sys
import threading
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.uris import from_fs_path

T = TypeVar("T")
TIMEOUT = 60
MARK = "▮"
"""Where the cursor stands in a text of a case."""


class Editor:
    """A client in a thread of its own. Every wait has a limit of `TIMEOUT` seconds."""

    def __init__(self, root: Path, encoding: str = "utf-16") -> None:
        self.root = root
        self.encoding = encoding
        self.messages: list[str] = []
        self.found: dict[str, types.PublishDiagnosticsParams] = {}
        self._count = 0
        self._texts: dict[str, str] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.run(self._start())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT)

    async def _start(self) -> None:
        self._news = asyncio.Condition()
        self.client = LanguageClient("editor", "1")

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator]
        async def _(params: types.PublishDiagnosticsParams) -> None:
            async with self._news:
                self.found[params.uri] = params
                self._news.notify_all()

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)  # type: ignore[untyped-decorator]
        def _(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)

        await self.client.start_io(sys.executable, "-m", "koordpolicy.cli", "lsp")
        general = types.GeneralClientCapabilities(
            position_encodings=[types.PositionEncodingKind(self.encoding)]
        )
        self.server = await self.client.initialize_async(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(general=general), root_uri=from_fs_path(str(self.root))
            )
        )
        self.client.initialized(types.InitializedParams())

    def stop(self) -> int | None:
        """Say good-bye; gives the server's exit code."""

        async def stop() -> int | None:
            await self.client.shutdown_async(None)
            self.client.exit(None)
            process = self.client._server
            assert process is not None
            code = await asyncio.wait_for(process.wait(), TIMEOUT)
            await self.client.stop()  # type: ignore[no-untyped-call]
            return code

        code = self.run(stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT)
        self._loop.close()
        return code

    def uri(self, file: str) -> str:
        uri = from_fs_path(str(self.root / file))
        return str(uri)

    def write(self, file: str, text: str) -> list[types.Diagnostic]:
        """Open a file with a text, or change the text of an open one; gives the findings of just that text."""
        uri = self.uri(file)
        self._count += 1
        version, opened = self._count, file in self._texts
        self._texts[file] = text
        if opened:
            whole = [types.TextDocumentContentChangeWholeDocument(text)]
            name = types.VersionedTextDocumentIdentifier(version=version, uri=uri)
            send = self.client.text_document_did_change
            self._loop.call_soon_threadsafe(send, types.DidChangeTextDocumentParams(name, whole))
        else:
            item = types.TextDocumentItem(uri, "yaml", version, text)
            self._loop.call_soon_threadsafe(
                self.client.text_document_did_open, types.DidOpenTextDocumentParams(item)
            )

        async def told() -> list[types.Diagnostic]:
            async with self._news:
                await self._news.wait_for(lambda: uri in self.found and self.found[uri].version == version)
            return list(self.found[uri].diagnostics)

        return self.run(asyncio.wait_for(told(), TIMEOUT)) if self.is_policy(file, text) else []

    @staticmethod
    def is_policy(file: str, text: str) -> bool:
        return file.endswith((".yaml", ".yml"))

    def close(self, file: str) -> None:
        uri = self.uri(file)
        del self._texts[file]
        name = types.TextDocumentIdentifier(uri)
        self._loop.call_soon_threadsafe(
            self.client.text_document_did_close, types.DidCloseTextDocumentParams(name)
        )

    def marked(self, file: str, text: str) -> dict[str, Any]:
        """Write a text without its mark; gives file and place of the cursor as requests take them."""
        before, mark, after = text.partition(MARK)
        assert mark, "the text has no cursor"
        self.write(file, before + after)
        line = before.rpartition("\n")[2]
        units = {"utf-8": line.encode(), "utf-16": line.encode("utf-16-le")[::2], "utf-32": line}[
            self.encoding
        ]
        return {
            "text_document": types.TextDocumentIdentifier(self.uri(file)),
            "position": types.Position(before.count("\n"), len(units)),
        }

    def cut(self, uri: str, place: types.Range) -> str:
        """The characters that a range of a file means, by the client's own reckoning."""
        file = next(name for name in self._texts if self.uri(name) == uri)
        return cut(self._texts[file], place, self.encoding)

    def edited(self, edit: types.WorkspaceEdit) -> dict[str, str]:
        """The texts of the files that an edit changes, after it."""
        texts = {}
        for uri, edits in (edit.changes or {}).items():
            path = Path(self.root, Path(uri.removeprefix("file://")).relative_to(self.root))
            name = path.relative_to(self.root).as_posix()
            text = self._texts.get(name) or path.read_text()
            texts[name] = apply(text, edits, self.encoding)
        return texts


def offset(text: str, position: types.Position, encoding: str) -> int:
    """The index of a place, counted as the protocol says."""
    lines = text.split("\n")
    line = lines[position.line]
    raw = line.encode(
        "utf-16-le" if encoding == "utf-16" else "utf-32-le" if encoding == "utf-32" else "utf-8",
        "surrogatepass",
    )
    width = {"utf-16": 2, "utf-32": 4, "utf-8": 1}[encoding]
    name = {"utf-16": "utf-16-le", "utf-32": "utf-32-le", "utf-8": "utf-8"}[encoding]
    before = raw[: position.character * width].decode(name)
    return sum(len(one) + 1 for one in lines[: position.line]) + len(before)


def cut(text: str, place: types.Range, encoding: str) -> str:
    return text[offset(text, place.start, encoding) : offset(text, place.end, encoding)]


def apply(text: str, edits: Iterable[Any], encoding: str) -> str:
    """The text after edits that do not overlap."""
    for edit in sorted(
        edits, key=lambda one: (one.range.start.line, one.range.start.character), reverse=True
    ):
        start, end = offset(text, edit.range.start, encoding), offset(text, edit.range.end, encoding)
        text = text[:start] + edit.new_text + text[end:]
    return text
