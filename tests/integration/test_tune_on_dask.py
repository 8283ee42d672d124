"""`koordpolicy tune --dask`: trials on a real scheduler with two workers, which have no file of ours; they die, and nothing is lost."""

import importlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from koordpolicy import resources
from koordpolicy.cli.command import CANNOT_RUN, OK, CannotRunError
from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.cli.tuning import same_program
from koordpolicy.cli.tuning.dask_cluster import DaskCluster
from koordpolicy.cli.tuning.evaluation import Given
from tests.conftest import REPOSITORY

AIM = ("--maximise", "report.batch.coreHours", "--subject-to", "report.services.violationShare < 0.05")
DAY = ("--generate", "2:20", "--batch", "40%", "--until", "2h", "--interval", "20m")
FEW = ("--seeds", "1", "--confirm-seeds", "1", "--trials", "3", "--accept-unsure")
NOTHING = Given(None, None, None)


class Cluster:
    """A scheduler and its workers, as processes of this machine."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._folder, self._settings = folder, settings
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        file = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show", "--no-jupyter",
            "--scheduler-file", str(file),
        )  # fmt: skip
        until(lambda: file.exists() and file.stat().st_size > 0, "the scheduler is up")
        self.address: str = json.loads(file.read_text(encoding="utf-8"))["address"]

    def work(self, name: str, path: Path = REPOSITORY) -> None:
        """Start a worker that finds the program at a path, in a directory that holds nothing."""
        empty = self._folder / name
        empty.mkdir()
        self.workers[name] = self._start(
            "worker", self.address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--name", name, "--death-timeout", "60", cwd=empty, path=path,
        )  # fmt: skip

    def _start(
        self, what: str, *words: str, cwd: Path | None = None, path: Path = REPOSITORY
    ) -> subprocess.Popen[bytes]:
        with (self._folder / f"{what}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{what}", *words],
                cwd=cwd or self._folder,
                env={**os.environ, "PYTHONPATH": str(path), **self._settings},
                stdout=log,
                stderr=log,
            )

    def one_at_work(self) -> str:
        """The name of a worker that has something to do, waited for."""
        client: Any = importlib.import_module("distributed").Client(
            self.address, timeout=20, set_as_default=False
        )
        found: list[str] = []

        def look() -> bool:
            # A worker may have work before the client has heard of it.
            workers = client.scheduler_info(n_workers=-1)["workers"]
            busy = (address for address, tasks in client.processing().items() if tasks)
            found.extend(str(workers[address]["name"]) for address in busy if address in workers)
            return bool(found)

        try:
            until(look, "a worker is at work")
            return found[0]
        finally:
            client.close(timeout=5)

    def end(self) -> None:
        for process in (*self.workers.values(), self.scheduler):
            process.kill()
            process.wait(20)


def until(holds: Callable[[], bool], what: str, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    made: list[Cluster] = []

    def begin(*workers: str, **settings: str) -> Cluster:
        folder = tmp_path / f"dask-{len(made)}"
        folder.mkdir()
        made.append(cluster := Cluster(folder, **settings))
        for name in workers:
            cluster.work(name)
        return cluster

    yield begin
    for cluster in made:
        cluster.end()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the bad pack of the example, in which the command runs."""
    folder = tmp_path / "here"
    shutil.copytree(resources.examples() / "12-what-if" / "too-careful", folder / "policies")
    monkeypatch.chdir(folder)
    return folder


def tune(*flags: str, aim: tuple[str, ...] = AIM) -> tuple[int, dict[str, Any], str]:
    """The exit code, what is told as data but for the command line, and what is said."""
    out, err = io.StringIO(), io.StringIO()
    code = main(["tune", "policies", *aim, *FEW, *flags, "-o", "json"], Terminal(out, err))
    told: dict[str, Any] = json.loads(out.getvalue() or "{}")
    told.pop("made", None)
    return code, told, err.getvalue()


_without_dask: list[dict[str, Any]] = []


