"""What a process has taken, as Linux counts it."""

import os
from pathlib import Path


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> float:
    """MiB that a process holds now."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024
