"""What the site needs beside Markdown: formulas without scripts, the gallery, pages of the root.

MkDocs calls these functions while it builds. Formulas are written as GitHub shows them, in fences
of ``math`` and in dollars around backticks, and become MathML. The gallery is made of `examples/`:
each is run, and its picture, its words and its source make a section. Notebooks are executed, and
become pages with what their cells show.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
KEPT = ROOT / "build" / "gallery"  # pictures, by what they were made of
ROOT_PAGES = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
DISPLAYED = re.compile(r"^```math\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"\$`([^`]+)`\$")
TOKEN = "formula-number-{}-of-this-page"


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
        f"```text\n$ {command}\n{words}```\n\n"
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
    """Formulas where they belong: Markdown has not touched them."""
    for k, formula in enumerate(page.meta.get("formulas", ())):
        token = TOKEN.format(k)
        html = html.replace(f"<p>{token}</p>", f'<div class="formula">{formula}</div>')
        html = html.replace(token, formula)
    # A wide table scrolls by itself, also without Material's script.
    html = re.sub(r"<table\b[^>]*>", r'<div class="wide"><table>', html)
    return html.replace("</table>", "</table></div>")
