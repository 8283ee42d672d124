"""The credentials of the pod that we run in: a token that the kubelet renews, and the certificate of the cluster's authority."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from koordpolicy.kube.api.access import Access, ConfigurationError, Renewal, trust_of
from koordpolicy.kube.api.proxies import proxy_of

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token, and the certificate of the cluster's authority."""
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def missing(environment: Mapping[str, str]) -> str:
    """What a pod's environment says of its cluster and this one does not; empty for nothing."""
    return ", ".join(f"{name} is not set" for name in (_HOST, _PORT) if not environment.get(name))


def service_account(folder: Path, environment: Mapping[str, str]) -> Renewal:
    """The account that a pod finds in a folder; its token is read at each renewal.

    The environment says where the API server is: nothing of it is `missing`.
    """
    host, port = environment[_HOST], environment[_PORT]
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"

    def renew(before: Access | None) -> Access:
        authorization = f"Bearer {_text(folder / 'token')}"
        if before is not None:
            return Access(server, authorization, before.tls, proxy=before.proxy)
        authority = folder / "ca.crt"
        _text(authority)
        return Access(server, authorization, trust_of(str(authority)), proxy=proxy_of(server))

    return renew


def _text(file: Path) -> str:
    """What a file of the account says. Raises `ConfigurationError`."""
    try:
        text = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigurationError(f"{file} cannot be read: {problem}") from error
    if not text:
        raise ConfigurationError(f"{file} is empty")
    return text
