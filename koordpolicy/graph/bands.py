"""What the revision's priority bands say about resources."""

from collections.abc import Mapping

from koordpolicy.graph.graph import RuleGraph


def band_resources(graph: RuleGraph, band: str) -> Mapping[str, str]:
    """The names that a band has for native resources; empty when its pods keep them or have none."""
    said = graph.classes.bands.get(band, {})
    names: Mapping[str, str] = said.get("resources.names", {})
    return names if said.get("resources.mode") == "Translated" else {}


def announced_resources(graph: RuleGraph) -> tuple[str, ...]:
    """The resources that an annotation repeats for those who see containers but not the pod."""
    return graph.once("announced resources", lambda: _announced(graph))


def _announced(graph: RuleGraph) -> tuple[str, ...]:
    return tuple(
        name
        for band, said in graph.classes.bands.items()
        if said.get("resources.announced")
        for name in band_resources(graph, band).values()
    )


def translated_resources(graph: RuleGraph) -> frozenset[str]:
    """The names of all bands for native resources."""
    return frozenset(name for band in graph.classes.bands for name in band_resources(graph, band).values())


def bands_up_to(graph: RuleGraph, band: str) -> frozenset[str]:
    """A band and all bands below it, by their default priorities."""
    bands = graph.catalogue.bands
    if band not in bands:
        return frozenset((band,))
    return frozenset(name for name, one in bands.items() if one.default <= bands[band].default)
