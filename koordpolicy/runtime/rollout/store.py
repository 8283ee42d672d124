"""Where rollouts are kept: a protocol, and a file for a process that is alone."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from koordpolicy.files import replace_file
from koordpolicy.model.policy_revision import RevisionAgents
from koordpolicy.model.reading import ObjectError
from koordpolicy.runtime.rollout.counts import ComparisonCounts
from koordpolicy.runtime.rollout.judging import Gathered
from koordpolicy.runtime.rollout.state import (
    RolloutAction,
    RolloutCommand,
    RolloutProgress,
    Subject,
    from_json,
    subject_from_json,
    subject_to_json,
    to_json,
)

FILE: Final = "rollout.json"
COMMAND_FILE: Final = "rollout-command.json"
_MOST_BYTES: Final = 4_000_000


class StoreTrouble(Exception):
    """The store cannot be read or written for now; the message says why."""


class RolloutStore(Protocol):
    """One rollout at a time is in progress. All methods raise `StoreTrouble`."""

    async def load(self, subject: Subject) -> RolloutProgress | None:
        """The state of this revision's rollout; None when it never began."""
        ...

    async def save(self, state: RolloutProgress) -> None:
        """Keep a state and show it to everybody."""
        ...

    async def unfinished(self) -> tuple[RolloutProgress, ...]:
        """Rollouts that have not come to an end."""
        ...

    async def command(self, subject: Subject) -> RolloutCommand | None:
        """What somebody asks of this rollout; the same until `done`."""
        ...

    async def done(self, subject: Subject, command: RolloutCommand) -> None:
        """The command has been obeyed, and the state that says so is saved."""
        ...

    async def publish(self, subject: Subject, step: str, counts: ComparisonCounts, *, canary: bool) -> None:
        """Tell the others what this process has counted in a step, and whether it decides by the new revision."""
        ...

    async def gathered(self, subject: Subject, step: str) -> Gathered:
        """What all processes, this one included, have counted in the step."""
        ...

    async def news(self, seconds: float) -> None:
        """Return when something may have changed, at the latest after so many seconds."""
        ...


class FileStore:
    """A rollout in a directory, for one process without a cluster. Commands come as a file beside it."""

    def __init__(self, directory: str | Path, *, poll: float = 0.5) -> None:
        self._path = Path(directory) / FILE
        self._command = Path(directory) / COMMAND_FILE
        self._poll = poll
        self._counted = ("", ComparisonCounts(), False)

    async def load(self, subject: Subject) -> RolloutProgress | None:
        """See `RolloutStore.load`. A file that cannot be understood counts as none: the rollout begins again."""
        state = await asyncio.to_thread(self.read)
        return state if state is not None and state.subject.name == subject.name else None

    async def unfinished(self) -> tuple[RolloutProgress, ...]:
        """See `RolloutStore.unfinished`."""
        state = await asyncio.to_thread(self.read)
        return () if state is None or state.phase.is_end else (state,)

    async def save(self, state: RolloutProgress) -> None:
        """See `RolloutStore.save`."""
        content = {"format": 1, "subject": subject_to_json(state.subject), "rollout": to_json(state)}
        await asyncio.to_thread(_write, self._path, content)

    async def command(self, subject: Subject) -> RolloutCommand | None:
        """See `RolloutStore.command`. Commands for other revisions are left alone."""
        said = await asyncio.to_thread(_read, self._command)
        if said is None or said.get("revision") not in ("", None, subject.name, subject.revision):
            return None
        action = said.get("command")
        if action not in tuple(RolloutAction):
            return None
        return RolloutCommand(RolloutAction(action), str(said.get("by", "")), str(said.get("id", "")))

    async def done(self, subject: Subject, command: RolloutCommand) -> None:
        """See `RolloutStore.done`."""
        await asyncio.to_thread(self._command.unlink, missing_ok=True)

    async def publish(self, subject: Subject, step: str, counts: ComparisonCounts, *, canary: bool) -> None:
        """See `RolloutStore.publish`."""
        self._counted = (step, counts, canary)

    async def gathered(self, subject: Subject, step: str) -> Gathered:
        """See `RolloutStore.gathered`."""
        counted, counts, canary = self._counted
        found = counts if counted == step else ComparisonCounts()
        return Gathered(found, 1, 0, int(canary), RevisionAgents(step=step, due=0))

    async def news(self, seconds: float) -> None:
        """See `RolloutStore.news`."""
        waited = 0.0
        while waited < seconds:
            pause = min(self._poll, seconds - waited)
            await asyncio.sleep(pause)
            waited += pause
            if await asyncio.to_thread(self._command.exists):
                return

    def read(self) -> RolloutProgress | None:
        """The state that is kept; None where there is none that can be understood. Raises `StoreTrouble`."""
        said = _read(self._path)
        if said is None:
            return None
        try:
            return from_json(subject_from_json(said.get("subject", {})), said.get("rollout", {}))
        except ObjectError:
            return None

    def ask(self, action: RolloutAction, revision: str, by: str, id: str) -> None:
        """Leave a command for the process that runs the rollout. Raises `StoreTrouble`."""
        _write(self._command, {"command": str(action), "revision": revision, "by": by, "id": id})


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        said = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreTrouble(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _write(path: Path, content: Mapping[str, Any]) -> None:
    """Replace the file as a whole."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(content, ensure_ascii=False, indent=1).encode())
    except OSError as error:
        raise StoreTrouble(f"{path} cannot be written: {error.strerror}") from None
