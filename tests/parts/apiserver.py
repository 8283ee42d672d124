"""A real API server on loopback: etcd and kube-apiserver, with authentication and RBAC on.

A test that only makes objects of its own takes the shared server of the run (fixture `apiserver`); one that kills
or restarts the server, or forgets its history, starts its own:

    with ApiServer(folder) as server:
        client = connect(server.kubeconfig("admin"))
        server.kill()
        server.restart()

All methods block; a test whose event loop must go on meanwhile calls them by `asyncio.to_thread`.
"""

import base64
import hashlib
import http.client
import json
import os
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.parts import cache
from tests.parts.finding import new_enough
from tests.parts.processes import Ended, Running, free_port
from tests.parts.proxy import Proxy
from tests.parts.table import find

SYSTEM_NAMESPACE = "koordpolicy-system"
COMPONENTS = ("manager", "agent", "scheduler", "descheduler", "yarn-operator")

USERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("admin", ("system:masters",)),
    "nobody": ("nobody", ()),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
    **{
        f"koordpolicy-{component}": (
            f"system:serviceaccount:{SYSTEM_NAMESPACE}:koordpolicy-{component}",
            ("system:serviceaccounts", f"system:serviceaccounts:{SYSTEM_NAMESPACE}"),
        )
        for component in COMPONENTS
    },
}
"""Short name -> user name and groups as RBAC sees them. A component's is its service account, so that what is shipped
in `deploy/` binds it; its token is a fixed one."""

_TELLS_PROGRESS = (3, 4, 25)
"""The oldest etcd that tells watchers on demand how far it is."""

AUDIT = "KOORDPOLICY_AUDIT"
"""The variable that names a folder: each server then writes there what service accounts of ours asked for, and by which role
they might. `python -m tests.roles` reads it."""

_ATTEMPTS = 3
"""Starts with other ports, should another process take one in between."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a running API server. `folder` holds its files, among them a kubeconfig for each user."""

    folder: Path
    port: int
    etcd_port: int

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def authority(self) -> Path:
        """The certificate (PEM) by which clients know the server."""
        return self.folder / "certificates" / "apiserver.crt"

    def token(self, user: str) -> str:
        """The bearer token of a user; knowing one opens nothing but a test's server."""
        assert user in USERS, f"no user {user} among {', '.join(USERS)}"
        return f"token-of-{user}"

    def kubeconfig(self, user: str = "admin", port: int | None = None) -> Path:
        """A kubeconfig of that user; `port` is that of a proxy in front."""
        port = port or self.port
        file = self.folder / f"{user}-{port}.kubeconfig"
        authority = base64.b64encode(self.authority.read_bytes()).decode()
        cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": authority}
        # JSON is YAML, too.
        text = json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "test", "cluster": cluster}],
                "users": [{"name": user, "user": {"token": self.token(user)}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
                "current-context": "test",
            },
            indent=2,
        )
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
        return file

    @contextmanager
    def proxy(self) -> Iterator["ServerProxy"]:
        """A way to this server that the test can break without harm to others."""
        with Proxy(self.port) as proxy:
            yield ServerProxy(self, proxy)

    def request(self, method: str, path: str, body: Any = None, *, user: str = "admin") -> tuple[int, Any]:
        """One plain request, for preparing and looking. Gives status and decoded body; OSError when nobody answers.

        Small JSON bodies only; a PATCH is a merge patch, or server-side apply with `fieldManager` in the path.
        """
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=30, context=_trusting(self.authority.read_text("utf-8"))
        )
        kind = "application/json"
        if method == "PATCH":
            kind = (
                "application/apply-patch+yaml" if "fieldManager=" in path else "application/merge-patch+json"
            )
        headers = {"Authorization": f"Bearer {self.token(user)}", "Content-Type": kind}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(data)
        except ValueError:
            return answer.status, data.decode("utf-8", "replace")

    def compact(self) -> int:
        """Forget all but the newest version of each object in etcd; gives that revision.

        A list that continues from before then gets 410. A watch does only after a restart, since until then the
        server's own cache remembers, unless it was started with `--watch-cache-sizes=RESOURCE#0`.
        """
        head = self._etcd("/v3/kv/range", {"key": base64.b64encode(b"/").decode()})
        revision = int(head["header"]["revision"])
        self._etcd("/v3/kv/compaction", {"revision": revision, "physical": True})
        return revision

    def once(self, name: str, work: Callable[[], object]) -> None:
        """Do something once for this server, whichever of its users comes first; the others wait until it is done."""
        done = self.folder / f"{name}.done"
        with cache.lock(self.folder / f"{name}.lock"):
            if not done.exists():
                work()
                done.touch()

    def _etcd(self, path: str, body: object) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.etcd_port, timeout=30)
        try:
            connection.request("POST", path, json.dumps(body))
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        # Compacting twice at one revision is no failure: nothing is left to forget.
        if answer.status != 200 and b"compacted" not in data:
            raise Ended(f"etcd: {answer.status} {data!r}")
        return json.loads(data)


