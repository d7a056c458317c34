"""Kill an agent at random moments, again and again: nothing acknowledged is lost or counts twice.

``python -m tests.agent.kills --kills 200``. A child works as fast as it can on a file and says what
was acknowledged; the parent kills it (SIGKILL) and starts the next one. What a child does next is a
function of what its agent knows, so that the end must be that of a run nobody disturbed, bit for
bit: every decision, and the last state.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import coldq
from tests.agent.feeds import LEARNER, bits, measured

FLYING = 4  # rounds in flight
LONGEST = 0.06  # seconds that a child lives
EARLY = 0.2  # the share of children that are killed before or while they open the file
AFTER = 40  # rounds that the last child plays in peace


def work(agent: coldq.Agent, last: float, say: Callable[[str], None]) -> None:
    """Open rounds and tell their feedback, out of order and sometimes twice, until `last`."""
    while True:
        flying = agent.in_flight
        if len(flying) < FLYING and agent.round < last:
            decision = agent.decide(agent.round + 1)
            say(f"decided {decision.round} {zlib.crc32(decision.x.tobytes())}")
        elif flying:
            draw = random.Random(f"{agent.round} {flying}")
            round = draw.choice(flying)
            if draw.random() < 0.05:
                agent.skip(round)
                say(f"settled {round}")
                continue
            told = measured(round, agent.decide(round).x)
            assert agent.observe(round, *told).accepted
            say(f"settled {round}")
            if draw.random() < 0.2:
                assert agent.observe(round, *told).status == "repeated"
        else:
            return


def child(path: Path, out: int, after: float) -> None:
    """Open the file, say what is in it, and work."""

    def say(words: str) -> None:
        os.write(out, f"{words}\n".encode())

    agent = coldq.Agent(LEARNER, 2, path=path, remember=50)
    waiting = ",".join(map(str, (*agent.in_flight, 0)))
    say(f"open {agent.round} {agent.state.t} {len(agent.waiting)} {waiting}")
    work(agent, agent.round + after, say)
    agent.close()
    say("done")


def run(path: Path, life: float | None, after: float) -> list[list[str]]:
    """The whole lines that a child wrote until it was killed, or by itself done.

    Most are killed at work: their life is counted from the opening of the file. Some are killed
    while they open it.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            child(path, writing, after)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        first = pipe.readline() if life is not None and life > EARLY * LONGEST else b""
        if life is not None:
            time.sleep(life)
            os.kill(pid, signal.SIGKILL)
        written = (first + pipe.read()).decode()
    _, status = os.waitpid(pid, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not killed and os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"a child failed: {written[-500:]}")
    return [line.split() for line in written.split("\n")[:-1]]


def kill_again_and_again(kills: int, seed: int = 0) -> str:
    """Do it; a sentence about what was seen."""
    LEARNER.update(LEARNER.init(2), coldq.Feedback(*measured(1, LEARNER.init(2).x)))  # compiled
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.db"
        decided: dict[int, str] = {}
        settled: set[int] = set()
        opened = 0
        for k in range(kills + 1):
            life = None if k == kills else draw.uniform(0.0, LONGEST)
            lines = run(path, life, AFTER if life is None else float("inf"))
            for word, *rest in lines:
                if word == "open":
                    opened += 1
                    latest, t, waiting = int(rest[0]), int(rest[1]), int(rest[2])
                    flying = {int(round) for round in rest[3].split(",")} - {0}
                    assert not settled & flying, f"acknowledged, but missing: {settled & flying}"
                    assert latest + 1 >= max(decided, default=0), "two decisions are missing"
                    assert t - 1 <= latest - len(flying) - waiting, "something was applied twice"
                elif word == "decided":
                    before = decided.setdefault(int(rest[0]), rest[1])
                    assert before == rest[1], f"round {rest[0]} was decided twice, differently"
                elif word == "settled":
                    settled.add(int(rest[0]))
        straight = coldq.Agent(LEARNER, 2, remember=50)
        same: dict[int, str] = {}

        def say(words: str) -> None:
            word, round, *rest = words.split()
            if word == "decided":
                same[int(round)] = rest[0]

        with coldq.Agent.open(path) as end:
            work(straight, end.round, say)
            assert all(same[round] == x for round, x in decided.items()), "other decisions"
            assert bits(end.state) == bits(straight.state), "another state at the end"
            return (
                f"{kills} kills, {opened} openings, {end.round} rounds, {len(settled)} "
                "acknowledged: none missing, none twice, the same bits as undisturbed"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(kill_again_and_again(arguments.kills, arguments.seed))
