"""What is published of the openb trace: means of ten runs ("Beware of Fragmentation", Weng et al., USENIX ATC 2023; the tables of the
study's simulator). In percent of all GPUs where nothing else is said.
"""

from collections.abc import Mapping
from typing import Final

WORKLOADS: Final = ("default", "cpu100", "gpushare40", "gpushare100", "gpuspec10", "gpuspec33", "multigpu20")

UNALLOCATED: Final[Mapping[str, tuple[float, ...]]] = {
    "random": (13.70, 12.56, 15.14, 21.10, 13.74, 16.13, 13.08),
    "dot-product": (9.38, 8.27, 10.70, 18.02, 9.83, 20.18, 8.15),
    "clustering": (8.35, 7.58, 10.24, 17.78, 8.04, 18.91, 6.66),
    "packing": (8.22, 7.50, 10.23, 17.87, 7.76, 17.78, 6.50),
    "best-fit": (7.14, 6.74, 8.56, 15.38, 6.90, 19.61, 6.27),
    "fgd": (4.77, 4.79, 6.04, 13.36, 5.34, 12.16, 4.47),
}
"""At 100 % arrival, by policy and workload."""

DEVIATIONS: Final[Mapping[str, tuple[float, ...]]] = {
    "random": (0.31, 0.27, 0.32, 0.15, 0.24, 0.25, 0.49),
    "dot-product": (0.18, 0.26, 0.13, 0.28, 0.37, 0.24, 0.30),
    "clustering": (0.58, 0.38, 0.58, 0.48, 0.67, 0.21, 0.57),
    "packing": (0.50, 0.39, 0.50, 0.48, 0.62, 0.37, 0.60),
    "best-fit": (0.14, 0.12, 0.14, 0.21, 0.20, 0.26, 0.24),
    "fgd": (0.10, 0.13, 0.07, 0.15, 0.18, 0.17, 0.15),
}
"""Of the same, over the seeds."""

SATURATED: Final[Mapping[str, tuple[float, ...]]] = {
    "random": (87.47, 89.11, 86.00, 79.44, 87.43, 86.46, 88.69),
    "dot-product": (90.85, 91.95, 89.56, 82.42, 90.39, 89.14, 92.06),
    "clustering": (91.88, 92.64, 90.02, 82.65, 92.18, 92.12, 93.56),
    "packing": (92.00, 92.72, 90.03, 82.57, 92.46, 93.22, 93.71),
    "best-fit": (93.08, 93.44, 91.69, 85.01, 93.30, 93.09, 93.93),
    "fgd": (95.39, 95.35, 94.15, 86.90, 94.95, 94.55, 95.65),
}
"""Allocated at 130 % arrival."""

_POLICIES: Final = ("random", "dot-product", "clustering", "packing", "best-fit", "fgd")


def _by_policy(*values: float) -> Mapping[str, float]:
    return dict(zip(_POLICIES, values, strict=True))


OVER_ARRIVAL: Final[Mapping[tuple[str, int], Mapping[str, float]]] = {
    ("allocated", 80): _by_policy(78.66, 80.02, 80.02, 80.02, 80.02, 80.02),
    ("allocated", 90): _by_policy(85.02, 89.98, 89.98, 89.98, 89.99, 89.98),
    ("allocated", 110): _by_policy(86.88, 90.70, 91.73, 91.86, 92.94, 95.30),
    ("fragmented", 40): _by_policy(14.93, 12.80, 13.00, 12.92, 11.68, 9.91),
    ("fragmented", 80): _by_policy(15.92, 10.09, 9.36, 9.28, 8.29, 5.97),
    ("fragmented", 100): _by_policy(13.49, 9.30, 8.21, 8.13, 7.05, 4.73),
    ("fragmented of idle", 60): _by_policy(38.37, 28.57, 27.97, 27.80, 24.93, 19.90),
    ("fragmented of idle", 80): _by_policy(74.64, 50.50, 46.86, 46.43, 41.49, 29.86),
    ("fragmented of idle", 90): _by_policy(96.65, 94.18, 84.33, 83.60, 74.08, 49.97),
}
"""On the default workload, by what is measured and percent arrived."""

CLASSES: Final = ("all", "share", "1", "2", "4", "8")
"""Classes of pods: all of them, those that ask for a part of a GPU, or for so many whole ones."""

FAILED: Final[Mapping[str, tuple[float, ...]]] = {
    "random": (2670, 875, 1747, 7.3, 7.9, 32.2),
    "dot-product": (2786, 1195, 1561, 6.5, 6.7, 16.9),
    "clustering": (2715, 1166, 1520, 6.1, 6.4, 16.6),
    "packing": (2716, 1167, 1520, 6.0, 6.4, 16.5),
    "best-fit": (2627, 1128, 1471, 5.9, 6.1, 16.2),
    "fgd": (2467, 1055, 1386, 5.7, 5.5, 15.3),
}
"""Pods without a node in the whole run on the default workload, by class: not published, counted by an independent simulation."""
