"""When the webhooks' certificates are made anew: a function of what there is and of the time.

An authority is trusted before it signs, and as long as it is valid, so that neither replicas nor API servers need to change at the same
moment: whoever still serves the former pair is still believed. All times are nanoseconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from koordpolicy.runtime.http.issuing import (
    Pair,
    belongs,
    is_authority,
    make_authority,
    make_serving,
    split,
    validity,
)

AUTHORITY: Final = "koordpolicy-webhook-ca"

_KEYS: Final = (
    "ca-cert.pem",
    "ca-key.pem",
    "next-ca-cert.pem",
    "next-ca-key.pem",
    "tls.crt",
    "tls.key",
    "ca.crt",
)


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long certificates hold. Each is renewed when a third of its time is left.

    `settle` is how long an authority has been trusted before it signs.
    """

    serving: int
    authority: int
    settle: int


@dataclass(frozen=True, slots=True)
class Chain:
    """All that replicas share: who signs, who will sign next, who is trusted (a bundle, PEM), and what is served."""

    authority: Pair | None = None
    following: Pair | None = None
    trusted: bytes = b""
    serving: Pair | None = None

    @classmethod
    def read(cls, data: Mapping[str, bytes]) -> "Chain":
        """That of a Secret's data."""

        def pair(certificate: str, key: str) -> Pair | None:
            found = data.get(certificate), data.get(key)
            return Pair(found[0], found[1]) if found[0] and found[1] else None

        return cls(
            pair("ca-cert.pem", "ca-key.pem"),
            pair("next-ca-cert.pem", "next-ca-key.pem"),
            data.get("ca.crt", b""),
            pair("tls.crt", "tls.key"),
        )

    def data(self) -> dict[str, bytes]:
        """That of a Secret, all keys included."""
        none = Pair(b"", b"")
        pairs = [pair or none for pair in (self.authority, self.following, self.serving)]
        parts = [part for pair in pairs for part in (pair.certificate, pair.key)]
        return dict(zip(_KEYS, (*parts, self.trusted), strict=True))


def renewed(
    chain: Chain, names: Sequence[str], lifetimes: Lifetimes, now: int, believed: bytes | None
) -> Chain:
    """What is to be shared at this time; the same where nothing is due.

    `believed` is the bundle that API servers have been given, None where that is not known.
    """
    chain = _authorities(chain, lifetimes, now, believed)
    authority = chain.authority
    assert authority is not None
    serving = chain.serving
    if serving is None or not belongs(serving, authority.certificate, names) or _is_due(serving, now):
        chain = replace(chain, serving=make_serving(authority, names, now, lifetimes.serving))
    return replace(chain, trusted=_trusted(chain, now))


def _authorities(chain: Chain, lifetimes: Lifetimes, now: int, believed: bytes | None) -> Chain:
    authority, following = chain.authority, chain.following
    if authority is None or not is_authority(authority) or _is_over(authority, now):
        # There is nothing left that anyone would believe: begin anew, with the one that is trusted already if there is one.
        if following is None or not is_authority(following) or _is_over(following, now):
            following = make_authority(AUTHORITY, now, lifetimes.authority)
        return replace(chain, authority=following, following=None)
    if following is not None and not is_authority(following):
        following = None
    if following is None:
        if not _is_due(authority, now):
            return replace(chain, following=None)
        return replace(chain, following=make_authority(AUTHORITY, now, lifetimes.authority))
    settled = now - validity(following.certificate).since >= lifetimes.settle
    if settled and believed is not None and set(split(following.certificate)) <= set(_split(believed)):
        return replace(chain, authority=following, following=None)
    return chain


def _trusted(chain: Chain, now: int) -> bytes:
    """The bundle: those that sign now and next, and those before as long as they are valid."""
    present = [pair.certificate for pair in (chain.authority, chain.following) if pair is not None]
    found = dict.fromkeys((*(one for pem in present for one in split(pem)), *_split(chain.trusted)))
    return b"".join(one for one in found if validity(one).until > now)


def _split(bundle: bytes) -> tuple[bytes, ...]:
    try:
        return split(bundle)
    except ValueError:
        return ()


def _is_due(pair: Pair, now: int) -> bool:
    try:
        found = validity(pair.certificate)
    except ValueError:
        return True
    return now >= found.until - (found.until - found.since) // 3


def _is_over(pair: Pair, now: int) -> bool:
    try:
        return now >= validity(pair.certificate).until
    except ValueError:
        return True
