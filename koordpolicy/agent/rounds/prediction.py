"""Rounds of prediction: samples of what was used, checkpoints on disk, and what a report says of it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.measurements.levels import CPU, MEMORY, NODE
from koordpolicy.agent.measurements.table import MeasurementTable
from koordpolicy.agent.peak_files import PeakFiles
from koordpolicy.agent.strategies.peaks import Peaks, UseSample
from koordpolicy.agent.strategies.prediction import TOGETHER, NotPredicted, all_predictions
from koordpolicy.agent.strategies.prediction_rules import KIND, SCALES, PredictionRules, prediction_rules
from koordpolicy.algorithms.histogram import CheckpointError
from koordpolicy.algorithms.peak import Prediction
from koordpolicy.algorithms.recommended import LayoutError
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.pod import Pod
from koordpolicy.model.reading import NOTHING, Amounts

_CHECKPOINTS: Final = 12
"""Files that are written in one round: a checkpoint is a whole histogram."""
_GROUPS: Final = 64
"""Models beside those of pods: bands, the system, the node."""
_ENDED: Final = 2
"""Models for each pod that is measured: those that have ended are remembered for a while."""


class PredictionRounds:
    """The peaks of one node. `files` keep them for the next process; None keeps them in memory alone."""

    def __init__(self, files: PeakFiles | None) -> None:
        self._files = files
        self._rules: PredictionRules | None = None
        self._peaks = Peaks()
        self._restored = False
        self.predicted: Mapping[str, Prediction] = {}
        """What was predicted for the last report, by method."""
        self.trouble = ""
        """Why nothing is reclaimed; empty when something may be."""

    def __len__(self) -> int:
        return len(self._peaks)

    def interval(self, otherwise: int) -> int:
        """Nanoseconds between samples; `otherwise` while policy says none."""
        return otherwise if self._rules is None else self._rules.interval

    async def round(self, frame: NodeFrame) -> None:
        """Take a sample of each pod, of bands, system and node; keep what is due. Raises `CelError`."""
        rules = self._decide(frame)
        if rules is None:
            return
        most = _ENDED * frame.collection.most_pods + _GROUPS
        if not self._restored and self._files is not None:
            await self._restore(self._files, rules, most)
        try:
            self._peaks.sample(self._used(frame, rules), _bands(frame), rules, frame.now)
        except LayoutError as problem:
            self.trouble = f"{KIND}: {problem}"
            return
        gone = self._peaks.forget(rules, frame.now) + self._peaks.shed(most)
        if self._files is not None:
            due = self._peaks.due(rules, _CHECKPOINTS, frame.now)
            kept = [self._peaks.checkpoint(key, frame.now) for key in due]
            await asyncio.to_thread(self._keep, self._files, kept, gone)

    def told(self, metric: NodeMetric, frame: NodeFrame, pods: Sequence[Pod]) -> NodeMetric:
        """A report with what may be reclaimed; nothing of it where nothing is predicted. `pods` are those of the frame's facts."""
        rules = self._rules
        if rules is None:
            self.predicted, self.trouble = {}, "no policy predicts peaks here"
            return metric
        try:
            self.predicted = all_predictions(frame.record, pods, self._peaks, rules, frame.now)
        except NotPredicted as problem:
            self.predicted, self.trouble = {}, str(problem)
            return replace(metric, prod_reclaimable=NOTHING, prod_peak=None)
        self.trouble = ""
        found = self.predicted.get(rules.method, self.predicted[TOGETHER])
        return replace(metric, prod_reclaimable=dict(found.reclaimable), prod_peak=dict(found.peak))

    def _decide(self, frame: NodeFrame) -> PredictionRules | None:
        rules = prediction_rules(frame.graph, frame.record, frame.now)
        if rules is None:
            self._rules, self._peaks = None, Peaks()
            return None
        before = self._rules
        if before is not None and _layouts(before) != _layouts(rules):
            self._peaks = Peaks()  # other buckets: what was counted in those before means nothing in them
        self._rules = rules
        return rules

    async def _restore(self, files: PeakFiles, rules: PredictionRules, most: int) -> None:
        self._restored = True
        broken = []
        for said in await asyncio.to_thread(lambda: list(files.load(most))):
            try:
                self._peaks.restore(said, rules)
            except CheckpointError:
                broken.append(str(said.get("key", "")))
        await asyncio.to_thread(files.remove, broken)

    @staticmethod
    def _keep(files: PeakFiles, kept: Sequence[Mapping[str, object]], gone: Sequence[str]) -> None:
        files.save(kept)
        files.remove(gone)

    @staticmethod
    def _used(frame: NodeFrame, rules: PredictionRules) -> UseSample:
        used = _sampled(frame.found.pods, frame, rules)
        bands = {str(pod.get("uid", "")): str(pod["band"]) for pod in frame.pod_records}
        return UseSample(
            {uid: (bands[uid], amounts) for uid, amounts in used.items() if uid in bands},
            _sampled(frame.found.node, frame, rules).get(NODE),
        )


def _sampled(table: MeasurementTable[str], frame: NodeFrame, rules: PredictionRules) -> dict[str, Amounts]:
    """What each subject used since the last sample, of which it was measured in everything that is predicted."""
    found: dict[str, dict[str, int]] = {}
    for measure in (CPU, MEMORY):
        excerpt = table.excerpt(measure, frame.monotonic, rules.interval)
        for subject, value in excerpt.percentile(rules.peaks[measure].sampled).items():
            found.setdefault(subject, {})[measure] = int(value * SCALES[measure])
    return {subject: amounts for subject, amounts in found.items() if len(amounts) == len(SCALES)}


def _bands(frame: NodeFrame) -> list[str]:
    return ["", *frame.graph.catalogue.bands]


def _layouts(rules: PredictionRules) -> list[object]:
    return [peak.layout for peak in rules.peaks.values()]
