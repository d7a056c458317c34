"""Docstrings as Markdown: sessions and formulas become blocks of code, roles plain names."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr):`~?(?:coldq\.)?([\w.]+)`")
SESSION = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
SECTION = re.compile(r"^[A-Z]\w+\n-{3,}$", re.MULTILINE)
SET_OFF = re.compile(r"(?<=\n\n)(?: {4,}[^\s\0].*\n?)+")  # after an empty line
ITEM = re.compile(r"^(?:\d+\.|-) ", re.MULTILINE)
CODE = re.compile(r"(^ *```.*?^ *```$|``.*?``|`[^`\n]*`)", re.DOTALL | re.MULTILINE)


def as_markdown(text: str) -> str:
    """A docstring's text, written for Markdown."""
    section, session = SECTION.search(text), SESSION.search(text)
    if section and session and section.start() < session.start():  # else of the last section
        text = f"{text[: session.start()]}Examples\n--------\n{text[session.start() :]}"
    text = SESSION.sub(lambda match: f"```pycon\n{match.group(0)}\n```", ROLE.sub(r"`\1`", text))
    end = len(text) if section is None else section.start()
    text = SET_OFF.sub(_fenced, _continued(text[:end])).replace("\0", "") + text[end:]
    parts = CODE.split(text)  # code at odd places
    return "".join(part if k % 2 else part.replace("<", "&lt;") for k, part in enumerate(parts))


def _fenced(match: re.Match[str]) -> str:
    """Lines that are set off, as a block of code: of an item if one goes before, else by itself."""
    lines = match.group(0).rstrip("\n").splitlines()
    least = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    before = match.string[: match.start()].rstrip("\n").splitlines()
    lead = "    " if before and re.match(r"(?:\d+\.|-| ) ?", before[-1]) else ""
    body = "\n".join((lead + line[least:]).rstrip() for line in lines)
    return f"{lead}```text\n{body}\n{lead}```\n"


def _continued(text: str) -> str:
    """Lines that go on below an item, indented as Markdown asks and marked as no formula."""
    if not ITEM.search(text):
        return text
    text = re.sub(r"^ {2,3}(?=\S)", "    \0", text, flags=re.MULTILINE)
    # Below a paragraph of its own an item ends with an empty line.
    return re.sub(r"(\n\n(?: {4}\0.*\n)+)(?=\d+\. |- )", r"\1\n", text)


class Docstrings(griffe.Extension):
    """Applied to everything that the pages of the API show."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """A docstring is changed once, when it was read."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_module_members(self, *, mod: griffe.Module, **_: Any) -> None:
        """What the package of learners shows to type checkers, `coldq` shows as well."""
        if mod.path == "coldq.learners":
            mod.exports = None
            for member in mod.members.values():
                member.runtime = True
