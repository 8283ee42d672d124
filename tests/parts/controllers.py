"""Programs beside an API server: Kubernetes' own controllers, and kwok, which stands for kubelets."""

from pathlib import Path

from tests.parts.apiserver import Access
from tests.parts.processes import Running, free_port
from tests.parts.table import find

CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "disruption-controller",
    "deployment-controller",
    "replicaset-controller",
    "daemonset-controller",
    "statefulset-controller",
    "job-controller",
)
"""What tests need. Those that judge nodes or clear up after them are left out: test nodes have no kubelets."""

FAKE_NODE = {"kwok.x-k8s.io/node": "fake"}
"""The annotation of nodes that kwok looks after; it leaves others alone."""


def controller_manager(access: Access) -> Running:
    """Start kube-controller-manager with `CONTROLLERS`, each with its own service account and rights."""
    manager = Running(
        [
            find("kube-controller-manager").path,
            f"--kubeconfig={access.kubeconfig('kube-controller-manager')}",
            f"--controllers={','.join(CONTROLLERS)}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--secure-port=0",
        ],
        access.folder / "kube-controller-manager.log",
    )
    manager.ready(lambda: _says(manager.log, "Proceeding to collect garbage"), 90)
    return manager


def kwok(access: Access) -> Running:
    """Start kwok: nodes annotated with `FAKE_NODE` become ready, and pods bound to them run."""
    port = free_port()
    program = Running(
        [
            find("kwok").path,
            f"--kubeconfig={access.kubeconfig('admin')}",
            f"--config={Path(__file__).with_name('kwok.yaml')}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=" + ",".join(f"{k}={v}" for k, v in FAKE_NODE.items()),
            "--cidr=10.64.0.0/10",
            "--node-ip=192.0.2.2",
            f"--server-address=127.0.0.1:{port}",
        ],
        access.folder / "kwok.log",
        folder=access.folder,
    )
    program.ready(lambda: _says(program.log, "Starting HTTP server"), 60)
    return program


def _says(log: Path, words: str) -> bool:
    return log.exists() and words in log.read_text("utf-8", "replace")
