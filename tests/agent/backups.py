"""Back up an agent that is served under load: each copy is of one moment.

``python -m tests.agent.backups --count 50``. Every other copy is asked for over HTTP, the others
are made from the file by this process, which the server knows nothing of. Each restores to a round
that was acknowledged before it was asked for, or one after that, bit for bit as undisturbed.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
from pathlib import Path

import httpx

import coldq
from tests.agent.feeds import LEARNER, bits, measured
from tests.processes import HANGING, read_line, started

MADE = {"learner": coldq.describe(LEARNER), "n_constraints": 2, "remember": 50}


class Load(threading.Thread):
    """Rounds over HTTP as fast as they go, and the last one that was acknowledged."""

    def __init__(self, client: httpx.Client) -> None:
        super().__init__(daemon=True)
        self.client, self.over, self.told = client, threading.Event(), 0
        self.agent = coldq.Agent(LEARNER, 2)  # the same, undisturbed
        self.states = {0: bits(self.agent.state)}

    def run(self) -> None:
        while not self.over.is_set():
            round = self.told + 1
            x = self.agent.decide(round).x
            decided = self.client.put(f"/agents/a/rounds/{round}").json()
            assert decided["x"] == x.tolist()
            told = measured(round, x)
            self.agent.observe(round, *told)
            self.states[round] = bits(self.agent.state)
            names = zip(("loss", "constraint"), map(coldq.describe, told), strict=True)
            answer = self.client.put(f"/agents/a/rounds/{round}/feedback", json=dict(names))
            assert answer.json()["status"] == "applied", answer.text
            self.told = round


def back_up_again_and_again(count: int) -> str:
    """Do it; a sentence about what was seen."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = "serve", "--port", "0", "--token", "t", "--folder", str(folder)
        with started("-m", "coldq", *command) as running:
            where = read_line(running, "coldq serves").split()[2].rstrip(",")
            auth = {"Authorization": "Bearer t"}
            with httpx.Client(
                base_url=where, headers=auth, timeout=HANGING, trust_env=False
            ) as client:
                assert client.put("/agents/a", json=MADE).status_code == 201
                load = Load(client)
                load.start()
                taken = [back_up(folder, k, load, client) for k in range(count)]
                load.over.set()
                load.join()
        for saved, least, most in taken:
            done = coldq.agent.restore(saved, folder / "again" / "a.db")
            with coldq.Agent.open(done.path) as agent:
                assert least <= agent.state.t - 1 <= most + 1, (least, int(agent.state.t), most)
                assert bits(agent.state) == load.states[int(agent.state.t) - 1]
        rounds = sorted({most for _, _, most in taken})
        return (
            f"{count} backups under load, from round {rounds[0]} to {rounds[-1]} of {load.told}: "
            "each restores to an acknowledged round, bit for bit"
        )


def back_up(folder: Path, k: int, load: Load, client: httpx.Client) -> tuple[Path, int, int]:
    """A backup, and the last rounds acknowledged before and after it was made."""
    before = load.told
    while load.told < before + 3:
        assert load.is_alive()
    saved, least = folder / f"saved-{k}.backup", load.told
    if k % 2:
        answer = client.get("/agents/a/backup")
        assert answer.headers["content-type"] == "application/vnd.sqlite3"
        saved.write_bytes(answer.content)
    else:
        coldq.agent.backup(folder / "a.db", saved)
    return saved, least, load.told


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    print(back_up_again_and_again(parser.parse_args().count))
