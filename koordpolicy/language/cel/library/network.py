"""The network library: IP addresses and CIDR blocks, version 4 and 6."""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from koordpolicy.language.cel.errors import InvalidArgument
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.library.row import function, method, plain, reads, signature, takes
from koordpolicy.language.cel.types import BOOL, INT, STRING
from koordpolicy.language.cel.types import CIDR as CIDR_TYPE
from koordpolicy.language.cel.types import IP as IP_TYPE
from koordpolicy.language.cel.values import CIDR, IP

_LIB = "network"
_TEXT_LIMIT = 64
_PARSING = 260
"""Units of reading an address, which takes Python long, and longer where it is none."""
_TELLING = 100
"""Units of what is worked out of an address."""


def parse_ip(text: str) -> IP:
    """Read an address. Raises InvalidArgument, also for zones and for `::ffff:1.2.3.4`.

    An IPv4 address mapped to IPv6 and written without dots is the IPv4 address, as the conformance cases want.
    """
    return IP(_address(text))


def _address(text: str) -> IPv4Address | IPv6Address:
    shown = text[:_TEXT_LIMIT]
    if len(text) > _TEXT_LIMIT:
        raise InvalidArgument(f"`{shown}...` is no IP address")
    if "%" in text:
        raise InvalidArgument(f"`{shown}`: an address with a zone is not taken")
    try:
        address = ip_address(text)
    except ValueError:
        raise InvalidArgument(f"`{shown}` is no IP address") from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        if "." in text:
            raise InvalidArgument(f"`{shown}`: IPv4 mapped to IPv6 is not taken, write it as IPv4")
        return address.ipv4_mapped
    return address


def parse_cidr(text: str) -> CIDR:
    """Read a block such as `10.0.0.0/8`; host bits are kept. Raises InvalidArgument."""
    address_text, slash, length_text = text.partition("/")
    shown = text[:_TEXT_LIMIT]
    if not slash or not (length_text.isascii() and length_text.isdigit()) or len(length_text) > 3:
        raise InvalidArgument(f"`{shown}` is no CIDR block such as 10.0.0.0/8")
    address = _address(address_text)
    if isinstance(address, IPv4Address) and ":" in address_text:
        raise InvalidArgument(f"`{shown}`: IPv4 mapped to IPv6 is not taken, write it as IPv4")
    if int(length_text) > address.max_prefixlen or length_text != str(int(length_text)):
        raise InvalidArgument(f"`{shown}` has an impossible prefix length")
    return CIDR(address, int(length_text))


