"""Giving back what would hurt while nobody measures, at the stop; what a process before that was killed holds stays until then."""

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


def take_over(kernel: NodeKernel, audit: AuditLog, now: int) -> int:
    """Know what a killed process has left, and of how many files.

    They stay as they are until policies decide about them, which take them over or give them back: a process that is
    killed again and again beside a busy service must not let all best-effort work loose each time. What they said
    first is given back at the stop.
    """
    count = kernel.door.restore()
    if count:
        message = f"{count} kernel files stay as a killed process has left them, until policies decide"
        audit.add(AuditEvent(now, AuditLevel.SUPPRESSION, AuditSubject.NODE, "restart", message))
    return count
