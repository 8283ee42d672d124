"""The door: one place through which every write of a kernel file goes."""

import errno
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from koordpolicy.linux.cgroups.hierarchy import Hierarchy, LocatedFile
from koordpolicy.linux.errors import KernelFileError, NoSuchFile, OutsideRoot
from koordpolicy.linux.files.kernel_file import FilePlace, MergeRule
from koordpolicy.linux.files.table import KERNEL_FILES
from koordpolicy.linux.root import KernelRoot
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.journal import Original, UndoJournal
from koordpolicy.linux.writes.merge import Meeting, meeting
from koordpolicy.linux.writes.write import ARRIVED, CHANGED, FileOutcome, FileWrite, FileWriteResult

_TRANSIENT: Final = frozenset({errno.EBUSY, errno.EAGAIN, errno.EINTR})
_MOST_DOUBLINGS: Final = 32

_Key: TypeAlias = tuple[str, str]
"""A file's path, and which line of it."""


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """How the door remembers and tries again; times in nanoseconds.

    A file that was written or found equal is not looked at for `refresh`; then it is, so that what others
    wrote meanwhile is put right, and `early` before that where there is a round of writes anyhow: of files that were written at
    different times many are then looked at together. Whoever waits for a group that is not there asks again after `absent`. A
    write that the kernel calls busy is made up to `attempts` times at once. One
    that it refuses is tried again the next time it is asked for, then not before `first_delay`, twice that, up to
    `longest_delay`; another value is tried at once. Of at most `most_files` files is known what they said before.
    """

    refresh: int
    attempts: int
    first_delay: int
    longest_delay: int
    most_files: int
    early: int = 0
    absent: int = 0


@dataclass(slots=True)
class _KnownFile:
    """What is known of a file, or of one line of it. `original` gives back what it said first; None: not written yet."""

    write: FileWrite
    place: LocatedFile
    text: str = ""
    at: int = 0
    original: str | None = None
    refused: str = ""
    refusals: int = 0
    retry_at: int = 0
    untaken: str = ""
    """The text that the kernel did not take, where something else was written instead."""
    held: str = ""
    """What the file said after the write, where that was something else."""