def _accepts(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def accepted(text: str) -> bool:
        try:
            parse(text)
        except InvalidArgument:
            return False
        return True

    return accepted


def _is_canonical(text: str) -> bool:
    return str(_address(text)) == text


def _family(value: IP) -> int:
    return value.address.version


def _test(check: Callable[[IPv4Address | IPv6Address], bool]) -> Callable[[IP], bool]:
    return lambda value: check(value.address)


def _link_local_multicast(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return address.packed[:3] == b"\xe0\x00\x00"
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 2


def _link_local_unicast(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return address.packed[:2] == b"\xa9\xfe"
    return address.packed[0] == 0xFE and address.packed[1] & 0xC0 == 0x80


def _global_unicast(address: IPv4Address | IPv6Address) -> bool:
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or _link_local_unicast(address)
        or address == IPv4Address("255.255.255.255")
    )


def _contains_ip(block: CIDR, ip: IP) -> bool:
    address = ip.address
    if address.version != block.address.version:
        return False
    shift = address.max_prefixlen - block.length
    return int(address) >> shift == int(block.address) >> shift


def _contains_cidr(block: CIDR, other: CIDR) -> bool:
    return other.length >= block.length and _contains_ip(block, IP(other.address))


def _masked(block: CIDR) -> CIDR:
    network = ip_network((block.address, block.length), strict=False)
    return CIDR(network.network_address, block.length)


def _is_test(
    name: str, summary: str, example: str, check: Callable[[IPv4Address | IPv6Address], bool]
) -> Function:
    return method(name, _LIB, summary, example, (IP_TYPE,), BOOL, _test(check), takes(_TELLING))


LIBRARY: tuple[Function, ...] = (
    function(
        "ip", _LIB, "an IP address from text; the address of a CIDR block", "ip('10.0.0.1').family() == 4",
        signature("ip", (STRING,), IP_TYPE, parse_ip, cost=reads(0, base=_PARSING)),
        signature("ip", (CIDR_TYPE,), IP_TYPE, lambda block: IP(block.address), receiver=True),
    ),
    plain("isIP", _LIB, "whether a text is an IP address", "isIP('10.0.0.1')", (STRING,), BOOL, _accepts(parse_ip), reads(0, base=_PARSING)),
    plain(
        "ip.isCanonical", _LIB, "whether an address is written in its canonical form",
        "ip.isCanonical('2001:db8::68')", (STRING,), BOOL, _is_canonical, reads(0, base=_PARSING),
    ),
    method("family", _LIB, "4 or 6", "ip('::1').family() == 6", (IP_TYPE,), INT, _family),
    _is_test("isUnspecified", "whether it is 0.0.0.0 or ::", "ip('::').isUnspecified()", lambda a: a.is_unspecified),
    _is_test("isLoopback", "whether it is the host itself", "ip('127.0.0.1').isLoopback()", lambda a: a.is_loopback),
    _is_test("isLinkLocalMulticast", "whether it is multicast on the link", "ip('224.0.0.1').isLinkLocalMulticast()",
             _link_local_multicast),
    _is_test("isLinkLocalUnicast", "whether it is valid on the link only", "ip('fe80::1').isLinkLocalUnicast()",
             _link_local_unicast),
    _is_test("isGlobalUnicast", "whether it can be an ordinary address, private ones included",
             "ip('10.0.0.1').isGlobalUnicast()", _global_unicast),
    plain("cidr", _LIB, "a CIDR block from text", "cidr('10.0.0.0/8').prefixLength() == 8",
          (STRING,), CIDR_TYPE, parse_cidr, reads(0, base=_PARSING)),
    plain("isCIDR", _LIB, "whether a text is a CIDR block", "isCIDR('10.0.0.0/8')", (STRING,), BOOL,
          _accepts(parse_cidr), reads(0, base=_PARSING)),
    function(
        "containsIP", _LIB, "whether an address lies in the block", "cidr('10.0.0.0/8').containsIP('10.1.2.3')",
        signature("containsIP", (CIDR_TYPE, IP_TYPE), BOOL, _contains_ip, receiver=True),
        signature("containsIP", (CIDR_TYPE, STRING), BOOL,
                  lambda block, text: _contains_ip(block, parse_ip(text)), receiver=True, cost=reads(1, base=_PARSING)),
    ),
    function(
        "containsCIDR", _LIB, "whether another block lies in the block",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        signature("containsCIDR", (CIDR_TYPE, CIDR_TYPE), BOOL, _contains_cidr, receiver=True),
        signature("containsCIDR", (CIDR_TYPE, STRING), BOOL,
                  lambda block, text: _contains_cidr(block, parse_cidr(text)), receiver=True, cost=reads(1, base=_PARSING)),
    ),
    method("masked", _LIB, "the block with its host bits cleared", "cidr('10.1.2.3/8').masked()",
           (CIDR_TYPE,), CIDR_TYPE, _masked, takes(2 * _TELLING)),
    method("prefixLength", _LIB, "the length of the prefix", "cidr('10.0.0.0/8').prefixLength() == 8",
           (CIDR_TYPE,), INT, lambda block: block.length),
    function(
        "string", _LIB, "addresses and blocks as text", "string(ip('10.0.0.1')) == '10.0.0.1'",
        signature("string", (IP_TYPE,), STRING, lambda ip: str(ip.address), cost=takes(_TELLING)),
        signature("string", (CIDR_TYPE,), STRING, lambda block: f"{block.address}/{block.length}", cost=takes(_TELLING)),
    ),
)  # fmt: skip
