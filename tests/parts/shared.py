"""One API server for a whole run of the suite, whichever of its processes comes first.

Pytest's workers are processes of their own, and a server takes half a gigabyte. So the first one that needs it starts
a keeper, a process that starts the programs and lives as long as somebody uses them: users hold a shared lock
on a file, which the system takes from them however they end, and the keeper stops when it gets the lock alone.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.parts import cache
from tests.parts.apiserver import Access, ApiServer
from tests.parts.controllers import controller_manager, kwok
from tests.parts.finding import Missing
from tests.parts.processes import Ended, Running, alive
from tests.parts.table import find

COMPANIONS: Mapping[str, Callable[[Access], Running]] = {
    "kube-controller-manager": controller_manager,
    "kwok": kwok,
}
"""What the keeper starts beside the server once a user wants it."""

_ROOT = Path(__file__).resolve().parents[2]
_POLL = 0.1


class SharedServer(Access):
    """The way to the server of the run, and to programs beside it."""

    __slots__ = ()

    def want(self, companion: str) -> None:
        """Have a program of `COMPANIONS` started beside the server; returns when it is ready. Raises as it does."""
        find(companion)  # Here and not in the keeper, so that the progress of a build is seen.
        outcome = self.folder / f"{companion}.outcome"
        (self.folder / f"{companion}.wanted").touch()
        keeper = json.loads((self.folder.parent / "ready.json").read_text("utf-8"))["keeper"]
        while not outcome.exists():
            if not alive(keeper):
                raise Ended(f"the keeper of the API server ended before {companion} was ready")
            time.sleep(_POLL)
        if trouble := outcome.read_text("utf-8"):
            raise Ended(trouble)


@contextmanager
def shared_server(folder: Path) -> Iterator[SharedServer]:
    """The server that lives in this folder, started if it does not run; stopped when its last user leaves."""
    folder.mkdir(parents=True, exist_ok=True)
    find("etcd"), find("kube-apiserver")
    with (folder / "users.lock").open("a") as users:
        with cache.lock(folder / "start.lock"):
            fcntl.flock(users, fcntl.LOCK_SH)
            ready = folder / "ready.json"
            if not ready.exists():
                _start_keeper(folder, ready)
            facts = json.loads(ready.read_text("utf-8"))
        yield SharedServer(folder / "server", facts["port"], facts["etcd_port"])


def _start_keeper(folder: Path, ready: Path) -> None:
    log = folder / "keeper.log"
    with log.open("ab") as output:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.parts.shared", str(folder)], cwd=_ROOT, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    while not ready.exists():
        if keeper.poll() is not None:
            raise Ended(f"the API server did not start:\n{log.read_text('utf-8', 'replace')[-4000:]}")
        time.sleep(_POLL)
    # It outlives this process on purpose, and is nobody's child to wait for.
    keeper.returncode = 0


def keep(folder: Path) -> None:
    """Be the keeper: start the server, then companions as they are wanted, and stop when no user is left."""
    server = folder / "server"
    with (
        (folder / "users.lock").open("a") as users,
        cache.lock(folder / "keeper.lock"),
        ExitStack() as running,
    ):
        # One that is late, because who started an earlier one died meanwhile, has nobody to serve.
        if _alone(users.fileno()):
            return
        shutil.rmtree(server, ignore_errors=True)
        api = running.enter_context(ApiServer(server))
        facts = {"port": api.access.port, "etcd_port": api.access.etcd_port, "keeper": os.getpid()}
        ready = folder / "ready.json"
        (folder / "ready.new").write_text(json.dumps(facts), "utf-8")
        (folder / "ready.new").rename(ready)
        while not _alone(users.fileno()):
            for name, start in COMPANIONS.items():
                outcome = server / f"{name}.outcome"
                if (server / f"{name}.wanted").exists() and not outcome.exists():
                    trouble = ""
                    try:
                        running.enter_context(start(api.access))
                    except (Ended, Missing) as error:
                        trouble = str(error)
                    (server / f"{name}.new").write_text(trouble, "utf-8")
                    (server / f"{name}.new").rename(outcome)
            time.sleep(_POLL)
        # A user who comes now waits for the lock, and starts a new one.
        ready.unlink()


def _alone(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
