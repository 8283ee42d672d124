"""PolicyRevision as a value: a revision of a policy bundle, and which processes run it.

Times are RFC 3339 texts as the API writes them. `to_json` leaves out what is empty, so that a process that applies
a part of the object owns just that part.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from koordpolicy.model.protocol import KOORDPOLICY_API
from koordpolicy.model.reading import Json, ObjectError, integer, mapping, objects, text, text_list

KIND: Final = "PolicyRevision"
MOST_DIAGNOSTICS: Final = 20
"""How many diagnostics a status shows; their number stands beside them."""

MOST_LAGGING: Final = 100
"""How many agents a status names at most."""

MOST_PUT_OFF: Final = 20
"""How many sorts of requests an instance says are put off."""

MOST_HISTORY: Final = 50
"""How many entries the history of a rollout keeps, the newest."""

_HEX_DIGITS_IN_NAME = 12
_LONGEST_NAME = 253
_NO_DNS = re.compile(r"[^a-z0-9.-]+")


class InstanceState(StrEnum):
    """What a process makes of a revision.

    ACTIVE decides by it, REJECTED cannot, SHADOW only compares its answers, CANARY decides by it for a part.
    """

    ACTIVE = "Active"
    REJECTED = "Rejected"
    SHADOW = "Shadow"
    CANARY = "Canary"


@dataclass(frozen=True, slots=True)
class StatusCondition:
    """One aspect of the state, as Kubernetes words them; `status` is True, False or Unknown, as text."""

    type: str
    status: str
    reason: str
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int | None = None


@dataclass(frozen=True, slots=True)
class ShownDiagnostic:
    """One finding as a status shows it; `line` and `column` count from 1, 0 where there is no place."""

    severity: str
    code: str
    message: str
    path: str = ""
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Instance:
    """One process and what it makes of the revision. `name` is its pod, or its node.

    `put_off` are requests, such as `patch nodes`, of which the API server has taken none for long: all had the answer 429.
    """

    name: str
    component: str
    state: InstanceState
    node: str = ""
    since: str = ""
    put_off: tuple[str, ...] = ()


class LaggingState(StrEnum):
    """Why an agent does not run a revision that it should.

    REJECTED cannot take it, BEHIND runs another one or none, SILENT has not reported for too long to say what it runs.
    """

    REJECTED = "Rejected"
    SILENT = "Silent"
    BEHIND = "Behind"


@dataclass(frozen=True, slots=True)
class LaggingAgent:
    """The agent of one node that does not run the revision. `revision` is what it runs, empty for nothing."""

    node: str
    state: LaggingState
    revision: str = ""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class RevisionAgents:
    """What the agents of all nodes make of a revision, added up.

    `running` decide by it, `shadow` and `canary` hold it at a stage of its rollout, `rejected` cannot take it. Of the
    revision that all are to run `total` are all agents, `behind` those with another one, `silent` those that do not report;
    of any other they are None and 0. Of one that is at a `step` of its rollout `due` are the agents of nodes that go ahead: of
    them `behind` do not decide by it yet, and `silent` do not report. `lagging` are the first of those that do not run it, the worst first.
    """

    running: int = 0
    shadow: int = 0
    canary: int = 0
    rejected: int = 0
    behind: int = 0
    silent: int = 0
    total: int | None = None
    lagging: tuple[LaggingAgent, ...] = ()
    step: str = ""
    due: int | None = None

    @property
    def deciding(self) -> int:
        """How many decide by it."""
        return self.running + self.canary

    @property
    def seen(self) -> int:
        """How many have got it."""
        return self.running + self.shadow + self.canary + self.rejected

    @property
    def words(self) -> str:
        """For a column of a table: `118/120`, `2`; empty for none."""
        if self.due is not None:
            return f"{self.deciding}/{self.due}"
        if self.total is None:
            return str(self.running) if self.running else ""
        return f"{self.running}/{self.total}"


NO_AGENTS: Final = RevisionAgents()


@dataclass(frozen=True, slots=True)
class RolloutState:
    """How the revision goes live."""

    phase: str
    step: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class RevisionStatus:
    """What became of the revision. `diagnostics` are the first of `diagnostics_total`."""

    observed_generation: int | None = None
    conditions: tuple[StatusCondition, ...] = ()
    diagnostics: tuple[ShownDiagnostic, ...] = ()
    diagnostics_total: int | None = None
    rules: int | None = None
    instances: tuple[Instance, ...] = ()
    rollout: RolloutState | None = None
    agents: RevisionAgents = NO_AGENTS


@dataclass(frozen=True, slots=True)
class PolicyRevision:
    """One revision of a bundle. `revision` is what people call it: its commit, or else its digest."""

    bundle: str
    revision: str
    digest: str
    commit: str = ""
    origin: str = ""
    status: RevisionStatus = field(default_factory=RevisionStatus)

    @property
    def name(self) -> str:
        """The object's name: the bundle and the first digits of commit or digest."""
        return revision_name(self.bundle, self.commit or self.digest)


