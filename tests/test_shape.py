"""The shape of the source: functions that a reader can hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import coldq

SOURCE = Path(coldq.__file__).parent
MOST = 100
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def own_lines(function: ast.AST) -> int:
    """The lines of a function without those of functions within it, which count for themselves."""
    inner = [node for node in ast.walk(function) if isinstance(node, FUNCTIONS)]
    within = {
        line
        for node in inner
        if node is not function
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    return len(set(range(function.lineno, function.end_lineno + 1)) - within)  # type: ignore[attr-defined]


def statements(within: ast.AST) -> Iterator[ast.AST]:
    """All statements, which functions are among; expressions, most of a tree, are passed over."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(within, part, ()):
            yield node
            yield from statements(node)


def test_functions_have_at_most_a_hundred_lines() -> None:
    long = []
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in statements(tree):
            if isinstance(node, FUNCTIONS) and node.end_lineno - node.lineno >= MOST:  # type: ignore[operator]
                lines = own_lines(node)
                if lines > MOST:
                    long.append(f"{path.relative_to(SOURCE)}: {node.name} has {lines} lines")
    assert long == []


def test_native_sources_have_at_most_five_hundred_lines() -> None:
    native = SOURCE.parents[1] / "native"
    sources = [*native.rglob("*.cpp"), *native.rglob("*.hpp")]
    assert len(sources) > 5
    assert [path.name for path in sources if len(path.read_text().splitlines()) > 500] == []


def test_lines_of_functions_within_a_function_count_for_themselves() -> None:
    text = "def outer():\n    a = 1\n    def inner():\n        return 2\n    return a\n"
    (outer,) = ast.parse(text).body
    assert own_lines(outer) == 3
    assert [own_lines(node) for node in statements(outer) if isinstance(node, FUNCTIONS)] == [2]
