"""Best-effort work: `python -m tests.benchmarks.colocation.batch --seconds S [--memory BYTES --step BYTES --every S]`.

Keeps a processor busy until its time is over, or holds more and more memory, and prints as JSON how many units of work it did, or
how many bytes it held at the end.
"""

import argparse
import json
import mmap
import time
from collections.abc import Sequence

from tests.benchmarks.colocation.spin import spin_until


def held(most: int, step: int, every: float, deadline: float) -> int:
    """Take `step` bytes `every` so many seconds until `most` are held, write to each page, and keep all till the deadline."""
    blocks: list[mmap.mmap] = []
    while time.monotonic() < deadline:
        if (len(blocks) + 1) * step <= most:
            block = mmap.mmap(-1, step, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            block[:: mmap.PAGESIZE] = bytes([1]) * -(-step // mmap.PAGESIZE)
            blocks.append(block)
        time.sleep(min(every, max(0.0, deadline - time.monotonic())))
    return len(blocks) * step


def main(arguments: Sequence[str] | None = None) -> int:
    """Work for as long as asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--counted", type=float, default=0.0, help="the last seconds, whose work is counted")
    parser.add_argument(
        "--memory", type=int, default=0, help="bytes to hold in the end, instead of a processor"
    )
    parser.add_argument("--step", type=int, default=8 << 20)
    parser.add_argument("--every", type=float, default=0.1)
    options = parser.parse_args(arguments)
    deadline = time.monotonic() + options.seconds
    if options.memory:
        print(json.dumps({"bytes": held(options.memory, options.step, options.every, deadline)}))
    else:
        spin_until(deadline - options.counted)
        print(json.dumps({"units": spin_until(deadline)}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