class ServerProxy:
    """A proxy in front of an API server: `url` and `kubeconfig` lead through it, and the test breaks it."""

    def __init__(self, access: Access, proxy: Proxy) -> None:
        self._access = access
        self.url = f"https://127.0.0.1:{proxy.port}"
        self.cut, self.hold, self.release = proxy.cut, proxy.hold, proxy.release
        self.refuse, self.accept = proxy.refuse, proxy.accept

    def kubeconfig(self, user: str = "admin") -> Path:
        """As the server's own, through the proxy."""
        return self._access.kubeconfig(user, int(self.url.rpartition(":")[2]))


class ApiServer:
    """Starts etcd and kube-apiserver in a folder. A context manager that gives itself, ready, and stops both.

    `arguments` are further ones of kube-apiserver, `without_admission` the admission plugins left out: service
    account tokens for pods need controllers that not every test starts. Raises `Missing`, and Ended with the log.
    """

    def __init__(
        self,
        folder: Path,
        *,
        arguments: Sequence[str] = (),
        without_admission: Sequence[str] = ("ServiceAccount",),
    ) -> None:
        self.folder = folder
        etcd = find("etcd")
        self._arguments = [
            *arguments,
            *_audited(folder, arguments),
            f"--disable-admission-plugins={','.join(without_admission)}",
        ]
        if etcd.version != "unknown" and not new_enough(etcd.version, _TELLS_PROGRESS):
            # The server would offer lists as watches and then refuse them, for want of progress from etcd; clients
            # go on trying instead of listing.
            self._arguments.append("--feature-gates=WatchList=false")
        self._programs = etcd.path, find("kube-apiserver").path
        self._etcd: Running | None = None
        self._api: Running | None = None
        self.access = Access(folder, 0, 0)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        rows = [[f"token-of-{user}", name, name, ",".join(groups)] for user, (name, groups) in USERS.items()]
        lines = [",".join(f'"{cell}"' for cell in row) for row in rows]
        (self.folder / "tokens.csv").write_text("\n".join(lines) + "\n", "utf-8")
        for attempt in range(1, _ATTEMPTS + 1):
            self.access = Access(self.folder, free_port(), free_port())
            try:
                self.start()
                return self
            except BaseException as error:
                self.__exit__(None, None, None)
                if not isinstance(error, Ended) or attempt == _ATTEMPTS or "in use" not in str(error):
                    raise
        raise AssertionError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The data are the test's and go with it: nothing has to be ended in good order.
        self.kill()
        if self._etcd is not None:
            self._etcd.kill()
            self._etcd = None

    @property
    def url(self) -> str:
        return self.access.url

    def kubeconfig(self, user: str = "admin") -> Path:
        """A kubeconfig of a user in `USERS`."""
        return self.access.kubeconfig(user)

    @property
    def pid(self) -> int:
        """The process id of kube-apiserver."""
        assert self._api is not None
        return self._api.pid

    @property
    def etcd_pid(self) -> int:
        """The process id of etcd."""
        assert self._etcd is not None
        return self._etcd.pid

    def start(self) -> None:
        """Start what does not run, with the data there are, on the same ports; returns when it is ready."""
        if self._etcd is None or not self._etcd.running:
            self._etcd = self._start_etcd()
        if self._api is None or not self._api.running:
            self._api = self._start_api()
            self._api.ready(self._is_ready, 90)

    def kill(self) -> None:
        """End kube-apiserver at once, as a crash does; etcd goes on."""
        if self._api is not None:
            self._api.kill()

    def stop(self) -> None:
        """End kube-apiserver in good order, which ends watches first; etcd goes on."""
        if self._api is not None:
            self._api.stop(30)

    def leave(self) -> Path:
        """End both programs in good order; gives the folder of the data that they leave."""
        self.stop()
        if self._etcd is not None:
            self._etcd.stop(30)
        return self.folder / "etcd"

    def restart(self) -> None:
        """Kill kube-apiserver and start it again."""
        self.kill()
        self.start()

    def forget(self) -> None:
        """Make lists and watches from before now answer 410: compact, and restart without the cache's memory."""
        self.compact()
        self.restart()

    def compact(self) -> int:
        """See `Access.compact`."""
        return self.access.compact()

    @contextmanager
    def proxy(self) -> Iterator[ServerProxy]:
        """See `Access.proxy`."""
        with self.access.proxy() as proxy:
            yield proxy

    def _start_etcd(self) -> Running:
        client, peer = f"http://127.0.0.1:{self.access.etcd_port}", f"http://127.0.0.1:{free_port()}"
        etcd = Running(
            [
                self._programs[0],
                f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--unsafe-no-fsync",
            ],
            self.folder / "etcd.log",
        )
        self._etcd = etcd
        etcd.ready(self._etcd_is_ready, 30)
        return etcd

    def _etcd_is_ready(self) -> bool:
        with suppress(OSError, http.client.HTTPException, Ended):
            self.access._etcd("/v3/kv/range", {"key": base64.b64encode(b"/").decode()})
            return True
        return False

    def _start_api(self) -> Running:
        certificates = self.folder / "certificates"
        return Running(
            [
                self._programs[1],
                f"--etcd-servers=http://127.0.0.1:{self.access.etcd_port}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self.access.port}",
                # A documentation address: the server's own Service is not used, and no network is needed.
                "--advertise-address=192.0.2.1",
                "--endpoint-reconciler-type=none",
                f"--cert-dir={certificates}",
                "--service-account-issuer=https://kubernetes.default.svc",
                # The server makes its key in `cert-dir`; signing tokens with it spares the tests a key of their own.
                f"--service-account-key-file={certificates / 'apiserver.key'}",
                f"--service-account-signing-key-file={certificates / 'apiserver.key'}",
                f"--token-auth-file={self.folder / 'tokens.csv'}",
                "--authorization-mode=RBAC",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--allow-privileged=true",
                "--profiling=false",
                *self._arguments,
            ],
            self.folder / "kube-apiserver.log",
            # Its start and the definitions leave much garbage: collected less often, they take a quarter less CPU time.
            environment={"GOGC": "400", **os.environ},
        )

    def _is_ready(self) -> bool:
        with suppress(OSError, http.client.HTTPException):
            return self.access.request("GET", "/readyz")[0] == 200
        return False


@lru_cache(maxsize=16)
def _trusting(authority: str) -> ssl.SSLContext:
    """What trusts the server of this certificate (PEM), and no other; made once, as it takes a while."""
    return ssl.create_default_context(cadata=authority)


def _audited(folder: Path, others: Sequence[str]) -> list[str]:
    """Arguments by which a server tells who asked for what, where a run wants to know, and no test does by itself."""
    place = os.environ.get(AUDIT, "")
    if not place or any(one.startswith("--audit-log-path") for one in others):
        return []
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
    log = Path(place, f"{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    # A server that several tests share was started for whichever came first: its log names no test.
    log.with_suffix(".test").write_text("" if folder.name == "server" else test, "utf-8")
    accounts = [name for name, groups in USERS.values() if "system:serviceaccounts" in groups]
    rules = [
        {"level": "Metadata", "users": accounts, "omitStages": ["RequestReceived", "Panic"]},
        {"level": "None"},
    ]
    policy = log.with_suffix(".policy")
    policy.write_text(
        json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}), "utf-8"
    )
    return [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]
