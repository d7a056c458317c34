"""The site in Chromium, at the widths of a desk and a phone, with scripts and without.

``make check SUITE=site`` builds it first. Nothing is fetched from anywhere but the site itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

import pytest
from website.docstrings import as_markdown

import coldq
from tests.chromium import PATIENCE

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
DESK, PHONE = {"width": 1400, "height": 1000}, {"width": 390, "height": 844}
PAGES = [str(path.relative_to(SITE)) for path in sorted(SITE.rglob("*.html"))]
READ = [page for page in PAGES if page != "404.html"]


class Reader:
    """Somebody who reads the site, and everything that went wrong or was asked for meanwhile."""

    def __init__(self, browser: Any, **context: Any) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE / 10)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, name: str) -> None:
        self.page.goto((SITE / name).as_uri())


@pytest.fixture(scope="module")
def desk(browser: Any) -> Iterator[Reader]:
    reader = Reader(browser, viewport=DESK)
    yield reader
    reader.context.close()


@pytest.fixture(scope="module")
def phone(browser: Any) -> Iterator[Reader]:
    reader = Reader(browser, viewport=PHONE, is_mobile=True, has_touch=True)
    yield reader
    reader.context.close()


@pytest.fixture(scope="module")
def plain(browser: Any) -> Iterator[Reader]:
    """A phone without scripts."""
    reader = Reader(browser, viewport=PHONE, is_mobile=True, java_script_enabled=False)
    yield reader
    reader.context.close()


def test_the_site_is_there() -> None:
    assert len(READ) > 25, "make docs builds the site"


@pytest.mark.parametrize("name", READ)
def test_a_page_fits_both_screens_and_asks_nobody_else(
    name: str, desk: Reader, phone: Reader
) -> None:
    for reader, width in ((desk, 1400), (phone, 390)):
        reader.open(name)
        assert reader.page.evaluate("document.documentElement.scrollWidth") == width
        broken = reader.page.evaluate(
            "[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)"
        )
        assert broken == []
        assert reader.complaints == []
        assert {url.partition(":")[0] for url in reader.requests} <= {"file", "data", "blob"}


def test_a_newcomer_finds_install_first_decision_and_real_units_within_two_clicks(
    phone: Reader, plain: Reader
) -> None:
    for reader in (phone, plain):
        for link, words in (
            ("Start in five minutes", ["pip install .", "A first decision"]),
            ("In real units", ["gradient_bound"]),
        ):
            reader.open("index.html")
            reader.page.locator("article").get_by_role("link", name=link).first.click()
            text = reader.page.locator("article").inner_text()
            assert all(each in text for each in words)


def test_the_navigation_opens_on_a_phone_without_scripts(plain: Reader) -> None:
    plain.open("index.html")
    plain.page.locator("header label[for=__drawer]").click()
    drawer = plain.page.locator(".md-nav--primary")
    drawer.locator("label.md-nav__link", has_text="How to").click()
    drawer.get_by_role("link", name="Choose a learner").click()
    assert plain.page.locator("h1").inner_text().startswith("How to choose")


def test_every_examples_picture_is_in_the_gallery(desk: Reader) -> None:
    desk.open("gallery.html")
    shown = desk.page.evaluate(
        "[...document.querySelectorAll('article img')].map(i => [i.src, i.naturalWidth])"
    )
    names = {Path(source).stem: width for source, width in shown}
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert set(names) == examples and min(names.values()) > 600
    text = desk.page.locator("article").inner_text()
    assert all(f"python examples/{name}.py" in text for name in examples)


def test_formulas_are_drawn_without_scripts(plain: Reader) -> None:
    plain.open("theory.html")
    formulas = plain.page.locator("math")
    written = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    assert formulas.count() == len(re.findall(r"^```math$|\$`", written, re.MULTILINE))
    for formula in formulas.all():
        box = formula.bounding_box()
        assert box is not None and box["height"] > 5.0  # that of one small letter
    text = "".join(formulas.all_text_contents())
    assert "\\" not in text and "formula-number" not in plain.page.content()


def test_home_has_an_example_an_install_line_and_the_version(desk: Reader) -> None:
    desk.open("index.html")
    text = desk.page.locator("article").inner_text()
    for words in ("pip install .", f"Version {coldq.__version__}", "learner.update", "array(["):
        assert words in text


def test_the_repository_is_linked_where_there_is_an_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from website.hooks import on_config

    monkeypatch.setenv("COLDQ_REPOSITORY", "https://forge.example/coldq.git")
    assert on_config(SimpleNamespace()).repo_url == "https://forge.example/coldq"


def test_pages_lead_on_and_back(desk: Reader) -> None:
    desk.open("start.html")
    for link, title in (("prev", "Home"), ("next", "A first run (notebook)")):
        assert title in desk.page.locator(f".md-footer__link--{link}").inner_text()


def test_it_is_dark_where_that_is_asked_for(browser: Any) -> None:
    reader = Reader(browser, viewport=DESK, color_scheme="dark")
    reader.open("index.html")
    colour = "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)"
    assert max(reader.page.evaluate(colour)) < 80
    reader.page.locator("label[title='Light mode']").click()
    assert min(reader.page.evaluate(colour)) > 240
    reader.context.close()


def test_code_copies_without_prompts_and_outputs_and_fits_the_page(desk: Reader) -> None:
    desk.open("start.html")
    copied = desk.page.locator("[data-copy]").evaluate_all("all => all.map(e => e.dataset.copy)")
    assert len(copied) >= 3
    for code in copied:
        ast.parse(code)
    assert "array([0., 0., 0.])" in desk.page.locator("article").inner_text()
    assert not any("array([0." in code or ">>>" in code for code in copied)
    for name in ("index.html", "start.html", "how-to-choose.html", "add-your-own-learner.html"):
        desk.open(name)
        wide = desk.page.locator("pre > code").evaluate_all(
            "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText)"
        )
        assert wide == []


def test_names_are_links_and_every_link_leads_somewhere(desk: Reader) -> None:
    ids: dict[str, set[str]] = {}
    for name in READ:
        ids[name] = set(re.findall(r'\bid="([^"]+)"', (SITE / name).read_text(encoding="utf-8")))
    for name in READ:
        text = (SITE / name).read_text(encoding="utf-8")
        for target in re.findall(r'<a class="name" href="([^"]+)"', text):
            page, _, anchor = target.partition("#")
            there = ((SITE / name).parent / page).resolve().relative_to(SITE.resolve())
            assert anchor in ids[str(there)], f"{name} has a link to {target}"
    desk.open("api/index.html")
    names = desk.page.locator("article td code").count()
    links = desk.page.locator("article td a code").count()
    assert links >= 0.85 * names  # the others are arguments, commands and modules


def test_the_api_has_a_page_a_family_and_no_empty_heading(desk: Reader) -> None:
    for name in (page for page in READ if page.startswith("api/")):
        desk.open(name)
        if "learners" in name:
            assert desk.page.evaluate("document.documentElement.scrollHeight") < 25_000, name
        text = (SITE / name).read_text(encoding="utf-8")
        (article,) = re.findall(r"<article.*?</article>", text, re.DOTALL)
        bodies = re.split(r"<h[1-6]\b.*?</h[1-6]>", article, flags=re.DOTALL)[1:]
        assert all(re.sub(r"<[^>]+>", "", body).strip() for body in bodies), name


def test_docstrings_lose_nothing_to_markdown(desk: Reader) -> None:
    desk.open("api/learners-rate.html")
    text = re.sub(r"\s+", " ", desk.page.locator("article").inner_text())
    assert "min over x in X of <d, x - x^c> / F + alpha |x - x^c|^2 / F" in text
    assert ":class:" not in text and ":func:" not in text
    assert desk.page.locator("article blockquote").count() == 0  # of >>>


def test_every_example_of_a_docstring_is_on_its_page() -> None:
    for path in (ROOT / "docs" / "api").glob("*.md"):
        page = (SITE / "api" / path.with_suffix(".html").name).read_text(encoding="utf-8")
        shown = unescape(re.sub(r"<[^>]+>", "", page))
        for name in re.findall(r"^::: (\S+)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            for line in (resolve_name(name).__doc__ or "").splitlines():
                assert not line.strip().startswith(">>> ") or line.strip() in shown, name


def test_a_docstring_becomes_markdown() -> None:
    text = "Sum, where a < b:\n\n    x <y>\n\nSee :class:`~coldq.Box`.\n\n>>> 1 < 2\nTrue\n"
    assert as_markdown(text) == (
        "Sum, where a &lt; b:\n\n```text\nx <y>\n```\n\nSee `Box`.\n\n"
        "```pycon\n>>> 1 < 2\nTrue\n```\n"
    )
    text = "Sum.\n\nParameters\n----------\nx\n    One.\n\n>>> 1 < 2\nTrue\n"
    assert "    One.\n\nExamples\n--------\n```pycon\n>>> 1 < 2\nTrue\n```\n" in as_markdown(text)
