"""Every block of code in the README and the docs is run, every link leads somewhere.

Sessions of Python are doctests of their own; what is typed in a shell is typed here, in an empty
folder. A page with commands that need a server has a test of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

import coldq
from coldq.cli.app import app
from tests.check import SUITES
from tests.processes import HANGING

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ELSEWHERE = {
    "live-use.md",
    "sweeps.md",
    "your-own-table.md",
}  # pages whose commands have a test of their own
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MADE = {"changelog.md", "contributing.md", "gallery.md"}  # while the site is built
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def commands() -> list[tuple[str, str]]:
    """What the pages say to type."""
    return [
        (name(path), line.partition("#")[0].strip())
        for path in PAGES
        if path.name not in ELSEWHERE
        for kind, text in BLOCK.findall(path.read_text(encoding="utf-8"))
        if kind == "sh"
        for line in text.splitlines()
    ]


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_block_of_a_page_is_one_that_is_run(path: Path) -> None:
    for kind, text in BLOCK.findall(path.read_text(encoding="utf-8")):
        assert kind in ("python", "sh", "math", "toml"), f"{path.name} has a block of {kind!r}"
        if kind == "python":
            assert text.startswith(">>> "), f"{path.name} has Python that no doctest sees: {text}"
            assert text.endswith("\n\n"), f"a doctest ends with an empty line: {text}"


@pytest.mark.parametrize(("page", "typed"), commands())
def test_what_a_page_says_to_type_works(page: str, typed: str, tmp_path: Path) -> None:
    program, *arguments = typed.split()
    if program == "make":
        assert set(arguments) <= TARGETS
    elif program == "pip":
        found = re.search(r"(?:\.|coldq)\[([\w,]+)\]", typed)
        assert set(found.group(1).split(",") if found else ()) <= set(EXTRAS)
    else:
        assert program == "coldq"
        done = subprocess.run(
            [sys.executable, "-m", "coldq", *arguments], cwd=tmp_path, capture_output=True,
            text=True, check=False, timeout=HANGING, env={**os.environ, "COLUMNS": "120"},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_links_and_pictures_of_a_page_are_there(path: Path) -> None:
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", text):
        if not target.startswith("http") and target not in MADE:
            made = target.removeprefix("../")
            there = made in MADE or (path.parent / target).exists()
            drawn = re.fullmatch(r"gallery/(\w+)\.png", made)
            if drawn:  # while the site is built, from an example
                there = (ROOT / "examples" / f"{drawn.group(1)}.py").exists()
            assert there, f"{name(path)} has a link to {target}"


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_files_and_names_of_a_page_are_there(path: Path) -> None:
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    for file in re.findall(r"`((?:src|native|tests|docs|benchmarks|examples)/[\w./-]+)`", text):
        assert (ROOT / file).exists(), file
    for full in re.findall(r"`coldq\.([\w.]+)(?:\([^`]*\))?`", text):
        found: Any = coldq
        for each in full.split("."):
            assert hasattr(found, each) or import_module(f"{found.__name__}.{each}"), full
            found = getattr(found, each)


def test_every_make_target_and_suite_that_is_named_is_there() -> None:
    named = [
        *PAGES,
        *(ROOT / ".github").rglob("*.yml"),
        *(ROOT / ".github").rglob("*.md"),
        ROOT / ".ci" / "run",
        ROOT / ".pre-commit-config.yaml",
        ROOT / "SECURITY.md",
    ]
    for path in named:
        text = path.read_text(encoding="utf-8")
        typed = re.findall(r"(?:^|run: |entry: |`)make ([a-z][a-z-]*)", text, re.MULTILINE)
        assert set(typed) <= TARGETS, path
        assert set(re.findall(r"\bSUITE=([a-z][\w-]*)", text)) <= {*SUITES, "name"}, path
    weekly = (ROOT / ".github" / "workflows" / "weekly.yml").read_text(encoding="utf-8")
    listed = re.search(r"suite:\n((?: +- [\w-]+\n)+)", weekly)
    assert listed and set(re.findall(r"- ([\w-]+)", listed[1])) <= set(SUITES)


def test_the_pages_of_the_api_have_every_public_name_once() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md")]
    shown = re.findall(r"^::: coldq\.(\S+)$", "\n".join(pages), re.MULTILINE)
    # A function whose module has its name is found there.
    shown = [re.sub(r"^(\w+)\.\1$", r"\1", each) for each in shown]
    assert len(set(shown)) == len(shown)
    modules = {"agent", "errors", "problems", "__version__"}  # whose names are shown one by one
    assert set(coldq.__all__) - modules <= set(shown)
    assert {f"problems.{each}" for each in coldq.problems.__all__} <= set(shown)
    assert {f"agent.{each}" for each in coldq.agent.__all__} - {"agent.Agent"} <= set(shown)


@pytest.mark.parametrize("page", ["how-to-choose.md", "api/learners.md"])
def test_a_page_that_lists_learners_lists_every_one(page: str) -> None:
    words = set(re.findall(r"\w+", (ROOT / "docs" / page).read_text(encoding="utf-8")))
    assert {kind.__name__ for kind in coldq.learners.ALGORITHMS} <= words


def test_the_page_of_the_command_line_has_every_command_option_and_variable() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    waiting: list[tuple[str, Any]] = [("coldq", typer.main.get_command(app))]
    while waiting:
        called, one = waiting.pop()
        waiting += [
            (f"{called} {name}", each) for name, each in getattr(one, "commands", {}).items()
        ]
        if not hasattr(one, "commands"):
            assert f"`{called}" in page, called
        for option in one.params:
            for words in (*option.opts, *([option.envvar] if option.envvar else [])):
                written = words.startswith("-") or words.isupper()  # else it is an argument
                assert not written or words in page, f"{called} {words}"


def test_the_first_page_has_every_extra_that_a_user_may_want() -> None:
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    for extra in set(EXTRAS) - {"test", "bench", "http", "browser", "docs", "dist", "all"}:
        assert f"`{extra}`" in page, extra


def test_a_page_names_the_extras_that_its_code_needs() -> None:
    needs = {
        "tables": r"import .*\b(?:pandas|polars)\b|\.to_(?:pandas|polars|arrow)\(|coldq\.sweep\(",
        "report": r"\.plot\(|plot_compare\(",
        "exact": r"reference_step\(",
        "metrics": r"import prometheus_client",
    }
    notebooks = sorted((ROOT / "docs").rglob("*.ipynb"))
    for path in (*PAGES, *notebooks):
        text = path.read_text(encoding="utf-8")
        blocks = BLOCK.findall(text)
        code = "\n".join(block for kind, block in blocks if kind == "python")
        code = re.sub(r"#.*", "", text if path in notebooks else code)
        named = {
            each for found in re.findall(r"'coldq\[(.+?)\]'", text) for each in found.split(",")
        }
        for extra, pattern in needs.items():
            if re.search(pattern, code):
                assert extra in named, f"{path.name} runs what needs the extra {extra}"


def test_every_page_is_in_the_sites_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    named = set(re.findall(r": (\S+\.md)$", navigation, re.MULTILINE))
    notebooks = [path.with_suffix(".md") for path in (ROOT / "docs").rglob("*.ipynb")]
    pages = [*(ROOT / "docs").rglob("*.md"), *notebooks]
    there = {str(path.relative_to(ROOT / "docs")) for path in pages}
    assert named - MADE == there


def test_the_front_pages_picture_is_made_by_the_command_beside_it() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (picture,) = re.findall(r"!\[[^]]+\]\((\S+)\)", readme)
    assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")
    assert f"`python examples/web_capacity.py {picture}`" in readme


def test_the_version_is_the_same_wherever_it_is_said() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert coldq.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_contributing_fits_two_screens() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 100


def test_the_changelogs_entries_are_a_line_each() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for line in text.partition("\n## ")[2].splitlines()[1:]:
        assert line.startswith(("- ", "#", "| ")) or not line, line
        assert len(line) <= 140, line


def test_the_page_on_learners_of_your_own_names_every_check_and_what_authors_call() -> None:
    page = (ROOT / "docs" / "add-your-own-learner.md").read_text(encoding="utf-8")
    for check in coldq.checks.CHECKS:
        assert f"| `{check.__name__}` |" in page
    written = (ROOT / "docs" / "api" / "own-learner.md").read_text(encoding="utf-8")
    for name in (
        "observe",
        "gradient_of",
        "values_of",
        "jacobian_of",
        "new_state",
        "State",
        "axes",
    ):
        assert f"`{name}`" in page
        assert name in written


def test_what_is_missing_is_named_with_an_extra_that_there_is_in_the_words_of_the_docs() -> None:
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    asked = [
        words.strip()
        for path in sources
        for words in re.findall(r"pip install ([^\s`\"]+)", path.read_text(encoding="utf-8"))
    ]
    assert "'coldq[report]'" in asked
    for words in asked:
        named = re.fullmatch(r"'coldq\[([\w,{}]+)\]'", words)
        assert named or words in (".", "--no-cache-dir", "-e"), words
        assert named is None or set(named[1].split(",")) <= {*EXTRAS, "{extra}"}
