"""An agent on disk goes on bit for bit, refuses what is not its own, and says what is wrong."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.agent.store import SNAPSHOT_INTERVAL, Store
from tests.agent.feeds import LEARNER, X, bits, measured, revealed, undisturbed
from tests.processes import read_line, started


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


def crash(one: coldq.Agent, path: Path) -> Path:
    """The file as a kill would leave it at this moment: a copy, taken while it is open."""
    copy = path.with_name(f"{path.stem}-copy{one.round}-{len(one.waiting)}.db")
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
    return copy


def played(one: coldq.Agent, rounds: range) -> None:
    for _ in rounds:
        round = one.decide().round
        one.observe(round, *revealed(round))


@pytest.mark.parametrize(
    "learner",
    [
        LEARNER,
        coldq.SelfTuning(X, violation_rate=0.1),
        coldq.COLDQExpert(X, horizon=500),
        coldq.NestedProjections(coldq.Box(0.0, 5.0, dim=3), lipschitz=9.0),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_after_a_kill_at_any_moment_it_goes_on_bit_for_bit(learner, path: Path) -> None:
    def told(round: int, x: np.ndarray):  # experts ask for the constraint at their own points
        expert = isinstance(learner, coldq.COLDQExpert)
        return revealed(round) if expert else measured(round, x)

    with coldq.Agent(learner, 2, path=path) as one:
        straight = coldq.Agent(learner, 2)
        for round in range(1, 8):
            both = one.decide(round), straight.decide(round)
            assert both[0] == both[1]
            if round % 3 == 0:
                continue
            for each in (one, straight):
                each.observe(round, *told(round, both[0].x))
            with coldq.Agent.open(crash(one, path)) as again:
                assert bits(again.state) == bits(one.state)
                assert (again.round, again.in_flight, again.waiting) == (
                    one.round,
                    one.in_flight,
                    one.waiting,
                )
                missing = (3, 6)
                for late in (n for n in missing if n <= round):
                    x = again.decide(late).x
                    again.observe(late, *told(late, x))
                    last = bits(again.state)
        for late in (3, 6):
            straight.observe(late, *told(late, straight.decide(late).x))
    assert last == bits(straight.state)


def test_snapshots_bound_what_is_kept_and_applied_again(path: Path) -> None:
    with coldq.Agent(LEARNER, 2, path=path, remember=10) as one:
        played(one, range(SNAPSHOT_INTERVAL + 5))
        with closing(sqlite3.connect(crash(one, path))) as copy:
            rounds = copy.execute("SELECT count(*), min(round) FROM rounds").fetchone()
            assert rounds == (15, SNAPSHOT_INTERVAL - 9)
        with coldq.Agent.open(crash(one, path)) as again:
            assert bits(again.state) == bits(one.state) and again.remember == 10
            last = SNAPSHOT_INTERVAL
            assert again.observe(last, *revealed(last)).status == "repeated"
            assert again.observe(1, *revealed(1)).status == "past"
            with pytest.raises(coldq.InvalidInput, match="has another feedback already"):
                again.observe(SNAPSHOT_INTERVAL, *revealed(1))
            played(again, range(3))
    with coldq.Agent.open(path) as one:
        assert one.state.t == SNAPSHOT_INTERVAL + 6


def test_feedback_with_functions_is_applied_at_once_and_never_held_back(path: Path) -> None:
    loss = coldq.Smooth(lambda x: x @ x, lambda x: 2.0 * x)
    with coldq.Agent(LEARNER, 2, path=path) as one:
        one.decide(1), one.decide(2)
        before = bits(one.state)
        with pytest.raises(
            coldq.InvalidInput, match="must wait for round 1: settle that one first"
        ):
            one.observe(2, loss, revealed(2)[1])
        assert bits(one.state) == before and one.in_flight == (1, 2)
        one.observe(1, loss, revealed(1)[1])
        one.observe(2, loss, revealed(2)[1])
        with coldq.Agent.open(crash(one, path)) as again:
            assert bits(again.state) == bits(one.state)
            assert again.observe(2, loss, revealed(2)[1]).status == "repeated"


def test_another_learner_is_refused_and_the_difference_named(path: Path) -> None:
    coldq.Agent(coldq.COLDQ(X, horizon=500), 2, path=path).close()
    with pytest.raises(coldq.InvalidInput, match=r"horizon=500.*but this is.*horizon=100"):
        coldq.Agent(coldq.COLDQ(X, horizon=100), 2, path=path)
    with pytest.raises(coldq.InvalidInput, match="was made by COLDQ, but this is RECOO"):
        coldq.Agent.open(path, coldq.RECOO(X))
    for options, words in [
        ({"n_constraints": 3}, "n_constraints = 2, but this one 3"),
        ({"batch": (4,)}, r"batch = \(\), but this one \(4,\)"),
        ({"order": "arrival"}, "order = 'round', but this one 'arrival'"),
        ({"late": "held"}, "late = 'played', but this one 'held'"),
    ]:
        with pytest.raises(coldq.InvalidInput, match=words):
            coldq.Agent(coldq.COLDQ(X, horizon=500), **({"n_constraints": 2} | options), path=path)
    with coldq.Agent(coldq.COLDQ(X, horizon=500), 2, path=path, limit=7):
        pass
    with coldq.Agent.open(path) as one:
        assert one.limit == 7 and one.learner == coldq.COLDQ(X, horizon=500)


def test_another_start_is_refused_where_the_file_knows_its_own(path: Path) -> None:
    corner = np.array([0.0, 5.0, 0.0])
    with coldq.Agent(LEARNER, 2, path=path, start=corner) as one:
        played(one, range(3))
    for start in (corner, np.copysign(corner, [-1.0, 1.0, -1.0]), None):
        with coldq.Agent(LEARNER, 2, path=path, start=start) as again:
            assert bits(again.state) == bits(one.state)
    with pytest.raises(coldq.InvalidInput, match="began at another start"):
        coldq.Agent(LEARNER, 2, path=path, start=np.zeros(3))
    with closing(sqlite3.connect(path)) as db:  # as it was written before
        db.execute("DELETE FROM meta WHERE name='start'")
        db.commit()
    with coldq.Agent(LEARNER, 2, path=path, start=np.zeros(3)) as again:
        assert bits(again.state) == bits(one.state)


@pytest.mark.parametrize("length", [250, 255, 256, 5000])
def test_a_name_too_long_for_a_file_is_a_sentence(path: Path, length: int) -> None:
    coldq.Agent(LEARNER, 2, path=path).close()
    long = path.with_name("x" * length)
    for act in (
        lambda: coldq.Agent(LEARNER, 2, path=long),
        lambda: coldq.Agent.open(long),
        lambda: coldq.agent.recover(long, path.with_name("new.db")),
        lambda: coldq.agent.recover(path, long),
    ):
        with pytest.raises(coldq.InvalidInput, match="this name is too long"):
            act()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_learner_with_functions_must_be_passed_again(path: Path) -> None:
    learner = coldq.OGD(X, eta=lambda t: 1.0 / np.sqrt(t))
    with coldq.Agent(learner, 2, path=path) as one:
        played(one, range(3))
        state = bits(one.state)
    with pytest.raises(coldq.NotSaveable, match=r"Agent.open\(path, learner\)"):
        coldq.Agent.open(path)
    with coldq.Agent.open(path, learner) as one:
        assert bits(one.state) == state


def test_a_second_writer_is_refused_here_and_in_another_process(path: Path) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        for make in (lambda: coldq.Agent(LEARNER, 2, path=path), lambda: coldq.Agent.open(path)):
            with pytest.raises(coldq.InUse, match="belongs to one agent at a time"):
                make()
        script = f"""