def found_here() -> dict[str, Any]:
    """What the same search finds in this process, which is made once."""
    if not _without_dask:
        code, told, said = tune(*DAY)
        assert code == OK, said
        _without_dask.append(told)
    return _without_dask[0]


def in_the_middle(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_the_same_trials_and_the_same_best_as_here(here: Path, start: Callable[..., Cluster]) -> None:
    cluster = start("a", "b")
    code, told, said = tune(*DAY, "--dask", cluster.address, "--jobs", "1")
    assert code == OK, said
    assert told == found_here()
    assert told["confirmation"]["holds"]
    # As many at a time as there are workers: a choice is worth the same, in whatever order they come.
    code, both, said = tune(*DAY, "--dask", cluster.address)
    assert code == OK, said
    worth = {json.dumps(one["values"]): one["objective"] for one in told["trials"]}
    shared = [one for one in both["trials"] if json.dumps(one["values"]) in worth]
    assert shared
    assert all(worth[json.dumps(one["values"])] == one["objective"] for one in shared)


def test_workers_need_no_files_of_ours(here: Path, start: Callable[..., Cluster]) -> None:
    nodes = [
        {"kind": "Node", "metadata": {"name": f"n{at}"}, "status": {"allocatable": {"cpu": "32", "memory": "64Gi", "pods": "110"}}}
        for at in range(2)
    ]  # fmt: skip
    pods = [
        {
            "kind": "Pod",
            "metadata": {"name": f"{kind}-{at}", "namespace": "default", "labels": {"workload": kind}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4", "memory": "4Gi"}}}]},
        }
        for kind in ("service", "batch")
        for at in range(3)
    ]
    for name, items in (("nodes.json", nodes), ("pods.json", pods)):
        text = json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", **one} for one in items]}
        )
        (here / name).write_text(text, encoding="utf-8")
    (here / "faults.yaml").write_text(
        "faults:\n- nodeLoss: {at: 20m, for: 30m, nodes: {count: 1}}\n", encoding="utf-8"
    )
    day = ("--nodes", "nodes.json", "--pods", "pods.json", "--faults", "faults.yaml", "--until", "1h")
    cluster = start("a")
    aim = ("--maximise", "report.pods.scheduled + report.faults.nodeSecondsWithoutReports")
    code, told, said = tune(*day, "--trials", "2", "--dask", cluster.address, aim=aim)
    assert [one["objective"] > 30 * 60 for one in told["trials"]] == [True, True], said
    assert (code, told) == tune(*day, "--trials", "2", aim=aim)[:2]


@pytest.mark.soak
def test_a_worker_that_is_killed_loses_nothing(here: Path, start: Callable[..., Cluster]) -> None:
    cluster = start("a", "b")
    killed: list[str] = []

    def kill() -> None:
        killed.append(cluster.one_at_work())
        cluster.workers[killed[0]].send_signal(signal.SIGKILL)

    thread = in_the_middle(kill)
    code, told, said = tune(*DAY, "--dask", cluster.address, "--jobs", "1")
    thread.join(60)
    assert cluster.workers[killed[0]].wait(20) == -signal.SIGKILL
    assert code == OK, said
    assert told["search"]["failed"] == 0
    assert told == found_here()


def test_a_scheduler_that_goes_away_ends_the_search(here: Path, start: Callable[..., Cluster]) -> None:
    cluster = start("a")

    def kill() -> None:
        cluster.one_at_work()
        cluster.scheduler.kill()

    thread = in_the_middle(kill)
    code, _, said = tune(*DAY, "--dask", cluster.address, "--study", "kept")
    thread.join(60)
    assert code == CANNOT_RUN
    assert f"the connection to the Dask scheduler at {cluster.address} was lost" in said
    assert "go on with --resume" in said


def test_workers_with_another_program_are_named(start: Callable[..., Cluster], tmp_path: Path) -> None:
    older, broken = tmp_path / "older", tmp_path / "broken"
    for name in ("koordpolicy", "policies"):
        shutil.copytree(REPOSITORY / name, older / name, ignore=shutil.ignore_patterns("__pycache__"))
    file = older / "koordpolicy" / "__init__.py"
    file.write_text(
        file.read_text(encoding="utf-8").replace("__version__ = ", "__version__ = '0.0.' + "),
        encoding="utf-8",
    )
    broken.mkdir()
    (broken / "koordpolicy.py").write_text("raise ImportError('nothing here')\n", encoding="utf-8")
    for path, wanted in ((older, "has koordpolicy 0.0.0."), (broken, "has no koordpolicy as here")):
        cluster = start()
        cluster.work("other", path)
        with pytest.raises(CannotRunError, match="would simulate otherwise") as caught:
            DaskCluster(cluster.address, NOTHING)
        assert wanted in str(caught.value)
        assert "Install the same versions there as here" in str(caught.value)


def test_differing_versions_are_told_by_name() -> None:
    mine = same_program.versions()
    assert set(mine) == {"koordpolicy", "Python", "NumPy"}
    assert same_program.differences(mine, dict(mine)) == []
    theirs = {**mine, "Python": "3.9"}
    assert same_program.differences(mine, theirs) == [f"Python 3.9 rather than {mine['Python']}"]
    assert same_program.differences(mine, {}) != []


def test_a_cluster_without_workers_is_refused(start: Callable[..., Cluster]) -> None:
    cluster = start()
    with pytest.raises(CannotRunError, match=f"has no workers; start some: `dask worker {cluster.address}"):
        DaskCluster(cluster.address, NOTHING, patience=0.5)


def test_a_cluster_that_has_lost_its_workers_is_not_waited_for_for_ever(
    start: Callable[..., Cluster],
) -> None:
    cluster = start("a")
    found = DaskCluster(cluster.address, NOTHING)
    found._patience = 1  # from now on
    try:
        future = found.submit(time.sleep, 60)
        cluster.workers["a"].kill()
        with pytest.raises(CannotRunError, match="has had no workers for 1 s"):
            found.outcome(future)
    finally:
        found.shutdown()


def test_a_worker_that_does_not_answer_is_not_waited_for_for_ever(start: Callable[..., Cluster]) -> None:
    cluster = start("a")
    DaskCluster(cluster.address, NOTHING).shutdown()  # it has come
    cluster.workers["a"].send_signal(signal.SIGSTOP)
    with pytest.raises(CannotRunError, match="did not all answer within 2 s"):
        DaskCluster(cluster.address, NOTHING, patience=2)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tcp://127.0.0.1:1", "no Dask scheduler answers at tcp://127.0.0.1:1"),
        ("tls://127.0.0.1:1", "no certificates for tls://127.0.0.1:1"),
        ("127.0.0.1:8786", "is not the address of a Dask scheduler"),
        ("tcp://127.0.0.1", "is not the address of a Dask scheduler"),
        ("tcp://127.0.0.1:70000", "ports lie between"),
    ],
)
def test_an_address_at_which_nobody_is(
    here: Path, address: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("koordpolicy.cli.tuning.dask_cluster.CONNECT_WITHIN", 1.0)
    with suppress(SystemExit):
        code, _, told = tune(*DAY, "--dask", address)
        assert (code, said in told) == (CANNOT_RUN, True), told


def test_without_dask_it_says_what_to_install(here: Path, tmp_path: Path) -> None:
    without = tmp_path / "without"
    without.mkdir()
    (without / "distributed.py").write_text("raise ImportError('no')\n", encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "koordpolicy.cli",
            "tune",
            "policies",
            *AIM,
            *DAY,
            "--dask",
            "tcp://127.0.0.1:1",
        ],
        cwd=here,
        env={**os.environ, "PYTHONPATH": f"{without}{os.pathsep}{REPOSITORY}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, "pip install 'koordpolicy[dask]'" in done.stderr) == (CANNOT_RUN, True), (
        done.stderr
    )
