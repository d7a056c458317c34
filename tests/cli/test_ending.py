"""Signals end every command by convention, with one line, and leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import cycle
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM

import pytest

import coldq
from coldq.cli import command
from coldq.cli.rates import QUICK_HORIZONS, QUICK_SEED_COUNT
from coldq.evaluation.tasks.library import library_digest
from coldq.evaluation.tasks.store import attempt
from coldq.paper.rates.store import store_of, tasks
from tests.processes import LISTENS, end, read_line, started, wait_for

EXAMPLES = Path(__file__).parents[2] / "examples"
BY = {SIGINT: "Ctrl-C", SIGTERM: "SIGTERM"}
signals = pytest.mark.parametrize("number", list(BY), ids=lambda number: number.name)


def named(value: object) -> str:
    return str(getattr(value, "name", value))


# Every command and example is ended by one of the signals: what hears them is the same for all.
@pytest.mark.parametrize(
    ("name", "number"),
    list(zip(["reproduce", "compare", "rates"], cycle(BY), strict=False)),
    ids=named,
)
def test_every_command_ends_by_a_signal_with_one_line(name, number, tmp_path) -> None:
    out = tmp_path / "out"
    arguments = [*{"compare": ["linear"]}.get(name, []), "--out", str(out)]
    with started("-c", LISTENS, "module", "coldq", name, *arguments) as running:
        for _ in range(2):  # once as a command, then as this one
            read_line(running, "listening")
        status, printed, errors = end(running, number)
    assert status == 128 + number
    assert printed == ""
    assert errors.startswith(f"coldq: stopped by {BY[number]}; ")
    assert errors.count("\n") == 1
    assert "the same command" in errors
    assert not list(out.rglob("*.*"))


@pytest.mark.parametrize(
    ("path", "number"),
    list(zip(sorted(EXAMPLES.glob("*.py")), cycle(BY), strict=False)),
    ids=named,
)
def test_every_example_ends_by_a_signal_with_one_line(path, number, tmp_path) -> None:
    picture = tmp_path / "picture.png"
    with started("-c", LISTENS, "path", str(path), str(picture)) as running:
        read_line(running, "listening")
        status, printed, errors = end(running, number)
    assert status == 128 + number
    assert printed == ""
    assert errors == f"coldq: stopped by {BY[number]}; no file is half written\n"
    assert not list(tmp_path.iterdir())


def test_rates_that_are_stopped_keep_what_is_finished_and_do_no_more(tmp_path) -> None:
    kept_in, left, there = store_of(tmp_path), set(), set()
    for task in tasks(QUICK_HORIZONS, QUICK_SEED_COUNT):
        if task.horizon in QUICK_HORIZONS[:2]:
            left.add(task.key)
        else:  # as if it had been run before
            size = task.shape[0] * task.shape[1]
            ones = {"regret": [1.0] * size, "violation": [1.0] * size}
            result = attempt(lambda _, ones=ones: ones, library_digest(), task).result
            assert result is not None
            kept_in.put(task.key, result)
            there.add(task.key)

    def done() -> set[str]:
        return {path.stem for path in kept_in.runs.glob("*/*.parquet")}

    with started("-m", "coldq", "rates", "--quick", "--out", str(tmp_path)) as running:
        wait_for(lambda: done() - there, running)
        status, printed, errors = end(running, SIGINT)
    assert status == 130
    assert printed == ""
    assert errors == (
        f"coldq: stopped by Ctrl-C; finished runs are kept in {kept_in.runs}, "
        "and the same command goes on there\n"
    )
    kept = done()
    assert there < kept <= there | left
    assert len(kept - there) < len(left) / 2


# What is put away would take hours.
SLOW = """
import time
from coldq.cli import stoppable
with stoppable("nothing was begun"):
    try:
        print("begun", flush=True)
        time.sleep(9e3)
    finally:
        time.sleep(9e3)
