"""How webhooks are served, as the flags of `koordpolicy manager` say."""

import argparse
from pathlib import Path
from urllib.parse import urlsplit

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.flags.webhooks import WEBHOOK
from koordpolicy.cli.host_port import host_and_port
from koordpolicy.manager.serving import WebhookOptions
from koordpolicy.manager.webhooks.certificates import CertificateSettings, names_of
from koordpolicy.manager.webhooks.configuration import Address
from koordpolicy.manager.webhooks.rotation import Lifetimes
from koordpolicy.model.time import parse_duration
from koordpolicy.runtime.http.authentication import Authentication
from koordpolicy.runtime.http.serving import Endpoint
from koordpolicy.runtime.listening import UNIX
from koordpolicy.runtime.tls import Tls

_KEPT = "webhook"
"""The directory below the state directory that holds the pair which is served."""
_TIMES_LONGER = 4
"""The authority's life, in lives of what it signs."""
_SETTLE = 30
"""The part of a certificate's life, at most, in which an authority is trusted before it signs."""
_MOST_SETTLE = 60 * 10**9


def webhooks_of(arguments: argparse.Namespace) -> WebhookOptions | None:
    """How the flags say that webhooks are served, None where they are not. Raises `CannotRunError`."""
    if arguments.webhook == "off":
        if arguments.native_admission:
            raise CannotRunError(
                f"--native-admission needs {WEBHOOK}: the manager has to decide what API servers cannot;"
                " without one, `koordpolicy export --admission-policies` writes what they can"
            )
        return None
    front: Path | None = None
    if arguments.webhook.startswith(UNIX):
        host, port = arguments.webhook, 0
        front = Path(host.removeprefix(UNIX)).parent
    else:
        host, port = host_and_port(WEBHOOK, arguments.webhook, f", `{UNIX}PATH` or `off`")
    url = arguments.webhook_url
    if url and not url.startswith("https://"):
        raise CannotRunError("--webhook-url takes an address that begins with https://")
    lifetime = _duration("--webhook-cert-lifetime", arguments.webhook_cert_lifetime)
    endpoint = Endpoint(
        WEBHOOK, host, port, _tls(arguments), Authentication(), remedies="--webhook-client-ca-file"
    )
    lifetimes = Lifetimes(lifetime, lifetime * _TIMES_LONGER, min(_MOST_SETTLE, lifetime // _SETTLE))
    return WebhookOptions(
        endpoint,
        Address(arguments.namespace, arguments.webhook_service, url=url),
        CertificateSettings(
            names_of(arguments.webhook_service, arguments.namespace, urlsplit(url).hostname or ""),
            lifetimes,
            min(10.0, lifetime / 10**9 / _SETTLE),
        ),
        arguments.webhook_ca_file,
        arguments.webhook_client_ca_file,
        _duration("--webhook-drain", arguments.webhook_drain, least=0) / 10**9,
        arguments.native_admission,
        front,
        Path(arguments.state_dir, _KEPT) if arguments.state_dir else None,
    )


def _tls(arguments: argparse.Namespace) -> Tls | None:
    certificate, key = arguments.webhook_cert_file, arguments.webhook_private_key_file
    if (certificate is None) != (key is None):
        raise CannotRunError("--webhook-cert-file and --webhook-private-key-file belong together")
    if certificate is None:
        if arguments.webhook_ca_file is not None:
            raise CannotRunError("--webhook-ca-file needs --webhook-cert-file")
        return None
    return Tls(certificate, key)


def _duration(flag: str, said: str, least: int = 10**9) -> int:
    try:
        found = parse_duration(said)
    except ValueError as problem:
        raise CannotRunError(f"{flag}: {problem}") from None
    if not least <= found <= 100 * 365 * 86_400 * 10**9:
        raise CannotRunError(f"{flag} takes a duration from {least // 10**9} s to 100 years, not `{said}`")
    return found
