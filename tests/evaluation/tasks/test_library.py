"""What the digest of the library covers."""

from __future__ import annotations

import shutil
from pathlib import Path

import coldq
from coldq.evaluation.tasks import library


def test_the_digest_of_the_library_is_that_of_all_it_runs(tmp_path, monkeypatch) -> None:
    home = Path(coldq.__file__).parent
    shutil.copytree(home, tmp_path / "coldq", ignore=shutil.ignore_patterns("__pycache__"))
    digest = library.library_digest.__wrapped__
    first = digest()
    copied = tmp_path / "coldq" / "evaluation" / "tasks" / "library.py"
    monkeypatch.setattr(library, "__file__", str(copied))
    assert digest() == first  # wherever it lies
    (tmp_path / "coldq" / "evaluation" / "report" / "page.css").write_text(
        "/* shows, and runs nothing */"
    )
    assert digest() == first
    solver = tmp_path / "coldq" / "solver" / "answer.py"
    solver.write_text(solver.read_text() + "\n# changed\n")
    assert digest() != first
