"""Docstrings as Markdown: sessions become blocks of code, Sphinx's roles plain names."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr):`~?(?:coldq\.)?([\w.]+)`")
SESSION = re.compile(
    r"(?:^>>> .*(?:\n(?!\s*$).*)*)(?:\n\n(?=>>> ).*(?:\n(?!\s*$).*)*)*", re.MULTILINE
)


def as_markdown(text: str) -> str:
    """A docstring's text, written for Markdown."""
    text = ROLE.sub(r"`\1`", text)
    return SESSION.sub(lambda match: f"```pycon\n{match.group(0)}\n```", text)


class Docstrings(griffe.Extension):
    """Applied to everything that the pages of the API show."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """A docstring is changed once, when it was read."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
