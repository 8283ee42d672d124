import pytest

from koordpolicy.graph.diff import Told
from koordpolicy.graph.diff.moves import moves_of
from koordpolicy.graph.diff.words import moves_text, pair_text
from koordpolicy.language.cel.types import BOOL, CPU, DURATION, DYN, INT, MEMORY, PERCENT, STRING, Type
from koordpolicy.language.cel.values import Duration

GI = 1 << 30


@pytest.mark.parametrize(
    ("type", "old", "new", "text"),
    [
        (CPU, 32_000, 28_000, "32 -> 28 cores (-4, -12 %)"),
        (CPU, 500, 1_250, "0.5 -> 1.25 cores (+0.75, +150 %)"),
        (CPU, 4_120_000, 5_030_000, "4,120 -> 5,030 cores (+910, +22 %)"),
        (CPU, 0, 2_000, "0 -> 2 cores (+2)"),
        (CPU, -1_000, 2_000, "-1 -> 2 cores (+3)"),
        (CPU, -4_000, -2_000, "-4 -> -2 cores (+2, +50 %)"),
        (CPU, None, 2_000, "nothing -> 2 cores"),
        (MEMORY, 64 * GI, 48 * GI, "64Gi -> 48Gi (-16Gi, -25 %)"),
        (MEMORY, 82_463_372_083, 64 * GI, "76.8Gi -> 64Gi (-12.8Gi, -17 %)"),
        (MEMORY, 500, 1000, "500 -> 1,000 (+500, +100 %)"),
        (PERCENT, 60.0, 50.0, "60% -> 50%"),
        (DURATION, Duration(300 * 10**9), Duration(600 * 10**9), "5m -> 10m"),
        (BOOL, True, False, "true -> false"),
        (STRING, "LS", "BE", "LS -> BE"),
        (INT, 3, 4, "3 -> 4"),
        (DYN, None, ["a", "b"], "nothing -> [a, b]"),
    ],
)
def test_pairs(type: Type, old: object, new: object, text: str) -> None:
    assert pair_text(Told(type, old), Told(type, new)) == text


def test_an_error_is_no_value() -> None:
    assert pair_text(Told(CPU, 2000), Told(CPU, None, "no such key")) == "2 cores -> no answer: no such key"


@pytest.mark.parametrize(
    ("type", "answers", "roots", "text"),
    [
        (CPU, [(16_400, 10_000), (40_000, 36_900)], {"node"}, "falls by 3.1 to 6.4 cores (7.8 to 39 %) on everyday nodes"),
        (CPU, [(10_000, 12_000), (0, 4_500)], {"node", "pod"}, "rises by 2 to 4.5 cores on everyday nodes"),
        (CPU, [(10_000, 9_000), (10_000, 12_000)], {"pod"}, "moves by -1 to +2 cores (-10 to +20 %) for everyday pods"),
        (MEMORY, [(64 * GI, 48 * GI), (64 * GI, 63 * GI)], {"zone"}, "falls by 1 to 16Gi (1.6 to 25 %) on everyday nodes"),
        (MEMORY, [(4 * GI, 5 * GI), (GI // 2, GI)], {"node"}, "rises by 512Mi to 1Gi (25 to 100 %) on everyday nodes"),
        (CPU, [(2_000, 4_000), (8_000, 10_000)], {"node"}, "rises by 2 cores (25 to 100 %) on everyday nodes"),
    ],
)  # fmt: skip
def test_ranges(type: Type, answers: list[tuple[int, int]], roots: set[str], text: str) -> None:
    moves = moves_of(type, answers, roots)
    assert moves is not None
    assert moves_text(moves) == text


@pytest.mark.parametrize(
    ("type", "answers", "roots"),
    [
        (CPU, [(1_000, 2_000), (1_000, 2_000)], {"node"}),
        (CPU, [(1_000, 2_000), (None, 4_000)], {"node"}),
        (PERCENT, [(60.0, 50.0), (60.0, 40.0)], {"node"}),
        (CPU, [(1_000, 2_000), (3_000, 5_000)], {"rollout"}),
    ],
)
def test_no_range(type: Type, answers: list[tuple[int, int]], roots: set[str]) -> None:
    assert moves_of(type, answers, roots) is None
