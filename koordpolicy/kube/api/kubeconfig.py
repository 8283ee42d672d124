"""Kubeconfigs, as the official client reads them: contexts, credential plugins, certificates.

It is large. Only processes whose kubeconfig is more than `plain_kubeconfig.py` reads import this; a pod has its service account.
"""

import ssl
from typing import Any, Final

from kubernetes.client import Configuration
from kubernetes.config import ConfigException, kube_config

from koordpolicy.kube.api.access import Access, Renewal, trust_of
from koordpolicy.kube.api.proxies import excepts

_FILES: Final[Any] = kube_config  # the official client types its models, not this


def kubeconfig(paths: str, context: str | None) -> Renewal:
    """The access that one or several files give, by that context or the current one. Raises whatever the official loader
    stumbles over, when it is called and at renewals.
    """
    configuration = _read(paths, context)
    return lambda before: _access(configuration, before)


def _read(paths: str, context: str | None) -> Configuration:
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


def _access(configuration: Configuration, before: Access | None) -> Access:
    settings = configuration.auth_settings()  # renews a token that is about to expire
    authorization = str(settings.get("BearerToken", {}).get("value") or "").strip()
    server = configuration.host.rstrip("/")
    if before is not None:
        return Access(server, authorization, before.tls, before.server_name, before.proxy)
    proxy = configuration.proxy or ""
    if proxy and excepts(configuration.no_proxy or "", server):
        proxy = ""
    tls = _trust(configuration) if server.startswith("https://") else None
    return Access(server, authorization, tls, configuration.tls_server_name or "", proxy)


def _trust(configuration: Configuration) -> ssl.SSLContext:
    context = trust_of(configuration.ssl_ca_cert)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context
