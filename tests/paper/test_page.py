"""The page and the pictures say what the runs say, need nothing else, and are the same twice."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coldq.paper.figures import Setting
from coldq.paper.published import published_curve
from coldq.paper.report.curves import Curve, frame, log_floor, looks, outside, thinned
from coldq.paper.report.page import write_page
from coldq.paper.report.pictures import write_pictures
from coldq.paper.reproduce import Reproduction
from tests.reproduction import AWKWARD, SEEDS, TOLD, small_reproduction


class Page(HTMLParser):
    """The elements of a page with their attributes, its text, and the text of each table row."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.rows: list[tuple[str, list[str]]] = []
        self.data = ""
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        if tag in ("script", "style"):
            self._inside = attributes.get("id", tag)
        if tag == "tr":
            self.rows.append((attributes.get("class", ""), []))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "data":
            self.data += data
        elif not self._inside:
            self.words.append(data)
            if self.rows:
                self.rows[-1][1].append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    def row_texts(self, kind: str) -> list[str]:
        return [re.sub(r"\s+", " ", "".join(ws)) for name, ws in self.rows if name == kind]

    def values(self, attribute: str) -> list[str]:
        return [attrs[attribute] for _, attrs in self.elements if attribute in attrs]


def written(result: Reproduction, folder: Path) -> str:
    write_page(result, folder / "index.html")
    return (folder / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(small_reproduction(), tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_every_verdict_has_its_row_with_outcome_and_quantities(page: Page) -> None:
    rows = page.row_texts("verdict")
    verdicts = small_reproduction().verdicts
    assert len(rows) == len(verdicts)
    for row, verdict in zip(rows, verdicts, strict=True):
        assert verdict.claim in row
        assert verdict.outcome in row
        for quantity in verdict.quantities:
            assert quantity.what in row
        assert row.count("kept") == sum(quantity.holds for quantity in verdict.quantities)
        assert row.count("missed") == sum(not quantity.holds for quantity in verdict.quantities)
        unclear = sum(q.interval is not None and not q.clear for q in verdict.quantities)
        assert row.count("not clear") == unclear


def test_the_summary_counts_the_outcomes(page: Page) -> None:
    outcomes = [verdict.outcome for verdict in small_reproduction().verdicts]
    for outcome, plural in (
        ("holds", "hold"),
        ("holds in part", "hold in part"),
        ("does not hold", "do not hold"),
    ):
        count = outcomes.count(outcome)
        assert f"{count} {outcome if count == 1 else plural} Of {len(outcomes)}" in page.text


def test_every_label_setting_and_source_is_on_the_page(page: Page) -> None:
    for runs in small_reproduction().figures:
        assert runs.figure.title in page.text
        for run in runs.runs:
            assert run.entry.label in page.text
    for sentence in TOLD:
        assert sentence in page.text


def test_labels_are_escaped(html: str, page: Page) -> None:
    assert AWKWARD in page.text
    assert "<b>OGD" not in html


def test_the_page_loads_nothing(page: Page) -> None:
    assert page.values("src")  # pictures for those without scripts
    for address in page.values("src"):
        assert address.startswith("figures/")
    for address in page.values("href"):
        assert re.match(r"#|data:,$|figures/|traces/|claims\.json$", address), address
    policy = next(attrs for tag, attrs in page.elements if "http-equiv" in attrs)
    assert policy["content"].startswith("default-src 'none'; script-src 'unsafe-inline'")


def test_links_within_the_page_lead_somewhere(page: Page) -> None:
    names = page.values("id")
    assert len(set(names)) == len(names)
    within = [address[1:] for address in page.values("href") if address.startswith("#")]
    assert within
    assert set(within) <= set(names)


def drawn(page: Page) -> dict[str, Any]:
    return json.loads(page.data)


def test_the_curves_drawn_are_those_of_the_traces(page: Page) -> None:
    data = drawn(page)
    for runs in small_reproduction().figures:
        for setting in runs.figure.settings:
            panel = data[f"{runs.figure.key}-{setting.key}"]
            slots = np.array(panel["t"], dtype=int)
            assert slots[0] == 1
            assert slots[-1] == setting.problem.horizon
            for i, run in enumerate(runs.of(setting)):
                assert panel["learners"][i]["label"] == run.entry.label
                parts = np.maximum(run.trace.constraint, 0.0).sum(axis=-1)
                for measure, each in (("loss", run.trace.loss), ("violation", parts)):
                    totals = np.cumsum(each, axis=1)[:, slots - 1]
                    if runs.figure.averaged:
                        totals = totals / (slots + 1.0)
                    curve = panel["measures"][measure]["curves"][i]
                    near = {"rtol": 1e-5, "atol": 1e-9}
                    np.testing.assert_allclose(curve["mean"], totals.mean(axis=0), **near)
                    if len(run.trace.seeds) == 1:
                        assert curve["band"] is None
                    else:
                        np.testing.assert_allclose(curve["band"][0], totals.min(axis=0), **near)
                        np.testing.assert_allclose(curve["band"][1], totals.max(axis=0), **near)


def test_published_curves_are_drawn_up_to_our_last_slot_and_only_where_there_are_any(
    page: Page,
) -> None:
    data = drawn(page)
    for runs in small_reproduction().figures:
        for setting in runs.figure.settings:
            panel = data[f"{runs.figure.key}-{setting.key}"]
            for i, run in enumerate(runs.of(setting)):
                curve = panel["measures"]["loss"]["curves"][i]["published"]
                if run.entry.published is None:
                    assert curve is None
                    continue
                t, values = published_curve(runs.figure.curves, "loss", run.entry.published)
                assert curve[0][-1] == setting.problem.horizon
                end = np.interp(setting.problem.horizon, t, values)
                assert curve[1][-1] == pytest.approx(end, rel=1e-5, abs=1e-9)


def test_no_move_of_the_queue_is_lost_between_the_slots_drawn(page: Page) -> None:
    data = drawn(page)
    for runs in small_reproduction().figures:
        for setting in runs.figure.settings:
            run = runs.find(setting, "COLDQ")
            above = np.max(run.trace.queue - run.trace.learner.gamma)  # type: ignore[operator]
            shown = data[f"{runs.figure.key}-{setting.key}"]["queue"]["largest"]
            assert max(shown) == pytest.approx(above, rel=1e-5)


def test_every_plot_has_an_alternative_that_states_its_ends(page: Page) -> None:
    plots = [attrs for _, attrs in page.elements if "data-measure" in attrs]
    settings = [s for runs in small_reproduction().figures for s in runs.figure.settings]
    assert len(plots) == 2 * len(settings)
    first = small_reproduction().figures[0]
    ours = first.find(first.figure.settings[0], "COLDQ").trace.loss.sum(axis=1)
    words = plots[0]["aria-label"]
    assert f"COLDQ ends at {ours.mean():.4g} " in words
    assert f"mean of {len(SEEDS)} seeds" in words
    for plot in plots:
        assert plot["role"] == "img"
        assert "ends at" in plot["aria-label"]


def test_the_ratio_to_cvxpy_is_that_of_the_same_runs(page: Page, tmp_path: Path) -> None:
    result = small_reproduction()
    shown = re.search(r"these runs took ([\d.,e+]+) times less", page.text)
    assert shown is not None
    assert float(shown[1].replace(",", "")) == pytest.approx(24.0)
    assert "500 ms for 1,000 steps, 500 µs each" in page.text
    assert "12 s, estimated from steps of 12 ms" in page.text
    without = Page(written(replace(result, stepping=None), tmp_path))
    assert "CVXPY" not in without.text


def test_the_page_names_code_day_and_processor(page: Page, tmp_path: Path) -> None:
    known = small_reproduction().origin
    assert f"run on {known.date}" in page.text
    assert f"{known.processor}, {known.cores} core" in page.text
    made = replace(known, commit="0123456789ab+", processor="Z80", date="2026-01-02")
    other = Page(written(replace(small_reproduction(), origin=made), tmp_path)).text
    assert "commit 0123456789ab+, run on 2026-01-02" in other
    assert "Z80, " in other


def test_the_page_says_whose_limits_those_are(page: Page) -> None:
    assert "the paper's own are “over 40%” less violation" in page.text
    assert "“nearly the same” within 1%" in page.text


def test_the_same_result_gives_the_same_bytes(html: str, tmp_path: Path) -> None:
    assert written(small_reproduction(), tmp_path) == html
    assert str(tmp_path) not in html


def test_a_failure_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    broken = replace(small_reproduction(), verdicts=(object(),))  # type: ignore[arg-type]
    path = tmp_path / "index.html"
    with pytest.raises(AttributeError):
        write_page(broken, path)
    assert list(tmp_path.iterdir()) == []
    path.write_text("the page of yesterday")
    with pytest.raises(AttributeError):
        write_page(broken, path)
    assert path.read_text() == "the page of yesterday"
    assert list(tmp_path.iterdir()) == [path]


def test_pictures_have_paper_size_and_come_out_the_same_twice(tmp_path: Path, page: Page) -> None:
    names, figures = set(), small_reproduction().figures[1:]
    for runs in figures:
        write_pictures(runs, tmp_path / "one")
        names |= {f"{runs.figure.key}-{setting.key}" for setting in runs.figure.settings}
    write_pictures(figures[0], tmp_path / "two")
    again = list((tmp_path / "two").iterdir())
    assert {path.suffix for path in again} == {".png", ".pdf"}
    for path in again:
        assert path.read_bytes() == (tmp_path / "one" / path.name).read_bytes()
    pictures = sorted((tmp_path / "one").iterdir())
    assert {path.stem for path in pictures} == names
    assert len(pictures) == 2 * len(names)
    linked = {*page.values("href"), *page.values("src")}
    for path in pictures:
        content = path.read_bytes()
        assert f"figures/{path.name}" in linked
        if path.suffix == ".png":
            assert content.startswith(b"\x89PNG")
            assert struct.unpack(">II", content[16:24]) == (2100, 930)
            assert b"Software" not in content
        else:
            assert content.startswith(b"%PDF")
            assert re.search(rb"/MediaBox \[ ?0 0 504 223\.2 ?\]", content)
            assert b"CreationDate" not in content


def curve(label: str, ends: float, *, published: bool = True) -> Curve:
    t = np.arange(1.0, 11.0)
    mean = ends * t / 10.0
    return Curve(label, t, mean, mean, mean, 1, published, (t, mean) if published else None)


def test_the_frame_fits_the_papers_learners_and_names_the_others_outside() -> None:
    panel = (curve("A", 10.0), curve("B", 20.0), curve("C", 900.0, published=False))
    low, high = frame(panel)
    assert low < 1.0
    assert 20.0 < high < 30.0
    assert [each.label for each in outside(panel)] == ["C"]
    assert outside(panel[2:]) == ()  # alone it is what there is to fit


def test_a_logarithmic_axis_begins_below_all_ends_and_shows_zero_a_decade_down() -> None:
    assert log_floor([curve("A", 30.0), curve("B", 2000.0)]) == 1.0
    assert log_floor([curve("A", 5.0), curve("B", 0.0)]) == 0.1
    assert log_floor([curve("B", 0.0)]) is None


@pytest.mark.parametrize("horizon", [2, 10, 2880, 5000])
def test_thinned_slots_are_few_ordered_and_keep_both_ends(horizon: int) -> None:
    slots = thinned(horizon)
    assert slots[0] == 1
    assert slots[-1] == horizon
    assert (np.diff(slots) > 0).all()
    assert len(slots) <= 240
    assert np.diff(slots).max() <= horizon / 100.0 + 2.0


def test_learners_of_a_figure_differ_in_colour_and_in_marker() -> None:
    for runs in small_reproduction().figures:
        chosen = looks(run.entry.label for run in runs.runs)
        assert len({look.colour for look in chosen.values()}) == len(chosen)
        assert len({look.marker for look in chosen.values()}) == len(chosen)
    assert len(looks(f"learner {i}" for i in range(30))) == 30


def test_settings_stay_apart_even_with_equal_problems(tmp_path: Path) -> None:
    runs = small_reproduction().figures[2]
    twice = (*runs.figure.settings, Setting("again", "once more", runs.figure.settings[0].problem))
    copies = tuple(replace(run, setting=twice[1]) for run in runs.runs)
    doubled = replace(runs, figure=replace(runs.figure, settings=twice), runs=(*runs.runs, *copies))
    result = replace(small_reproduction(), figures=(doubled,), verdicts=(), end_points={})
    page = Page(written(result, tmp_path))
    assert set(drawn(page)) == {"linear-alone", "linear-again"}
