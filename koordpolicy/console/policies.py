"""The rule graph for the page: decisions as a list, the picture of one with places for its boxes, sources with line numbers."""

from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.console.worlds.world import CannotAnswer
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.describe import decision_data
from koordpolicy.graph.drawing import place_picture
from koordpolicy.graph.drawing.build import Detail, picture_of
from koordpolicy.graph.graph import UnknownDecision
from koordpolicy.runtime.policies.packs import OWN

_MOST: Final = 80
"""Decisions of one picture."""


class PolicyView:
    """What is asked of a graph and the texts that it was compiled from."""

    def __init__(self, graph: RuleGraph, sources: Mapping[str, str], name: str) -> None:
        self.graph = graph
        self.sources = sources
        self.name = name

    def decisions(self) -> list[dict[str, Any]]:
        """All decisions, with what a search looks at."""
        return [
            {
                "decision": str(key),
                "kind": key.kind,
                "target": key.target,
                "meaning": decision.meaning,
                "rules": len(decision.rules),
                "documents": sorted({rule.document for rule in decision.rules}),
                "askedBy": sorted(decision.components),
                "changed": any(rule.layer == OWN for rule in decision.rules),
            }
            for key, decision in self.graph.decisions.items()
        ]

    def drawn(self, name: str, *, overview: bool) -> dict[str, Any]:
        """The picture of a decision, or of all that share a target or kind. Raises `CannotAnswer`."""
        keys = [key for key in self.graph.decisions if name in (str(key), key.target, key.kind)]
        if not keys:
            try:
                keys = [self.graph.decision(name).key]
            except UnknownDecision as error:
                raise CannotAnswer(str(error)) from None
        if len(keys) > _MOST:
            overview = True
        picture = picture_of(self.graph, keys, Detail.DOCUMENTS if overview else None)
        placed = place_picture(picture)
        return {
            "title": name,
            "width": placed.width,
            "height": placed.height,
            "boxes": [
                {
                    "id": box.id,
                    "role": str(box.role),
                    "title": box.title,
                    "lines": list(box.lines),
                    "hint": box.hint,
                    "x": placed.boxes[box.id].x,
                    "y": placed.boxes[box.id].y,
                    "width": placed.boxes[box.id].width,
                    "height": placed.boxes[box.id].height,
                }
                for box in picture.boxes
            ],
            "arrows": [
                {
                    "from": arrow.source,
                    "to": arrow.target,
                    "way": [[spot.x, spot.middle, spot.x + spot.width, spot.middle] for spot in way],
                }
                for arrow, way in zip(picture.arrows, placed.ways, strict=True)
            ],
            "decisions": [decision_data(self.graph, key) for key in keys[:_MOST]],
        }

    def source(self, file: str) -> dict[str, Any]:
        """The text of a file of the revision. Raises `CannotAnswer`: no other file is ever read."""
        text = self.sources.get(file)
        if text is None:
            raise CannotAnswer(f"`{file}` is no file of these policies")
        return {"file": file, "text": text}
