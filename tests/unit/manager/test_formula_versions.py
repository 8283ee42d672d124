"""Revisions that say the same about overcommitted resources, however many documents say it."""

from typing import Any

from koordpolicy.manager.controllers.formula_versions import FormulaVersions
from tests.vectors.policies import document, graph

POOLS = 600


def test_a_version_is_another_only_by_what_speaks_of_formulas() -> None:
    def overcommit(name: str, share: str, **more: Any) -> dict[str, Any]:
        return document(
            "Overcommit", name, {"resource": "batch", "parameters": {"cpuReclaim": share}, **more}
        )

    pools = [
        overcommit(f"p{at}", "30%", match={"nodes": {"matchLabels": {"pool": f"p{at}"}}})
        for at in range(POOLS)
    ]
    other = document(
        "ColocationProfile", "o", {"match": {"pods": {"matchLabels": {"a": "b"}}}, "qosClass": "LS"}
    )
    versions = FormulaVersions()
    first = versions.of(graph(*pools, overcommit("share", "20%")))
    assert versions.of(graph(*pools, overcommit("share", "21%"))) != first
    assert versions.of(graph(*pools, overcommit("share", "20%"), other)) == first