class KernelDoor:
    """Writes to the files of a root. Safe for one thread at a time.

    `clock` gives nanoseconds that never go back; should they, nothing is remembered any longer than `refresh`.
    With `plan_only` nothing is ever written: what would be is `PLANNED`. A `journal` keeps what files said before they were
    written, for the process after one that is killed: `restore` takes it over.
    """

    def __init__(
        self,
        root: KernelRoot,
        hierarchy: Hierarchy,
        clock: Callable[[], int],
        limits: DoorLimits,
        log: WriteLog,
        *,
        plan_only: bool = False,
        journal: UndoJournal | None = None,
    ) -> None:
        self._journal = None if plan_only else journal
        self._root = root
        self._hierarchy = hierarchy
        self._clock = clock
        self._limits = limits
        self._log = log
        self._plan_only = plan_only
        self._took = 0
        """Nanoseconds that the kernel took for the write that is told of next."""
        self._known: OrderedDict[_Key, _KnownFile] = OrderedDict()
        self._admitted: OrderedDict[FileWrite, tuple[LocatedFile, _Key, str]] = OrderedDict()
        """Writes that were admitted before: they are again, as table and hierarchy stay."""
        self._missing: OrderedDict[str, tuple[str, str, int]] = OrderedDict()
        """Paths of files that a group does not have, with its target, what was said, and until when nobody looks again."""

    def write(self, writes: Sequence[FileWrite]) -> tuple[FileWriteResult, ...]:
        return tuple(self._write(one) for one in writes)

    def write_leveled(self, levels: Sequence[Sequence[FileWrite]]) -> tuple[FileWriteResult, ...]:
        ends: dict[tuple[int, int], FileWriteResult] = {}
        left: list[list[tuple[int, FileWrite]]] = []
        for depth, level in enumerate(levels):
            left.append([])
            for index, one in enumerate(level):
                result = self._meet(one)
                if result is None:
                    left[-1].append((index, one))
                else:
                    ends[depth, index] = result
        for depth in reversed(range(len(left))):
            for index, one in left[depth]:
                ends[depth, index] = self._write(one)
        return tuple(ends[depth, index] for depth, level in enumerate(levels) for index in range(len(level)))

    def write_with_parent(
        self, child: FileWrite, parent: FileWrite, *, parent_first: bool
    ) -> tuple[FileWriteResult, FileWriteResult]:
        # Both follow from what the files said a moment ago: what is remembered of them does not count.
        if not parent_first:
            made = self._write(child, looks=True)
            changed = made.outcome in CHANGED
            return made, self._write(parent, looks=True) if changed else _waiting(parent, child)
        if self._is_delayed(child):
            return self._write(child), _waiting(parent, child)
        above, made = self._write(parent, looks=True), self._write(child, looks=True)
        if made.outcome in CHANGED or above.outcome is not FileOutcome.WRITTEN or above.before is None:
            return made, above
        found = self._admit(parent)
        if isinstance(found, FileWriteResult):
            return made, above
        place, key, _text = found
        original = place.entry.form.before(parent.value, above.before)
        if original is not None:
            above = replace(self._put(parent, place, key, original), problem=_waiting(parent, child).problem)
        return made, replace(above, outcome=FileOutcome.DELAYED)

    def restore(self) -> int:
        """Know what the process before has written and not undone, so that `undo` gives it back; how many files that are."""
        for one in () if self._journal is None else self._journal.load():
            found = self._admit(one.write)
            if not isinstance(found, FileWriteResult):
                place, key, _text = found
                self._keep(key, one.write, place).original = one.text
        return len(self._known)

    def undo(self, choose: Callable[[FileWrite], bool]) -> tuple[FileWriteResult, ...]:
        chosen = [
            (key, known, known.original)
            for key, known in self._known.items()
            if known.original is not None and choose(known.write)
        ]
        chosen.sort(key=lambda one: one[0][0].count("/"))
        results: dict[_Key, FileWriteResult] = {}
        left = []
        for key, known, original in chosen:
            between = self._meeting(known.place, original)
            if between.now is not None:
                results[key] = self._put(known.write, known.place, key, between.now)
            if not between.final:
                left.append((key, known, original))
        for key, known, original in reversed(left):
            results[key] = self._put(known.write, known.place, key, original)
        for key, _, _ in chosen:
            if results[key].outcome is not FileOutcome.FAILED:
                self._known.pop(key, None)
                self._let_go(key)
        return tuple(results[key] for key, _, _ in chosen)

    def forget(self, target: str) -> None:
        ended = [
            key
            for key, known in self._known.items()
            if known.write.target == target or known.write.target.startswith(f"{target}/")
        ]
        for key in ended:
            del self._known[key]
            self._let_go(key)
        for path in [
            path for path, one in self._missing.items() if one[0] == target or one[0].startswith(f"{target}/")
        ]:
            del self._missing[path]

    def quiet_until(self, results: Sequence[FileWriteResult]) -> int:
        now = self._clock()
        if self._plan_only:
            return now
        until = now + self._limits.refresh
        for one in results:
            if (
                one.outcome in ARRIVED
                or one.outcome is FileOutcome.DELAYED
                or one.outcome is FileOutcome.FAILED
            ):
                known = self._known.get((one.path, self._key_of(one)))
                if known is None:
                    return now
                arrived = one.outcome in ARRIVED
                until = min(until, known.at + self._limits.refresh if arrived else known.retry_at)
            elif one.outcome is FileOutcome.UNSUPPORTED and one.path:
                missing = self._missing.get(one.path)
                until = min(until, now + self._limits.absent if missing is None else missing[2])
        return until

    def _is_fresh(self, known: _KnownFile) -> bool:
        return 0 <= self._clock() - known.at < self._limits.refresh - self._limits.early

    def _key_of(self, result: FileWriteResult) -> str:
        admitted = self._admitted.get(result.write)
        return "" if admitted is None else admitted[1][1]

    def _write(self, write: FileWrite, *, looks: bool = False) -> FileWriteResult:
        """Make a write; with `looks` the file is looked at, whatever is remembered of it."""
        found = self._admit(write)
        if isinstance(found, FileWriteResult):
            return found
        place, key, text = found
        known = self._known.get(key)
        fresh = known is not None and not place.file.appends and self._is_fresh(known)
        same = known is not None and known.text == text and known.write.otherwise == write.otherwise
        if known is not None and fresh and same and not looks:
            return FileWriteResult(write, FileOutcome.REMEMBERED, place.path, held=known.held)
        if known is not None and known.refused == text and self._clock() < known.retry_at:
            return FileWriteResult(
                write, FileOutcome.DELAYED, place.path, problem="refused by the kernel lately"
            )
        return self._put(write, place, key, text)

    def _is_delayed(self, write: FileWrite) -> bool:
        found = self._admit(write)
        known = None if isinstance(found, FileWriteResult) else self._known.get(found[1])
        refused = known is not None and not isinstance(found, FileWriteResult) and known.refused == found[2]
        return known is not None and refused and self._clock() < known.retry_at

    def _meet(self, write: FileWrite) -> FileWriteResult | None:
        """The first half of a leveled write, on the way down; None where its second half is to come."""
        row = KERNEL_FILES.get(write.file)
        if row is None or row.merge is MergeRule.NONE:
            return self._write(write)
        found = self._admit(write)
        if isinstance(found, FileWriteResult):
            return found
        place, key, text = found
        known = self._known.get(key)
        if known is not None and known.text == text and self._is_fresh(known):
            return FileWriteResult(write, FileOutcome.REMEMBERED, place.path)
        if place.path in self._missing:
            return self._write(write)
        between = self._meeting(place, text)
        if between.final:
            return self._write(write)
        if between.now is not None:
            self._put(write, place, key, between.now)
        return None

    def _meeting(self, place: LocatedFile, text: str) -> Meeting:
        try:
            return meeting(place, self._root.read(place.path), text)
        except KernelFileError:
            return Meeting(text, final=True)  # the write itself tells what is wrong

    def _admit(self, write: FileWrite) -> FileWriteResult | tuple[LocatedFile, _Key, str]:
        """Where a write goes, under which key it is remembered, and what is written; or why it is not made."""
        known = self._admitted.get(write)
        if known is not None:
            return known
        found = self._admit_new(write)
        if not isinstance(found, FileWriteResult):
            self._admitted[write] = found
            while len(self._admitted) > self._limits.most_files:
                self._admitted.popitem(last=False)
        return found

    def _admit_new(self, write: FileWrite) -> FileWriteResult | tuple[LocatedFile, _Key, str]:
        row = KERNEL_FILES.get(write.file)
        if row is None:
            return self._refused(write, "no file of the table has this name")
        if write.writer not in row.writers:
            return self._refused(write, f"{write.writer} does not write this file")
        problem = _target_problem(row.place, write.target)
        if problem is not None:
            return self._refused(write, problem)
        places = self._hierarchy.located(write.file, write.target)
        if not places:
            problem = "no version of cgroups that is mounted has this file"
            return FileWriteResult(write, FileOutcome.UNSUPPORTED, problem=problem)
        place = places[0]
        refusal = place.entry.refusal(write.value)
        if refusal is not None:
            return self._refused(write, refusal, place.path)
        return place, (place.path, place.entry.form.key(write.value)), place.entry.form.render(write.value)

    def _put(self, write: FileWrite, place: LocatedFile, key: _Key, text: str) -> FileWriteResult:
        """Compare with the file, and write where it says something else."""
        before: str | None = None
        missing = self._missing.get(place.path)
        if missing is not None and self._limits.early < missing[2] - self._clock() <= self._limits.refresh:
            return FileWriteResult(write, FileOutcome.UNSUPPORTED, place.path, problem=missing[1])
        try:
            before = self._root.read(place.path)
            otherwise = self._says_otherwise(write, place, key, (before, text))
            if otherwise or _says(place, write, before, text):
                known = self._remember(key, write, place, text)
                known.held = before.strip() if otherwise else ""
                return FileWriteResult(write, FileOutcome.EQUAL, place.path, before, held=known.held)
            if self._plan_only:
                return FileWriteResult(write, FileOutcome.PLANNED, place.path, before)
            self._note(write, place, key, before)
            other = self._try_either(write, place, text, before)
        except NoSuchFile as error:
            self._known.pop(key, None)
            self._miss(write.target, place.path, error.problem)
            self._let_go(key)
            return FileWriteResult(write, FileOutcome.UNSUPPORTED, place.path, before, error.problem)
        except OutsideRoot as error:
            return self._refused(write, error.problem, place.path)
        except KernelFileError as error:
            return self._failed(write, place, key, text, (before, error.problem))
        known = self._remember(key, write, place, text)
        known.untaken = text if other else ""
        known.held = self._held(write, place, text)
        if other and write.otherwise is not None and place.entry.form.same(write.otherwise, before):
            return FileWriteResult(write, FileOutcome.EQUAL, place.path, before, held=known.held)
        if known.original is None:
            known.original = place.entry.form.before(write.value, before)
        result = self._told(write, FileOutcome.WRITTEN, place.path, known.held or other or text, (before, ""))
        return replace(result, held=known.held)

    def _held(self, write: FileWrite, place: LocatedFile, text: str) -> str:
        """What the kernel holds after a write where that is something else: it rounds, and keeps within bounds."""
        if place.file.appends:
            return ""
        try:
            content = self._root.read(place.path)
        except KernelFileError:
            return ""
        if _says(place, write, content, text):
            return ""
        return place.entry.form.before(write.value, content) or content.strip()

    def _miss(self, target: str, path: str, problem: str) -> None:
        """Remember that a group is there without this file; a group that is not there may be at any moment."""
        self._missing.pop(path, None)
        if self._root.exists(path.rpartition("/")[0]):
            self._missing[path] = (target, problem, self._clock() + self._limits.refresh)
            while len(self._missing) > self._limits.most_files:
                self._missing.popitem(last=False)

    def _note(self, write: FileWrite, place: LocatedFile, key: _Key, before: str) -> None:
        """Keep in the journal what a file says that is about to be written for the first time."""
        known = self._known.get(key)
        if self._journal is None or write.writer not in self._journal.writers:
            return
        if known is None or known.original is None:
            original = place.entry.form.before(write.value, before)
            if original is not None:
                self._journal.keep("\0".join(key), Original(write, original))

    def _let_go(self, key: _Key) -> None:
        if self._journal is not None:
            self._journal.drop("\0".join(key))

    def _says_otherwise(self, write: FileWrite, place: LocatedFile, key: _Key, said: tuple[str, str]) -> bool:
        """Whether the file says what was written instead of a text that the kernel did not take before."""
        before, text = said
        known = self._known.get(key)
        return (
            known is not None
            and write.otherwise is not None
            and known.untaken == text
            and place.entry.form.same(write.otherwise, before)
        )

    def _try_either(self, write: FileWrite, place: LocatedFile, text: str, before: str) -> str:
        """Write the text, or what is to be written where the kernel does not take it; that then, else empty.

        What the file said `before` need not be written again.
        """
        try:
            self._try(place.path, text)
        except KernelFileError as error:
            if write.otherwise is None or error.number != errno.EINVAL:
                raise
            other = place.entry.form.render(write.otherwise)
            if other == text:
                raise
            if not place.entry.form.same(write.otherwise, before):
                self._try(place.path, other)
            return other
        return ""

    def _try(self, path: str, text: str) -> None:
        began = self._clock()
        try:
            self._try_again(path, text)
        finally:
            self._took += max(self._clock() - began, 0)

    def _try_again(self, path: str, text: str) -> None:
        for attempt in range(1, self._limits.attempts + 1):
            try:
                self._root.write(path, text)
            except KernelFileError as error:
                if error.number not in _TRANSIENT or attempt == self._limits.attempts:
                    raise
            else:
                return

    def _remember(self, key: _Key, write: FileWrite, place: LocatedFile, text: str) -> _KnownFile:
        known = self._keep(key, write, place)
        known.write, known.text, known.at = write, text, self._clock()
        known.refused, known.refusals = "", 0
        return known

    def _keep(self, key: _Key, write: FileWrite, place: LocatedFile) -> _KnownFile:
        known = self._known.setdefault(key, _KnownFile(write, place))
        self._known.move_to_end(key)
        while len(self._known) > self._limits.most_files:
            self._known.popitem(last=False)
        return known

    def _failed(
        self, write: FileWrite, place: LocatedFile, key: _Key, text: str, said: tuple[str | None, str]
    ) -> FileWriteResult:
        known = self._keep(key, write, place)
        known.refusals = known.refusals + 1 if known.refused == text else 1
        known.refused, known.text = text, ""
        doublings = min(known.refusals - 2, _MOST_DOUBLINGS)
        delay = 0 if doublings < 0 else min(self._limits.first_delay << doublings, self._limits.longest_delay)
        known.retry_at = self._clock() + delay
        return self._told(write, FileOutcome.FAILED, place.path, text, said)

    def _refused(self, write: FileWrite, problem: str, path: str = "") -> FileWriteResult:
        return self._told(write, FileOutcome.REFUSED, path, "", (None, problem))

    def _told(
        self, write: FileWrite, outcome: FileOutcome, path: str, after: str, said: tuple[str | None, str]
    ) -> FileWriteResult:
        before, problem = said
        took, self._took = self._took, 0
        self._log.add(self._clock(), path, before, after, (write, outcome, problem), took)
        return FileWriteResult(write, outcome, path, before, problem)


def _says(place: LocatedFile, write: FileWrite, content: str, text: str) -> bool:
    """Whether the file says the text already, which is the write's own or stands for it on the way."""
    form = place.entry.form
    if form.render(write.value) == text:
        return form.same(write.value, content)
    return form.before(write.value, content) == text


def _waiting(parent: FileWrite, child: FileWrite) -> FileWriteResult:
    problem = f"it waits for that of {child.target}"
    return FileWriteResult(parent, FileOutcome.DELAYED, problem=problem)


def _target_problem(place: FilePlace, target: str) -> str | None:
    """Why a target cannot be one of that place, as a phrase. Where a cgroup's path leads, the root itself sees to."""
    if place is FilePlace.NODE and target:
        return "a file of the node has no target"
    if place is FilePlace.PROCESS and not (target.isascii() and target.isdigit()):
        return f"{target!r} is not the ID of a process"
    if place is FilePlace.RESCTRL and "/" in target:
        return f"{target!r} is not the name of a resctrl group"
    return None
