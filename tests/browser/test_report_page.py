"""The report in a real browser: it loads from disk alone, shows its data, and its controls work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coldq
from coldq.evaluation.report.comparison import write_comparison_page
from coldq.evaluation.report.sweeps import write_sweep_page
from coldq.evaluation.sweeps.answers import answers
from coldq.paper.report.page import write_page
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
    write_page(small_reproduction(), path)
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
        self.page.wait_for_selector("html[data-drawn=true]", state="attached")

    def panel(self, name: str) -> Any:
        return self.page.locator(f".panel[id='{name}']")

    def traces(self, panel: str, measure: str) -> list[dict[str, Any]]:
        return self._plot(panel, measure).evaluate(
            """plot => plot.data.map(trace => ({
                group: trace.legendgroup, kind: trace.meta, visible: trace.visible,
                points: trace.x.length, last: trace.y[trace.y.length - 1],
            }))"""
        )

    def axis(self, panel: str, measure: str, which: str) -> dict[str, Any]:
        return self._plot(panel, measure).evaluate(
            "(plot, which) => ({type: plot._fullLayout[which].type, "
            "range: plot._fullLayout[which].range})",
            which,
        )

    def paths(self, panel: str, measure: str) -> int:
        return self._plot(panel, measure).evaluate(
            "plot => plot.querySelectorAll('.scatterlayer .js-line').length"
        )

    def _plot(self, panel: str, measure: str) -> Any:
        return self.panel(panel).locator(f"[data-measure='{measure}']")

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


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("measure", ["loss", "violation"])
def test_every_figure_draws_every_learner(desk: Opened, panel: str, measure: str) -> None:
    figure, runs = next(
        (each.figure, each.of(setting))
        for each in small_reproduction().figures
        for setting in each.figure.settings
        if f"{each.figure.key}-{setting.key}" == panel
    )
    traces = desk.traces(panel, measure)
    means = [trace for trace in traces if trace["kind"] == "mean"]
    assert [trace["group"] for trace in means] == [run.entry.label for run in runs]
    for trace, run in zip(means, runs, strict=True):
        assert trace["points"] > 20
        if measure == "loss":
            end = run.running("loss", averaged=figure.averaged)[:, -1].mean()
            assert trace["last"] == pytest.approx(end, rel=1e-5, abs=1e-9)
    banded = sum(trace["kind"] == "band" for trace in traces)
    assert banded == (0 if panel == "linear-alone" else len(runs))
    published = sum(trace["kind"] == "published" for trace in traces)
    assert published == sum(run.entry.published is not None for run in runs)
    assert desk.paths(panel, measure) == len(traces)


def test_an_awkward_label_is_text_and_nothing_else(desk: Opened) -> None:
    assert desk.panel("linear-alone").get_by_role("button", name=AWKWARD).count() == 1


def test_a_click_in_the_legend_hides_a_learner_with_its_band_and_published_curve(
    desk: Opened,
) -> None:
    panel = "time-varying-printed"
    key = desk.panel(panel).get_by_role("button", name="RECOO", exact=True)
    for shown in (False, True):
        key.click()
        assert key.get_attribute("aria-pressed") == str(shown).lower()
        for measure in ("loss", "violation"):
            own = [t for t in desk.traces(panel, measure) if t["group"] == "RECOO"]
            assert {trace["kind"] for trace in own} == {"band", "mean", "published"}
            assert all(trace["visible"] is shown for trace in own)
            others = [t for t in desk.traces(panel, measure) if t["group"] != "RECOO"]
            assert all(trace["visible"] for trace in others)
    assert desk.complaints == []


def test_the_legend_can_be_used_from_the_keyboard(desk: Opened) -> None:
    key = desk.panel("quadratic-printed").get_by_role("button", name="COLDQ", exact=True)
    key.focus()
    desk.page.keyboard.press("Space")
    assert key.get_attribute("aria-pressed") == "false"
    desk.page.keyboard.press("Space")
    assert key.get_attribute("aria-pressed") == "true"


def test_switches_change_the_axes(desk: Opened) -> None:
    panel = "time-varying-plotted"
    for label, measure, which in (
        ("log violation", "violation", "yaxis"),
        ("log loss", "loss", "yaxis"),
        ("log time", "loss", "xaxis"),
        ("log time", "violation", "xaxis"),
    ):
        switch = desk.panel(panel).get_by_label(label)
        before = desk.axis(panel, measure, which)["type"]
        assert before == ("log" if switch.is_checked() else "linear")
        switch.click()
        assert {before, desk.axis(panel, measure, which)["type"]} == {"linear", "log"}
        switch.click()
        assert desk.axis(panel, measure, which)["type"] == before
    assert desk.complaints == []


def test_a_loss_below_zero_is_offered_no_logarithm(desk: Opened) -> None:
    below = desk.panel("linear-alone")
    ends = [run.loss.mean() for run in small_reproduction().figures[2].runs if run.entry.published]
    assert min(ends) < 0.0
    assert below.get_by_label("log loss").count() == 0
    assert below.get_by_label("log time").count() == 1


def test_all_learners_can_be_fitted_and_published_curves_hidden(desk: Opened) -> None:
    panel = "linear-alone"
    narrow = desk.axis(panel, "loss", "yaxis")["range"]
    desk.panel(panel).get_by_label("fit all learners").click()
    wide = desk.axis(panel, "loss", "yaxis")["range"]
    least = min(run.loss.mean() for run in small_reproduction().figures[2].runs)
    assert wide[0] < least
    assert wide[1] - wide[0] > narrow[1] - narrow[0]
    desk.panel(panel).get_by_label("published curves").click()
    for trace in desk.traces(panel, "loss"):
        assert trace["visible"] is (trace["kind"] != "published")
    for label in ("fit all learners", "published curves"):
        desk.panel(panel).get_by_label(label).click()
    assert desk.axis(panel, "loss", "yaxis")["range"] == pytest.approx(narrow)


def test_tables_have_a_row_for_everything(desk: Opened) -> None:
    result = small_reproduction()
    assert desk.page.locator("tr.verdict").count() == len(result.verdicts)
    assert desk.page.locator("table.ends tbody tr").count() == sum(
        len(runs.runs) for runs in result.figures
    )
    assert desk.page.locator("table.queue tbody tr").count() == len(PANELS)


def test_every_plot_has_a_name_for_those_who_do_not_see_it(desk: Opened) -> None:
    names = desk.page.locator(".plot").evaluate_all(
        "plots => plots.map(plot => [plot.getAttribute('role'), plot.getAttribute('aria-label')])"
    )
    assert len(names) >= 2 * len(PANELS)
    for role, name in names:
        assert role == "img"
        assert any(digit in name for digit in "0123456789")


def test_nothing_overflows_a_phone(phone: Opened) -> None:
    assert phone.complaints == []
    assert phone.width() == 390
    for plot in phone.page.locator(".plot").all():
        assert plot.bounding_box()["width"] <= 390


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
            if (!own || element.closest("script, style, noscript, .plot")) continue;
            const pair = [light(numbers(getComputedStyle(element).color)), light(behind(element))];
            const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
            if (ratio < 4.5) found.push([element.outerHTML.slice(0, 80), ratio]);
          }
          return found;
        }"""
    )
    assert low == []


def test_printing_keeps_the_plots_and_fits_the_paper(browser: Any, address: str) -> None:
    # A4 without its margins is 688 pixels wide.
    opened = Opened(browser, address, viewport={"width": 688, "height": 970})
    opened.page.emulate_media(media="print")
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.width() <= 688
    for plot in opened.page.locator(".plot").all():
        box = plot.bounding_box()
        assert box["width"] > 200
        assert box["height"] > 100
        assert plot.locator(".js-line").count() > 0
    assert not opened.page.locator("nav").is_visible()
    assert not opened.page.locator(".switches").first.is_visible()
    assert opened.page.pdf().startswith(b"%PDF")
    assert opened.complaints == []
    opened.context.close()
