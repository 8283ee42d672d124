"""What tests ask for: a program by name, the API server of the run, or one of their own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.parts.apiserver import ApiServer
from tests.parts.cache import Tell, tell
from tests.parts.deployed import DeployedServer
from tests.parts.finding import Missing
from tests.parts.shared import SharedServer, shared_server
from tests.parts.table import find


def uncaptured(config: pytest.Config) -> Tell:
    """Progress that is seen at once, though pytest captures output."""
    manager = config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        if manager is None:
            tell(line)
            return
        with manager.global_and_fixture_disabled():
            tell(line)

    return say


def need(config: pytest.Config, *names: str) -> list[Path]:
    """The programs of these parts, made if need be; skips by name where one cannot be had."""
    try:
        return [find(name, uncaptured(config)).path for name in names]
    except Missing as missing:
        pytest.skip(str(missing))


def run_folder(config: pytest.Config, factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this run of the suite share."""
    base = factory.getbasetemp()
    return base.parent if hasattr(config, "workerinput") else base


@pytest.fixture(scope="session")
def part(pytestconfig: pytest.Config) -> Callable[[str], Path]:
    """The path of a real program by its name in `tests.parts.PARTS`; skips by name where it cannot be had."""
    return lambda name: need(pytestconfig, name)[0]


@pytest.fixture(scope="session")
def apiserver(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedServer]:
    """The API server of the run: other tests use it at the same time, so names are a test's own.

    `apiserver.want("kube-controller-manager")` and `want("kwok")` start those beside it.
    """
    need(pytestconfig, "etcd", "kube-apiserver")
    with shared_server(run_folder(pytestconfig, tmp_path_factory) / "apiserver") as server:
        yield server


@pytest.fixture
def own_apiserver(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Callable[..., ApiServer]]:
    """Starts API servers that the test may kill, restart or make forget; takes the arguments of `ApiServer`, and `deployed` for a
    `DeployedServer`.
    """
    need(pytestconfig, "etcd", "kube-apiserver")
    with ExitStack() as running:

        def start(*, deployed: bool = False, **options: object) -> ApiServer:
            folder = tmp_path / f"apiserver-{len(list(tmp_path.glob('apiserver-*')))}"
            kind = DeployedServer if deployed else ApiServer
            return running.enter_context(kind(folder, **options))  # type: ignore[arg-type]

        yield start
