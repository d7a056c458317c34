"""Measured rates: fits on known growth, honest verdicts, runs that resume."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import coldq
from coldq.cli.app import app
from coldq.cli.rates import measure_tables
from coldq.learners.card import Rate
from coldq.paper.rates import store
from coldq.paper.rates.growth import Growth, claimed, growth, verdict
from coldq.paper.rates.settings import FrozenQueue, Interrupted, Row, columns
from coldq.paper.rates.store import Task
from coldq.paper.rates.tables import TABLES, cells
from coldq.problems import Drifting

T = np.array([256, 1024, 4096, 16384, 65536])


def seeds(mean: np.ndarray, noise: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(1)
    return mean[:, None] * (1.0 + noise * rng.standard_normal((len(mean), 12)))


def test_powers_are_found_with_an_interval_that_covers_them() -> None:
    for power in (0.3, 0.5, 1.0):
        grown = growth(T, seeds(7.0 * T**power, noise=0.1))
        assert grown.kind == "power"
        assert grown.low <= power <= grown.high
        assert 0.0 < grown.high - grown.low < 0.15


def test_only_the_upper_half_counts() -> None:
    totals = np.where(T < 4096, 1e6, 5.0 * T**0.5)
    assert growth(T, seeds(totals)).slope == pytest.approx(0.5)


def test_what_does_not_grow_as_a_power_is_named() -> None:
    assert growth(T, seeds(2.0 + 3.0 * np.log(T))).kind == "log T"
    assert growth(T, seeds(np.full(5, 0.25))).kind == "bounded"
    assert growth(T, seeds(1e-10 * T)).kind == "zero"
    assert growth(T, seeds(-1.0 * T)).kind == "not positive"
    assert growth(T, seeds(np.where(T > 20000, 1.0, -1.0) * T)).kind == "not positive"
    assert growth(T, seeds(T**0.1)).kind == "power"


def test_a_claim_is_compared_by_its_own_slope_on_the_same_horizons() -> None:
    assert claimed(Rate(0.5, vx=0.5), T, vx=0.25, vg=1.0) == 0.625
    assert claimed(Rate(vg=1), T, vx=0.25, vg=0.5) == 0.5
    logarithm = claimed(Rate(0, log=1), T, 0.0, 0.0)
    assert logarithm == pytest.approx(np.polyfit(np.log(T[2:]), np.log(np.log(T[2:])), 1)[0])
    assert verdict(growth(T, seeds(np.log(T))), logarithm) == "within"
    assert verdict(growth(T, seeds(T**0.5)), logarithm) == "worse"


def test_verdicts_follow_the_interval() -> None:
    assert verdict(Growth("power", 0.58, 0.549, 0.61), 0.5) == "within"
    assert verdict(Growth("power", 0.58, 0.551, 0.61), 0.5) == "worse"
    assert verdict(Growth("power", 0.40, 0.35, 0.449), 0.5) == "better"
    assert verdict(Growth("power", 0.40, 0.35, 0.451), 0.5) == "within"
    assert verdict(Growth("zero"), 0.5) == verdict(Growth("not positive"), 0.5) == "better"
    assert verdict(Growth("zero"), 0.0) == "within"


def test_every_learner_of_the_tables_is_a_column() -> None:
    # Guo 2022, Yi 2021, Yi 2023, Sinha and Vaze 2024, and COLDQ; with their expert variants. Then
    # the rivals that came later.
    tables = {
        *(coldq.RECOO, coldq.RECOOExpert, coldq.Yi2021, coldq.Yi2021Expert, coldq.Yi2023),
        *(coldq.SinhaVaze, coldq.COLDQ, coldq.COLDQExpert),
        *(coldq.SupanthaSinha2026, coldq.SupanthaSinha2026ProjectionFree),
        *(coldq.SarkarSinha2025, coldq.LekeufackJordan2024),
    }
    assert {c.claimant for c in columns()} == tables
    assert len({c.key for c in columns()}) == len(columns())
    # Every claim in the cards is measured somewhere.
    for learner in tables:
        for claim in learner.card.claims:
            assert any(
                c.claimant is learner
                and c.losses == claim.losses
                and (claim.constraints == "fixed") in [vg == 0.0 for vg in c.variation_exponents]
                for c in columns()
            )


def test_members_of_a_row_have_the_bits_of_their_runs_alone() -> None:
    task = Task("coldq-told-v-x-convex", 0.5, 64, 3)
    column = next(c for c in columns() if c.key == task.column)
    result = store.run_task(task)
    for i, vg in enumerate(column.variation_exponents):
        problem = Drifting(0.5, vg, horizon=64)
        learner = coldq.COLDQ.for_problem(problem, path_exponent=0.5)
        trace = coldq.simulate(learner, problem, range(3), progress=False)
        here = slice(3 * i, 3 * i + 3)
        assert result["regret"][here].tolist() == coldq.dynamic_regret(trace).tolist()
        assert result["violation"][here].tolist() == coldq.hard_violation(trace).tolist()


def test_a_frozen_queue_stays_at_gamma_and_matters_only_where_the_floor_is_low() -> None:
    row = Row((Drifting(0.5, 0.75, horizon=80),), 4)
    for epsilon, same in ((0.5, True), (1e-6, False)):
        kept = [
            coldq.simulate(
                kind(row.domain, 80, epsilon=epsilon), row, range(4), keep=["queue"], progress=False
            )
            for kind in (coldq.COLDQ, FrozenQueue)
        ]
        assert (kept[1].queue == epsilon * 80).all()
        assert np.allclose(kept[0].loss, kept[1].loss) == same


def test_interrupted_slots_have_no_feasible_decision() -> None:
    problem = Interrupted(Row((Drifting(0.0, 0.0, horizon=600),), 2))
    lost, stream = problem.interruptions(), problem.start(range(2))
    assert 0.001 < lost.mean() < 0.03
    corners = np.array([[[i, j]] for i in (-1.0, 1.0) for j in (-1.0, 1.0)])
    for t in range(1, 601):
        least = stream.reveal(t, None).constraint.value(corners).min(axis=(0, 2))
        np.testing.assert_array_equal(least > 0.0, lost[:, t - 1])


def small(out, **options):
    return measure_tables(out, horizons=(8, 16, 32), n_seeds=2, processes=1, **options)


def test_a_run_is_stored_resumed_and_written(tmp_path, monkeypatch, capsys) -> None:
    found = small(tmp_path)
    printed = capsys.readouterr().out
    for words in ("Table 1", "Table 2", "COLDQ-Expert", "Sinha-Vaze", "queue frozen"):
        assert words in printed
    whole = store.tasks((8, 16, 32), 2)
    kept = store.store_of(tmp_path)
    assert {path.stem for path in kept.runs.glob("*/*")} == {task.key for task in whole}
    with (tmp_path / "rates.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found) == len(json.loads((tmp_path / "rates.json").read_text()))
    assert {row["constraints"] for row in rows} == set(TABLES)
    assert {row["verdict"] for row in rows} <= {"within", "better", "worse"}
    for number in (1, 2):
        assert (tmp_path / "figures" / f"rates-table-{number}.png").stat().st_size > 10_000
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Growth rates, measured" in page and page.count("<img ") == 2

    again, run_task = [], store.run_task
    monkeypatch.setattr(store, "run_task", lambda task: again.append(task) or run_task(task))
    first, second = whole[0], whole[1]
    kept.path(first.key).unlink()
    kept.path(second.key).write_bytes(kept.path(second.key).read_bytes()[:-9])  # cut off
    with pytest.warns(coldq.IgnoredFile) as ignored:
        store.run_missing(tmp_path, whole, 1, lambda task: None)
    assert [str(each.message).split(" is not")[0] for each in ignored] == [
        str(kept.path(second.key))
    ]
    assert set(again) == {first, second}
    for old, new in zip(found, cells(tmp_path, (8, 16, 32), 2), strict=True):
        np.testing.assert_array_equal(old.totals, new.totals)


def test_a_stored_run_that_is_none_is_named(tmp_path) -> None:
    task = Task("coldq-told-v-x-convex", 0.5, 16, 3)
    path = store.store_of(tmp_path).path(task.key)
    path.parent.mkdir(parents=True)
    whole = store.run_task(task)
    for wrong in (
        {name: column[1:] for name, column in whole.items()},
        {"regret": whole["regret"]},
        {**whole, "violation": ["much"] * 12},
    ):
        pq.write_table(pa.table(wrong), path)
        with pytest.raises(coldq.NotReadable, match=f"{path.name} is no run .*: remove it"):
            store.stored(tmp_path, task)
    path.unlink()
    store.run_missing(tmp_path, [task], 1, lambda task: None)
    again = store.stored(tmp_path, task)
    for name in ("regret", "violation"):
        assert again[name].ravel().tolist() == whole[name].tolist()


def test_a_run_of_another_library_is_run_again(tmp_path, monkeypatch) -> None:
    task, heard = Task("coldq-told-v-x-convex", 0.5, 16, 3), []
    store.run_missing(tmp_path, [task], 1, lambda task: None)
    monkeypatch.setattr(store, "library_digest", lambda: "another")
    monkeypatch.setattr(store, "run_task", lambda task: heard.append(task) or {"regret": [0.0]})
    store.run_missing(tmp_path, [task], 1, lambda task: None)
    assert heard == [task]


def test_runs_that_fail_are_named_with_their_tracebacks_and_stop_no_other(
    tmp_path, monkeypatch
) -> None:
    whole = [Task("coldq-told-v-x-convex", 0.5, T, 3) for T in (8, 16, 32)]
    made = store.run_task

    def failing(task: Task) -> dict:
        return {} if task.horizon != 16 else {}["nothing"]

    monkeypatch.setattr(store, "run_task", failing)
    with pytest.raises(coldq.WorkerLost, match=r"1 of 3 runs failed, .*16.*: KeyError: 'nothing'"):
        store.run_missing(tmp_path, whole, 1, lambda task: None)
    (failure,) = store.store_of(tmp_path).failed.iterdir()
    assert "in failing" in json.loads(failure.read_text())["traceback"]
    again = []
    monkeypatch.setattr(store, "run_task", lambda task: again.append(task) or made(task))
    store.run_missing(tmp_path, whole, 1, lambda task: None)
    assert again == [whole[1]]


def test_runs_that_are_not_there_when_all_are_done_are_missed(tmp_path) -> None:
    whole = [Task("coldq-told-v-x-convex", 0.5, T, 3) for T in (8, 16)]

    def done(task: Task) -> None:
        store.store_of(tmp_path).path(task.key).unlink()

    with pytest.raises(coldq.NotWritten, match=r"2 of 2 tasks are done, but .* not in"):
        store.run_missing(tmp_path, whole, 1, done)


def test_two_processes_store_what_one_does(tmp_path) -> None:
    whole = store.tasks((8,), 2)[:6]
    for processes in (1, 2):
        store.run_missing(tmp_path / str(processes), whole, processes, lambda task: None)
    for task in whole:
        one, two = (store.stored(tmp_path / name, task) for name in "12")
        for measure in ("regret", "violation"):
            np.testing.assert_array_equal(one[measure], two[measure])


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(tmp_path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(coldq.InvalidInput, match=r"cannot write to .*file"):
        small(blocked)
    result = CliRunner().invoke(app, ["rates", "--quick", "--out", str(blocked)])
    assert isinstance(result.exception, coldq.InvalidInput)
