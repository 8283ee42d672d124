"""The QoS classes and priority bands of a revision, evaluated once: for components and for CEL."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.algorithms.classify import Catalogue, PriorityBand, QoSClass
from koordpolicy.graph.rules import Decision, DecisionKey
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.types import BOOL, INT, STRING, Type, list_of, map_of

QOS_CLASS = "QoSClass"
PRIORITY_BAND = "PriorityBand"

NO_BAND = "none"
"""How policies write "no band" in lists of bands; in expressions it is the empty string."""


@dataclass(frozen=True, slots=True)
class Classes:
    """All fields of all classes and bands by their documents' names, as run-time values.

    Fields are named as in the documents: `classes.bands["batch"]["resources.mode"]`. An absent
    field was said by no document and has no default.
    """

    qos: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    bands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def resolver(self) -> Catalogue:
        """The catalogue that tells a pod's class and band."""
        return Catalogue(
            (
                QoSClass(
                    said.get("value", name),
                    tuple(said.get("kubernetes", ())),
                    band_name(said.get("defaultBand", "")),
                )
                for name, said in self.qos.items()
            ),
            (
                PriorityBand(
                    name,
                    said.get("priorityClass.name", name),
                    said["range.from"],
                    said["range.to"],
                    said.get("default", said["range.from"]),
                )
                for name, said in self.bands.items()
                if "range.from" in said and "range.to" in said
            ),
        )


def band_name(written: str) -> str:
    """The band as expressions see it."""
    return "" if written == NO_BAND else written


CATALOGUE_TYPES: Mapping[str, Type] = {
    "permittedBands": map_of(STRING, list_of(STRING)),
    "wholeCPUs": map_of(STRING, BOOL),
    "protectionOrder": map_of(STRING, INT),
    "bandOfClass": map_of(STRING, STRING),
    "defaultPriority": map_of(STRING, INT),
    "resourceNames": map_of(STRING, map_of(STRING, STRING)),
}
"""What expressions may read as `catalogue.<name>`."""


def classes_of(decisions: Mapping[DecisionKey, Decision], evaluate: Callable[[Decision], object]) -> Classes:
    """Evaluate every field of every class and band. Fields that fail or are null are left out."""
    found: dict[str, dict[str, dict[str, Any]]] = {QOS_CLASS: {}, PRIORITY_BAND: {}}
    for key, decision in decisions.items():
        if key.kind in found:
            said = found[key.kind].setdefault(key.subject, {})
            value = evaluate(decision)
            if value is not None:
                said[key.field] = value
    return Classes(*(dict(sorted(found[kind].items())) for kind in (QOS_CLASS, PRIORITY_BAND)))


def catalogue_constants(classes: Classes) -> dict[tuple[str, str], ir.Node]:
    """The constants behind `catalogue.<name>`."""
    qos = {said.get("value", name): said for name, said in classes.qos.items()}
    values: dict[str, dict[str, Any]] = {
        "permittedBands": {
            name: [band_name(band) for band in said.get("permittedBands", ())] for name, said in qos.items()
        },
        "wholeCPUs": {name: said.get("wholeCPUs", False) for name, said in qos.items()},
        "protectionOrder": {name: said.get("protectionOrder", 0) for name, said in qos.items()},
        "bandOfClass": {said.get("priorityClass.name", name): name for name, said in classes.bands.items()},
        "defaultPriority": {name: said.get("default", 0) for name, said in classes.bands.items()},
        # Bands that use cpu and memory under their own names are not in it; those without resources are.
        "resourceNames": {
            name: dict(said.get("resources.names", {}))
            for name, said in classes.bands.items()
            if said.get("resources.mode") in ("Translated", "Unavailable")
        },
    }
    return {("catalogue", name): constant(CATALOGUE_TYPES[name], value) for name, value in values.items()}
