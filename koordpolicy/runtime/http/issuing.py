"""Certificates of our own making: an authority, and pairs for servers that it signs.

Keys are of the curve P-256, whose handshakes cost a server a fraction of what RSA's do. All times are nanoseconds since 1970.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SKEW = 300 * 10**9
"""Clocks may differ so much: a certificate holds from before it was made."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Validity:
    """When a certificate was made, and its end."""

    since: int
    until: int


def make_authority(name: str, now: int, lifetime: int) -> Pair:
    """An authority of this common name."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(name, name, key.public_key(), now, now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def make_serving(authority: Pair, names: Sequence[str], now: int, lifetime: int) -> Pair:
    """A pair for a server that is called by these names and addresses; it ends with its authority at the latest.

    Raises ValueError for an authority that is none.
    """
    signer, signing_key = _certificate(authority.certificate), _key(authority.key)
    if not isinstance(signing_key, ec.EllipticCurvePrivateKey):
        raise ValueError("the authority's key is not of an elliptic curve")  # noqa: TRY004 - its content, not its type
    key = ec.generate_private_key(ec.SECP256R1())
    until = min(now + lifetime, validity(authority.certificate).until)
    issuer = signer.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    builder = (
        _builder(names[0][:64], str(issuer), key.public_key(), now, until)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False
        )
    )
    return _pair(builder.sign(signing_key, hashes.SHA256()), key)


def validity(certificate: bytes) -> Validity:
    """When a certificate was made and when it ends. Raises ValueError."""
    read = _certificate(certificate)
    return Validity(_ns(read.not_valid_before_utc) + _SKEW, _ns(read.not_valid_after_utc))


def belongs(pair: Pair, authority: bytes, names: Sequence[str]) -> bool:
    """Whether a pair's key is its certificate's, an authority has signed that, and it is for these names."""
    try:
        read, signer = _certificate(pair.certificate), _certificate(authority)
        key = _key(pair.key)
        read.verify_directly_issued_by(signer)
        said = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    if key.public_key() != read.public_key():
        return False
    return {_general(name) for name in names} <= set(said)


def is_authority(pair: Pair) -> bool:
    """Whether a pair can sign."""
    try:
        read, key = _certificate(pair.certificate), _key(pair.key)
        constraints = read.extensions.get_extension_for_class(x509.BasicConstraints).value
    except (ValueError, TypeError, x509.ExtensionNotFound):
        return False
    return (
        constraints.ca
        and isinstance(key, ec.EllipticCurvePrivateKey)
        and key.public_key() == read.public_key()
    )


def split(bundle: bytes) -> tuple[bytes, ...]:
    """The certificates of a bundle, each PEM. Raises ValueError."""
    if not bundle.strip():
        return ()
    return tuple(
        one.public_bytes(serialization.Encoding.PEM) for one in x509.load_pem_x509_certificates(bundle)
    )


def _builder(
    subject: str, issuer: str, key: ec.EllipticCurvePublicKey, now: int, until: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_time(now - _SKEW))
        .not_valid_after(_time(until))
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _certificate(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def _key(pem: bytes) -> PrivateKeyTypes:
    return serialization.load_pem_private_key(pem, None)


def _time(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(seconds=nanoseconds // 10**9)


def _ns(moment: datetime) -> int:
    return int((moment - _EPOCH).total_seconds()) * 10**9
