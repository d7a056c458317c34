"""Words that the library does not use, each with the one that it does: ``python -m tests.words``.

Looked at are public names, with their parameters, and the first sentence of each docstring.
docs/glossary.md has the words to use.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "coldq"

# A word of old, as a regular expression over lower-case words, and what to write.
WORDS = {
    r"adopt(ed)?": "strict=False",
    r"asleep|awake": "evicted, resident",
    r"certificates?(?! of)|certif(y|ies|ied)": "bound report",
    r"clash(es|ed|ing)?": "conflict, infeasible",
    r"corners?|kinks?|kinked": "vertex, breakpoint",
    r"faces?": "active set, working set",
    r"hard rows?|rows? hard": "enforced row",
    r"headrooms?": "safety margin",
    r"least zero": "non_negative",
    r"long numbers?|pairs of doubles": "double-double",
    r"makers?|made by": "fingerprint",
    r"premises?": "assumptions",
    r"promise[sd]?": "a-priori bounds",
    r"sharpen(s|ed|ing)?": "iterative refinement",
    r"surveys?|surveyed": "estimated constants",
    r"ways in": "entry_points",
    r"^(the same|that of|those of|this one)": "the subject of the sentence",
}
PATTERNS = {re.compile(rf"\b({old})\b"): new for old, new in WORDS.items()}
DEFINITIONS = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def first_sentence(docstring: str) -> str:
    """The first sentence of a docstring, in lower case on one line."""
    paragraph = " ".join(docstring.strip().partition("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s", paragraph)[0].lower()


def words_of(name: str) -> str:
    """The words of a name, ``_lower`` or ``Upper``, in lower case with spaces between."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name).strip().lower()


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The public names and first sentences of a module, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS | ast.Module) and (found := ast.get_docstring(node)):
            yield node.body[0].lineno, first_sentence(found)
        if not isinstance(node, DEFINITIONS) or node.name.startswith("_"):
            continue
        yield node.lineno, words_of(node.name)
        if not isinstance(node, ast.ClassDef):
            every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            yield from ((each.lineno, words_of(each.arg)) for each in every)


def findings(source: Path = SOURCE) -> Iterator[str]:
    """Each word of old, with its file and line, and what to write."""
    for path in sorted(source.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for line, text in ((1, words_of(path.stem)), *texts(tree)):
            for pattern, new in PATTERNS.items():
                if found := pattern.search(text):
                    yield f"{path}:{line}: {found[1]!r}; write: {new}"


def main() -> None:
    """Print every word of old; the status is 1 if there is one."""
    sys.exit("\n".join(findings()) or 0)


if __name__ == "__main__":
    main()
