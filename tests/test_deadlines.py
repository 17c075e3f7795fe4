"""Deadlines on an injected clock: what runs when, and what counts as progress."""

from __future__ import annotations

from types import ModuleType

import pytest


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def read(countdown, clock: Clock, seconds: float, size: int = 1) -> None:
    countdown.begin_read()
    clock.wait(seconds)
    countdown.end_read(size)


def test_without_deadlines_a_read_may_take_for_ever(glmsse: ModuleType, clock: Clock) -> None:
    countdown = glmsse.Deadlines().start(clock)

    assert countdown.begin_read() is None
    clock.wait(1e9)
    assert countdown.passed is None
    assert countdown.next_code is None


@pytest.mark.parametrize("name", ["first_byte", "idle", "total"])
def test_each_deadline_passes_under_its_own_code(glmsse: ModuleType, clock: Clock, name: str) -> None:
    countdown = glmsse.Deadlines(**{name: 10}).start(clock)

    assert countdown.begin_read() == 10
    clock.wait(9.5)
    assert countdown.passed is None
    clock.wait(0.5)

    assert countdown.passed == f"deadline_{name}"
    assert countdown.next_code == f"deadline_{name}"


def test_a_read_may_take_what_the_nearest_deadline_leaves(glmsse: ModuleType, clock: Clock) -> None:
    countdown = glmsse.Deadlines(first_byte=30, idle=10, total=35).start(clock)

    assert countdown.begin_read() == 30
    clock.wait(28)
    countdown.end_read(1)

    assert countdown.begin_read() == 7
    assert countdown.next_code == "deadline_total"


def test_what_a_read_may_take_is_never_negative(glmsse: ModuleType, clock: Clock) -> None:
    countdown = glmsse.Deadlines(idle=1).start(clock)
    read(countdown, clock, 5)

    assert countdown.begin_read() == 0


def test_idle_begins_at_the_first_byte_where_that_has_a_deadline(glmsse: ModuleType, clock: Clock) -> None:
    countdown = glmsse.Deadlines(first_byte=100, idle=10).start(clock)

    read(countdown, clock, 90)
    read(countdown, clock, 9)
    assert countdown.passed is None
    read(countdown, clock, 1)

    assert countdown.passed == "deadline_idle"


def test_a_read_without_bytes_is_no_first_byte(glmsse: ModuleType, clock: Clock) -> None:
    countdown = glmsse.Deadlines(first_byte=10).start(clock)

    read(countdown, clock, 10, size=0)

    assert countdown.passed == "deadline_first_byte"


def test_idle_begins_at_once_where_the_first_byte_has_no_deadline(glmsse: ModuleType, clock: Clock) -> None:
    countdown = glmsse.Deadlines(idle=10).start(clock)

    read(countdown, clock, 6)
    read(countdown, clock, 6)

    assert countdown.passed == "deadline_idle"


def test_bytes_alone_are_no_progress_but_progress_is(glmsse: ModuleType, clock: Clock) -> None:
    countdown = glmsse.Deadlines(idle=10).start(clock)

    read(countdown, clock, 9)
    countdown.progressed()
    read(countdown, clock, 9)

    assert countdown.passed is None


def test_progress_within_a_read_begins_idle_anew(glmsse: ModuleType, clock: Clock) -> None:
    countdown = glmsse.Deadlines(idle=10).start(clock)

    countdown.begin_read()
    clock.wait(9)
    countdown.progressed()
    clock.wait(9)

    assert countdown.passed is None


def test_time_between_reads_counts_for_total_but_not_for_idle(glmsse: ModuleType, clock: Clock) -> None:
    countdown = glmsse.Deadlines(idle=10, total=100).start(clock)

    read(countdown, clock, 1)
    clock.wait(90)
    assert countdown.passed is None
    clock.wait(9)

    assert countdown.passed == "deadline_total"


def test_of_two_that_are_over_the_earlier_one_is_told(glmsse: ModuleType, clock: Clock) -> None:
    countdown = glmsse.Deadlines(idle=10, total=20).start(clock)

    countdown.begin_read()
    clock.wait(60)

    assert countdown.passed == "deadline_idle"


def test_end_read_without_a_read_counts_the_byte_only(glmsse: ModuleType, clock: Clock) -> None:
    countdown = glmsse.Deadlines(first_byte=5, idle=5).start(clock)

    countdown.end_read(1)
    clock.wait(60)

    assert countdown.passed is None


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "5", b"5", [5]])
@pytest.mark.parametrize("name", ["first_byte", "idle", "total"])
def test_anything_but_a_positive_number_is_misuse(glmsse: ModuleType, name: str, value: object) -> None:
    with pytest.raises(glmsse.MisuseError, match=f"Deadlines.{name} takes"):
        glmsse.Deadlines(**{name: value})


def test_a_clock_that_cannot_be_called_is_misuse(glmsse: ModuleType) -> None:
    with pytest.raises(glmsse.MisuseError, match="clock takes a callable, not float"):
        glmsse.Deadlines().start(12.5)


def test_one_object_serves_many_streams(glmsse: ModuleType, clock: Clock) -> None:
    deadlines = glmsse.Deadlines(total=10)
    first = deadlines.start(clock)
    clock.wait(10)

    assert first.passed == "deadline_total"
    assert deadlines.start(clock).passed is None
