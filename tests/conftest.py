"""What all tests share: where things lie, golden files, and how much hypothesis tries."""

import hashlib
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest
from hypothesis import HealthCheck, settings

from koordpolicy.runtime.collector import collect, keep_what_is_there
from koordpolicy.runtime.policies import pack_cache
from tests.parts.apiserver import AUDIT
from tests.parts.fixtures import apiserver, own_apiserver, part

__all__ = ["REPOSITORY", "apiserver", "own_apiserver", "part"]

REPOSITORY = Path(__file__).resolve().parent.parent

# Times vary on shared machines, so no test fails for being slow. On CI the examples are the same in every run;
# elsewhere each run tries new ones.
settings.register_profile(
    "default", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("long", settings.get_profile("default"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))

SWITCH = "KOORDPOLICY_CACHE"
"""The variable that says whether commands keep the compiled pack from one to the next."""

MOST_PACKS = 4
"""Compiled packs that a process keeps at a time."""

WAITING = ("tests/contract/", "tests/differential_scheduling/", "tests/integration/")
"""Folders of tests that wait for real programs."""

LONGEST = (
    "tests/integration/scheduler/test_many_gangs.py",
    "tests/integration/webhooks/test_failures.py",
    "tests/integration/test_tune_command.py",
    "tests/integration/runtime/test_rollout.py",
    "tests/integration/runtime/test_instances.py",
    "tests/integration/runtime/test_readiness.py",
    "tests/integration/agent/test_agent_process.py",
    "tests/integration/scheduler/test_process.py",
    "tests/integration/language_server/test_language_server.py",
    "tests/integration/webhooks/test_native_admission.py",
    "tests/integration/runtime/test_yarn.py",
    "tests/integration/webhooks/test_native_rules.py",
    "tests/integration/runtime/test_manager.py",
    "tests/integration/deploy/test_moving.py",
    "tests/integration/scheduler/test_pending.py",
    "tests/integration/scheduler/test_quotas.py",
    "tests/integration/container_runtime/test_modes.py",
    "tests/integration/test_status_command.py",
    "tests/integration/test_tune_on_dask.py",
    "tests/integration/descheduler/test_process.py",
    "tests/integration/gitops/test_argo.py",
    "tests/integration/gitops/test_flux.py",
    "tests/broken/test_broken.py",
    "tests/unit/language/kinds/test_agreement.py",
    "tests/unit/graph/diff/test_answers.py",
    "tests/unit/runtime/policies/test_pack_cache.py",
    "tests/mutations/test_mutations.py",
    "tests/unit/scheduler/test_hostile_objects.py",
    "tests/unit/scheduler/test_eviction_helps.py",
)
"""Files that take longest (`make test ARGS=--durations=100` tells), each kind from the longest on."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep the compiled pack for a run in several processes, made before any test can change the code it is made with.

    A run in one process, of few tests, compiles it whenever a command does: no test shall take what another one made.
    Python keeps the bytecode of what tests start, as in every installation, whatever the environment says of it.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if SWITCH in os.environ:
        return
    os.environ[SWITCH] = "off"
    if config.getoption("tx", None):
        environment = {**os.environ, SWITCH: "on", "PYTHONPATH": str(REPOSITORY)}
        making = [sys.executable, "-m", "koordpolicy.cli", "check", "examples/02-tune-one-pool"]
        subprocess.run(making, cwd=REPOSITORY, env=environment, check=True, stdout=subprocess.DEVNULL)
        os.environ[SWITCH] = "on"


@pytest.fixture(scope="session", autouse=True)
def pack_unpickled_once() -> Iterator[None]:
    """Commands that tests run in their own process make the same compiled pack of the same bytes once, not each of them anew."""
    known: dict[bytes, object] = {}

    def load(opened: IO[bytes]) -> object:
        data = opened.read()
        key = hashlib.sha256(data).digest()
        if key not in known:
            if len(known) >= MOST_PACKS:
                known.clear()
            known[key] = pickle.loads(data)  # noqa: S301 - pack_cache has looked whose it is
        found = known[key]
        return dict(found) if isinstance(found, dict) else found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack_cache, "pickle", SimpleNamespace(**{**vars(pickle), "load": load}))
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """One process more than cores, since a test of real programs waits half of its time; as many as the variable says."""
    if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS"):
        return None
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a process of several, take files that wait for real programs in turns with files that compute.

    So the cores have something to do all the time, and few servers run at once. A file is one process's (`--dist
    loadfile`): what it sets up, it sets up once. Files that take longest come first, since the others wait for the last.
    """
    if not hasattr(config, "workerinput"):
        return
    names = dict.fromkeys(item.path.relative_to(REPOSITORY).as_posix() for item in items)
    place: dict[str, float] = {}
    for waits in (True, False):
        files = [name for name in names if name.startswith(WAITING) is waits]
        files.sort(key=lambda name: LONGEST.index(name) if name in LONGEST else len(LONGEST))
        place |= {name: number / len(files) for number, name in enumerate(files)}
    items.sort(key=lambda item: place[item.path.relative_to(REPOSITORY).as_posix()])


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector does not walk it again and again."""
    keep_what_is_there()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """At the end of a file, free what refers to itself, and walk no more what is left: graphs that later files ask, too."""
    if nextitem is None or nextitem.path != item.path:
        collect()
        keep_what_is_there()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="rewrite golden files with what the code gives now; review them as a diff",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where servers tell what they are asked for (`tests/roles`), note which file this process has come to."""
    if place := os.environ.get(AUDIT):
        worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
        Path(place).mkdir(parents=True, exist_ok=True)
        with Path(place, f"{worker}.begun").open("a", encoding="utf-8") as log:
            log.write(f"{time.time()} {item.path.relative_to(REPOSITORY).as_posix()}\n")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The directory of the vectors, which lies beside the checkout; skips where it does not."""
    directory = REPOSITORY.parent / "shared" / "vectors"
    if not directory.is_dir():
        pytest.skip("no vectors beside the checkout (../shared/vectors)")
    return directory


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a golden file, or rewrite the file under `--update-goldens`."""

    def compare(file: Path, actual: str) -> None:
        if request.config.getoption("--update-goldens"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(actual.encode())
            return
        assert file.exists(), f"{file} is missing; run pytest with --update-goldens and review it"
        assert actual == file.read_bytes().decode()

    return compare
