"""The page as a whole: parts that different commands make, joined into one file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from matplotlib.figure import Figure as Canvas

import coldq
from coldq.base.errors import IgnoredFile, warn
from coldq.base.files import is_unfinished
from coldq.evaluation.intervals import duration
from coldq.evaluation.report import numbers
from coldq.evaluation.report.files import require_own_page, write_text
from coldq.evaluation.report.pictures import SUFFIXES, as_address

PART_ORDER = ("reproduction", "rates")  # the order of the page; other parts follow by name


@dataclass(frozen=True)
class Part:
    """What one command adds to the page.

    The first part on the page gives it `title` and `lead`. `contents` has the id and the title of
    each of its sections, `html` the sections themselves.
    """

    key: str
    title: str
    lead: str
    contents: list[tuple[str, str]]
    html: str


def join(part: Part, path: Path) -> None:
    """Add a part to the page at `path`, or put it in the place of an older one of its key.

    The parts lie in a folder of the page's name, so that the next one can be joined to them. A file
    there that is no whole part is named in a warning and left out.

    >>> import pathlib, tempfile
    >>> from coldq.evaluation.report.parts import Part, join
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "index.html"
    >>> for key in ("b", "a"):
    ...     join(Part(key, f"Title {key}", "", [], f"<p>Part {key}</p>"), path)
    >>> text = path.read_text(encoding="utf-8")
    >>> "<h1>Title a</h1>" in text, text.index("Part a") < text.index("Part b")
    (True, True)
    """
    require_own_page(path)
    folder = path.parent / "parts" / path.stem
    kept = {part.key: part}
    for file in sorted(folder.glob("*.json")):
        older = None if is_unfinished(file) or file.stem == part.key else _read(file)
        if older is not None:
            kept[older.key] = older
    order = [key for key in PART_ORDER if key in kept]
    order += sorted(kept.keys() - set(order))
    text = render(
        "page.html.jinja",
        style=Markup(text_of("page.css")),
        parts=[{**asdict(kept[key]), "html": Markup(kept[key].html)} for key in order],
        version=coldq.__version__,
    )
    write_text(folder / f"{part.key}.json", json.dumps(asdict(part)))
    write_text(path, text)


def join_picture(
    name: str,
    titles: tuple[str, str],
    lead: str,
    path: Path,
    template: str,
    picture: Canvas,
    **context: Any,
) -> None:
    """Join a part to the page that is one section, about the picture of this name beside it.

    The `titles` are that of the page and that of the section.
    """
    title, own = titles
    html = render(
        template, name=name, title=own, suffixes=SUFFIXES, picture=as_address(picture), **context
    )
    join(Part(name, title, lead, [(name, own)], html), path)


def _read(file: Path) -> Part | None:
    """The part in a file of its name."""
    try:
        part = Part(**json.loads(file.read_text(encoding="utf-8")))
        texts = [part.key, part.title, part.lead, part.html]
        texts += [text for id, title in part.contents for text in (id, title)]
        if all(isinstance(text, str) for text in texts) and part.key == file.stem:
            return part
    except (OSError, ValueError, TypeError, RecursionError):
        pass
    warn(f"{file} is not a whole part of a report, so it is left out of the page", IgnoredFile)
    return None


def render(template: str, package: str = "coldq.evaluation.report", **context: Any) -> str:
    """A template of a package, filled in; what is not markup is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(partial(text_of, package=package)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        typeset=numbers.typeset,
        number=numbers.number,
        amount=numbers.amount,
        duration=duration,
        percentage=numbers.percentage,
        percentage_of=lambda part: numbers.amount(part, "%"),
    )
    return environment.get_template(template).render(context)


def text_of(name: str, package: str = "coldq.evaluation.report") -> str:
    """The text of a file of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")
