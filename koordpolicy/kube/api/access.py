"""What every request to an API server needs, as plain values."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias


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


Renewal: TypeAlias = Callable[[Access | None], Access]
"""Gives the access as it is now. Of one that was given before, what needs no renewal stays; None makes everything anew."""


def trust_of(authorities: str | None) -> ssl.SSLContext:
    """Trust in the authorities of a file of certificates, or in the system's. Raises OSError for a file that is none."""
    context = ssl.create_default_context(cafile=authorities)
    # Newer Pythons ask more of certificates than Go does, and the authorities of many clusters lack it.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
