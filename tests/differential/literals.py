"""Random literals: the texts that functions read as something else, and the edges of every type."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from koordpolicy.language.cel.escapes import quote_bytes, quote_string

_CHARACTERS = (
    "a",
    "b",
    "A",
    "z",
    "0",
    "7",
    "é",
    "€",
    "😀",
    " ",
    "-",
    ".",
    ",",
    "_",
    "/",
    "\n",
    "\t",
    "\x1c",
    "%",
    "\\",
    '"',
)
_WORDS = (
    "",
    "a",
    "b",
    "ab",
    "aab",
    "abc",
    "a,b",
    "é€",
    "10",
    "1.5",
    "true",
    "koord-batch",
    "Gold-7",
    "aéb",
    "x y",
    "-1",
)
_ATOMS = (
    "a", "b", "é", ".", "\\d", "\\w", "\\s", "\\D", "\\W", "\\b", "\\B", "^", "$", "\\A", "\\z", "[a-c]", "[^a]", "[[:alpha:]]",
    "[[:^digit:]]", "\\pL", "\\p{Greek}", "\\PL", "\\x61", "\\x{20ac}", "\\Qa.b\\E", "\\n", "\\.", "[\\d-]", "[]a]", "", "-", "\\C",
    "\\07", "\\_", "\\Z", "\\h", "[a\\C]", "(?i)", "(?s)", "(?m)", "(?U)", "(?i-s)", "x",
)  # fmt: skip
_GROUPS = (
    "({})",
    "(?:{})",
    "(?i:{})",
    "(?P<n>{})",
    "(?<m>{})",
    "(?P<é>{})",
    "(?P<1>{})",
    "(?={})",
    "(?s-i:{})",
    "(?U:{})",
    "{}|{}",
    "{}{}",
    "{}{}",
)
_REPEATS = (
    "*",
    "+",
    "?",
    "*?",
    "+?",
    "??",
    "{2}",
    "{1,2}",
    "{,2}",
    "{2,}",
    "{0}",
    "{0,1}?",
    "**",
    "{1001}",
    "{2,1}",
)
_ZONES = (
    "UTC", "", "Asia/Shanghai", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "+01:00", "-08:30", "02:00", "+14:00",
    "23:59", "-23:59", "24:00", "+1:00", "Nowhere/Land", "utc", "EST", "+00:60", "01", "Asia/Kathmandu",
)  # fmt: skip
_NUMERALS = (
    "0", "1", "-1", "+1", "007", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551615", "18446744073709551616", "1.5", "-0.0", ".5", "5.", "1e3", "1E-3", "1e400", "1e-400", "NaN", "nan", "inf",
    "-Infinity", "+inf", "infinity", "0x10", "1_000", " 1", "1 ", "", "-", "true", "True", "TRUE", "t", "T", "f", "F", "False", "tRUE",
    "1e", "4.9e-324", "1.7976931348623157e308", "0b1", "0x1p4", "١",
)  # fmt: skip
_DATES = (
    "2009-02-13T23:31:30Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00Z", "2262-04-11T23:47:16.854775807Z",
    "2262-04-11T23:47:16.854775808Z", "1677-09-21T00:12:43.145224192Z", "1677-09-21T00:12:43.145224191Z", "2999-12-31T00:00:00Z",
    "2024-02-29T12:00:00+05:30", "2023-02-29T12:00:00Z", "2023-01-01T24:00:00Z", "2023-01-01T23:59:60Z", "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2023-1-1T00:00:00Z", "2023-01-01 00:00:00Z", "2023-01-01T00:00:00",
    "2023-01-01T00:00:00z", "2023-01-01t00:00:00Z", "2023-01-01T00:00:00.Z", "2023-01-01T00:00:00,5Z", "2023-01-01T00:00:00.1234567891Z",
    "2023-06-30T00:00:00+24:00", "2023-06-30T00:00:00-00:00", "10000-01-01T00:00:00Z", "", "2021-03-28T02:30:00+01:00",
)  # fmt: skip
_DURATIONS = (
    "0", "0s", "1s", "-1s", "+1s", "1h30m", "1.5h", "-1.5s", "100ms", "1us", "1µs", "1μs", "1ns", "9223372036854775807ns", "9223372036854775808ns",
    "-9223372036854775808ns", "-9223372036854775809ns", "2562047h47m16.854775807s", "2562047h47m16.854775808s", "1d", "1", "", "-", "s", ".5s", "5.s",
    ".s", "1s1h", "1 s", "1h 30m", "0.000000001s", "0.0000000001s", "1e3s", "1S", "315576000000s", "0.1ns", "-0s", "1.s", "3.9999999999s",
    "9223372036854775.807999ms", "00001s", "1H", "1ms1us1ns",
)  # fmt: skip
_BASE64 = (
    "",
    "YQ==",
    "YQ=",
    "YQ",
    "YWI=",
    "YWI",
    "YWJj",
    "YWJj=",
    "YWJjZA==",
    "YW\nJj",
    "YW Jj",
    "Y",
    "-_-_",
    "+/+/",
    "====",
    "=",
    "YQ==YQ==",
    "YR==",
    "é",
    "YWJjZ",
    "AAAAA",
    "abcd=",
    "ab=c",
    "QUJD\r\n",
)
_IPS = (
    "10.0.0.1", "127.0.0.1", "0.0.0.0", "255.255.255.255", "169.254.1.1", "224.0.0.1", "239.1.2.3", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.1.1.1",  # noqa: S104
    "::", "::1", "fe80::1", "fe80::1%eth0", "ff02::1", "ff0e::1", "2001:db8::68", "2001:DB8::68", "2001:db8:0:0:0:0:0:68", "::ffff:1.2.3.4",
    "::ffff:0:0", "::ffff:102:304", "::1.2.3.4", "1::2::3", "::ffff:0:0:0", "64:ff9b::1", "2001:db8::1:0:0:1", "2001:0:0:1::1", "", "a", " 1.1.1.1",
    "fec0::1", "febf::1", "ff12::1", "ff01::1", "ff05::2", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8:9", "00001::", "::00001", "g::",
    "1.2.3.4/8", "１.2.3.4",
)  # fmt: skip
_LENGTHS = (
    "/8",
    "/0",
    "/32",
    "/33",
    "/64",
    "/128",
    "/129",
    "/08",
    "/-1",
    "/",
    "",
    "/8/8",
    "/ 8",
    "/24",
    "/+8",
    "/96",
    "/100",
)
_REPLACEMENTS = ("", "x", "\\0", "<\\1>", "\\2", "\\\\", "\\", "\\a", "é\\1\\0", "$1", "\\10", "\\9")
_VERBS = (
    "%s",
    "%s",
    "%d",
    "%f",
    "%.2f",
    "%.0f",
    "%e",
    "%.3e",
    "%b",
    "%o",
    "%x",
    "%X",
    "%%",
    "a",
    "é ",
    "%.100f",
    "%5d",
    "%",
    "%q",
    "%.d",
    "%.3d",
    "%.1s",
)
_URLS = (
    "https://example.com:80/a?b=c&b=d&e", "/path", "http://[::1]:8080/x", "https://user:pw@host/", "", "a", "http://", "//host/x", "https://a.b/c%20d?x=%41+y",
    "https://a b", "http://host:99999", "ftp://h/#f", "/a?b=%zz", "/%zz", "mailto:x@y", "http://h:port/", "https://é.com/é", "http://[fe80::1%25en0]/",
    "/?a=1;b=2", "http://h?", "HTTP://H/p", "/a//b", "http://[::1", "http://h/?a=b=c&=d&&", "/a#b",
)  # fmt: skip
_QUANTITIES = (
    "1", "500m", "1.5Gi", "1e3", "1E3", "-1", "+1", "0", "1n", "1u", "0.1n", "1k", "1K", "1Ki", "1M", "1Mi", "1E", "1Ei", "9223372036854775807", "9223372036854775808",
    "8Ei", "1e30", "1e-30", "", "m", ".5", "5.", ".", "1.5", "1 Gi", "1gi", "12345678901234567890.123456789", "1e3Gi", "0x1", "-500m", "100P", "1mi", "1e+3", "1e", "1.000000001",
    "0.0000000001", "1ki", "1i", "9.5E", "1e18", "1e19",
)  # fmt: skip

Draw = Callable[[Random], str]


def _one(lines: Sequence[str]) -> Draw:
    return lambda chance: quote_string(chance.choice(lines))


def _text(chance: Random) -> str:
    if chance.random() < 0.6:
        return quote_string(chance.choice(_WORDS))
    return quote_string("".join(chance.choices(_CHARACTERS, k=chance.randrange(6))))


def expression_of_letters(chance: Random, depth: int = 3) -> str:
    """A regular expression, most of them well formed."""
    if depth <= 0 or chance.random() < 0.3:
        found = chance.choice(_ATOMS)
    else:
        shape = chance.choice(_GROUPS)
        parts = [expression_of_letters(chance, depth - 1) for _ in range(shape.count("{}"))]
        found = shape.replace("{}", "\0")
        for part in parts:
            found = found.replace("\0", part, 1)
    if chance.random() < 0.35:
        found += chance.choice(_REPEATS)
    return found


def _pattern(chance: Random) -> str:
    found = expression_of_letters(chance)
    if chance.random() < 0.05 and found:
        at = chance.randrange(len(found))
        found = found[:at] + chance.choice("()[]{}*+?|\\^$-:<P") + found[at + chance.randrange(2) :]
    return quote_string(found)


def _template(chance: Random) -> str:
    return quote_string(
        "".join(chance.choices(_VERBS[:-6] if chance.random() < 0.9 else _VERBS, k=chance.randrange(4)))
    )


def _int(chance: Random) -> str:
    edges = (
        "0",
        "1",
        "2",
        "3",
        "7",
        "-1",
        "-2",
        "63",
        "64",
        "9223372036854775807",
        "-9223372036854775808",
        "9007199254740993",
        "0x10",
        "-0x8",
    )
    return (
        chance.choice(edges)
        if chance.random() < 0.8
        else str(chance.randrange(-(2**63), 2**63) >> chance.randrange(64))
    )


def _double(chance: Random) -> str:
    edges = (
        "0.0", "-0.0", "1.0", "-1.5", "0.5", "2.5", "3.5", "1e308", "-1e308", "5e-324", "1e-7", "0.0001", "123456.0", "1234567.0", "1e21", "9007199254740993.0",
        "9223372036854775807.0", "-9223372036854775808.0", "18446744073709551615.0", "0.1", "4503599627370496.5", "0.49999999999999994", "(0.0/0.0)", "(1.0/0.0)", "(-1.0/0.0)",
    )  # fmt: skip
    if chance.random() < 0.8:
        return chance.choice(edges)
    return repr(
        chance.choice((chance.uniform(-10, 10), chance.uniform(-1, 1) * 10.0 ** chance.randrange(-20, 20)))
    )


def _bytes(chance: Random) -> str:
    known = (b"", b"a", b"ab", "é".encode(), b"\xff", b"\xc3", b"\x00a", b"\xed\xa0\x80")
    return quote_bytes(chance.choice(known))


LITERALS: Mapping[str, Draw] = {
    "int": _int,
    "uint": lambda chance: chance.choice(("0u", "1u", "5u", "18446744073709551615u", "9223372036854775808u", "0xffu")),
    "double": _double,
    "bool": lambda chance: chance.choice(("true", "false")),
    "string": _text,
    "bytes": _bytes,
    "null": lambda _: "null",
    "pattern": _pattern,
    "replacement": _one(_REPLACEMENTS),
    "template": _template,
    "zone": _one(_ZONES),
    "numeral": _one(_NUMERALS),
    "date": _one(_DATES),
    "span": _one(_DURATIONS),
    "base64": _one(_BASE64),
    "address": _one(_IPS),
    "block": lambda chance: quote_string(chance.choice(_IPS) + chance.choice(_LENGTHS)),
    "link": _one(_URLS),
    "amount": _one(_QUANTITIES),
    "timestamp": lambda chance: f"timestamp({quote_string(chance.choice(_DATES[:9]))})",
    "duration": lambda chance: f"duration({quote_string(chance.choice(_DURATIONS[:14]))})",
    "ip": lambda chance: f"ip({quote_string(chance.choice(_IPS[:7]))})",
    "cidr": lambda chance: f"cidr({quote_string(chance.choice(_IPS[:7]) + chance.choice(_LENGTHS[:3]))})",
    "url": lambda chance: f"url({quote_string(chance.choice(_URLS[:4]))})",
    "quantity": lambda chance: f"quantity({quote_string(chance.choice(_QUANTITIES[:9]))})",
    "type": lambda chance: chance.choice(("int", "uint", "double", "bool", "string", "bytes", "list", "map", "type", "null_type", "optional_type")),
}  # fmt: skip
"""Kind of expression → a literal of it. Kinds from `pattern` to `amount` are strings."""
