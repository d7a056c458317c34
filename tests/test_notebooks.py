"""The notebooks run headless, and show pictures, tables and states without a magic line."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = sorted(DOCS.rglob("*.ipynb"))
# In a process of its own: what a kernel and its sockets warn of is theirs.
RUN = """
import sys, nbformat
from nbclient import NotebookClient
found = nbformat.read(sys.argv[1], as_version=4)
where = {"metadata": {"path": sys.argv[3]}}
NotebookClient(found, timeout=600, kernel_name="python3", resources=where).execute()
nbformat.write(found, sys.argv[2])
"""


def executed(path: Path, folder: Path) -> list[Any]:
    """What the cells of a notebook show, one after the other."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path), str(folder / "run.ipynb"), str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    cells = nbformat.read(folder / "run.ipynb", as_version=4).cells
    return [output for cell in cells for output in cell.get("outputs", ())]


def html(outputs: list[Any]) -> list[str]:
    return [found for each in outputs if (found := each.get("data", {}).get("text/html"))]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_tutorial_shows_pictures_and_tables(path: Path, tmp_path: Path) -> None:
    source = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in source.cells)  # the repository keeps none
    assert not any(re.search(r"^[%!]", cell.source, re.MULTILINE) for cell in source.cells)
    shown = html(executed(path, tmp_path))
    pictures = [re.search(r'src="data:image/png;base64,([^"]+)"', each) for each in shown]
    drawn = [base64.b64decode(found[1]) for found in pictures if found]
    assert drawn
    for content in drawn:
        assert content.startswith(b"\x89PNG")
        assert len(content) > 10_000
    assert sum("<table>" in each or "dataframe" in each for each in shown) >= 2


def test_there_are_two_of_them() -> None:
    assert len(NOTEBOOKS) >= 2


def test_a_long_run_and_a_long_comparator_show_a_bar_which_leaves_nothing(tmp_path: Path) -> None:
    cells = [
        "import coldq, coldq.base.notebook as shown",
        "shown.DELAY = shown.PAUSE = 0.0",
        "import IPython.display as display\nsaid, show = [], display.display",
        "def hear(what, **more):\n    said.append(what.data)\n    return show(what, **more)\n"
        "display.display = hear",
        "problem = coldq.problems.TimeVarying(horizon=40)\n"
        "trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])\n"
        "coldq.dynamic_comparator(problem, [0])\n"
        "print('|'.join(said))",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(book, tmp_path / "bars.ipynb")
    outputs = executed(tmp_path / "bars.ipynb", tmp_path)
    (said,) = [each["text"] for each in outputs if each.get("name") == "stdout"]
    assert "slots: " in said and "best decisions: " in said
    assert said.count("<progress") >= 2
    assert html(outputs) == []  # each bar is taken away in the end
