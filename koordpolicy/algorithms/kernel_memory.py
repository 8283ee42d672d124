"""Kernel parameters of memory that follow from how much of it there is."""

_KIBIBYTE = 1024
_PARTS = 10_000


def min_free_kbytes(capacity: int, factor: int) -> int:
    """Memory that the kernel keeps free, in KiB: so many ten-thousandths of a capacity in bytes."""
    return capacity // _KIBIBYTE * factor // _PARTS
