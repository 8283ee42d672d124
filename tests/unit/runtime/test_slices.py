"""Long work on the event loop."""

import asyncio
import time

from koordpolicy.algorithms.work import Work
from koordpolicy.runtime.slices import in_slices


def test_others_have_their_turn_before_long_work_is_done() -> None:
    done = False

    def work() -> Work[str]:
        nonlocal done
        for _ in range(10):
            time.sleep(0.005)
            yield
        done = True
        return "found"

    async def both() -> tuple[str, bool]:
        had_a_turn = asyncio.Event()
        asyncio.get_running_loop().call_soon(had_a_turn.set)
        working = asyncio.ensure_future(in_slices(work()))
        await had_a_turn.wait()
        early = not done
        return await working, early

    assert asyncio.run(both()) == ("found", True)
