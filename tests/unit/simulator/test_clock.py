"""Virtual time: order, the present, repetition."""

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.simulator.clock import Agenda


@given(st.lists(st.integers(0, 20), max_size=30))
def test_actions_are_taken_in_order_of_time_and_of_entry(times: list[int]) -> None:
    agenda, taken = Agenda(), []
    for number, time in enumerate(times):
        agenda.at(time, lambda number=number: taken.append((agenda.now, number)))  # type: ignore[misc]
    assert agenda.run(20) == len(times)
    assert taken == sorted((time, number) for number, time in enumerate(times))


def test_what_lies_in_the_past_is_due_now() -> None:
    agenda, taken = Agenda(now=5), []
    agenda.at(1, lambda: taken.append(agenda.now))
    agenda.run(10)
    assert taken == [5]


def test_what_lies_beyond_the_end_is_not_taken() -> None:
    agenda, taken = Agenda(), []
    agenda.at(11, lambda: taken.append(agenda.now))
    assert agenda.run(10) == 0
    assert (agenda.now, taken) == (10, [])


def test_repetition_ends_at_its_last_time() -> None:
    agenda, taken = Agenda(), []
    agenda.every(3, 9, lambda: taken.append(agenda.now))
    agenda.run(100)
    assert taken == [3, 6, 9]
