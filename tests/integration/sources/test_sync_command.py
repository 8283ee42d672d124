"""`koordpolicy sync` as a user runs it."""

import contextlib
import gzip
import hmac
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from koordpolicy.cli.main import main
from tests.integration.sources.following import PATIENCE
from tests.integration.sources.repositories import (
    ENVIRONMENT,
    Upstream,
    git,
    serving,
    signed_by,
    ssh_key,
)

COMMAND = [sys.executable, "-m", "koordpolicy.cli", "sync"]


def once(upstream: Upstream | str, target: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    repository = upstream if isinstance(upstream, str) else str(upstream.bare)
    command = [*COMMAND, "--repo", repository, "--dir", str(target), "--once", *flags]
    return subprocess.run(
        command, env=ENVIRONMENT, check=False, capture_output=True, text=True, timeout=PATIENCE * 2
    )


class Running:
    """The command while it runs, with what it logs."""

    def __init__(self, *flags: str, files: int = 0) -> None:
        limit = ["prlimit", f"--nofile={files}:{files}"] if files else []
        self.process = subprocess.Popen(
            [*limit, *COMMAND, *flags, "--log-format", "json"],
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log: list[dict[str, str]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(json.loads(line))

    def said(self, pattern: str) -> re.Match[str]:
        """The first message that fits; waits for it."""

        def found() -> re.Match[str] | None:
            matches = (re.search(pattern, one["message"]) for one in list(self.log))
            return next((match for match in matches if match is not None), None)

        match = wait(found)
        assert match is not None
        return match

    @property
    def address(self) -> str:
        port = self.said(r"serving on .*:(\d+)")[1]
        return f"http://127.0.0.1:{port}"

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


@contextlib.contextmanager
def running(*flags: str, files: int = 0) -> Iterator[Running]:
    """`files` is how many it may open, 0 for as many as this process."""
    command = Running(*flags, files=files)
    try:
        yield command
    finally:
        command.end(signal.SIGKILL)


T = TypeVar("T")


def wait(condition: Callable[[], T]) -> T:
    end = time.monotonic() + PATIENCE
    while not (reached := condition()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
    return reached


def ask(
    address: str, path: str, data: bytes | None = None, headers: Mapping[str, str | bytes] | None = None
) -> tuple[int, str]:
    """Status and body of an answer; a POST with `data`."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE)
    try:
        connection.request("GET" if data is None else "POST", path, data, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class TestOnce:
    def test_synced(self, upstream: Upstream, target: Path) -> None:
        commit = upstream.commit({"one.yaml": "1"})
        done = once(upstream, target)
        assert done.returncode == 0, done.stderr
        assert str((target / "policies").readlink()) == f".worktrees/{commit}"
        assert f"HEAD of {upstream.bare} is {commit}" in done.stderr
        assert once(upstream, target).returncode == 0

    def test_cannot(self, upstream: Upstream, target: Path) -> None:
        upstream.commit({"one.yaml": "1"})
        done = once(upstream, target, "--ref", "nowhere")
        assert done.returncode == 2
        assert f"`{upstream.bare}` has no `nowhere`" in done.stderr
        assert "Traceback" not in done.stderr

    def test_a_refused_signature(self, upstream: Upstream, target: Path, tmp_path: Path) -> None:
        key = ssh_key(tmp_path)
        allowed = tmp_path / "allowed"
        allowed.write_text(f"author@example.org {key.with_suffix('.pub').read_text()}")
        unsigned = upstream.commit({"one.yaml": "1"})
        done = once(upstream, target, "--verify-ssh", str(allowed))
        assert done.returncode == 1
        assert f"commit {unsigned} is not signed" in done.stderr
        upstream.commit({"one.yaml": "1"}, *signed_by(key))
        assert once(upstream, target, "--verify-ssh", str(allowed)).returncode == 0

    @pytest.mark.parametrize(
        ("flags", "said"),
        [
            (["--ref", "a b"], "`a b` is no name of a branch, tag or commit"),
            (["--period", "soon"], "`soon` is no duration"),
            (["--period", "0"], "more than nothing"),
            (["--depth", "-1"], "from 0"),
            (["--webhook"], "the webhook needs --http"),
            (["--http", "x"], "[HOST]:PORT"),
            (["--link", ".git"], "is no name for the link"),
        ],
    )
    def test_flags_that_cannot_be(
        self, tmp_path: Path, target: Path, flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        command = ["sync", "--repo", str(tmp_path / "x.git"), "--dir", str(target), "--once", *flags]
        try:
            code: object = main(command)
        except SystemExit as error:  # the parser's own way to say no
            code = error.code
        assert code == 2
        assert said in capsys.readouterr().err
        assert not target.exists()

    def test_a_password_is_never_shown(self, target: Path) -> None:
        done = once("http://me:s3cret@127.0.0.1:1/x.git", target)
        assert done.returncode == 2
        assert "http://127.0.0.1:1/x.git" in done.stderr
        assert "s3cret" not in done.stderr

    def test_tries_again_as_often_as_is_wished(self, upstream: Upstream, target: Path) -> None:
        port = 0
        with serving(upstream.bare.parent) as server:
            port = server.port
        commit = upstream.commit({"one.yaml": "1"})
        url = f"http://127.0.0.1:{port}/policies.git"
        flags = ["--repo", url, "--dir", str(target), "--once", "--max-failures", "-1", "--period", "100ms"]
        with running(*flags) as command:
            command.said("cannot be reached")
            with serving(upstream.bare.parent, port):
                assert command.process.wait(PATIENCE) == 0
        assert str((target / "policies").readlink()) == f".worktrees/{commit}"


class TestService:
    def test_follows_tells_and_stops(self, upstream: Upstream, target: Path) -> None:
        flags = [
            "--repo",
            str(upstream.bare),
            "--dir",
            str(target),
            "--period",
            "100ms",
            "--http",
            "127.0.0.1:0",
        ]
        with running(*flags, "--ref", "main", "--link", "live") as command:
            address = command.address
            assert ask(address, "/healthz")[0] == 200
            assert ask(address, "/readyz") == (503, "sync: nothing is published yet\n")
            first = upstream.commit({"one.yaml": "1"})
            link = target / "live"
            wait(lambda: link.is_symlink() and link.resolve().name == first)
            wait(lambda: ask(address, "/readyz")[0] == 200)
            second = upstream.commit({"one.yaml": "2"})
            wait(lambda: link.resolve().name == second)
            git(upstream.bare, "update-ref", "-d", "refs/heads/main")
            command.said("has no `main` .*; " + second)
            metrics = wait(
                lambda: found if "koordpolicy_sync_trouble{" in (found := ask(address, "/metrics")[1]) else ""
            )
            assert 'koordpolicy_sync_trouble{reason="RefNotFound"} 1.0' in metrics
            assert f'koordpolicy_sync_revision_info{{commit="{second}"}} 1.0' in metrics
            assert 'koordpolicy_sync_total{outcome="success"} 2.0' in metrics
            assert "koordpolicy_sync_last_success_timestamp_seconds" in metrics
            assert 'koordpolicy_sync_duration_seconds_count{outcome="success"}' in metrics
            assert ask(address, "/readyz")[0] == 200, "what is published stays good"
            status = json.loads(ask(address, "/statusz?format=json")[1])["sync"]
            assert (status["commit"], status["trouble"]["reason"]) == (second, "RefNotFound")
            upstream.push()
            command.said("can be synced again")
            assert command.end() == 0
            assert [one["message"] for one in command.log][-1] == "stopped"
            assert sum("has no `main`" in one["message"] for one in command.log) < 3, "told once each time"

    def test_a_webhook_triggers_at_once(self, upstream: Upstream, target: Path, tmp_path: Path) -> None:
        first = upstream.commit({"one.yaml": "1"})
        secret = tmp_path / "secret"
        secret.write_text("open sesame\n")
        flags = [
            "--repo",
            str(upstream.bare),
            "--dir",
            str(target),
            "--period",
            "1h",
            "--http",
            "127.0.0.1:0",
        ]
        with running(*flags, "--ref", "main", "--webhook-secret-file", str(secret)) as command:
            address = command.address
            command.said(f"is {first}")
            second = upstream.commit({"one.yaml": "2"})
            body = b'{"ref": "refs/heads/main"}'
            assert ask(address, "/webhook", body)[0] == 403
            signature = "sha256=" + hmac.new(b"open sesame", body, "sha256").hexdigest()
            other = b'{"ref": "refs/heads/other"}'
            assert ask(address, "/webhook", other, {"X-Gitlab-Token": "open sesame"})[0] == 200
            assert (target / "policies").resolve().name == first
            assert ask(address, "/webhook", body, {"X-Hub-Signature-256": signature})[0] == 202
            wait(lambda: (target / "policies").resolve().name == second)
            third = upstream.commit({"one.yaml": "3"})
            assert ask(address, "/webhook", body, {"X-Gitlab-Token": "open sesame"})[0] == 202
            wait(lambda: (target / "policies").resolve().name == third)
            secret.unlink()
            assert ask(address, "/webhook", body, {"X-Gitlab-Token": ""})[0] == 503, (
                "no secret is not any secret"
            )
            assert command.end(signal.SIGINT) == 0

    @pytest.mark.parametrize(
        ("headers", "body", "status"),
        [
            ({"X-Hub-Signature-256": b"sha256=\xff\xfe"}, b"{}", 403),
            ({"X-Hub-Signature-256": "sha256=ä".encode()}, b"{}", 403),
            ({"X-Gitlab-Token": b"\xff"}, b"{}", 403),
            ({"X-Gitlab-Token": b"open sesame", "Content-Encoding": b"gzip"}, b"no gzip", 400),
            (
                {"X-Gitlab-Token": b"open sesame", "Content-Encoding": b"gzip"},
                gzip.compress(bytes(9**8)),
                413,
            ),
            ({"X-Gitlab-Token": b"open sesame"}, b"[" * 100_000, 202),
            ({"X-Gitlab-Token": b"open sesame"}, b"[[]," * 100_000, 202),
            ({}, b"", 403),
        ],
    )
    def test_a_webhook_takes_nothing_amiss(
        self,
        upstream: Upstream,
        target: Path,
        tmp_path: Path,
        headers: Mapping[str, bytes],
        body: bytes,
        status: int,
    ) -> None:
        secret = tmp_path / "secret"
        secret.write_text("open sesame")
        flags = ["--repo", str(upstream.bare), "--dir", str(target), "--http", "127.0.0.1:0"]
        with running(*flags, "--webhook-secret-file", str(secret)) as command:
            assert ask(command.address, "/webhook", body, headers)[0] == status
            assert ask(command.address, "/healthz")[0] == 200
            assert "koordpolicy_http_failures_total{" not in ask(command.address, "/metrics")[1]
            assert command.end() == 0
            assert [one for one in command.log if "exception" in one or "failed" in one["message"]] == []

    def test_a_flood_of_half_requests_shuts_nobody_out(self, upstream: Upstream, target: Path) -> None:
        first = upstream.commit({"one.yaml": "1"})
        flags = ["--repo", str(upstream.bare), "--dir", str(target), "--period", "100ms"]
        with running(*flags, "--http", "127.0.0.1:0", files=1024) as command, contextlib.ExitStack() as stack:
            address = command.address
            host, _, port = address.removeprefix("http://").partition(":")
            command.said(f"is {first}")
            for _ in range(1100):
                half = stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
                half.sendall(b"GET /healthz HTTP/1.1\r\nHost:")
            assert ask(address, "/healthz")[0] == 200
            # Git opens files of its own.
            second = upstream.commit({"one.yaml": "2"})
            command.said(f"is {second}")
            open_files = len(list(Path(f"/proc/{command.process.pid}/fd").iterdir()))
            assert open_files < 1024 // 2

    @pytest.mark.parametrize(
        ("flags", "said"),
        [
            (["--http", ":0"], "--http-anonymous-auth if everyone may read that"),
            (["--http", ":0", "--webhook", "--http-anonymous-auth"], "give --webhook-secret-file, "),
            (["--http", ":0", "--bearer-token-file", "/nowhere"], "tokens in clear text"),
            (
                ["--http", "127.0.0.1:0", "--tls-cert-file", "/nowhere/crt", "--tls-private-key-file", "key"],
                "`/nowhere/crt` cannot be read: No such file or directory",
            ),
        ],
    )
    def test_does_not_start_open_by_mistake(
        self, upstream: Upstream, target: Path, flags: list[str], said: str
    ) -> None:
        with running("--repo", str(upstream.bare), "--dir", str(target), *flags) as command:
            assert command.process.wait(PATIENCE) == 2
            command.said(re.escape(said))

    def test_stops_while_the_repository_hangs(self, target: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/x.git"
            with running("--repo", url, "--dir", str(target)) as command:
                connection, _ = silent.accept()
                with connection:
                    assert command.end() == 0
        assert (
            url
            not in subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout
        )

    def test_gives_up_after_so_many_failures(self, target: Path) -> None:
        flags = ["--repo", "/nowhere/x.git", "--dir", str(target), "--period", "10ms", "--max-failures", "1"]
        with running(*flags) as command:
            assert command.process.wait(PATIENCE) == 2

    def test_killed_in_the_middle_again_and_again(self, upstream: Upstream, target: Path) -> None:
        """Whatever is left by a kill, the link leads to a whole tree, and the next run goes on."""
        names = [f"{number}.yaml" for number in range(200)]
        link = target / "policies"
        for number in range(4):
            commit = upstream.commit(dict.fromkeys(names, str(number)))
            flags = ["--repo", str(upstream.bare), "--dir", str(target), "--period", "50ms"]
            with running(*flags) as command:
                if number % 2:
                    # Somewhere between the fetch and the swap.
                    wait((target / ".worktrees" / commit).exists)
                else:
                    command.said(f"is {commit}")
                os.kill(command.process.pid, signal.SIGKILL)
            if link.is_symlink():
                texts = {(link / name).read_text() for name in names}
                assert len(texts) == 1
