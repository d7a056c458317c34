"""Damage the log of an agent: it is refused with a sentence, or right, and never older.

``python -m tests.agent.damaged_logs --cases 200``. An agent plays on; now and then its files are
copied as a kill would leave them, and the copy's log is damaged: bits flipped, sectors zeroed or
lost, frames exchanged, cut off, gone. As many logs have a torn tail, the beginning of a transaction
that nobody was told of, and open as of the one before.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

import coldq
from tests.agent.feeds import LEARNER, bits, measured

FRAME = 24 + 4096  # bytes
SECTOR = 512


def flipped(log: bytearray, draw: random.Random) -> None:
    """One bit."""
    log[draw.randrange(len(log))] ^= 1 << draw.randrange(8)


def garbled(log: bytearray, draw: random.Random) -> None:
    """Bytes in a row."""
    begin = draw.randrange(len(log))
    end = min(begin + draw.randrange(1, 5000), len(log))
    log[begin:end] = draw.randbytes(end - begin)


def zeroed(log: bytearray, draw: random.Random) -> None:
    """Sectors that were lost."""
    begin = draw.randrange(len(log)) // SECTOR * SECTOR
    end = min(begin + SECTOR * draw.choice([1, 8]), len(log))
    log[begin:end] = bytes(end - begin)


def exchanged(log: bytearray, draw: random.Random) -> None:
    """Two frames in each other's place."""
    count = (len(log) - 32) // FRAME
    one, two = (32 + draw.randrange(count) * FRAME for _ in range(2))
    first, second = log[one : one + FRAME], log[two : two + FRAME]
    log[one : one + FRAME], log[two : two + FRAME] = second, first


def cut(log: bytearray, draw: random.Random) -> None:
    """Everything behind some place."""
    frame = draw.randrange(len(log) // FRAME + 1)
    del log[draw.choice([draw.randrange(len(log)), frame * FRAME]) :]


def begun(log: bytearray, draw: random.Random) -> None:
    """The header, of which nothing in the log is read if it is wrong."""
    log[draw.randrange(32)] ^= draw.randrange(1, 256)


DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    flipped, garbled, zeroed, exchanged, cut, begun,
)  # fmt: skip


class Player:
    """An agent that plays on, and the state after each of its rounds."""

    def __init__(self, path: Path) -> None:
        self.path, self.agent = path, coldq.Agent(LEARNER, 2, path=path, remember=50)
        self.states = {0: bits(self.agent.state)}

    def play(self, rounds: int) -> None:
        for _ in range(rounds):
            decision = self.agent.decide()
            self.agent.observe(decision.round, *measured(decision.round, decision.x))
            self.states[decision.round] = bits(self.agent.state)

    def copied(self, path: Path) -> bytearray:
        """The database file, copied, and the log beside it."""
        shutil.copyfile(self.path, path)
        return bytearray(Path(f"{self.path}-wal").read_bytes())


def judge(player: Player, copy: Path, log: bytes) -> str:
    """Open it; what came out, or an error if that is older than what was acknowledged."""
    beside = Path(f"{copy}-wal")
    beside.write_bytes(log)
    before = copy.read_bytes()
    try:
        with coldq.Agent.open(copy) as again:
            assert bits(again.state) == player.states[player.agent.round], again.round
            return "right"
    except coldq.NotReadable as error:
        assert "coldq agent recover" in str(error), error
        there = beside.read_bytes() if beside.exists() else b""
        assert (copy.read_bytes(), there) == (before, bytes(log)), "written to"
    found = coldq.agent.recover(copy, copy.with_name("new.db"))
    assert found.lost or found.round == player.agent.round, "lost without a word"
    with coldq.Agent.open(found.path) as again:
        assert bits(again.state) == player.states[int(again.state.t) - 1]
    found.path.unlink()
    return "refused"


def torn(player: Player, copy: Path, draw: random.Random) -> str:
    """The next transaction begins to be written, and a kill or the power comes in between."""
    before = player.copied(copy)
    player.play(1)
    after = bytearray(Path(f"{player.path}-wal").read_bytes())
    padded = np.frombuffer(before.ljust(len(after), b"\0"), np.uint8)
    changed = np.flatnonzero(padded != np.frombuffer(after, np.uint8))
    first, last = int(changed[0]), int(changed[-1]) + 1
    if first < 32:  # the log began anew, and the file has all of it before
        return "began anew"
    written = bytearray(before.ljust(len(after), b"\0"))
    for sector in range(first // SECTOR, (last - 1) // SECTOR + 1):
        if draw.random() < 0.5:
            here = slice(sector * SECTOR, (sector + 1) * SECTOR)
            written[here] = after[here]
    if len(after) > len(before) and draw.random() < 0.5:
        del written[draw.randrange(len(before), len(after)) :]
    Path(f"{copy}-wal").write_bytes(written)
    with coldq.Agent.open(copy) as again:
        assert bits(again.state) == player.states[again.round]
        assert again.round >= player.agent.round - 1, "something acknowledged is missing"
    return "opened"


def damage_again_and_again(cases: int, seed: int = 0) -> str:
    """Do it; a sentence about what was seen."""
    draw, seen = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        player = Player(Path(folder) / "agent.db")
        for case in range(cases):
            player.play(draw.randrange(1, 30))
            copy = Path(folder) / f"{case}.db"
            log = player.copied(copy)
            if case % 10 == 9:
                log.clear()
            else:
                draw.choice(DAMAGES)(log, draw)
            seen[judge(player, copy, log)] += 1
            seen[torn(player, Path(folder) / f"{case}-torn.db", draw)] += 1
        player.agent.close()
    return (
        f"{cases} damaged logs: {seen['refused']} refused, {seen['right']} right, none older; "
        f"{seen['opened']} torn tails opened"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(damage_again_and_again(arguments.cases, arguments.seed))