def revision_name(bundle: str, commit_or_digest: str) -> str:
    """`<bundle>-<first 12 digits>`, in letters that Kubernetes takes; a `sha256:` before the digits goes."""
    digits = commit_or_digest.rpartition(":")[2][:_HEX_DIGITS_IN_NAME].lower()
    words = _NO_DNS.sub("-", bundle.lower()).strip(".-") or "bundle"
    return f"{words[: _LONGEST_NAME - 1 - _HEX_DIGITS_IN_NAME].rstrip('.-')}-{digits}"


def to_json(revision: PolicyRevision) -> dict[str, Any]:
    """The object as the API takes it, with its status; empty fields are left out."""
    spec = _filled(
        bundle=revision.bundle,
        revision=revision.revision,
        commit=revision.commit,
        digest=revision.digest,
        origin=revision.origin,
    )
    status = status_to_json(revision.status)
    return {
        "apiVersion": KOORDPOLICY_API,
        "kind": KIND,
        "metadata": {"name": revision.name},
        "spec": spec,
        **({"status": status} if status else {}),
    }


def status_to_json(status: RevisionStatus) -> dict[str, Any]:
    """The status alone; empty fields are left out, diagnostics beyond the first 20 too."""
    rollout = status.rollout
    return _filled(
        observedGeneration=status.observed_generation,
        conditions=[_condition_to_json(one) for one in status.conditions],
        diagnostics=[_diagnostic_to_json(one) for one in status.diagnostics[:MOST_DIAGNOSTICS]],
        diagnosticsTotal=status.diagnostics_total,
        rules=_filled(total=status.rules),
        instances=[_instance_to_json(one) for one in status.instances],
        rollout=rollout and _filled(phase=rollout.phase, step=rollout.step, message=rollout.message),
        agents=agents_to_json(status.agents),
    )


def agents_to_json(agents: RevisionAgents) -> dict[str, Any]:
    """What agents make of a revision; nothing where none has anything to do with it."""
    if agents == NO_AGENTS:
        return {}
    return _filled(
        summary=agents.words,
        total=agents.total,
        running=agents.running,
        shadow=agents.shadow,
        canary=agents.canary,
        rejected=agents.rejected,
        behind=agents.behind,
        silent=agents.silent,
        step=agents.step,
        due=agents.due,
        lagging=[
            _filled(
                node=one.node,
                state=str(one.state),
                revision=one.revision,
                reason=one.reason,
                message=one.message,
            )
            for one in agents.lagging[:MOST_LAGGING]
        ],
    )


def _condition_to_json(one: StatusCondition) -> dict[str, Any]:
    # The API server wants a message in every condition, an empty one too.
    return {
        "type": one.type,
        "status": one.status,
        "reason": one.reason,
        "message": one.message,
        **_filled(
            lastTransitionTime=one.last_transition_time,
            observedGeneration=one.observed_generation,
        ),
    }


