from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.diagnostics.nearest import nearest

FACTS = (
    "node.usage.prod.cpu",
    "node.usage.prod.memory",
    "node.usage.system.cpu",
    "node.capacity.cpu",
    "pod.qos",
)


@pytest.mark.parametrize(
    ("name", "candidates", "meant"),
    [
        ("minimun", ("maximum", "minimum", "mechanism"), "minimum"),
        ("taget", ("target", "trigger"), "target"),
        ("tagrets", ("target", "trigger"), "target"),
        ("CpuSupress", ("CPUBurst", "CPUSuppress"), "CPUSuppress"),
        ("cpu_reclaim", ("cpuReclaim", "cpuReclaims"), "cpuReclaim"),
        ("node.usage.prd.cpu", FACTS, "node.usage.prod.cpu"),
        ("node.capacity.cpus", FACTS, "node.capacity.cpu"),
        ("KP24", ("KP204", "KP301"), "KP204"),
        ("qs", ("qos", "band"), "qos"),
        ("MATCH", ("match",), "match"),
        ("marg", ("threshold", "margin"), "margin"),
        ("bands", ("value", "permittedBands", "defaultBand"), "permittedBands"),
    ],
)
def test_a_slip_finds_what_was_meant(name: str, candidates: tuple[str, ...], meant: str) -> None:
    assert nearest(name, candidates) == meant


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("colour", ("target", "minimum")),
        ("ab", ("xy", "abcd")),
        ("marg", ("margin", "margrave")),
        ("int", ("interval",)),
        ("x", ("y", "z")),
        ("xy", ("yx1", "zz")),
        ("", ("a",)),
        ("target", ()),
        ("pod.queue.length", FACTS),
        ("a" * 1_000, ("a" * 999,)),
    ],
)
def test_what_is_not_close_is_not_suggested(name: str, candidates: tuple[str, ...]) -> None:
    assert nearest(name, candidates) is None


def test_a_name_is_never_its_own_suggestion() -> None:
    assert nearest("target", ("target", "targets")) == "targets"


def test_of_two_equally_close_ones_the_first_is_taken() -> None:
    assert nearest("cat", ("car", "cap")) == "car"
    assert nearest("cat", ("cap", "car")) == "cap"


def test_of_two_equally_close_ones_the_first_of_the_same_letters_is_taken() -> None:
    assert nearest("bba", ("ba", "bab")) == "bab"
    assert nearest("abcabc", ("abcbac", "bacabc")) == "abcbac"


WORDS = st.text("abcd.", max_size=9)


@given(WORDS, st.lists(WORDS, max_size=5))
def test_agrees_with_the_definition(name: str, candidates: list[str]) -> None:
    """The definition written down without any short cut."""

    def plain(word: str) -> str:
        return word.replace(".", "")

    def distance(one: str, other: str) -> int:
        @cache
        def of(i: int, j: int) -> int:
            if i == 0 or j == 0:
                return i + j
            ways = [of(i - 1, j) + 1, of(i, j - 1) + 1, of(i - 1, j - 1) + (one[i - 1] != other[j - 1])]
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                ways.append(of(i - 2, j - 2) + 1)
            return min(ways)

        return of(len(one), len(other))

    word = plain(name)
    allowed = min(4, max(1, len(name) // 3))
    expected: str | None = None
    close = [
        (distance(word, plain(candidate)), sorted(plain(candidate)) != sorted(word), place)
        for place, candidate in enumerate(candidates)
        if candidate != name and len(plain(candidate)) > 1
    ]
    close = [one for one in close if one[0] <= allowed and one[0] < len(word)]
    same = [place for place, c in enumerate(candidates) if c != name and word and plain(c) == word]
    longer = [
        candidate
        for candidate in candidates
        if candidate != name
        and plain(candidate).startswith(word)
        and max(3, len(plain(candidate)) / 2) <= len(word)
    ]
    if name and (same or close):
        expected = candidates[same[0] if same else min(close)[-1]]
    elif name and len(longer) == 1:
        expected = longer[0]
    assert nearest(name, candidates) == expected
