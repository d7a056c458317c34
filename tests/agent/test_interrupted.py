"""An interrupt at any line of a call loses nothing, doubles nothing and blocks nothing."""

from __future__ import annotations

import linecache
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import coldq
from tests.agent.feeds import LEARNER, bits, revealed


@contextmanager
def interrupted(count: int):
    """Ctrl-C at the line of the agent's own modules that is the `count`-th from here."""
    left = count

    def trace(frame, event, arg):
        nonlocal left
        if "/coldq/agent/" not in frame.f_code.co_filename:
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event == "line" and not line.startswith(("with ", "try:")):  # no signal comes there
            left -= 1
            if not left:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


def tell(one: coldq.Agent, round: int) -> coldq.agent.Receipt:
    return one.observe(round, *revealed(round))


def sequence(one: coldq.Agent) -> None:
    """Rounds that are applied at once, held back, let go together, and skipped."""
    for act in (
        lambda: one.decide(1), lambda: tell(one, 1), lambda: one.decide(2), lambda: one.decide(3),
        lambda: tell(one, 3), lambda: tell(one, 2), lambda: one.decide(4), lambda: one.skip(4),
        lambda: one.decide(5), lambda: tell(one, 5),
    ):  # fmt: skip
        with suppress(coldq.InvalidInput):  # it was done before
            act()


@pytest.mark.parametrize("disk", [False, True])
def test_what_is_told_again_after_an_interrupt_counts_once(tmp_path: Path, disk: bool) -> None:
    calm = coldq.Agent(LEARNER, 2)
    sequence(calm)
    expected = bits(calm.state)
    reopened, count, ended = 0, 0, False
    while not ended:
        count += 7 if disk else 1
        path = tmp_path / f"{count}.db" if disk else None
        one = coldq.Agent(LEARNER, 2, path=path)
        try:
            with interrupted(count):
                sequence(one)
            ended = True
        except KeyboardInterrupt:
            pass
        try:
            one.decide(1)
        except coldq.InvalidInput as error:
            if "open it again" in str(error):
                assert path is not None
                reopened += 1
                one.close()
                one = coldq.Agent.open(path)
        sequence(one)
        assert bits(one.state) == expected, count
        assert (one.round, one.in_flight, one.waiting) == (5, (), ()), count
        one.close()
        if path is not None:
            with coldq.Agent.open(path) as again:
                assert bits(again.state) == expected, count
    assert count > 100 and bool(reopened) == disk


def test_a_call_within_a_call_is_a_sentence_and_looking_is_allowed() -> None:
    one = coldq.Agent(LEARNER, 2)
    seen = []

    def gradient(x):
        seen.append(one.in_flight)
        with pytest.raises(coldq.InvalidInput, match="at work already, in the same thread"):
            one.close()
        return 0.0 * x

    own = coldq.Smooth(lambda x: 0.0 * x.sum(), gradient)
    assert one.observe(one.decide().round, own, revealed(1)[1]).status == "applied"
    assert seen and set(seen) == {(1,)}
