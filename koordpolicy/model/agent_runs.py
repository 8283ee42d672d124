"""What the agents of a node say of the policies that they run, in annotations of its NodeMetric object."""

import json
from dataclasses import dataclass
from typing import Final

from koordpolicy.model.protocol import DRY_RUN_ANNOTATION, RUNS_ANNOTATION
from koordpolicy.model.reading import Json, embedded_object, mapping, text, texts

LONGEST_REASON: Final = 200
"""Characters of a reason: it stands in an object of every node."""


@dataclass(frozen=True, slots=True)
class AgentRuns:
    """Revisions as people call them: a commit, or `sha256:` with a digest; empty for none.

    `revision` decides; `digest` is that of what the agent has of it, which may be a part. `candidate` is held at a `stage` of
    its rollout. `rejected` is the newest one where it is no good, `reason` why in one word, `message` for people.
    `origin` is where policies come from.
    """

    revision: str = ""
    digest: str = ""
    candidate: str = ""
    stage: str = ""
    rejected: str = ""
    reason: str = ""
    message: str = ""
    origin: str = ""


def runs_text(runs: AgentRuns) -> str:
    """The text of the annotation: the same for the same value."""
    said = {
        "state": "Active" if runs.revision else "None",
        "revision": runs.revision,
        "digest": runs.digest,
        "candidate": runs.candidate,
        "stage": runs.stage,
        "rejected": runs.rejected,
        "reason": runs.reason,
        "message": _cut(runs.message),
        "origin": runs.origin,
    }
    return json.dumps({key: value for key, value in said.items() if value}, sort_keys=True)


def read_agent_runs(obj: Json) -> AgentRuns | None:
    """What a NodeMetric object says; None where no agent of ours has said anything. Raises ObjectError."""
    return _read(obj, RUNS_ANNOTATION)


def read_dry_run(obj: Json) -> AgentRuns | None:
    """The same of an agent in a dry run; None where there is none. Raises ObjectError."""
    return _read(obj, DRY_RUN_ANNOTATION)


def _read(obj: Json, annotation: str) -> AgentRuns | None:
    written = texts(mapping(obj, "metadata"), "annotations", "metadata").get(annotation)
    if written is None:
        return None
    at = f"metadata.annotations[{annotation}]"
    said = embedded_object(written, at)
    return AgentRuns(
        text(said, "revision", at),
        text(said, "digest", at),
        text(said, "candidate", at),
        text(said, "stage", at),
        text(said, "rejected", at),
        text(said, "reason", at),
        _cut(text(said, "message", at)),
        text(said, "origin", at),
    )


def _cut(message: str) -> str:
    return message if len(message) <= LONGEST_REASON else message[: LONGEST_REASON - 1] + "…"