import coldq
try:
    coldq.Agent.open({str(path)!r})
except coldq.InUse as error:
    print("refused", flush=True)
"""
        with started("-c", script) as other:
            read_line(other, "refused")
        played(one, range(2))
    with pytest.raises(coldq.InvalidInput, match="this agent is closed"):
        one.decide()
    coldq.Agent.open(path).close()


def test_a_foreign_file_is_left_as_it_is(path: Path, tmp_path: Path) -> None:
    for content, words in [
        (b"not a database, but long enough to be looked at" * 50, "not the file of an agent"),
        (b"", "no agent was ever in it"),
    ]:
        path.write_bytes(content)
        with pytest.raises(coldq.NotReadable, match=words):
            coldq.Agent.open(path)
        assert path.read_bytes() == content
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE mine (x)")
    before = path.read_bytes()
    with pytest.raises(coldq.NotReadable, match="is not the file of an agent"):
        coldq.Agent(LEARNER, 2, path=path)
    assert path.read_bytes() == before
    with pytest.raises(coldq.InvalidInput, match="there is no agent in"):
        coldq.Agent.open(tmp_path / "nothing.db")
    with pytest.raises(coldq.NotWritten, match="could not be written"):
        coldq.Agent(LEARNER, 2, path=tmp_path / "no" / "such" / "folder.db")
    with pytest.raises(coldq.NotWritten, match="could not be written"):
        coldq.Agent(LEARNER, 2, path="/proc/agent.db")  # nobody may write there


def test_another_format_is_named(path: Path) -> None:
    coldq.Agent(LEARNER, 2, path=path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=9")
    with pytest.raises(coldq.NotReadable, match="has the format 9"):
        coldq.Agent.open(path)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_truncated_file_is_damaged_and_is_not_written_to(path: Path, share: float) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(30))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    before = path.read_bytes()
    with pytest.raises(coldq.NotReadable, match=r"is damaged .*coldq agent recover"):
        coldq.Agent.open(path)
    assert path.read_bytes() == before


def test_flipped_bytes_are_a_sentence_or_harmless(path: Path) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(30))
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(60):
        data = bytearray(whole)
        for place in rng.integers(0, len(whole), 20):
            data[place] = rng.integers(256)
        path.write_bytes(data)
        try:
            coldq.Agent.open(path).close()
        except coldq.Error as error:
            refused += 1
            assert len(str(error)) > 20
    assert refused > 0


ODD = ["", "x", "-1", "1.5", "1e400", "NaN", "true", '"a"', "[1.5]", "9" * 20, "[" * 10**5, 2.5]


@pytest.mark.parametrize("odd", ODD, ids=[f"{odd!r:.10}" for odd in ODD])
def test_an_odd_value_in_a_file_is_damage(odd: str, path: Path) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(3))
    whole = path.read_bytes()
    for name in ("fingerprint", "n_constraints", "batch", "late", "order", "remember", "turn"):
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE meta SET value=? WHERE name=?", (odd, name))
            db.commit()
        for act in (lambda: coldq.Agent.open(path), lambda: coldq.Agent(LEARNER, 2, path=path)):
            with pytest.raises(coldq.NotReadable, match=r"is damaged \(its description"):
                act()


def test_nothing_in_a_file_is_executed(path: Path) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(3))
    with closing(sqlite3.connect(path)) as db:
        evil = {"type": "os.system", "command": "echo pwned"}
        db.execute("UPDATE meta SET value=? WHERE name='learner'", (json.dumps(evil),))
        db.commit()
    with pytest.raises(coldq.NotReadable, match=r"there is no 'os\.system' to build"):
        coldq.Agent.open(path)
    text = (
        bytes(np.lib.format.magic(1, 0))
        + b"v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    )
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "UPDATE meta SET value=? WHERE name='learner'", (json.dumps(coldq.describe(LEARNER)),)
        )
        db.execute("UPDATE state SET array=? WHERE name='x'", (text.ljust(200),))
        db.commit()
    with pytest.raises(coldq.NotReadable, match="its state is not whole"):
        coldq.Agent.open(path)


FULL = """
import resource, signal, sys, coldq
from pathlib import Path
from tests.agent.feeds import LEARNER, bits, revealed
path = Path(sys.argv[1])
one = coldq.Agent(LEARNER, 2, path=path)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def longest(size):  # that any file of this process may be
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

