"""Histories as text in an annotation: checkpoints of histograms, with the buckets that they count in.

    {"app": {"since": "2026-07-01T08:00:00Z", "last": "...", "shared": true,
             "cpu": {"first": 0.025, "growth": 0.05, "most": 1024.0, "halfLife": 43200.0, "totalWeight": 12.5,
                     "bucketWeights": {"14": 10000}, "referenceTimestamp": "..."}, "memory": {...}}}

`totalWeight`, `bucketWeights` and `referenceTimestamp` are Koordinator's; half-lives are seconds.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.algorithms.histogram import Checkpoint, CheckpointError, Histogram
from koordpolicy.algorithms.recommended import Layout, LayoutError
from koordpolicy.manager.recommender.histories import MOST_CONTAINERS, RESOURCES, ContainerHistory
from koordpolicy.model.pod import read_time
from koordpolicy.model.reading import Json, ObjectError, embedded_object, flag, mapping
from koordpolicy.model.time import NANOSECONDS, time_text

_LONGEST_HALF_LIFE: Final = 10 * 366 * 86_400
"""Seconds: of more, nothing fades within anybody's patience."""
_MOST_WEIGHT: Final = 10_000


def checkpoint_text(containers: Mapping[str, ContainerHistory]) -> str:
    """The histories of one Recommendation."""
    plain = {name: _plain(containers[name]) for name in sorted(containers)}
    return json.dumps(plain, separators=(",", ":"))


def read_checkpoint(source: str, at: str) -> dict[str, ContainerHistory]:
    """The histories that a text says. Raises ObjectError with the place of what is malformed."""
    found = embedded_object(source, at)
    if len(found) > MOST_CONTAINERS:
        raise ObjectError(f"{at}: more than {MOST_CONTAINERS} containers")
    return {name: _history(mapping(found, name, at), f"{at}.{name}") for name in found}


def _plain(history: ContainerHistory) -> dict[str, Any]:
    plain: dict[str, Any] = {"since": time_text(history.since), "last": time_text(history.last)}
    if history.shared:
        plain["shared"] = True
    for resource in RESOURCES:
        plain[resource] = _histogram(history.layouts[resource], history.histograms[resource])
    return plain


def _histogram(layout: Layout, histogram: Histogram) -> dict[str, Any]:
    checkpoint = histogram.checkpoint()
    return {
        "first": layout.first,
        "growth": layout.growth,
        "most": layout.most,
        "halfLife": layout.half_life / NANOSECONDS,
        "totalWeight": checkpoint.total,
        "bucketWeights": {str(bucket): weight for bucket, weight in checkpoint.weights.items()},
        "referenceTimestamp": time_text(checkpoint.reference),
    }


def _history(plain: Json, at: str) -> ContainerHistory:
    since, last = read_time(plain, "since", at), read_time(plain, "last", at)
    if since is None or last is None:
        raise ObjectError(f"{at}: `since` and `last` are missing")
    layouts, histograms = {}, {}
    for resource in RESOURCES:
        place = f"{at}.{resource}"
        said = mapping(plain, resource, at)
        try:
            layouts[resource] = _layout(said, place)
            histograms[resource] = layouts[resource].histogram()
            histograms[resource].load(_checkpoint(said, place))
        except (LayoutError, CheckpointError) as error:
            raise ObjectError(f"{place}: {error}") from None
    return ContainerHistory(layouts, histograms, since, last, flag(plain, "shared", at))


def _layout(said: Json, at: str) -> Layout:
    half_life = _number(said, "halfLife", at)
    if not 1 <= half_life <= _LONGEST_HALF_LIFE:
        raise ObjectError(f"{at}.halfLife: from a second to ten years, found {half_life}")
    layout = Layout(
        _number(said, "first", at),
        _number(said, "growth", at),
        _number(said, "most", at),
        round(half_life * NANOSECONDS),
    )
    layout.check()
    return layout


def _checkpoint(said: Json, at: str) -> Checkpoint:
    weights: dict[int, int] = {}
    listed = mapping(said, "bucketWeights", at)
    for bucket in listed:
        if not (bucket.isascii() and bucket.isdigit() and len(bucket) < 9):
            raise ObjectError(f"{at}.bucketWeights: a bucket is a whole number, found `{bucket[:40]}`")
        found = _number(listed, bucket, f"{at}.bucketWeights")
        if not 0 <= found <= _MOST_WEIGHT:
            raise ObjectError(f"{at}.bucketWeights[{bucket}]: a weight is from 0 to {_MOST_WEIGHT:,}")
        weights[int(bucket)] = int(found)
    reference = read_time(said, "referenceTimestamp", at)
    if reference is None:
        raise ObjectError(f"{at}: `referenceTimestamp` is missing")
    return Checkpoint(_number(said, "totalWeight", at), weights, reference)


def _number(said: Json, key: str, at: str) -> float:
    value = said.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ObjectError(f"{at}.{key}: expected a number")
    return float(value)
