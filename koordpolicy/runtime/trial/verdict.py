"""What is asked of a trial, and what it answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.lower.portable import Portable
from koordpolicy.runtime.policies.revisions import Reason

Rehearse = Callable[[RuleGraph], None]
"""Puts a graph to work as the component would, on a small example; raises `Unfit` where it cannot work with it."""


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """A revision to try: its texts by path, and those `above` it; `asked` are decisions whose programs are made ready too."""

    files: Mapping[str, str]
    asked: tuple[str, ...] = ()
    tests: bool = True
    above: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TrialVerdict:
    """How a trial ended: `reason` is None where the revision may be taken, and `message` one phrase otherwise.

    `found` are findings, errors or not, `packs` the texts that findings may point into and that the revision itself does not hold. `cpu` are seconds.
    """

    reason: Reason | None = None
    message: str = ""
    found: Diagnostics = field(default_factory=Diagnostics)
    packs: Mapping[str, str] = field(default_factory=dict)
    bundle: str = "policies"
    trace: str = ""
    """The traceback of a mistake of ours, for the log."""
    cpu: float = 0.0
    digest: str = ""
    """Of the graph, where there is one."""
    programs: Mapping[str, Portable] = field(default_factory=dict)
    """What was made ready of it by the decisions' names, so that it need not be made once more."""
    learned: bytes = field(default=b"", repr=False)
    """What the compiler made of it, checks aside: `wire.packed`."""
    keeper: int = 0
    """The process that is asked from now on, where it is another: that of the trial, which knows what it was good for."""


class TrialsLost(Exception):
    """The process that tries revisions is gone, and cannot be started again beside running threads."""
