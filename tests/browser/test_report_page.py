"""The report in a real browser: it loads from disk alone and shows its data."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coldq
from coldq.evaluation.report.comparison import write_comparison_page
from coldq.evaluation.report.sweeps import write_sweep_page
from coldq.evaluation.sweeps.answers import answers
from coldq.paper.report.page import write_page
from coldq.paper.report.pictures import write_pictures
from tests.chromium import PATIENCE
from tests.reproduction import AWKWARD, small_reproduction

PANELS = [
    f"{runs.figure.key}-{setting.key}"
    for runs in small_reproduction().figures
    for setting in runs.figure.settings
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "index.html"
    result = small_reproduction()
    pictures = [write_pictures(runs, path.parent / "figures") for runs in result.figures]
    write_page(result, path, ChainMap(*pictures))
    return path.as_uri()


class Opened:
    """The page as a reader has it, and everything that went wrong or was asked for meanwhile."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    def width(self) -> int:
        return self.page.evaluate("document.documentElement.scrollWidth")


@pytest.fixture(scope="module")
def desk(browser: Any, address: str) -> Iterator[Opened]:
    opened = Opened(browser, address, viewport={"width": 1280, "height": 900})
    yield opened
    opened.context.close()


@pytest.fixture(scope="module")
def phone(browser: Any, address: str) -> Iterator[Opened]:
    opened = Opened(
        browser, address, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True
    )
    yield opened
    opened.context.close()


def test_it_loads_from_disk_without_complaint_or_request(desk: Opened, address: str) -> None:
    assert desk.complaints == []
    assert [url for url in desk.requests if not url.startswith("data:")] == [address]


def test_an_awkward_label_is_text_and_nothing_else(desk: Opened) -> None:
    assert desk.page.get_by_role("rowheader", name=AWKWARD).count() > 0


def test_tables_have_a_row_for_everything(desk: Opened) -> None:
    result = small_reproduction()
    assert desk.page.locator("tr.verdict").count() == len(result.verdicts)
    assert desk.page.locator("table.ends tbody tr").count() == sum(
        len(runs.runs) for runs in result.figures
    )
    assert desk.page.locator("table.queue tbody tr").count() == len(PANELS)


def test_every_picture_is_there_and_has_a_name_for_those_who_do_not_see_it(desk: Opened) -> None:
    pictures = desk.page.locator("figure img").evaluate_all(
        "all => all.map(image => [image.naturalWidth, image.alt])"
    )
    assert len(pictures) >= len(PANELS)
    for width, words in pictures:
        assert width > 0
        assert any(digit in words for digit in "0123456789")


def test_nothing_overflows_a_phone(phone: Opened) -> None:
    assert phone.complaints == []
    assert phone.width() == 390


@pytest.fixture(scope="module")
def still_pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A comparison and a sweep, with names as long as users give them."""
    folder = tmp_path_factory.mktemp("still")
    long = "a-load-of-many-counties-that-was-measured-by-somebody-else.toml"
    names, problem = ["SelfTuning", "COLDQ", "RECOO", "OGD"], coldq.problems.Autoscale(90)
    for rate in (None, 0.1):
        found = coldq.compare(problem, names, rate, title=long)
        write_comparison_page(found, folder / "compare.html")
    asked = [{"learner": "COLDQ", "epsilon": [0.1, 0.5, 2.5]}, "RECOO"]
    swept = coldq.sweep(problems=["linear"], learners=asked, seeds=2)
    write_sweep_page(swept, answers(swept), folder / "sweep.html")
    return [folder / "compare.html", folder / "sweep.html"]


@pytest.mark.parametrize("width", [1400, 390])
def test_pages_and_their_pictures_fit_the_window(
    browser: Any, still_pages: list[Path], address: str, width: int
) -> None:
    for opened in [*(path.as_uri() for path in still_pages), address]:
        context = browser.new_context(viewport={"width": width, "height": 900})
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(opened)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for picture in page.locator("figure img").all():
            box = picture.bounding_box()
            assert 0 < box["width"] <= width
            assert picture.get_attribute("src").startswith("data:image/svg+xml;base64,")
            assert picture.evaluate("image => image.naturalWidth") > 0
        context.close()


def test_text_has_contrast(desk: Opened) -> None:
    low = desk.page.evaluate(
        """() => {
          const channel = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
          const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
          const light = rgb => [0.2126, 0.7152, 0.0722]
            .reduce((sum, weight, i) => sum + weight * channel(rgb[i] / 255), 0);
          const behind = element => {
            for (; element; element = element.parentElement) {
              const colour = numbers(getComputedStyle(element).backgroundColor);
              if (colour.length < 4 || colour[3] === 1) return colour;
            }
            return [255, 255, 255];
          };
          const found = [];
          for (const element of document.querySelectorAll("body *:not(svg *)")) {
            const own = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
            if (!own || element.closest("style")) continue;
            const pair = [light(numbers(getComputedStyle(element).color)), light(behind(element))];
            const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
            if (ratio < 4.5) found.push([element.outerHTML.slice(0, 80), ratio]);
          }
          return found;
        }"""
    )
    assert low == []


def test_printing_keeps_the_pictures_and_fits_the_paper(browser: Any, address: str) -> None:
    # A4 without its margins is 688 pixels wide.
    opened = Opened(browser, address, viewport={"width": 688, "height": 970})
    opened.page.emulate_media(media="print")
    assert opened.width() <= 688
    for picture in opened.page.locator("figure img").all():
        box = picture.bounding_box()
        assert 200 < box["width"] <= 688 and box["height"] > 100
    assert not opened.page.locator("nav").is_visible()
    assert opened.page.pdf().startswith(b"%PDF")
    assert opened.complaints == []
    opened.context.close()
