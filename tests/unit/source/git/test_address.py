import pytest

from koordpolicy.source.git.address import BadAddress, parse

H = "host.example"


@pytest.mark.parametrize(
    ("given", "url", "shown", "scheme", "name", "login"),
    [
        (f"https://{H}/team/policies.git", None, None, "https", "policies", ("", None)),
        (f"https://{H}:8443/policies/", None, None, "https", "policies", ("", None)),
        (
            f"https://me:s%2Fcret@{H}/p.git?token=t",
            f"https://{H}/p.git?token=t",
            f"https://{H}/p.git",
            "https",
            "p",
            ("me", "s/cret"),
        ),
        (f"https://token:@{H}/p", f"https://{H}/p", f"https://{H}/p", "https", "p", ("token", "")),
        (f"https://me@{H}/p", f"https://me@{H}/p", f"https://{H}/p", "https", "p", ("me", None)),
        ("http://u:p@[::1]:80/p", "http://[::1]:80/p", "http://[::1]:80/p", "http", "p", ("u", "p")),
        (f"ssh://git@{H}:22/~me/p.git", None, f"ssh://{H}:22/~me/p.git", "ssh", "p", ("git", None)),
        (f"git@{H}:team/p.git", None, None, "ssh", "p", ("", None)),
        (f"{H}:p.git", None, None, "ssh", "p", ("", None)),
        ("/srv/git/p.git", None, None, "file", "p", ("", None)),
        ("../p.git/", None, None, "file", "p", ("", None)),
        ("./a:b", None, None, "file", "b", ("", None)),
        ("/home/me/policies/.git", None, None, "file", "policies", ("", None)),
        ("file:///srv/p.git", None, None, "file", "p", ("", None)),
    ],
)
def test_addresses(
    given: str, url: str | None, shown: str | None, scheme: str, name: str, login: tuple[str, str | None]
) -> None:
    address = parse(given)
    assert (address.url, address.shown) == (url or given, shown or given)
    assert (address.scheme, address.name) == (scheme, name)
    assert (address.username, address.password) == login
    assert "s/cret" not in repr(address)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "-x",
        "--upload-pack=touch /tmp/x",
        "a b",
        "a\nb",
        "ext::sh -c x",
        "ext::sh",
        "fd::17",
        "https::x",
        "ftp://host/x",
        "https:///x",
        "https://host",
        "https://host/.git",
        "https://host:port/x",
        "https://[/x",
        "ssh://-oProxyCommand=x/y",
        "/",
        "..",
    ],
)
def test_what_is_no_address(given: str) -> None:
    with pytest.raises(BadAddress):
        parse(given)


def test_passwords_go_to_their_server_only() -> None:
    assert parse(f"https://me:x@{H}:8443/a/b").server == f"https://{H}:8443"
    assert parse(f"https://me@{H}/a/b").server == f"https://{H}"
    assert parse(f"ssh://git@{H}/a").server == ""


def test_a_safe_way_never_becomes_an_unsafe_one() -> None:
    assert parse(f"https://{H}/a").protocols == ("https",)
    assert parse(f"http://{H}/a").protocols == ("https", "http")
    assert parse("/a").protocols == ("file",)
