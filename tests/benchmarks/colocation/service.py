"""The service: `python -m tests.benchmarks.colocation.service --units N --rate R --seconds S --seed K`.

Workers of one service, one a processor, which take requests in the order in which they come. They come in an open loop, at exponentially distributed
intervals that were drawn before, whether or not those before were answered, so that workers that are kept from their processors
have to catch up, as in front of users. The response time of a request is counted from when it was due. Prints them and the CPU time
of each as JSON, in microseconds, without those of the first tenth of the time. `--before-others` has the kernel let workers run before
all that is no real-time work, so that a service can be measured alone on a machine that is not.
"""

import argparse
import json
import os
import random
import struct
import time
from collections.abc import Iterator, Sequence

from tests.benchmarks.colocation.spin import spin

_WARM_UP = 0.1
_NUMBER = struct.Struct("=I")


def _answered(taken: int, due: Sequence[float], units: int, begin: float) -> list[tuple[float, int, int]]:
    """What one worker answered: when each request was due, seconds, how long that took, and what CPU time, microseconds.

    The numbers of requests wait in a pipe: whoever is free takes the next, and waits until it is due.
    """
    times = []
    while number := os.read(taken, _NUMBER.size):
        at = due[_NUMBER.unpack(number)[0]]
        wait = begin + at - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        worked = time.thread_time()
        spin(units)
        worked = time.thread_time() - worked
        times.append((at, round((time.monotonic() - begin - at) * 1e6), round(worked * 1e6)))
    return times


def _arrivals(rate: float, burst: int, duration: float, seed: int) -> Iterator[float]:
    draw = random.Random(seed)
    at = draw.expovariate(rate)
    while at < duration:
        yield from [at] * burst
        at += draw.expovariate(rate)


def _worker(cpu: int, queue: tuple[int, int], due: Sequence[float], units: int, begin: float) -> int:
    """Start a worker; where its answers can be read."""
    answers, told = os.pipe()
    if os.fork() == 0:
        os.close(queue[1])
        os.sched_setaffinity(0, {cpu})
        with os.fdopen(told, "w", encoding="ascii") as out:
            json.dump(_answered(queue[0], due, units, begin), out)
        os._exit(0)
    os.close(told)
    return answers


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve for as long as asked, then print the response times."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--units", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True, help="bursts a second")
    parser.add_argument("--burst", type=int, default=1, help="requests that come at once")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--before-others", action="store_true", help="run before all other work")
    options = parser.parse_args(arguments)
    if options.before_others:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    due = list(_arrivals(options.rate, options.burst, options.seconds, options.seed))
    queue = os.pipe()
    begin = time.monotonic() + 0.2  # seconds in which workers start
    pipes = [_worker(cpu, queue, due, options.units, begin) for cpu in sorted(os.sched_getaffinity(0))]
    os.close(queue[0])
    with os.fdopen(queue[1], "wb") as waiting:
        for number in range(len(due)):
            waiting.write(_NUMBER.pack(number))
    found = [one for pipe in pipes for one in json.load(os.fdopen(pipe, encoding="ascii"))]
    counted = [one for one in found if one[0] >= _WARM_UP * options.seconds]
    print(
        json.dumps(
            {"times": [taken for _, taken, _ in counted], "work": [worked for _, _, worked in counted]}
        )
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
