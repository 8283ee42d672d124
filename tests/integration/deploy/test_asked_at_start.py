"""What processes ask an API server for when they begin, by the roles that are shipped: what the table of needs says of this file, and nothing that is refused."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.integration.agent.node import until
from tests.parts.apiserver import AUDIT, Access
from tests.parts.deployed import WITHOUT, DeployedServer, apply, manifests
from tests.parts.fixtures import need
from tests.parts.processes import Running, free_port
from tests.roles.asked import asked_for, refused
from tests.roles.permissions import granted, read_needs

COMMANDS = (
    ("manager", "--policies-from-cluster", "--follow-slo-config=koordinator-system", "--native-admission"),
    ("scheduler", "--policies-from-cluster"),
    ("descheduler", "--policies-from-cluster"),
    ("yarn-operator", "--policies-from-cluster", "--yarn-url=http://127.0.0.1:9"),
    *(
        ("agent", "--node=node-1", "--dry-run", "--pods-from=apiserver", policies)
        for policies in ("--policies-from-cluster", "--policies-from-manager", "--policies-from-node-slo")
    ),
)
POLICIES = tuple(
    {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "nobody"},
        "spec": {"enabled": enabled},
    }
    for kind, enabled in (
        ("MetricCollection", False),
        # What is asked for only where policies read it.
        ("YARNNode", {"cel": "node.zones.size() == 0 && node.devices.size() == 0"}),
    )
)
THIS = str(Path(__file__).relative_to(REPOSITORY))


@pytest.fixture
def audited(
    pytestconfig: pytest.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Access, Path]]:
    """A server that tells who asked for what, and the folder where it does."""
    need(pytestconfig, "etcd", "kube-apiserver")
    folder = Path(os.environ.get(AUDIT, "") or tmp_path / "audit")
    monkeypatch.setenv(AUDIT, str(folder))
    with DeployedServer(tmp_path / "apiserver") as server:
        yield server.access, folder


@pytest.mark.soak
def test_processes_that_begin_are_refused_nothing(audited: tuple[Access, Path], tmp_path: Path) -> None:
    access, folder = audited
    koordinator = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "koordinator-system"}}
    apply(access, [koordinator, *manifests(REPOSITORY / "deploy" / "follow-slo-config")])
    apply(access, manifests(REPOSITORY / "deploy" / "manager"))
    access.request("POST", "/api/v1/nodes", {"metadata": {"name": "node-1"}})
    apply(access, POLICIES)
    permissions = set(granted())
    wanted = {one for one, files in read_needs().items() if THIS in files} & permissions
    assert wanted
    port = free_port()
    serving = (f"--webhook=127.0.0.1:{port}", f"--webhook-url=https://localhost:{port}", "--webhook-drain=0")
    with ExitStack() as running:
        for number, (name, *flags) in enumerate(_begun()):
            command = [sys.executable, "-m", "koordpolicy.cli", name, "--http=127.0.0.1:0", *flags]
            command += [f"--kubeconfig={access.kubeconfig(f'koordpolicy-{name}')}"]
            command += serving if name == "manager" else ()
            running.enter_context(
                Running(
                    command,
                    tmp_path / f"{number}-{name}.log",
                    environment={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                )
            )
        until(lambda: refused(folder) or wanted <= asked_for(folder, permissions).keys())
    assert refused(folder) == set()


def _begun() -> Sequence[Sequence[str]]:
    """All of them; where a run is to do without a permission, whoever would use it."""
    role = os.environ.get(WITHOUT, "").partition(" ")[0]
    own = [one for one in COMMANDS if role.endswith(f"/koordpolicy-{one[0]}")]
    return own or (COMMANDS[:1] if role else COMMANDS)
