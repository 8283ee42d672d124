"""Where the API server is and how we prove who we are: read by the official client, kept as plain values."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kubernetes.client import Configuration
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config import ConfigException, incluster_config, kube_config

_FILES: Final[Any] = kube_config  # the official client types its models, not these two
_POD: Final[Any] = incluster_config
_PROXIES: Final = ("http://", "https://")


class ConfigurationError(Exception):
    """The configuration names no API server we could talk to. The message says what to look at."""


@dataclass(frozen=True, slots=True)
class Access:
    """What every request needs: the server's address, our name tag, and whom to trust.

    `server` has no slash at its end. `tls` is None for plain HTTP. `server_name` is the name that the
    certificate must show when it is not the address's, `proxy` the URL of an HTTP proxy; both may be "".
    """

    server: str
    authorization: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    proxy: str = ""


class Connection:
    """A way to an API server, and its credentials, which may change while we run.

    `origin` says for people where it was read. Reading may run a credential plugin and takes as long as that
    does: `refresh` and `reload` are for threads.
    """

    def __init__(self, origin: str, read: Callable[[], Configuration]) -> None:
        self.origin = origin
        self._read = read
        self._configuration = _read(origin, read)
        self._access = _access(self._configuration)

    @classmethod
    def load(cls, kubeconfig: str | None = None, context: str | None = None) -> "Connection":
        """Read a kubeconfig, or the service account of the pod we run in where there is none.

        `kubeconfig` is a path, or several as in KUBECONFIG; None takes that variable or the usual file.
        `context` None takes the current one. Raises ConfigurationError.
        """
        paths = _FILES.KUBE_CONFIG_DEFAULT_LOCATION if kubeconfig is None else kubeconfig
        present = [
            path
            for path in paths.split(_FILES.ENV_KUBECONFIG_PATH_SEPARATOR)
            if path and Path(path).expanduser().is_file()
        ]
        if present:
            suffix = f", context {context}" if context else ""
            return cls(f"kubeconfig {paths}{suffix}", lambda: _from_files(paths, context))
        if kubeconfig is not None:
            raise ConfigurationError(f"there is no kubeconfig at {kubeconfig}")
        if context is not None:
            raise ConfigurationError(
                f"no kubeconfig to find context `{context}` in: there is none at {paths}"
            )
        return cls("the pod's service account", _from_pod)

    @property
    def access(self) -> Access:
        """As last read."""
        return self._access

    def refresh(self) -> Access:
        """Look whether the credentials have become old, and renew them if so. Raises ConfigurationError."""
        return self._remember(_guarded(self.origin, lambda: _access(self._configuration, self._access)))

    def reload(self) -> Access:
        """Read everything anew, certificates included. Raises ConfigurationError."""
        self._configuration = _read(self.origin, self._read)
        return self._remember(_access(self._configuration))

    def _remember(self, access: Access) -> Access:
        self._access = access
        return access


def _guarded(origin: str, action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:
        # The official loader raises whatever its parsers and its own lookups stumble over.
        raise ConfigurationError(f"{origin}: {error}") from error


def _read(origin: str, read: Callable[[], Configuration]) -> Configuration:
    configuration: Configuration = _guarded(origin, read)
    if configuration.proxy and not configuration.proxy.startswith(_PROXIES):
        raise ConfigurationError(
            f"{origin}: only http and https proxies are supported, not {configuration.proxy}"
        )
    return configuration


def _from_pod() -> Configuration:
    configuration = Configuration()
    try:
        _POD.load_incluster_config(client_configuration=configuration)
    except ConfigException as error:
        raise ConfigException(
            f"{error} Outside of a cluster, name a kubeconfig or put one at {_FILES.KUBE_CONFIG_DEFAULT_LOCATION}"
        ) from error
    return configuration


def _from_files(paths: str, context: str | None) -> Configuration:
    merged = _FILES.KubeConfigMerger(paths)
    loader = _FILES.KubeConfigLoader(
        config_dict=merged.config,
        active_context=context,
        config_base_path=None,  # relative paths begin at the file that holds them
        config_persister=merged.save_changes,
    )
    configuration = Configuration()
    loader.load_and_set(configuration)
    chosen = loader.current_context["context"]
    cluster = merged.config["clusters"].get_with_name(chosen["cluster"])["cluster"]
    if "server" not in cluster:
        raise ConfigException(f"cluster `{chosen['cluster']}` has no `server`")
    if "proxy-url" in cluster:
        configuration.no_proxy = ""  # it is meant, whatever the environment excepts
    name = chosen.get("user")
    user = merged.config["users"].get_with_name(name, safe=True) if name else None
    if name and user is None:
        raise ConfigException(f"there is no user `{name}`")
    if user is not None and "exec" in user["user"] and not (configuration.api_key or configuration.cert_file):
        # The loader logs what a plugin complains of, and goes on as nobody.
        plugin = user["user"]["exec"]["command"]
        raise ConfigException(f"the credential plugin `{plugin}` gave no credentials")
    return configuration


def _access(configuration: Configuration, before: Access | None = None) -> Access:
    """The values of a configuration. Those of `before` stay that need no renewal."""
    settings = configuration.auth_settings()  # renews a token that is about to expire
    authorization = str(settings.get("BearerToken", {}).get("value") or "").strip()
    server = configuration.host.rstrip("/")
    if before is not None:
        return Access(server, authorization, before.tls, before.server_name, before.proxy)
    proxy = configuration.proxy or ""
    if proxy and should_bypass_proxies(server, configuration.no_proxy or ""):
        proxy = ""
    tls = _trust(configuration) if server.startswith("https://") else None
    return Access(server, authorization, tls, configuration.tls_server_name or "", proxy)


def _trust(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    # Newer Pythons ask more of certificates than Go does, and the authorities of many clusters lack it.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context
