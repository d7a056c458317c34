"""The page and the pictures say what the runs say, need nothing else, and are the same twice."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from coldq.paper.figures import Setting
from coldq.paper.published import published_curve
from coldq.paper.report.curves import Curve, curves, frame, log_floor, looks, outside, thinned
from coldq.paper.report.page import write_page
from coldq.paper.report.pictures import queue_name, queue_steps, write_pictures
from coldq.paper.reproduce import Reproduction
from tests.reproduction import AWKWARD, SEEDS, TOLD, small_reproduction


class Page(HTMLParser):
    """The elements of a page with their attributes, its text, and the text of each table row."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.rows: list[tuple[str, list[str]]] = []
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        if tag in ("script", "style"):
            self._inside = tag
        if tag == "tr":
            self.rows.append((attributes.get("class", ""), []))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if not self._inside:
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


class Names(dict[str, str]):
    """A picture's address for every name: the name itself."""

    def __missing__(self, name: str) -> str:
        return f"data:image/svg+xml;base64,{name}"


def written(result: Reproduction, folder: Path) -> str:
    write_page(result, folder / "index.html", Names())
    return (folder / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder, found = tmp_path_factory.mktemp("figures"), {}
    for runs in small_reproduction().figures:
        found |= write_pictures(runs, folder)
    return folder, found


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory, pictures) -> str:
    path = tmp_path_factory.mktemp("report") / "index.html"
    write_page(small_reproduction(), path, pictures[1])
    return path.read_text(encoding="utf-8")


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


def test_the_page_loads_nothing_and_runs_nothing(html: str, page: Page) -> None:
    assert page.values("src")
    for address in page.values("src"):
        assert address.startswith("data:image/svg+xml;base64,")
    assert "<script" not in html
    for address in page.values("href"):
        assert re.match(r"#|data:,$|figures/|traces/|claims\.json$", address), address
    policy = next(attrs for tag, attrs in page.elements if "http-equiv" in attrs)
    assert policy["content"].startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_links_within_the_page_lead_somewhere(page: Page) -> None:
    names = page.values("id")
    assert len(set(names)) == len(names)
    within = [address[1:] for address in page.values("href") if address.startswith("#")]
    assert within
    assert set(within) <= set(names)


def test_the_curves_drawn_are_those_of_the_traces() -> None:
    for runs in small_reproduction().figures:
        for setting in runs.figure.settings:
            for measure in ("loss", "violation"):
                own = zip(runs.of(setting), curves(runs, setting, measure), strict=True)
                for run, curve in own:
                    slots = curve.t.astype(int)
                    assert (slots[0], slots[-1]) == (1, setting.problem.horizon)
                    assert curve.label == run.entry.label
                    parts = np.maximum(run.trace.constraint, 0.0).sum(axis=-1)
                    each = run.trace.loss if measure == "loss" else parts
                    totals = np.cumsum(each, axis=1)[:, slots - 1]
                    if runs.figure.averaged:
                        totals = totals / (slots + 1.0)
                    near = {"rtol": 1e-9, "atol": 1e-9}
                    np.testing.assert_allclose(curve.mean, totals.mean(axis=0), **near)
                    np.testing.assert_allclose(curve.low, totals.min(axis=0), **near)
                    np.testing.assert_allclose(curve.high, totals.max(axis=0), **near)


def test_published_curves_are_drawn_up_to_our_last_slot_and_only_where_there_are_any() -> None:
    for runs in small_reproduction().figures:
        for setting in runs.figure.settings:
            own = zip(runs.of(setting), curves(runs, setting, "loss"), strict=True)
            for run, curve in own:
                if run.entry.published is None:
                    assert curve.published is None
                    continue
                t, values = published_curve(runs.figure.curves, "loss", run.entry.published)
                assert curve.published[0][-1] == setting.problem.horizon  # type: ignore[index]
                end = np.interp(setting.problem.horizon, t, values)
                assert curve.published[1][-1] == pytest.approx(end)  # type: ignore[index]


def test_no_move_of_the_queue_is_lost_between_the_slots_drawn(pictures) -> None:
    for runs in small_reproduction().figures:
        for setting in runs.figure.settings:
            run = runs.find(setting, "COLDQ")
            above = np.max(run.trace.queue - run.trace.learner.gamma)  # type: ignore[operator]
            begins, largest = queue_steps(run)
            assert begins[0] == 0 and largest.shape == (len(run.trace.seeds), len(begins))
            assert largest.max() == above
            assert (queue_name(runs.figure, setting) in pictures[1]) == bool(above > 0.0)


def test_every_plot_has_an_alternative_that_states_its_ends(page: Page) -> None:
    plots = [attrs for tag, attrs in page.elements if tag == "img"]
    settings = [s for runs in small_reproduction().figures for s in runs.figure.settings]
    words = [plot["alt"] for plot in plots if "ends at" in plot["alt"]]
    assert len(words) == len(settings)
    first = small_reproduction().figures[0]
    ours = first.find(first.figure.settings[0], "COLDQ").trace.loss.sum(axis=1)
    assert f"COLDQ ends at {ours.mean():.4g} " in words[0]
    assert f"mean of {len(SEEDS)} seeds" in words[0]
    assert all(re.search(r"\d", plot["alt"]) for plot in plots)


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


def test_the_same_result_gives_the_same_bytes(html: str, pictures, tmp_path: Path) -> None:
    write_page(small_reproduction(), tmp_path / "index.html", pictures[1])
    assert (tmp_path / "index.html").read_text(encoding="utf-8") == html
    assert str(tmp_path) not in html


def test_a_failure_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    broken = replace(small_reproduction(), verdicts=(object(),))  # type: ignore[arg-type]
    path = tmp_path / "index.html"
    with pytest.raises(AttributeError):
        write_page(broken, path, Names())
    assert list(tmp_path.iterdir()) == []
    path.write_text("the page of yesterday")
    with pytest.raises(AttributeError):
        write_page(broken, path, Names())
    assert path.read_text() == "the page of yesterday"
    assert list(tmp_path.iterdir()) == [path]


def test_pictures_have_paper_size_and_come_out_the_same_twice(
    tmp_path: Path, page: Page, pictures
) -> None:
    folder, found = pictures
    write_pictures(small_reproduction().figures[1], tmp_path / "two")
    again = list((tmp_path / "two").iterdir())
    assert {path.suffix for path in again} == {".png", ".pdf"}
    for path in again:
        assert path.read_bytes() == (folder / path.name).read_bytes()
    files = sorted(folder.iterdir())
    assert {path.stem for path in files} == set(found)
    assert len(files) == 2 * len(found)
    linked = set(page.values("href"))
    for path in files:
        content = path.read_bytes()
        assert f"figures/{path.name}" in linked
        if path.suffix == ".png":
            assert content.startswith(b"\x89PNG")
            high = 540 if path.stem.endswith("-queue") else 930
            assert struct.unpack(">II", content[16:24]) == (2100, high)
            assert b"Software" not in content
        else:
            assert content.startswith(b"%PDF")
            assert re.search(rb"/MediaBox \[ ?0 0 504 (223\.2|129\.6) ?\]", content)
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
    shown = [address.rpartition(",")[2] for address in page.values("src")]
    assert {"linear-alone", "linear-again"} <= set(shown)
