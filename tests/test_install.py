"""What a fresh process does: light imports, first decisions, the command."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

import coldq
import coldq.learners
from coldq.cli.app import app

ROOT = Path(__file__).parents[1]


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_loads_nothing_heavy() -> None:
    heavy = "scipy.optimize scipy.stats cvxpy typer rich matplotlib"
    script = f"import coldq, sys; print([m for m in {heavy.split()!r} if m in sys.modules])"
    assert run(sys.executable, "-c", script) == "[]\n"


def test_help_needs_no_arrays() -> None:
    script = """
import sys, coldq.cli.app
sys.argv = ["coldq", "--help"]
try:
    coldq.cli.app.run()
finally:
    print("numpy" in sys.modules)
"""
    shown = run(sys.executable, "-c", script)
    assert "reproduce" in shown
    assert shown.endswith("\nFalse\n")


def test_names_are_imported_when_they_are_asked_for() -> None:
    script = """
import sys, coldq
assert "numpy" not in sys.modules
coldq.COLDQ, coldq.Box, coldq.Affine
assert "coldq.learners.coldq" in sys.modules
assert "coldq.learners.recoo" not in sys.modules
import coldq.simulation.loop  # a module that bears the name of a function
assert callable(coldq.simulate)
from coldq import *
assert RECOO is coldq.RECOO
"""
    assert run(sys.executable, "-c", script) == ""


FIRST_DECISIONS = """
import sys, warnings
import numpy as np, coldq
warnings.simplefilter("error")
X, rng = coldq.Box(0.0, 5.0, dim=10), np.random.default_rng(0)
for n in (2, 30):  # a whole update in one call; more rows than that takes
    learner = coldq.COLDQ(X, horizon=5000)
    loss = coldq.LeastSquares(rng.uniform(size=(4, 10)), rng.uniform(size=4))
    rows = coldq.Affine(rng.uniform(size=(n, 10)), rng.uniform(size=n))
    state = learner.update(learner.init(n), coldq.Feedback(loss, rows))
    batch = learner.update(learner.init(n, batch=(100,)), coldq.Feedback(loss, rows))
    assert (batch.x == state.x).all()
    coldq.penalised_step(5.0 * rng.uniform(size=10), np.zeros(10), 1.0, 0.1, rows, X)
absurd = coldq.Affine([[1.0] * 10, [-1.0] * 10], [1.0, -2.0])  # the sum is at most 1, at least 2
try:
    coldq.penalised_step(np.zeros(10), np.zeros(10), 1.0, np.inf, absurd, X)
except coldq.Infeasible:
    print("scipy" in sys.modules)
"""


def test_first_decisions_on_a_box_import_little_and_write_nothing(tmp_path: Path) -> None:
    bare = {name: v for name, v in os.environ.items() if not name.startswith(("COLDQ_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_DECISIONS], cwd=tmp_path,
        env={**bare, "HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("False\n", "")
    assert list(tmp_path.iterdir()) == []


def test_every_public_name_is_imported_for_type_checkers_too() -> None:
    def shown(package: ModuleType) -> set[str]:
        tree = ast.parse(Path(str(package.__file__)).read_text())
        (block,) = [node for node in tree.body if isinstance(node, ast.If)]
        names = (alias for node in block.body for alias in node.names)  # type: ignore[attr-defined]
        return {alias.asname or alias.name for alias in names}

    learners = shown(coldq.learners)
    for package, names in (
        (coldq.learners, learners),
        (coldq, (shown(coldq) | learners) - {"*"}),
    ):
        assert names | {"ALGORITHMS", "CATALOGUE", "CONTRIB", "__version__"} >= set(package.__all__)
        assert names <= set(package.__all__)
        for name in package.__all__:
            assert getattr(package, name) is not None
    assert "*" in shown(coldq)
    assert not hasattr(coldq, "no_such_name")


def test_the_command_explains_itself() -> None:
    command = str(Path(sys.executable).parent / "coldq")
    assert run(command, "--version") == f"coldq {coldq.__version__}\n"
    help_text = run(command, "--help")
    for name in ("reproduce", "compare"):
        assert name in help_text


def test_the_command_lists_and_cites_every_learner() -> None:
    table = CliRunner().invoke(app, ["list"], env={"COLUMNS": "160"}).output
    for learner in coldq.learners.ALGORITHMS:
        assert learner.__name__ in table
        assert coldq.citation(learner).startswith("@")
    cited = CliRunner().invoke(app, ["cite", "coldq"]).output
    assert cited == coldq.citation(coldq.COLDQ) + "\n"
    assert "O(T^(1/2+Vx/2))" in table
    command = str(Path(sys.executable).parent / "coldq")
    done = subprocess.run([command, "cite", "ABC"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("coldq: there is no learner 'ABC'; there are SelfTuning, COLDQ,")


def test_the_command_refuses_nonsense_with_a_sentence(tmp_path: Path) -> None:
    command = str(Path(sys.executable).parent / "coldq")
    done = subprocess.run(
        [command, "reproduce", "--figure", "1", "--seeds", "500", "--out", str(tmp_path)],
        env={**os.environ, "COLDQ_THREADS": "many"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "coldq: COLDQ_THREADS must be a whole number above 0, but is 'many'\n"


def test_public_names_have_docstrings_with_a_doctest() -> None:
    for name in coldq.__all__:
        thing = getattr(coldq, name)
        if callable(thing):
            assert thing.__doc__ is not None, name
            assert ">>>" in thing.__doc__, name


PLAIN = """
import sys
absent = "jinja2 markupsafe matplotlib pyarrow pandas polars cvxpy networkx fastapi uvicorn"
sys.modules |= dict.fromkeys([*absent.split(), "prometheus_client", "IPython"])
from coldq.cli.app import run
sys.argv = ["coldq", *sys.argv[1:]]
run()
"""


def plainly(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command where nothing is installed but what `pip install .` brings."""
    return subprocess.run(
        [sys.executable, "-c", PLAIN, *words], cwd=folder, capture_output=True, text=True,
        check=False, env={**os.environ, "COLUMNS": "120"},
    )  # fmt: skip


def test_every_command_of_the_first_page_works_after_a_plain_install(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    typed = re.findall(r"^coldq (.*)$", page, re.MULTILINE)
    assert len(typed) >= 3
    for words in typed:
        done = plainly(tmp_path, *words.split())
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) > 3
        if words.startswith("compare"):
            assert "RECOO" in done.stdout
            assert "pip install 'coldq[report]'" in " ".join(done.stdout.split())
    assert plainly(tmp_path, "new", "my-load").returncode == 0
    own = ["my-load/my-load.toml", "--learners", "COLDQ", "--rate", "0.1", "--horizon", "40"]
    done = plainly(tmp_path, "compare", *own)
    assert done.returncode == 0, done.stderr
    assert "safety margin" in done.stdout


@pytest.mark.parametrize(
    ("words", "extra"),
    [("reproduce --quick", "report"), ("sweep s.toml", "tables"), ("serve", "serve"),
     ("rates --quick", "report")],
)  # fmt: skip
def test_a_command_that_needs_more_names_its_extra(words: str, extra: str, tmp_path: Path) -> None:
    text = 'problems = ["linear"]\nlearners = ["COLDQ"]\nseeds = 2\n'
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    done = plainly(tmp_path, *words.split())
    assert done.returncode == 1
    assert f"pip install 'coldq[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
