"""The suites of ``make check``: what they name is there, and what is lacking is said."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from itertools import pairwise

import pytest

from tests import check

EXTRAS = tomllib.loads((check.ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]


@pytest.mark.parametrize("name", check.SUITES)
def test_what_a_suite_names_is_there(name: str) -> None:
    suite = check.SUITES[name]
    assert set(filter(None, suite.extra.split(","))) <= set(EXTRAS)
    assert suite.extra in check.MODULES
    for command in suite.commands:
        words = shlex.split(command)
        modules = [after for word, after in pairwise(words) if word == "-m"]
        files = [word for word in words if word.startswith(("tests/", "native/"))]
        assert modules or files or words[0] == "mkdocs"
        assert all(find_spec(module) for module in modules if module != "pytest")
        assert all((check.ROOT / file).exists() for file in files)


def test_a_suite_fails_where_its_extra_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["check", "cluster"])
    assert check.main() == 1
    assert "cluster needs distributed, ray" in capsys.readouterr().err


def test_arguments_go_to_the_last_command_and_a_failure_ends_the_suite(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[list[str]] = []

    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(words[1:])
        return subprocess.CompletedProcess(words, int("bad" in words))

    monkeypatch.setattr(check.subprocess, "run", run)
    suite = check.Suite("", "", ("python one", "python two"))
    assert check.run(suite, ["--pair", "a"]) == 0
    assert ran == [["one"], ["two", "--pair", "a"]]
    assert check.run(check.Suite("", "", ("python bad", "python never")), []) == 1
    assert ran[2:] == [["bad"]]


def test_make_has_at_most_sixteen_targets() -> None:
    text = (check.ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split()  # type: ignore[index]
    rules = re.findall(r"^([a-z-]+):", text, re.MULTILINE)
    assert sorted(targets) == sorted(rules) and len(targets) <= 16