for room in (60_000, 60_010, 61_000, 64_096, 70_000):
    longest(room)
    try:
        while True:
            decision = one.decide()
            before = bits(one.state)
            one.observe(decision.round, *revealed(decision.round))
            print("applied", decision.round, flush=True)
    except coldq.NotWritten as error:
        assert "could not be written" in str(error), error
    for attempt in range(2):
        assert bits(one.state) == before and one.in_flight == (decision.round,)
        try:
            one.observe(decision.round, *revealed(decision.round))
        except coldq.NotWritten:
            print("refused", flush=True)
    # What is on disk now is what a process that ends here leaves: a copy of it is whole.
    longest(resource.RLIM_INFINITY)
    copy = path.with_name(f"copy{room}.db")
    for suffix in ("", "-wal"):
        Path(f"{copy}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    with coldq.Agent.open(copy) as again:
        assert bits(again.state) == before
        assert again.observe(decision.round, *revealed(decision.round)).status == "applied"
    assert one.observe(decision.round, *revealed(decision.round)).status == "applied"
    assert bits(one.state) == bits(again.state)
    print("applied", decision.round, flush=True)
"""


def test_a_full_disk_is_said_and_the_last_good_state_is_there(path: Path) -> None:
    with started("-c", FULL, str(path)) as process:  # and it ends as if it were killed
        assert process.stdout is not None and process.stderr is not None
        lines = process.stdout.read().splitlines()
        assert process.wait() == 0, process.stderr.read()
    rounds = [int(line.split()[1]) for line in lines if line.startswith("applied")]
    assert lines.count("refused") == 10 and rounds == list(range(1, len(rounds) + 1))
    with coldq.Agent.open(path) as again:
        assert bits(again.state) == bits(undisturbed(rounds))


def test_a_decision_that_a_kill_forgot_is_the_same_again_and_takes_its_feedback(
    path: Path,
) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(4))
        x = one.decide().x
        copies = [shutil.copytree(path.parent, path.parent / f"copy{k}") for k in range(5)]
        told = measured(5, x)
        one.observe(5, *told)
    opened = [coldq.Agent.open(copy / path.name) for copy in copies]
    assert {again.round for again in opened} == {4}
    assert np.array_equal(opened[0].decide().x, x)
    assert np.array_equal(opened[1].decide(6).x, x) and opened[1].in_flight == (5, 6)
    assert opened[2].skip(5).status == "skipped"
    with pytest.raises(coldq.InvalidInput, match="round 6 was not decided yet"):
        opened[3].observe(6, *told)
    with pytest.raises(coldq.InvalidInput, match="coordinates"):
        opened[3].observe(5, coldq.Linear([1.0]), told[1])
    assert opened[3].round == 4 and opened[3].in_flight == ()
    for again in (opened[0], opened[1], opened[3], opened[4]):
        assert again.observe(5, *told).status == "applied"
        assert bits(again.state) == bits(one.state)
        with pytest.raises(coldq.InvalidInput, match="was not decided yet"):
            again.observe(again.round + 1, *told)  # nobody can have that one
    for again in opened:
        again.close()


def test_recovery_takes_all_of_a_whole_file(path: Path, tmp_path: Path) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(5))
        one.decide(6), one.decide(7)
        one.observe(7, *revealed(7))
        copy = crash(one, path)
    found = coldq.agent.recover(copy, tmp_path / "new.db")
    assert found.lost == () and found.round == 7
    with coldq.Agent.open(tmp_path / "new.db") as again:
        assert bits(again.state) == bits(one.state)
        assert (again.in_flight, again.waiting) == ((6,), (7,))
    with pytest.raises(coldq.InvalidInput, match="is there already"):
        coldq.agent.recover(copy, tmp_path / "new.db")


def test_recovery_without_a_temporary_folder_is_a_sentence(path, tmp_path, monkeypatch) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(2))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(coldq.NotWritten, match=r"copied to a temporary folder first, which failed"):
        coldq.agent.recover(path, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_recovery_says_which_feedback_is_lost_so_that_it_can_be_told_again(
    path: Path, tmp_path: Path
) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(9))
        copy = crash(one, path)
    with closing(sqlite3.connect(copy)) as db:
        db.execute("UPDATE rounds SET feedback='{' WHERE round=5")
        db.commit()
    with pytest.raises(coldq.NotReadable, match="round 5 is not whole"):
        coldq.Agent.open(copy)
    found = coldq.agent.recover(copy, tmp_path / "new.db")
    assert [words[:24] for words in found.lost] == [
        f"the feedback of round {n}:" for n in range(5, 10)
    ]
    with coldq.Agent.open(tmp_path / "new.db") as again:
        assert again.state.t == 5 and again.in_flight == (5, 6, 7, 8, 9)
        for round in range(5, 10):
            again.observe(round, *revealed(round))
        assert bits(again.state) == bits(one.state)


def test_of_a_truncated_file_what_is_readable_is_recovered(path: Path, tmp_path: Path) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(60))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(0.6 * len(whole))])
    command = [sys.executable, "-m", "coldq", "agent", "recover", path, tmp_path / "new.db"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "lost: some rounds" in done.stdout and "goes on after round" in done.stdout
    with coldq.Agent.open(tmp_path / "new.db") as again:
        assert bits(again.state) == bits(one.state)  # the snapshot comes first in the file
    path.write_bytes(whole[:2000])
    with pytest.raises(coldq.NotReadable):
        coldq.agent.recover(path, tmp_path / "nothing.db")
    assert not (tmp_path / "nothing.db").exists()


def test_an_update_whose_state_is_not_finite_is_refused_and_the_file_opens(path: Path) -> None:
    far = coldq.Linear([1.0, 1.0, 1.0]), coldq.Affine([[1.0, 1.0, 1.0]], [-1e308])
    with coldq.Agent(coldq.COLDQ(X, horizon=100), 1, path=path) as one:
        with pytest.raises(coldq.InvalidInput, match="adds them up would not be finite"):
            for _ in range(5):
                round, before = one.decide().round, bits(one.state)
                one.observe(round, *far)
        assert bits(one.state) == before and one.in_flight == (round,) and round > 1
    with coldq.Agent.open(path) as again:
        assert bits(again.state) == before
    mild = coldq.Affine([[1.0, 1.0, 1.0]], [1.0])
    steep = coldq.Agent(coldq.SinhaVaze(X, 100, lipschitz=5.0), 1)  # its squares are a number
    with (
        np.errstate(over="ignore"),
        pytest.raises(coldq.InvalidInput, match="squares would not be finite"),
    ):
        steep.observe(steep.decide().round, coldq.Linear([1e160, 0.0, 0.0]), mild)


def test_a_network_opens_again_and_so_do_files_that_kept_its_axis_in_the_batch(path: Path) -> None:
    network = coldq.Decentralised(LEARNER, np.full((2, 2), 0.5))
    for batch in ((), (3,)):
        with coldq.Agent(network, 2, path=path, batch=batch) as one:
            played(one, range(2))
        with coldq.Agent.open(path) as again:
            assert bits(again.state) == bits(one.state)
        with closing(sqlite3.connect(path)) as db:  # as it was written before
            whole = json.dumps([*batch, 2])
            db.execute("UPDATE meta SET value=? WHERE name='batch'", (whole,))
            db.commit()
        with coldq.Agent(network, 2, path=path, batch=batch) as again:
            assert bits(again.state) == bits(one.state)
        path.unlink()


def test_the_lock_stays_when_the_same_process_reads_the_file(path: Path, tmp_path: Path) -> None:
    script = f"""
import coldq
try:
    coldq.Agent.open({str(path)!r})
except coldq.InUse as error:
    print("refused", flush=True)
"""
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(2))
        path.read_bytes()
        with pytest.raises(coldq.InUse, match="is in use"):
            coldq.agent.recover(path, tmp_path / "new.db")
        with started("-c", script) as other:
            read_line(other, "refused")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


FORKED = """
import os, signal, sys, coldq
from tests.agent.feeds import LEARNER, bits, revealed
one = coldq.Agent(LEARNER, 2, path=sys.argv[1])
one.observe(one.decide().round, *revealed(1))
child = os.fork()
if not child:
    for act in (one.decide, lambda: one.observe(2, *revealed(2)), one.close):
        try:
            act()
        except coldq.InUse as error:
            assert "forked from" in str(error)
        else:
            os._exit(1)
    exec(sys.argv[2])
assert os.waitpid(child, 0)[1] == 0
one.observe(one.decide().round, *revealed(2))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit()", "del one, act; os._exit(0)"])
def test_a_fork_of_the_process_is_refused_and_takes_nothing_with_it(path: Path, end: str) -> None:
    with started("-c", FORKED, str(path), end) as process:
        assert process.stderr is not None
        assert process.wait() == -signal.SIGKILL, process.stderr.read()
    with coldq.Agent.open(path) as again:
        assert bits(again.state) == bits(undisturbed([1, 2]))


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_gone_or_replaced_is_said_at_once(path: Path, replaced: bool) -> None:
    one = coldq.Agent(LEARNER, 2, path=path)
    played(one, range(2))
    before, round = bits(one.state), one.decide().round
    kept = path.rename(path.with_name("kept.db"))
    if replaced:
        shutil.copyfile(kept, path)
    with pytest.raises(coldq.NotWritten, match="is gone, or another file"):
        one.observe(round, *revealed(round))
    assert bits(one.state) == before and one.in_flight == (round,)
    kept.replace(path)
    assert one.observe(round, *revealed(round)).status == "applied"
    one.close()


def test_a_log_that_is_gone_is_said_at_once_and_nothing_is_lost(path: Path) -> None:
    one = coldq.Agent(LEARNER, 2, path=path)
    played(one, range(2))
    Path(f"{path}-wal").unlink()
    with pytest.raises(coldq.NotWritten, match="-wal is gone, or another file"):
        one.observe(one.decide().round, *revealed(3))
    with pytest.raises(coldq.NotWritten, match="-wal is gone"):
        one.close()
    with coldq.Agent.open(path) as again:
        assert bits(again.state) == bits(undisturbed([1, 2]))


@pytest.mark.parametrize("left", [0.0, 0.5, 0.999])
def test_a_log_cut_off_under_an_open_agent_is_said_before_the_next_receipt(
    path: Path, tmp_path: Path, left: float
) -> None:
    one = coldq.Agent(LEARNER, 2, path=path)
    played(one, range(9))
    before, log = bits(one.state), Path(f"{path}-wal")
    os.truncate(log, int(left * log.stat().st_size))
    whole, rest = path.read_bytes(), log.read_bytes()
    for _ in range(2):
        with pytest.raises(coldq.NotWritten, match="was cut off while this agent had it open"):
            one.observe(one.decide().round, *revealed(10))
        assert bits(one.state) == before and one.in_flight == (10,)
    with pytest.raises(coldq.NotWritten, match="was cut off"):
        one.close()
    with pytest.raises(coldq.NotReadable, match="round 9 was acknowledged and is not in it"):
        coldq.Agent.open(path)
    assert (path.read_bytes(), log.read_bytes()) == (whole, rest)
    found = coldq.agent.recover(path, tmp_path / "new.db")
    assert "up to round 9" in found.lost[0] and found.round < 9
    with coldq.Agent.open(found.path) as again:
        for round in range(found.round + 1, 10):
            again.observe(again.decide(round).round, *revealed(round))
        assert bits(again.state) == before


@pytest.mark.parametrize("without", ["the note", "a sound log", "a log"])
def test_rounds_that_a_log_lost_are_missed_by_the_note_or_by_what_follows_them(
    path: Path, without: str
) -> None:
    """As after a power cut, which forgets the note, and after a kill, which does not."""
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(20))
        copy = crash(one, path)
    log = Path(f"{copy}-wal")
    data = bytearray(log.read_bytes())
    place = len(data) - 4120 * (9 if without == "the note" else 1) + 2000
    data[place] ^= 1
    log.write_bytes(data)
    if without == "a log":
        log.unlink()
    if without == "the note":
        file = bytearray(copy.read_bytes())
        file[72:92] = bytes(20)
        copy.write_bytes(file)
    words = "though later ones are there" if without == "the note" else "round 20 was acknowledged"
    with pytest.raises(coldq.NotReadable, match=f"{words}.*coldq agent recover"):
        coldq.Agent.open(copy)


