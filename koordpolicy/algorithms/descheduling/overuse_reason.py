"""Why a node is relieved, in words that Koordinator uses, too."""

from collections.abc import Mapping


def overuse_reason(
    usage: Mapping[str, int],
    capacity: Mapping[str, int],
    high: Mapping[str, int],
    shares: Mapping[str, float],
    *,
    prod: bool,
) -> str:
    """The resources of which more than `high` is used, by name. `shares` are the thresholds as policy says them, in percent."""
    of = "prod" if prod else "node"
    over = [
        f"{of} {name} usage({_share(used, capacity.get(name, 0)):.2f}%)>threshold({shares.get(name, 0.0):.2f}%)"
        for name, used in sorted(usage.items())
        if used > high.get(name, 0)
    ]
    return f"node is overutilized, {', '.join(over)}"


def _share(used: int, of: int) -> float:
    return 100 * used / of if of else 0.0
