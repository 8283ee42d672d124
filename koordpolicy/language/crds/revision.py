"""The parts of the definitions that no policy model says: status, and PolicyRevision."""

from typing import Any

from koordpolicy.language.crds.structural import Schema
from koordpolicy.model.policy_revision import (
    MOST_DIAGNOSTICS,
    MOST_HISTORY,
    MOST_LAGGING,
    MOST_PUT_OFF,
    InstanceState,
    LaggingState,
)

_MOST_MESSAGE = 32_768
_MOST_REASON = 1024
_MOST_NAME = 316

_MOST_INSTANCES = 20_000


def _text(meaning: str, most: int, **rules: Any) -> Schema:
    return {"description": meaning, "type": "string", "maxLength": most, **rules}


def _whole(meaning: str) -> Schema:
    return {"description": meaning, "type": "integer", "format": "int64", "minimum": 0}


_TIME: Schema = {"type": "string", "format": "date-time"}

_CONDITION: Schema = {
    "description": "One aspect of the state, as Kubernetes words them.",
    "type": "object",
    "required": ["type", "status", "reason", "message", "lastTransitionTime"],
    "properties": {
        "type": _text("What is spoken of: Ready, Reconciling, Stalled.", _MOST_NAME, minLength=1),
        "status": {
            "description": "Whether it is so.",
            "type": "string",
            "enum": ["True", "False", "Unknown"],
        },
        "reason": _text(
            "Why, in one word for programs.",
            _MOST_REASON,
            minLength=1,
            pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        ),
        "message": _text("Why, for people.", _MOST_MESSAGE),
        "lastTransitionTime": {"description": "When the status became this one.", **_TIME},
        "observedGeneration": _whole("Generation of the object that this was said of."),
    },
}


def _list(meaning: str, item: Schema, most: int, *keys: str) -> Schema:
    kind = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {
        "description": meaning,
        "type": "array",
        "items": item,
        "maxItems": most,
        **(kind if keys else {"x-kubernetes-list-type": "atomic"}),
    }


def _object(meaning: str, *required: str, **properties: Schema) -> Schema:
    rules: Schema = {"required": list(required)} if required else {}
    return {"description": meaning, "type": "object", **rules, "properties": properties}


_ROLLOUT: Schema = {
    "stepName": _text("Name of the step.", 63),
    "previous": _text("The revision that decides until then.", 256),
    "startTime": {"description": "When the rollout began.", **_TIME},
    "stepTime": {"description": "When the step began.", **_TIME},
    "pausedSeconds": _whole("How long the step has been paused before."),
    "pauseTime": {"description": "When the present pause began.", **_TIME},
    "failing": _list(
        "Guards that fail.",
        _object(
            "A guard, and since when it fails.",
            guard=_text("Name of the guard.", 63),
            since={"description": "Since when.", **_TIME},
        ),
        50,
    ),
    "handled": _text("The last command that was obeyed.", 256),
    "watchTime": {
        "description": "When the guards were looked at last, as far as that is written: each minute.",
        **_TIME,
    },
    "history": _list(
        "What happened, the newest last.",
        _object(
            "One thing that happened.",
            time={"description": "When.", **_TIME},
            event=_text("What, in one word for programs.", 63),
            message=_text("What, for people.", _MOST_MESSAGE),
            by=_text("Who asked for it.", 1024),
        ),
        MOST_HISTORY,
    ),
    "observations": _list(
        "What processes have counted; each writes its own entry.",
        _object(
            "Answers of both revisions, compared by one process in one step.",
            "name",
            name=_text("Name of the process.", _MOST_NAME, minLength=1),
            step=_text("Name of the step.", 63),
            canary={
                "description": "Whether the process decides by the revision for a part.",
                "type": "boolean",
            },
            activeMicroseconds=_whole("Time spent by the old revision on these inputs."),
            candidateMicroseconds=_whole("Time spent by the new revision on the same inputs."),
            kinds=_list(
                "By kind of decision.",
                _object(
                    "The decisions of one kind.",
                    kind=_text("The kind.", 63),
                    compared=_whole("On which both revisions were asked."),
                    different=_whole("On which they gave different answers."),
                    failed=_whole("On which only the new revision failed."),
                ),
                100,
            ),
        ),
        _MOST_INSTANCES,
        "name",
    ),
}

_DIAGNOSTIC: Schema = {
    "description": "One thing that is wrong with the policies.",
    "type": "object",
    "required": ["severity", "code", "message"],
    "properties": {
        "severity": {"description": "How bad it is.", "type": "string", "enum": ["error", "warning", "info"]},
        "code": _text("Stable code; `koordpolicy explain` has a page on each.", 20),
        "path": _text("File, or `Kind/name` of an object.", 1024),
        "line": _whole("Line, from 1."),
        "column": _whole("Column, from 1."),
        "message": _text("What is wrong.", _MOST_MESSAGE),
    },
}

