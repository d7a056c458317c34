"""Real clusters on this machine, started by the commands that docs/sweeps.md has.

Scheduler and workers, or nodes, are processes of their own; one of them is killed in the middle.
The sweep completes, with the same bytes as in one process.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

import coldq
from tests.evaluation.sweeps.kept import results
from tests.evaluation.sweeps.pages import commands
from tests.processes import HANGING

BIN = Path(sys.executable).parent
CONFIG = """
seeds = 120
seeds_a_task = 10
regret = false
problems = [{problem = "time-varying", horizon = 600}]
learners = [{learner = "COLDQ", epsilon = [0.1, 0.5, 2.5]}, {learner = "RECOO"}]
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("asked") / "sweep.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def expected(config: Path) -> dict[str, bytes]:
    out = config.parent / "here"
    coldq.sweep(config, out=out)
    return results(out)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running(arguments: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command in a session of its own, all of which ends with the block."""
    program, *rest = arguments
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    with (folder / f"{program}-{time.monotonic_ns()}.log").open("wb") as log:
        started = subprocess.Popen(
            [str(BIN / program), *rest], stdout=log, stderr=log, cwd=folder, env=environment,
            start_new_session=True,
        )  # fmt: skip
        try:
            yield started
        finally:
            for pid in family(started.pid)[::-1]:
                end(pid)
            started.wait(HANGING)


def family(pid: int) -> list[int]:
    """A process and all that came of it, parents first."""
    found = [pid]
    for each in found:
        for thread in Path(f"/proc/{each}/task").glob("*/children"):
            with suppress(OSError):
                found += map(int, thread.read_text().split())
    return found


def of_session(leader: int) -> list[int]:
    """All processes that run in a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append(int(path.parent.name))
    return found


def end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def wait_until(happened, *alive: subprocess.Popen[bytes]) -> None:
    while not happened():
        for process in alive:
            assert process.poll() is None, f"{process.args} ended by itself"
        time.sleep(0.05)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def swept(words: list[str], config: Path, out: Path) -> list[str]:
    """The documented command, of this config."""
    assert words[:2] == ["coldq", "sweep"]
    return ["coldq", "sweep", str(config), *words[3:], "--out", str(out)]


@pytest.mark.parametrize("tool", ["dask", "ray"])
def test_a_sweep_completes_though_a_worker_is_killed(tool, config, expected, tmp_path) -> None:
    documented = commands({"dask": "dask scheduler", "ray": "ray start --head"}[tool])
    port, (usual,) = free_port(), {"dask": ["8786"], "ray": ["6379"]}[tool]
    first, second, run = (
        [word.replace(usual, str(port)) for word in words] for words in documented
    )
    out = tmp_path / "out"
    with ExitStack() as stack:
        head = stack.enter_context(running(first, tmp_path))
        wait_until(lambda: listens(port), head)
        workers = [stack.enter_context(running(second, tmp_path)) for _ in range(2)]
        sweep = stack.enter_context(running(swept(run, config, out), tmp_path))
        wait_until(lambda: len(list((out / "runs").glob("*/*.parquet"))) >= 4, head, sweep)
        assert len(list((out / "runs").glob("*/*.parquet"))) < len(expected)
        for pid in family(workers[0].pid):
            end(pid)
        assert sweep.wait(HANGING) == 0, "\n".join(p.read_text() for p in tmp_path.glob("coldq*"))
    assert results(out) == expected
    assert not list(out.glob("failed/*"))


def test_dask_on_this_machine_gives_the_same_bytes_and_leaves_no_process(
    config, expected, tmp_path
) -> None:
    out = tmp_path / "out"
    with running(
        ["coldq", "sweep", str(config), "--dask", "local", "--out", str(out)], tmp_path
    ) as run:
        wait_until(lambda: len(of_session(run.pid)) >= 3, run)
        assert run.wait(HANGING) == 0
        wait_until(lambda: not of_session(run.pid))
    assert results(out) == expected


@pytest.mark.parametrize("option", ["--dask", "--ray"])
def test_nobody_at_the_address_is_a_sentence(option, config, tmp_path) -> None:
    done = subprocess.run(
        [BIN / "coldq", "sweep", config, option, f"127.0.0.1:{free_port()}", "--out", tmp_path],
        capture_output=True, text=True, check=False, timeout=HANGING,
    )  # fmt: skip
    assert done.returncode == 1
    assert "answers at 127.0.0.1:" in done.stderr
    assert "Traceback" not in done.stderr
