"""`koordpolicy doctor` where no cluster answers."""

import io
import socket
from pathlib import Path

import pytest

from koordpolicy.cli import doctor
from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.kube.api import ClientLimits


def examined(folder: Path, port: int) -> tuple[int, str]:
    config = folder / "kubeconfig"
    config.write_text(
        f"{{apiVersion: v1, kind: Config, clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:{port}'}}}}],"
        " users: [{name: a, user: {}}], contexts: [{name: a, context: {cluster: a, user: a}}], current-context: a}"
    )
    err = io.StringIO()
    return main(["doctor", "--kubeconfig", str(config)], Terminal(io.StringIO(), err)), err.getvalue()


def test_a_server_that_is_down(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        code, said = examined(tmp_path, taken.getsockname()[1])
    assert code == 2
    assert "cannot be reached" in said


def test_a_server_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LIMITS", ClientLimits(request=0.3, attempts=doctor.LIMITS.attempts))
    with socket.create_server(("127.0.0.1", 0)) as mute:
        code, said = examined(tmp_path, mute.getsockname()[1])
    assert code == 2
    assert "did not answer get of /version in time" in said
