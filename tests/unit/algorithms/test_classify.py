"""Classes and bands: whatever names the policy gives them."""

import pytest

from koordpolicy.algorithms.classify import Catalogue, PriorityBand, QoSClass

OWN = Catalogue(
    classes=(
        QoSClass("gold", ("Guaranteed", "Burstable"), "day"),
        QoSClass("iron", ("BestEffort",), "night"),
    ),
    bands=(PriorityBand("day", "own-day", 100, 199, 150), PriorityBand("night", "own-night", 1, 50, 10)),
)


@pytest.mark.parametrize(
    ("label", "kubernetes", "expected"),
    [
        (None, "Guaranteed", "gold"),
        ("iron", "Guaranteed", "iron"),
        ("IRON", "BestEffort", "iron"),
        ("", "Burstable", "gold"),
        (None, "", ""),
    ],
)
def test_effective_class(label: str | None, kubernetes: str, expected: str) -> None:
    assert OWN.effective_qos(label, kubernetes) == expected


@pytest.mark.parametrize(
    ("label", "priority", "expected"),
    [
        (None, 100, "day"),
        (None, 199, "day"),
        (None, 200, ""),
        (None, 0, ""),
        (None, None, ""),
        ("own-night", 150, "night"),
        ("unknown", 150, ""),
        ("", 150, ""),
    ],
)
def test_raw_band(label: str | None, priority: int | None, expected: str) -> None:
    assert OWN.raw_band(label, priority) == expected


def test_the_fallback_band_is_for_priorities_outside_all_bands() -> None:
    catalogue = Catalogue(OWN.classes.values(), OWN.bands.values(), fallback_band="night")
    assert catalogue.raw_band(None, 70) == "night"
    assert catalogue.raw_band(None, None) == ""
    assert catalogue.raw_band("unknown", 70) == ""


def test_resolution_with_defaults() -> None:
    found = OWN.resolve(None, None, 0, "BestEffort")
    assert (found.qos, found.raw_band, found.band, found.priority) == ("iron", "", "night", 10)
    found = OWN.resolve("nothing", "own-day", None, "BestEffort")
    assert (found.qos, found.raw_band, found.band, found.priority) == ("iron", "day", "day", 150)
    assert Catalogue((), ()).resolve("gold", "own-day", 7, "Guaranteed").band == ""


def test_where_two_claim_the_same_the_first_wins() -> None:
    catalogue = Catalogue(
        (QoSClass("a", ("BestEffort",)), QoSClass("b", ("BestEffort",))),
        (PriorityBand("x", "same", 1, 9, 1), PriorityBand("y", "same", 5, 20, 6)),
    )
    assert catalogue.effective_qos(None, "BestEffort") == "a"
    assert (catalogue.raw_band(None, 7), catalogue.raw_band("same", None)) == ("x", "x")
    assert catalogue.raw_band(None, 12) == "y"


def test_class_names_and_bands_translate_both_ways() -> None:
    for band in OWN.bands.values():
        assert OWN.band_of_class(band.class_name) == band.name
        assert OWN.class_name(band.name) == band.class_name
    assert (OWN.band_of_class("?"), OWN.class_name("?"), OWN.default_priority("")) == ("", "", 0)
