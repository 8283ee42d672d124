"""Where the API server is and how we prove who we are: a kubeconfig's words, or a pod's service account."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

from koordpolicy.kube.api.access import Access, ConfigurationError, Renewal
from koordpolicy.kube.api.service_account import SERVICE_ACCOUNT, missing, service_account

_PROXIES: Final = ("http://", "https://")
_VARIABLE: Final = "KUBECONFIG"
_USUAL: Final = "~/.kube/config"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_T = TypeVar("_T")


class Connection:
    """A way to an API server, and its credentials, which may change while we run.

    `origin` says for people where it was read. Reading may run a credential plugin and takes as long as that
    does: `refresh` and `reload` are for threads.
    """

    def __init__(self, origin: str, read: Callable[[], Renewal]) -> None:
        self.origin = origin
        self._read = read
        self._renewal = _guarded(origin, read)
        self._access = self._renewed(None)

    @classmethod
    def load(
        cls,
        kubeconfig: str | None = None,
        context: str | None = None,
        environment: Mapping[str, str] = _NOTHING,
        account: Path = SERVICE_ACCOUNT,
    ) -> "Connection":
        """Read a kubeconfig, or the service account of the pod we run in where there is none.

        `kubeconfig` is a path, or several as in KUBECONFIG; None takes that variable of the `environment`, or the usual file.
        `context` None takes the current one. `account` is where pods have theirs. Raises ConfigurationError.
        """
        paths = (environment.get(_VARIABLE) or _USUAL) if kubeconfig is None else kubeconfig
        if any(path and Path(path).expanduser().is_file() for path in paths.split(os.pathsep)):
            suffix = f", context {context}" if context else ""
            return cls(f"kubeconfig {paths}{suffix}", lambda: _from_files(paths, context))
        if kubeconfig is not None:
            raise ConfigurationError(f"there is no kubeconfig at {kubeconfig}")
        if context is not None:
            raise ConfigurationError(
                f"no kubeconfig to find context `{context}` in: there is none at {paths}"
            )
        if outside := missing(environment):
            raise ConfigurationError(
                f"there is no cluster to ask: no kubeconfig at {paths}, and this is no pod of one ({outside}). Name a kubeconfig by `--kubeconfig FILE`"
            )
        return cls("the pod's service account", lambda: service_account(account, environment))

    @property
    def access(self) -> Access:
        """As last read."""
        return self._access

    def refresh(self) -> Access:
        """Look whether the credentials have become old, and renew them if so. Raises ConfigurationError."""
        self._access = self._renewed(self._access)
        return self._access

    def reload(self) -> Access:
        """Read everything anew, certificates included. Raises ConfigurationError."""
        self._renewal = _guarded(self.origin, self._read)
        self._access = self._renewed(None)
        return self._access

    def _renewed(self, before: Access | None) -> Access:
        access = _guarded(self.origin, lambda: self._renewal(before))
        if access.proxy and not access.proxy.startswith(_PROXIES):
            raise ConfigurationError(
                f"{self.origin}: only http and https proxies are supported, not {access.proxy}"
            )
        return access


def _guarded(origin: str, action: Callable[[], _T]) -> _T:
    try:
        return action()
    except Exception as error:
        # The official loader raises whatever its parsers and its own lookups stumble over.
        raise ConfigurationError(f"{origin}: {error}") from error


def _from_files(paths: str, context: str | None) -> Renewal:
    from koordpolicy.kube.api.plain_kubeconfig import plain_kubeconfig  # noqa: PLC0415  # a pod needs no such thing

    plain = plain_kubeconfig(paths, context)
    if plain is not None:
        return plain
    from koordpolicy.kube.api.kubeconfig import kubeconfig  # noqa: PLC0415  # seldom needed, and it is large

    return kubeconfig(paths, context)
