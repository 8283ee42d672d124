"""Peaks of pods, of bands of pods, of the system and the node: histograms of what each used, which fade with time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.agent.strategies.prediction_rules import SCALES, PredictionRules
from koordpolicy.algorithms.histogram import Checkpoint, CheckpointError, Histogram
from koordpolicy.model.facts import Record
from koordpolicy.model.reading import Amounts

NODE: Final = "node"
SYSTEM: Final = "system"


def band_key(band: str) -> str:
    """The key of all pods of a band together."""
    return f"band/{band}"


@dataclass(slots=True)
class PeakModel:
    """The histograms of one subject by resource, when they last got a sample and were last kept, in nanoseconds since 1970."""

    histograms: dict[str, Histogram]
    seen: int
    kept: int = 0


@dataclass(frozen=True, slots=True)
class UseSample:
    """What was used since the last sample, in millicores and bytes: of pods by UID, each with its band, and of the node."""

    pods: Mapping[str, tuple[str, Amounts]] = field(default_factory=dict)
    node: Amounts | None = None


class Peaks:
    """The models of one node. Memory is bounded by its pods: what is not measured is forgotten."""

    def __init__(self) -> None:
        self._models: dict[str, PeakModel] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._models

    def __len__(self) -> int:
        return len(self._models)

    def sample(self, use: UseSample, bands: Iterable[str], rules: PredictionRules, now: int) -> None:
        """Count what was used; bands of which no pod was measured have used nothing."""
        together = {band: dict.fromkeys(SCALES, 0) for band in bands}
        total = dict.fromkeys(SCALES, 0)
        for uid, (band, used) in use.pods.items():
            if not all(resource in used for resource in SCALES):
                continue
            self._add(uid, used, rules, now)
            for resource in SCALES:
                total[resource] += used[resource]
                together.setdefault(band, dict.fromkeys(SCALES, 0))[resource] += used[resource]
        for band, summed in together.items():
            self._add(band_key(band), summed, rules, now)
        if use.node is not None and all(resource in use.node for resource in SCALES):
            self._add(NODE, use.node, rules, now)
            rest = {resource: max(use.node[resource] - total[resource], 0) for resource in SCALES}
            self._add(SYSTEM, rest, rules, now)

    def peak(self, key: str, rules: PredictionRules) -> dict[str, int] | None:
        """What a pod (by its UID) or a group is predicted to use at most, before any margin; None for nothing known."""
        model = self._models.get(key)
        if model is None:
            return None
        return {
            resource: int(model.histograms[resource].percentile(peak.percentile) * SCALES[resource])
            for resource, peak in rules.peaks.items()
        }

    def forget(self, rules: PredictionRules, now: int) -> list[str]:
        """Forget what has not been measured for long, and say what that was: its checkpoint can go, too."""
        old = [key for key, model in self._models.items() if now - model.seen > rules.forget_after]
        for key in old:
            del self._models[key]
        return old

    def shed(self, most: int) -> list[str]:
        """Forget the models that were not measured for longest, beyond so many, and say which."""
        old = sorted(self._models, key=lambda key: self._models[key].seen)[: max(len(self._models) - most, 0)]
        for key in old:
            del self._models[key]
        return old

    def _add(self, key: str, used: Amounts, rules: PredictionRules, now: int) -> None:
        model = self._models.get(key)
        if model is None:
            made = {resource: peak.layout.histogram() for resource, peak in rules.peaks.items()}
            for histogram in made.values():
                histogram.begin_at(now)
            model = self._models[key] = PeakModel(made, now)
        for resource, histogram in model.histograms.items():
            histogram.add(used[resource] / SCALES[resource], 1.0, now)
        model.seen = now

    # --- checkpoints ------------------------------------------------------------------------------

    def due(self, rules: PredictionRules, most: int, now: int) -> list[str]:
        """The keys of which a checkpoint is due, the oldest first, at most so many."""
        late = [key for key, one in self._models.items() if now - one.kept >= rules.checkpoint_interval]
        return sorted(late, key=lambda key: self._models[key].kept)[:most]

    def checkpoint(self, key: str, now: int) -> Record:
        """A model in JSON; it counts as kept from then on. Raises KeyError."""
        model = self._models[key]
        model.kept = now
        shown: Record = {"key": key, "seen": model.seen}
        for resource, histogram in model.histograms.items():
            found = histogram.checkpoint()
            shown[resource] = {
                "total": found.total,
                "reference": found.reference,
                "weights": {str(bucket): weight for bucket, weight in found.weights.items()},
            }
        return shown

    def restore(self, said: Mapping[str, Any], rules: PredictionRules) -> None:
        """Take a checkpoint back. Raises CheckpointError for what is none, also of other buckets; nothing changes then."""
        try:
            key, seen = said["key"], said["seen"]
            found = {resource: _loaded(said[resource], rules, resource) for resource in rules.peaks}
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, CheckpointError):
                raise
            raise CheckpointError(f"not a checkpoint of a peak: {error}") from error
        if not isinstance(key, str) or not isinstance(seen, int):
            raise CheckpointError("not a checkpoint of a peak: it has no key and no time")
        self._models[key] = PeakModel(found, seen, seen)


def _loaded(said: Mapping[str, Any], rules: PredictionRules, resource: str) -> Histogram:
    histogram = rules.peaks[resource].layout.histogram()
    weights = {int(bucket): int(weight) for bucket, weight in said["weights"].items()}
    histogram.load(Checkpoint(float(said["total"]), weights, int(said["reference"])))
    return histogram