_SHARED: Schema = {
    "observedGeneration": _whole("Generation of the object that the status speaks of."),
    "conditions": {
        "description": "Ready, and while they hold Reconciling and Stalled.",
        "type": "array",
        "items": _CONDITION,
        "maxItems": 32,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    },
    "diagnostics": {
        "description": "What is wrong, the first of it.",
        "type": "array",
        "items": _DIAGNOSTIC,
        "maxItems": MOST_DIAGNOSTICS,
        "x-kubernetes-list-type": "atomic",
    },
    "diagnosticsTotal": _whole("How many diagnostics there are in all."),
}

STATUS: Schema = {
    "description": "What became of the document.",
    "type": "object",
    "properties": {
        **_SHARED,
        "revision": _text("Revision that the document is part of.", 256),
    },
}
"""The status of every policy kind."""

_INSTANCE: Schema = {
    "description": "One process, and what it makes of the revision.",
    "type": "object",
    "required": ["name", "component", "state"],
    "properties": {
        "name": _text("Name of the process: its pod, or its node.", _MOST_NAME, minLength=1),
        "component": _text("What it is: scheduler, manager, agent, descheduler, ...", 63),
        "node": _text("Node that it runs on.", 253),
        "state": {
            "description": "Active: it decides by this revision. Rejected: it cannot. Shadow: it only compares. "
            "Canary: it decides by it for a part.",
            "type": "string",
            "enum": [str(state) for state in InstanceState],
        },
        "since": {"description": "Since when.", **_TIME},
        "putOff": {
            "description": "Requests, such as `patch nodes`, of which the API server has taken none for long: it answers 429.",
            "type": "array",
            "items": {"type": "string", "maxLength": 316},
            "maxItems": MOST_PUT_OFF,
            "x-kubernetes-list-type": "atomic",
        },
    },
}


_LAGGING: Schema = _object(
    "The agent of one node that does not run the revision.",
    "node",
    "state",
    node=_text("The node.", 253, minLength=1),
    state={
        "description": "Rejected: it cannot take the revision. Silent: it has not reported for too long to say. "
        "Behind: it runs another one, or none.",
        "type": "string",
        "enum": [str(state) for state in LaggingState],
    },
    revision=_text("What it runs; absent for nothing.", 256),
    reason=_text("Why, in one word for programs.", _MOST_REASON),
    message=_text("Why, for people.", _MOST_REASON),
)

_AGENTS: Schema = _object(
    "What the agents of all nodes make of it, added up by the manager that leads.",
    summary=_text("How many run it, of how many, for a column of a table.", 63),
    total=_whole("All agents; only of the revision that all are to run."),
    running=_whole("How many decide by it."),
    shadow=_whole("How many compare their answers with it, in its rollout."),
    canary=_whole("How many decide by it, in its rollout."),
    rejected=_whole("How many cannot take it."),
    behind=_whole("How many run another one, or none; in its rollout, of those that are due."),
    silent=_whole("How many have not reported for too long to say; in its rollout, of those that are due."),
    step=_text("The step of its rollout at which that was counted.", 63),
    due=_whole("At that step, agents of nodes that go ahead."),
    lagging=_list("The first of those that do not run it, the worst first.", _LAGGING, MOST_LAGGING),
)


def revision_schema() -> Schema:
    """The schema of PolicyRevision: one revision of a bundle, and which processes run it."""
    spec = {
        "description": "Which revision it is.",
        "type": "object",
        "required": ["bundle", "revision", "digest"],
        "properties": {
            "bundle": _text("Name of the bundle.", 253, minLength=1),
            "revision": _text(
                "What people call it: the commit where there is one, else the digest.", 256, minLength=1
            ),
            "commit": _text("Git commit, where one is known.", 64),
            "digest": _text("Digest of its content.", 128),
            "origin": _text("Where it came from: a repository, a path, the cluster.", 2048),
        },
    }
    status = {
        "description": "What became of it.",
        "type": "object",
        "properties": {
            **_SHARED,
            "rules": {
                "description": "Size of the rule graph.",
                "type": "object",
                "properties": {"total": _whole("Number of rules.")},
            },
            "instances": {
                "description": "The processes that have seen it, each in its own entry; agents of nodes are added up under `agents`.",
                "type": "array",
                "items": _INSTANCE,
                "maxItems": _MOST_INSTANCES,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name", "component"],
            },
            "agents": _AGENTS,
            "rollout": {
                "description": "How it goes live.",
                "type": "object",
                "properties": {
                    "phase": _text("Phase of the rollout.", 63),
                    "step": _whole("Step of the rollout, from 0."),
                    "message": _text("What it waits for, or why it ended.", _MOST_MESSAGE),
                    **_ROLLOUT,
                },
            },
        },
    }
    return {
        "description": "A revision of a policy bundle that processes of this cluster have seen.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }
