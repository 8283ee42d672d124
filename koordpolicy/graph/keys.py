"""Which keys policies set in mappings of decisions, such as the labels of profiles."""

from collections import defaultdict

from koordpolicy.graph.graph import RuleGraph


def mapping_keys(graph: RuleGraph, kind: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """The keys by subject and field: `("app", "tier")` where `labels[app]` and `labels[tier]` are decisions."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for decision in graph.decisions:
        field, bracket, rest = decision.field.partition("[")
        if decision.kind == kind and bracket and rest.endswith("]"):
            found[decision.subject, field].append(rest[:-1])
    return {place: tuple(sorted(keys)) for place, keys in found.items()}
