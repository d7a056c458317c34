"""What a user gets: wheel and sdist, each in an environment of its own, with the first example run.

``python -m tests.installed dist`` takes the files of a folder, as ``make dist`` does.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPT = """
import doctest, sys, coldq
assert coldq.__file__.startswith(sys.prefix), coldq.__file__
assert coldq.__version__ == sys.argv[1], coldq.__version__
test = doctest.DocTestParser().get_doctest(sys.argv[2], {}, "README.md", "README.md", 0)
runner = doctest.DocTestRunner()
runner.run(test)
print(f"coldq {coldq.__version__}: {runner.tries} statements of the first example")
sys.exit(runner.failures)
"""


def first_example(readme: str) -> str:
    """The first block of Python in the README."""
    found = re.search(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    if found is None:
        raise SystemExit("the README has no example")
    return found.group(1)


def check(file: Path, version: str, example: str) -> None:
    """Install one file into an empty environment, and run the example there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        for command in (
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", file],
            [python, "-c", SCRIPT, version, example],
            [Path(folder) / "bin" / "coldq", "--version"],
        ):
            subprocess.run(command, cwd=folder, check=True)
    print(f"{file.name} is fine")


def main(folder: str) -> None:
    """Check every file of a folder: a wheel and an sdist of this version, and nothing else."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    files = sorted(Path(folder).resolve().iterdir())
    expected = [f"coldq-{version}-cp311-abi3-*manylinux*.whl", f"coldq-{version}.tar.gz"]
    if len(files) != 2 or not all(map(Path.match, files, expected)):
        raise SystemExit(f"{folder} should hold {expected}, but has {files}")
    with tarfile.open(files[1]) as source:
        there = {name.partition("/")[2] for name in source.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, check=True)
    if missing := set(tracked.stdout.decode().split("\n")) - there - {""}:
        raise SystemExit(f"{files[1].name} lacks {sorted(missing)}")
    example = first_example((ROOT / "README.md").read_text(encoding="utf-8"))
    for file in files:
        check(file, version, example)


if __name__ == "__main__":
    main(sys.argv[1])
