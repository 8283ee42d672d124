"""A small HTTP server on loopback whose answers a test gives."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[str, Mapping[str, str]], tuple[int, bytes]]
"""Status and body for a path with these headers."""


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """The URL of a server that answers each GET so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer(self.path, self.headers)  # type: ignore[arg-type]  # a message is read like a mapping
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):  # whoever asked was stopped
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Requests are nobody's news."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