"""


@signals
def test_what_takes_too_long_to_put_away_is_ended(number) -> None:
    with started("-c", SLOW) as running:
        read_line(running, "begun")
        ended = end(running, number)
    assert ended == (128 + number, "", f"coldq: stopped by {BY[number]}; nothing was begun\n")


# What was begun is put away, however often the signal comes.
TIDY = """
import os, signal
from coldq.cli import command, stoppable
with command("outer"), stoppable("inner"):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        print("put away")
"""


def test_what_was_begun_is_put_away_and_the_inner_sentence_is_said() -> None:
    done = subprocess.run([sys.executable, "-c", TIDY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "put away\n")
    assert done.stderr == "coldq: stopped by Ctrl-C; inner\n"


# C calls Python, where the signal is heard: what is raised there is lost, and another error comes.
SWALLOWED = """
import ctypes, os, signal
from coldq.cli import command
@ctypes.CFUNCTYPE(None)
def called_by_c():
    os.kill(os.getpid(), signal.SIGTERM)
with command("kept"):
    called_by_c()
    raise RuntimeError("there is no compiled object")
"""


def test_a_signal_that_is_heard_where_nothing_can_be_raised_ends_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWED], capture_output=True, text=True, check=False
    )
    assert done.returncode == 143
    assert done.stderr == "coldq: stopped by SIGTERM; kept\n"


IGNORED = """
import os, signal
from coldq.cli import command
signal.signal(signal.SIGINT, signal.SIG_IGN)
before = signal.getsignal(signal.SIGTERM)
with command():
    os.kill(os.getpid(), signal.SIGINT)
assert signal.getsignal(signal.SIGTERM) == before
print("went on")
"""


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IGNORED], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "went on\n", "")


# One task is done at once; the others would take hours.
SHARING = """
import time
from coldq.cli import command
from coldq.evaluation.tasks.processes import Processes
with command("kept"):
    with Processes(2) as executor:
        for _ in executor.map(time.sleep, [0.0, 9e3, 9e3]):
            print("one is done", flush=True)
"""


@pytest.mark.parametrize("number", [SIGINT, SIGTERM, SIGKILL], ids=lambda number: number.name)
def test_no_worker_outlives_its_parent(number) -> None:
    with started("-c", SHARING) as running:
        read_line(running, "one is done")
        status, printed, errors = end(running, number)
    assert printed == ""
    if number == SIGKILL:
        assert (status, errors) == (-SIGKILL, "")
    else:
        assert (status, errors) == (128 + number, f"coldq: stopped by {BY[number]}; kept\n")


def test_output_that_nobody_reads_to_its_end_leaves_no_traceback() -> None:
    code = "from coldq.cli import command\nwith command():\n    print('much')"
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_output_that_cannot_be_written_is_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "coldq", "list"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "coldq: the output could not be written: No space left on device\n"


PRINTS = """
from coldq.cli.tables import console
from coldq.cli import command
with command():
    print("2.0 ± 0.5")
    console().print("α = 1, a name \\udcff")
"""


@pytest.mark.parametrize(
    ("encoding", "printed"),
    [("ascii", "2.0 ? 0.5\n? = 1, a name ?\n"), ("utf-8", "2.0 ± 0.5\nα = 1, a name ?\n")],
)
def test_what_a_terminal_cannot_print_is_replaced(encoding, printed) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRINTS], capture_output=True, encoding="utf-8", check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


def test_an_error_of_ours_is_a_sentence_and_another_is_not(capsys) -> None:
    with pytest.raises(SystemExit) as left, command():
        raise coldq.InvalidInput("x must be 1")
    assert left.value.code == 1
    assert capsys.readouterr().err == "coldq: x must be 1\n"
    with pytest.raises(FileNotFoundError), command():
        Path("no such file").read_text()


NAMED = """
import warnings
from coldq.cli import command
from coldq.base.errors import IgnoredFile, warn
usual = warnings.formatwarning
with command():
    warn("a.json is not ours", IgnoredFile)
    warn("something else", UserWarning)
assert warnings.formatwarning is usual
"""


def test_a_file_that_is_left_out_is_named_in_a_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NAMED], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    first, second = done.stderr.splitlines()
    assert first == "coldq: a.json is not ours"
    assert second.endswith("UserWarning: something else")
