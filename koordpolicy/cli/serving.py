"""The flags that say where a process serves, and who may ask it there."""

import argparse

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.flags.serving import HTTP
from koordpolicy.cli.flags.tls import CERTIFICATE, CLIENTS
from koordpolicy.cli.host_port import host_and_port
from koordpolicy.cli.tls import certificate_pair
from koordpolicy.runtime.http.authentication import Authentication
from koordpolicy.runtime.http.serving import Endpoint
from koordpolicy.runtime.tls import Tls


def endpoint_of(arguments: argparse.Namespace, flag: str, said: str, *, writes: bool = False) -> Endpoint:
    """Where a flag says that something is served, by the flags of `add_serving_flags`. Raises `CannotRunError`.

    `writes` says whether the flag `<flag>-anonymous-auth` is about what callers may do, not what they may read.
    """
    host, port = host_and_port(flag, said, " or `off`" if flag == HTTP else "")
    names = tuple(filter(None, (name.strip() for name in arguments.tls_client_names.split(","))))
    tls = _tls(arguments)
    if names and (tls is None or tls.clients is None):
        raise CannotRunError("--tls-client-names needs --tls-client-ca-file")
    open_to_all = getattr(arguments, f"{flag[2:].replace('-', '_')}_anonymous_auth")
    authentication = Authentication(
        names,
        arguments.bearer_token_file,
        getattr(arguments, "delegated_auth", False),
        anonymous_reads=open_to_all and not writes,
        anonymous_writes=open_to_all and writes,
    )
    if hasattr(arguments, "delegated_auth"):
        return Endpoint(flag, host, port, tls, authentication)
    return Endpoint(flag, host, port, tls, authentication, "--tls-client-ca-file or --bearer-token-file")


def http_of(arguments: argparse.Namespace) -> Endpoint | None:
    """Where `--http` says, None where nothing shall be served. Raises `CannotRunError`."""
    if arguments.http == "off":
        return None
    return endpoint_of(arguments, HTTP, arguments.http)


def _tls(arguments: argparse.Namespace) -> Tls | None:
    pair, clients = certificate_pair(arguments), arguments.tls_client_ca_file
    if pair is None:
        if clients is not None:
            raise CannotRunError(f"{CLIENTS} needs {CERTIFICATE}")
        return None
    return Tls(*pair, clients)
