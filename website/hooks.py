"""What the site needs beside Markdown: formulas without scripts, the gallery, pages of the root.

MkDocs calls these functions while it builds. Formulas are written as GitHub shows them, in fences
of ``math`` and in dollars around backticks, and become MathML. The gallery is made of `examples/`:
each is run, and its picture, its words and its source make a section. Notebooks are executed, and
become pages with what their cells show. Names of the API are links, and sessions copy as code.
"""

from __future__ import annotations

import ast
import hashlib
import html as markup
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
KEPT = ROOT / "build" / "gallery"  # pictures, by what they were made of
ROOT_PAGES = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
DISPLAYED = re.compile(r"^```math\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"\$`([^`]+)`\$")
CODE = re.compile(r'(<div class="(?:language-\w+ )?highlight">)(<pre\b.*?</pre>)', re.DOTALL)
LEFT_ALONE = re.compile(r"(<a\b.*?</a>|<pre\b.*?</pre>|<h\d\b.*?</h\d>)", re.DOTALL)
NAME = re.compile(r"(<code>)((?:coldq\.)?[A-Za-z_][\w.]*(?:\([^<>]*\))?)</code>")
TOKEN = "formula-number-{}-of-this-page"


def on_config(config: Any) -> Any:
    """The repository is where this clone came from, unless COLDQ_REPOSITORY names another."""
    command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    address = os.environ.get("COLDQ_REPOSITORY") or done.stdout.strip()
    if address.startswith(("http://", "https://")):
        config.repo_url = address.removesuffix(".git")
        config.repo_name = "Repository"
    return config


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add what is made while building."""
    for name, source in ROOT_PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    sections = []
    for path in sorted(EXAMPLES.glob("*.py")):
        picture, words = drawn(path)
        name = f"gallery/{path.stem}.png"
        files.append(File.generated(config, name, content=picture))
        sections.append(section(path, name, words))
    files.append(File.generated(config, "gallery.md", content=gallery(sections)))
    for path in sorted((ROOT / "docs").rglob("*.ipynb")):
        name = path.relative_to(ROOT / "docs").with_suffix(".md")
        files.append(File.generated(config, str(name), content=notebook(path)))
    return files


def notebook(path: Path) -> str:
    """A notebook as a page, each cell with what it shows; executed where that is not known yet."""
    kept = KEPT / f"{path.stem}-{digest(path)}.md"
    if not kept.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        cells = executed(path).cells
        parts = [part for cell in cells for part in (cell_text(cell), *map(shown, outputs(cell)))]
        first, *rest = (part for part in parts if part)
        link = f"[{path.name}]({path.name})"
        about = f"This page is a notebook, run while the site was built: {link}."
        kept.write_text("\n\n".join([first, about, *rest]) + "\n", encoding="utf-8")
    return kept.read_text(encoding="utf-8")


def executed(path: Path) -> Any:
    """A notebook with the outputs of its cells; a cell that fails fails the build."""
    import nbformat
    from nbclient import NotebookClient

    found = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(ROOT)}}
    NotebookClient(found, timeout=600, kernel_name="python3", resources=where).execute()
    return found


def cell_text(cell: Any) -> str:
    """What somebody wrote into a cell."""
    return cell.source if cell.cell_type == "markdown" else f"```python\n{cell.source}\n```"


def outputs(cell: Any) -> list[Any]:
    """What a cell has shown; a bar that is gone has left nothing."""
    return [each for each in cell.get("outputs", ()) if each.get("name") != "stderr"]


def shown(output: Any) -> str:
    """An output as Markdown: HTML where there is some, else text."""
    data = output.get("data", {})
    if "text/html" in data:
        inside = re.sub(r"<style.*?</style>\n?", "", data["text/html"], flags=re.DOTALL)
        return f'<div class="shown">\n{inside}\n</div>' if inside else ""
    return f"```text\n{(data.get('text/plain') or output.get('text', '')).rstrip()}\n```"


def digest(path: Path) -> str:
    """Of a file and of all code that it may use."""
    sources = [path, *sorted((ROOT / "src").rglob("*.py"))]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


def drawn(path: Path) -> tuple[bytes, str]:
    """The picture of an example and what it prints; it is run where that is not known yet."""
    key = digest(path)
    picture, words = (KEPT / f"{path.stem}-{key}{suffix}" for suffix in (".png", ".txt"))
    if not (picture.exists() and words.exists()):
        KEPT.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [sys.executable, str(path), str(picture)], cwd=ROOT, text=True, capture_output=True,
            env={**os.environ, "MPLBACKEND": "Agg"}, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{path.name} did not run:\n{done.stdout}{done.stderr}")
        said = [line for line in done.stdout.splitlines() if not line.startswith("picture in")]
        words.write_text("\n".join(said) + "\n", encoding="utf-8")
    return picture.read_bytes(), words.read_text(encoding="utf-8")


def section(path: Path, picture: str, words: str) -> str:
    """An example in the gallery."""
    text = path.read_text(encoding="utf-8")
    about = ast.get_docstring(ast.parse(text)) or ""
    first, _, rest = about.partition("\n")
    title = path.stem.replace("_", " ").capitalize()
    command = f"python examples/{path.name}"
    rest = "\n\n".join(part for part in rest.strip().split("\n\n") if command not in part)
    return (
        f"## {title}\n\n**{first}** {rest}\n\n![{first}]({picture})\n\n"
        f"```sh\n{command}\n```\n\n```text\n{words}```\n\n"
        f'<details markdown="1"><summary>The source, examples/{path.name}</summary>\n\n'
        f"```python\n{text}```\n\n</details>\n"
    )


def gallery(sections: list[str]) -> str:
    """The page of all examples."""
    lead = (
        "# Gallery\n\nEvery file in `examples/`, run while this page was built: its picture, what "
        "it printed, and its source. `python examples/NAME.py --help` says what can be changed.\n\n"
    )
    return lead + "\n".join(sections)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Sessions are highlighted as such, formulas put aside, links to the root's pages followed."""
    markdown = markdown.replace("](../CONTRIBUTING.md)", "](contributing.md)")
    if not page.file.generated_by:  # links to notebooks lead to their pages
        markdown = re.sub(r"(\]\([^)\s]+)\.ipynb\)", r"\1.md)", markdown)
    markdown = re.sub(r"^```python\n(?=>>>)", "```pycon\n", markdown, flags=re.MULTILINE)
    formulas: list[str] = []

    def aside(display: str) -> Any:
        def put(match: re.Match[str]) -> str:
            from latex2mathml.converter import convert

            formulas.append(convert(match.group(1).strip(), display=display))
            return TOKEN.format(len(formulas) - 1)

        return put

    markdown = DISPLAYED.sub(aside("block"), markdown)
    markdown = INLINE.sub(aside("inline"), markdown)
    page.meta["formulas"] = formulas
    return markdown


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Formulas where they belong: Markdown has not touched them. Names become links."""
    for k, formula in enumerate(page.meta.get("formulas", ())):
        token = TOKEN.format(k)
        html = html.replace(f"<p>{token}</p>", f'<div class="formula">{formula}</div>')
        html = html.replace(token, formula)
    # A wide table scrolls by itself, also without Material's script.
    html = re.sub(r"<table\b[^>]*>", r'<div class="wide"><table>', html)
    html = html.replace("</table>", "</table></div>")
    html = CODE.sub(copied_as_code, html)
    return linked(html, page.url)


def copied_as_code(match: re.Match[str]) -> str:
    """A session that copies without prompts and without what was printed."""
    if '<span class="gp">' not in match[2]:
        return match[0]
    lines = markup.unescape(re.sub(r"<[^>]+>", "", match[2])).splitlines()
    code = "\n".join(line[4:] for line in lines if line[:3] in (">>>", "..."))
    return f'{match[1][:-1]} data-copy="{markup.escape(code)}">{match[2]}'


def linked(html: str, here: str) -> str:
    """Names of the API in code lead to where they are written down, unless they stand there."""
    homes = api_homes()

    def link(match: re.Match[str]) -> str:
        name = match[2].removeprefix("coldq.").partition("(")[0]
        owner, _, part = (name, "", "") if name in homes else name.rpartition(".")
        if owner not in homes:
            return match[0]
        page, full = homes[owner]
        found = resolve_name(full)
        if part and not hasattr(found, part):
            return match[0]
        if isinstance(found, ModuleType) and not match[2].startswith("coldq."):
            return match[0]  # such as an extra that is called as a module
        target = f"{get_relative_url(page, here)}#{full}"
        return f'<a class="name" href="{target}"><code>{match[2]}</code></a>'

    parts = LEFT_ALONE.split(html)  # what must not be changed comes at odd places
    return "".join(part if k % 2 else NAME.sub(link, part) for k, part in enumerate(parts))


@cache
def api_homes() -> dict[str, tuple[str, str]]:
    """Page and whole name of what the API has, by the names that pages call it."""
    homes = {}
    for path in sorted((ROOT / "docs" / "api").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"^::: coldq\.(\S+)$", text, re.MULTILINE):
            home = f"api/{path.stem}.html", f"coldq.{name}"
            homes[re.sub(r"^(\w+)\.\1$", r"\1", name)] = home  # a module and its function
            if name.startswith(("learners.", "problems.", "agent.")):
                homes.setdefault(name.rpartition(".")[2], home)
    return homes
