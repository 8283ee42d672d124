"""Giving back what would hurt while nobody measures: at the stop, and of a process before that was killed."""

from pathlib import Path
from typing import Final

from koordpolicy.agent.audit.log import AuditEvent, AuditLevel, AuditLog, AuditSubject
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.linux.files.kernel_file import FileWriter
from koordpolicy.linux.root import KernelRoot
from koordpolicy.linux.writes.journal import FILE, UndoJournal, read_boot

HURTS: Final = frozenset({FileWriter.CPU_SUPPRESS, FileWriter.INTERFERENCE})
"""What holds work back by what was measured a moment ago."""
_MOST: Final = 10_000
"""Files of which is kept what they said: groups of pods and containers, and one more."""


def undo_journal(state_directory: str, root: KernelRoot) -> UndoJournal | None:
    """Where it is kept what to undo; None without a state directory."""
    if not state_directory:
        return None
    return UndoJournal(Path(state_directory) / FILE, read_boot(root), HURTS, _MOST)


def undo_left(kernel: NodeKernel, audit: AuditLog, now: int) -> int:
    """Give back what a killed process has left, and how many files that were. Strategies then begin as after a stop."""
    kernel.door.restore()
    results = kernel.door.undo(lambda write: write.writer in HURTS)
    for one in results:
        message = f"{one.path or one.write.file} {one.outcome}: given back, as the process before was killed"
        audit.add(AuditEvent(now, AuditLevel.SUPPRESSION, AuditSubject.NODE, str(one.write.writer), message))
    return len(results)