DEAD = """
import os, sys, coldq
from tests.agent.feeds import LEARNER, bits, revealed
path, dead = sys.argv[1], os.open(sys.argv[2], os.O_RDWR)
one = coldq.Agent(LEARNER, 2, path=path)
for round in range(1, 10):
    one.observe(one.decide().round, *revealed(round))
for handle in os.listdir("/proc/self/fd"):
    try:
        name = os.readlink(f"/proc/self/fd/{handle}")
    except OSError:
        continue
    if name in (path, f"{path}-wal"):
        os.dup2(dead, int(handle))
before = bits(one.state)
for act in [lambda: one.observe(one.decide().round, *revealed(10))] * 3 + [one.close]:
    try:
        act()
    except coldq.NotWritten as error:
        print(error)
assert bits(one.state) == before
"""


def test_a_disk_that_dies_is_no_damage_to_a_file_that_is_whole(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEAD, path, "/dev/full"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 4, done.stdout + done.stderr
    assert done.stdout.count("could not be written") == 4
    with coldq.Agent.open(path) as again:
        assert bits(again.state) == bits(undisturbed(list(range(1, 10))))


def test_the_log_of_an_agent_is_not_applied_to_a_file_in_the_place_of_its_own(
    path: Path, tmp_path: Path
) -> None:
    with coldq.Agent(LEARNER, 2, path=tmp_path / "other.db") as other:
        played(other, range(5))
    one = coldq.Agent(LEARNER, 2, path=path)
    played(one, range(2))
    (tmp_path / "other.db").replace(path)
    with pytest.raises(coldq.NotWritten, match="another file than the one that was opened"):
        one.close()
    with coldq.Agent.open(path) as again:
        assert again.round == 5 and bits(again.state) == bits(other.state)
    assert Path(f"{path}-wal-left").stat().st_size > 0  # what the other one was told


def test_a_file_behind_a_link_is_kept_and_recovered_with_its_log(tmp_path: Path) -> None:
    there, link = tmp_path / "there", tmp_path / "agent.db"
    there.mkdir()
    link.symlink_to(there / "agent.db")
    with coldq.Agent(LEARNER, 2, path=link) as one:
        played(one, range(3))
        killed = crash(one, there / "agent.db")
        link.unlink()
        link.symlink_to(killed)
        assert coldq.agent.recover(link, tmp_path / "new.db").round == one.round == 3


def test_another_working_folder_makes_no_difference_to_an_agent(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    with coldq.Agent(LEARNER, 2, path=path.name) as one:
        played(one, range(2))
        monkeypatch.chdir("/")
        played(one, range(2))
        assert one.round == 4


def test_a_log_that_is_gone_while_the_file_is_opened_is_a_sentence(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Store._take

    def taken(store: Store, *given: Any) -> None:
        usual(store, *given)
        Path(f"{path}-wal").unlink()

    monkeypatch.setattr(Store, "_take", taken)
    with pytest.raises(coldq.NotWritten, match="-wal"):
        coldq.Agent(LEARNER, 2, path=path)


@pytest.mark.parametrize(
    ("dim", "members"), [(3, 1), (1000, 1), (1000, 2)], ids=["short", "as its feedback", "longer"]
)
def test_where_an_upgrade_gives_other_bits_that_is_said_and_the_states_of_then_count(
    path: Path, dim: int, members: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = members == 1  # else there is a digest alone
    learner = coldq.OGD(coldq.Box(0.0, 1.0, dim=dim), eta=0.01)
    slopes = np.linspace(-1.0, -0.5, dim)
    with coldq.Agent(learner, 0, path=path, batch=(members,)) as one:
        for _ in range(5):
            one.observe(one.decide().round, coldq.Linear(slopes), None)
        copies = [crash(one, path).rename(path.with_name(f"{k}.db")) for k in range(2)]
        for copy in copies:
            shutil.copyfile(f"{path}-wal", f"{copy}-wal")
        state = bits(one.state)
    for copy in copies:
        with closing(sqlite3.connect(copy)) as db:
            db.execute("UPDATE meta SET value='\"0.1.7\"' WHERE name='version'")
            db.commit()
    with coldq.Agent.open(copies[0]) as again:  # the same bits: nothing to say
        assert bits(again.state) == state
    usual = coldq.OGD.update

    def rounded(learner: Any, state: Any, feedback: Any, played: Any = None) -> Any:
        new = usual(learner, state, feedback, played=played)
        return dataclasses.replace(new, x=np.nextafter(new.x, 1.0))

    monkeypatch.setattr(coldq.OGD, "update", rounded)
    words = rf"5 rounds from 1 on.*by coldq 0\.1\.7 then and {coldq.__version__} now"
    with pytest.warns(coldq.agent.OtherBits, match=words):
        again = coldq.Agent.open(copies[1])
    assert (bits(again.state) == state) == kept and again.round == 5
    again.close()
    with coldq.Agent.open(copies[1]) as again:  # it is said once: the state is written
        assert (bits(again.state) == state) == kept
    with closing(sqlite3.connect(copies[1])) as db:
        version = db.execute("SELECT value FROM meta WHERE name='version'").fetchone()
        assert version == (json.dumps(coldq.__version__),)


def test_files_without_outcomes_open_and_get_them(path: Path, tmp_path: Path) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(5))
        copy = crash(one, path)
    for change in (
        "ALTER TABLE rounds DROP COLUMN outcome",
        "DELETE FROM meta WHERE name='version'",
    ):
        with closing(sqlite3.connect(copy)) as db:
            db.execute(change)
            db.commit()
    assert coldq.agent.recover(copy, tmp_path / "new.db").lost == ()
    for file in (copy, tmp_path / "new.db"):
        with coldq.Agent.open(file) as again:
            assert bits(again.state) == bits(one.state)
            played(again, range(1))


def test_a_gap_or_an_unknown_status_after_the_snapshot_is_damage(path: Path) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(9))
        copies = [crash(one, path)]
        copies.append(path.with_name("status.db"))
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{copies[0]}{suffix}", f"{copies[1]}{suffix}")
    for copy, change, words in zip(
        copies,
        ("DELETE FROM rounds WHERE round=5", "UPDATE rounds SET status=99 WHERE round=5"),
        ("a feedback before that of round 6 is missing", "round 5 has the status 99"),
        strict=True,
    ):
        with closing(sqlite3.connect(copy)) as db:
            db.execute(change)
            db.commit()
        with pytest.raises(coldq.NotReadable, match=words):
            coldq.Agent.open(copy)


def test_skipped_rounds_are_forgotten_as_applied_ones_are(path: Path) -> None:
    with coldq.Agent(LEARNER, 2, path=path, remember=10, limit=0) as one:
        for round in range(1, 4 * SNAPSHOT_INTERVAL):
            one.decide(round)
        copy = crash(one, path)
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("SELECT count(*) FROM rounds").fetchone()[0] <= SNAPSHOT_INTERVAL + 12
    with coldq.Agent.open(copy) as again:
        assert len(again._settled) == 10
        last = 4 * SNAPSHOT_INTERVAL - 1
        assert (again.decide().round, again.in_flight) == (last, (last,))


def test_a_refusal_just_after_opening_opens_no_round(path: Path) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        one.decide(1), one.decide(2)
    own = coldq.Smooth(lambda x: x @ x, lambda x: 2.0 * x)
    with coldq.Agent.open(path) as one:
        with pytest.raises(coldq.InvalidInput, match="must wait for round 1"):
            one.observe(3, own, revealed(3)[1])
        assert (one.round, one.in_flight) == (2, (1, 2))
        kept = path.rename(path.with_name("kept.db"))
        for refused in (lambda: one.observe(3, *revealed(3)), lambda: one.skip(3)):
            with pytest.raises(coldq.NotWritten):
                refused()
            assert (one.round, one.in_flight) == (2, (1, 2))
        kept.rename(path)
        assert one.observe(3, *revealed(3)).status == "waiting"


def test_paths_that_keep_nothing_and_closed_agents_are_refused(path: Path, tmp_path: Path) -> None:
    for odd in (":memory:", "a\0b"):
        with pytest.raises(coldq.InvalidInput, match="path must name a file that can be kept"):
            coldq.Agent(LEARNER, 2, path=odd)
    with pytest.raises(coldq.InvalidInput, match="path must name a file"):
        coldq.agent.recover(3, tmp_path / "new.db")  # type: ignore[arg-type]
    with coldq.Agent(LEARNER, 2, path=path) as one:
        one.decide()
    with pytest.raises(coldq.InvalidInput, match="this agent is closed"):
        one.decide()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=1")
    with pytest.raises(coldq.NotReadable, match="has the format 1"):
        coldq.agent.recover(path, tmp_path / "new.db")


def test_odd_bytes_in_a_file_are_damage_whatever_they_lead_to(path: Path, tmp_path: Path) -> None:
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(5))
        copy = crash(one, path)
    with closing(sqlite3.connect(copy)) as db:
        db.execute("UPDATE rounds SET feedback=? WHERE round=5", (b"[" * 100_000 + b"\n",))
        db.commit()
    with pytest.raises(coldq.NotReadable, match="round 5 is not whole"):
        coldq.Agent.open(copy)
    assert len(coldq.agent.recover(copy, tmp_path / "new.db").lost) == 1
    with closing(sqlite3.connect(copy)) as db:
        db.execute("DELETE FROM meta WHERE name='turn'")
        db.commit()
    with pytest.raises(coldq.NotReadable, match="does not say which feedback"):
        coldq.agent.recover(copy, tmp_path / "other.db")


def test_an_agent_that_nobody_has_any_more_lets_go_of_its_file(tmp_path: Path) -> None:
    learner = coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.1)
    for _ in range(3):
        agent = coldq.Agent(learner, 0, path=tmp_path / "a.db")
        agent.observe(agent.decide().round, coldq.Linear([1.0]), None)
        del agent
        gc.collect()
    with coldq.Agent.open(tmp_path / "a.db") as agent:
        assert agent.round == 3
    assert not list(tmp_path.glob("*-lock"))
