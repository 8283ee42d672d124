"""Certificates over time: at every moment whoever serves is believed by whoever was given the bundle."""

import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from koordpolicy.manager.webhooks.rotation import Chain, Lifetimes, renewed
from koordpolicy.runtime.http.issuing import belongs, make_authority, split, validity

SECOND = 10**9
NAMES = ("manager.example.svc", "127.0.0.1")
TIMES = Lifetimes(serving=90 * SECOND, authority=360 * SECOND, settle=5 * SECOND)
START = 1_800_000_000 * SECOND


def believes(bundle: bytes, chain: Chain) -> bool:
    """Whether somebody with that bundle believes who serves this."""
    assert chain.serving is not None
    return any(belongs(chain.serving, one, NAMES) for one in split(bundle))


def test_the_first_pair_is_made_and_kept() -> None:
    first = renewed(Chain(), NAMES, TIMES, START, None)
    assert believes(first.trusted, first)
    assert renewed(first, NAMES, TIMES, START + 30 * SECOND, None) == first
    assert Chain.read(first.data()) == first


def test_a_client_shakes_hands_with_it(tmp_path: Path) -> None:
    chain = renewed(Chain(), NAMES, TIMES, START, None)
    assert chain.serving is not None
    file = tmp_path / "pair.pem"
    file.write_bytes(chain.serving.certificate + chain.serving.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    client = ssl.create_default_context(cadata=chain.trusted.decode())
    client.verify_flags &= ~ssl.VERIFY_X509_STRICT
    assert client.cert_store_stats()["x509_ca"] == 1


@pytest.mark.parametrize("step", [1, 7, 20, 31])
@pytest.mark.parametrize("delay", [0, 3, 15])
def test_whoever_serves_is_believed_at_every_moment_of_three_generations(step: int, delay: int) -> None:
    """A replica may be a step behind, and API servers hear of a bundle `delay` seconds late."""
    chain = renewed(Chain(), NAMES, TIMES, START, None)
    given: list[tuple[int, bytes]] = [(START, chain.trusted)]
    before, authorities = chain, {chain.authority}
    for seconds in range(step, 1200, step):
        now = START + seconds * SECOND
        known = [bundle for since, bundle in given if since + delay * SECOND <= now] or [given[0][1]]
        fresh = renewed(chain, NAMES, TIMES, now, known[-1])
        for served in (before, chain, fresh):
            assert served.serving is not None
            if validity(served.serving.certificate).until > now:
                assert believes(known[-1], served), seconds
        assert validity(fresh.serving.certificate).until > now if fresh.serving else False
        if fresh.trusted != given[-1][1]:
            given.append((now, fresh.trusted))
        before, chain = chain, fresh
        authorities.add(chain.authority)
    assert len(authorities) > 2


def test_an_authority_that_nobody_was_told_of_does_not_sign() -> None:
    first = renewed(Chain(), NAMES, TIMES, START, None)
    late = renewed(first, NAMES, TIMES, START + 250 * SECOND, first.trusted)
    assert late.following is not None
    for believed in (None, first.trusted):
        later = renewed(late, NAMES, TIMES, START + 300 * SECOND, believed)
        assert (later.authority, later.following) == (first.authority, late.following)
    told = renewed(late, NAMES, TIMES, START + 300 * SECOND, late.trusted)
    assert told.authority == late.following
    assert first.authority is not None and first.authority.certificate in told.trusted


def test_what_is_over_is_made_anew_with_the_one_that_is_trusted_already() -> None:
    first = renewed(Chain(), NAMES, TIMES, START, None)
    late = renewed(first, NAMES, TIMES, START + 250 * SECOND, None)
    over = renewed(late, NAMES, TIMES, START + 400 * SECOND, None)
    assert over.authority == late.following
    assert first.authority is not None and first.authority.certificate not in over.trusted
    assert believes(over.trusted, over)


@pytest.mark.parametrize("spoiled", ["authority", "serving", "trusted"])
def test_what_cannot_be_read_is_made_anew(spoiled: str) -> None:
    first = renewed(Chain(), NAMES, TIMES, START, None)
    other = make_authority("other", START, 360 * SECOND)
    value = b"none" if spoiled == "trusted" else replace(other, certificate=b"none")
    mended = renewed(replace(first, **{spoiled: value}), NAMES, TIMES, START, None)  # type: ignore[arg-type]
    assert believes(mended.trusted, mended)


def test_other_names_need_another_pair() -> None:
    first = renewed(Chain(), NAMES, TIMES, START, None)
    moved = renewed(first, ("elsewhere.svc",), TIMES, START, None)
    assert moved.serving is not None and moved.authority is not None
    assert belongs(moved.serving, moved.authority.certificate, ("elsewhere.svc",))
    assert moved.authority == first.authority