def _diagnostic_to_json(one: ShownDiagnostic) -> dict[str, Any]:
    return _filled(
        severity=one.severity,
        code=one.code,
        path=one.path,
        line=one.line or None,
        column=one.column or None,
        message=one.message,
    )


def _instance_to_json(one: Instance) -> dict[str, Any]:
    return _filled(
        name=one.name,
        component=one.component,
        node=one.node,
        state=str(one.state),
        since=one.since,
        putOff=list(one.put_off[:MOST_PUT_OFF]),
    )


def _filled(**fields: Any) -> dict[str, Any]:
    """The fields that say something; 0 does."""
    return {key: value for key, value in fields.items() if value not in (None, "", [], {})}


def from_json(obj: Mapping[str, Any]) -> PolicyRevision:
    """The value of an object as read. Raises `ObjectError` where it has not the shape of a PolicyRevision."""
    spec = mapping(obj, "spec")
    return PolicyRevision(
        text(spec, "bundle", "spec"),
        text(spec, "revision", "spec"),
        text(spec, "digest", "spec"),
        text(spec, "commit", "spec"),
        text(spec, "origin", "spec"),
        _status(mapping(obj, "status")),
    )


def _status(status: Json) -> RevisionStatus:
    at = "status"
    rollout = mapping(status, "rollout", at)
    return RevisionStatus(
        integer(status, "observedGeneration", at),
        tuple(_condition(one) for one in objects(status, "conditions", at)),
        tuple(_diagnostic(one) for one in objects(status, "diagnostics", at)),
        integer(status, "diagnosticsTotal", at),
        integer(mapping(status, "rules", at), "total", "status.rules"),
        tuple(_instance(one) for one in objects(status, "instances", at)),
        RolloutState(
            text(rollout, "phase", "status.rollout"),
            integer(rollout, "step", "status.rollout") or 0,
            text(rollout, "message", "status.rollout"),
        )
        if rollout
        else None,
        agents_of(status),
    )


def agents_of(status: Json) -> RevisionAgents:
    """What a status says of agents. Raises `ObjectError`."""
    at = "status.agents"
    said = mapping(status, "agents", "status")

    def count(key: str) -> int:
        return integer(said, key, at) or 0

    return RevisionAgents(
        count("running"),
        count("shadow"),
        count("canary"),
        count("rejected"),
        count("behind"),
        count("silent"),
        integer(said, "total", at),
        tuple(_lagging(one) for one in objects(said, "lagging", at)),
        text(said, "step", at),
        integer(said, "due", at),
    )


def _lagging(one: Json) -> LaggingAgent:
    at = "status.agents.lagging"
    written = text(one, "state", at)
    if written not in tuple(LaggingState):
        raise ObjectError(f"{at}.state: `{written}` is none of {', '.join(LaggingState)}")
    return LaggingAgent(
        text(one, "node", at),
        LaggingState(written),
        text(one, "revision", at),
        text(one, "reason", at),
        text(one, "message", at),
    )


def _condition(one: Json) -> StatusCondition:
    at = "status.conditions"
    return StatusCondition(
        text(one, "type", at),
        text(one, "status", at),
        text(one, "reason", at),
        text(one, "message", at),
        text(one, "lastTransitionTime", at),
        integer(one, "observedGeneration", at),
    )


def _diagnostic(one: Json) -> ShownDiagnostic:
    at = "status.diagnostics"
    return ShownDiagnostic(
        text(one, "severity", at),
        text(one, "code", at),
        text(one, "message", at),
        text(one, "path", at),
        integer(one, "line", at) or 0,
        integer(one, "column", at) or 0,
    )


def _instance(one: Json) -> Instance:
    at = "status.instances"
    written = text(one, "state", at)
    if written not in tuple(InstanceState):
        raise ObjectError(f"{at}.state: `{written}` is none of {', '.join(InstanceState)}")
    return Instance(
        text(one, "name", at),
        text(one, "component", at),
        InstanceState(written),
        text(one, "node", at),
        text(one, "since", at),
        tuple(text_list(one, "putOff", at)),
    )
