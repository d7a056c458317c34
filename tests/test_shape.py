"""What a reader can count on: no function that takes more than a screen or two."""

from __future__ import annotations

import ast
from pathlib import Path

import coldq

SOURCE = Path(coldq.__file__).parent


def test_no_function_is_longer_than_a_hundred_lines_or_a_kernel_than_120() -> None:
    seen, long = 0, []
    for file in SOURCE.rglob("*.py"):
        most = 120 if file.parent.name == "kernels" else 100
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                seen += 1
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > most:
                    long.append(f"{file.relative_to(SOURCE)}: {node.name}, {lines} lines")
    assert seen > 1_000
    assert not long
