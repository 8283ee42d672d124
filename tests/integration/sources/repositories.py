"""Repositories to sync from: bare ones with work trees that push to them, by path or over HTTP."""

import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.integration.sources.following import fill

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Author",
    "GIT_AUTHOR_EMAIL": "author@example.org",
    "GIT_COMMITTER_NAME": "Author",
    "GIT_COMMITTER_EMAIL": "author@example.org",
}


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=ENVIRONMENT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
    return done.stdout.strip()


class Upstream:
    """A bare repository, and somebody who works on it."""

    def __init__(self, directory: Path, name: str = "policies.git", object_format: str = "sha1") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.bare = directory / name
        self.work = directory / "work"
        form = f"--object-format={object_format}"
        git(directory, "init", "--quiet", "--bare", "--initial-branch=main", form, str(self.bare))
        git(directory, "init", "--quiet", "--initial-branch=main", form, str(self.work))
        git(self.work, "remote", "add", "origin", str(self.bare))

    def commit(self, files: Mapping[str, str], *options: str) -> str:
        """Commit files and push."""
        fill(self.work, files)
        git(self.work, "add", "--all")
        git(self.work, *options, "commit", "--quiet", "--allow-empty", "-m", "change")
        return self.push()

    def push(self) -> str:
        git(self.work, "push", "--quiet", "--force", "origin", "HEAD:main")
        return git(self.work, "rev-parse", "HEAD")


class _Backend(BaseHTTPRequestHandler):
    """Hands requests to `git http-backend`, as a web server would by CGI."""

    server: "GitServer"

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        self.server.requests += 1
        if self.server.broken:
            self.send_error(503)
            return
        if self.server.password and self.headers.get("Authorization") != self.server.password:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="policies"')
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        length = int(self.headers.get("Content-Length") or 0)
        body = (
            self._chunks() if self.headers.get("Transfer-Encoding") == "chunked" else self.rfile.read(length)
        )
        environment = {
            **ENVIRONMENT,
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "",
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=environment, check=False, capture_output=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
        status = next((value for name, value in fields if name == "Status"), "200 OK")
        self.send_response(int(status.split()[0]))
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, format: str, *args: object) -> None:
        pass


class GitServer(ThreadingHTTPServer):
    """Git's own HTTP backend for all repositories below a directory. `password` is what must stand in Authorization."""

    daemon_threads = True

    def __init__(self, root: Path, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Backend)
        self.root = root
        self.password = ""
        self.broken = False
        self.requests = 0

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def url(self, name: str = "policies.git", login: str = "") -> str:
        return f"http://{login}127.0.0.1:{self.port}/{name}"


@contextmanager
def serving(root: Path, port: int = 0) -> Iterator[GitServer]:
    server = GitServer(root, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def commands_that_run() -> str:
    """The arguments of all processes."""
    told = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            told.append(process.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return "\n".join(told)


def ssh_key(directory: Path, name: str = "key") -> Path:
    key = directory / name
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return key


def signed_by(key: Path) -> tuple[str, ...]:
    """Options of Git that sign what is committed with an SSH key."""
    return ("-c", "gpg.format=ssh", "-c", f"user.signingkey={key}.pub", "-c", "commit.gpgsign=true")
