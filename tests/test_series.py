"""benchmarks.series: what is read, the problem that is made of it, what is printed."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import series

import coldq
from coldq.problems.job_scheduling import request_trace

LAYOUT = """
[named]
path = "demand.csv"
column = "load"
periods = [6]

[array]
path = "demand.py"
"""


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    values = 50.0 + 20.0 * np.sin(np.arange(48) * np.pi / 3.0) + rng.uniform(0.0, 9.0, 48)
    lines = [f"{k},{value!r}" for k, value in enumerate(values.tolist())]
    (tmp_path / "demand.csv").write_text("t,load\n" + "\n".join([*lines, "48,"]) + "\n")
    text = ",\n".join(map(repr, values.tolist()))
    (tmp_path / "demand.py").write_text(f"import numpy as np\nx = np.array([\n{text},\n])\n")
    (tmp_path / "series.toml").write_text(LAYOUT)
    return tmp_path, values


def test_columns_and_arrays_are_read_and_scaled_to_the_peak_of_the_requests(folder) -> None:
    path, values = folder
    named, array = series.all_series(path / "series.toml")
    for one in (named, array):
        np.testing.assert_allclose(one.demand, values * request_trace().max() / values.max())
        assert one.horizon == 48
        rows = one.start([0]).reveal(3, None).constraint
        np.testing.assert_allclose(rows.value(np.zeros(3)), one.demand[2:3])
    assert (named.title, named.periods, array.periods) == ("named", (6,), ())
    np.testing.assert_array_equal(series.read_series(path / "demand.csv", 1), values)
    prices = coldq.problems.Autoscale(48).start([0]).reveal(40, None).loss
    np.testing.assert_array_equal(named.start([0]).reveal(40, None).loss.c, prices.c)


def test_what_is_not_there_is_named(folder) -> None:
    path, _ = folder
    with pytest.raises(SystemExit, match="no column 'wind'; there are t, load"):
        series.read_series(path / "demand.csv", "wind")
    with pytest.raises(SystemExit, match=r"no np\.array"):
        series.read_series(path / "demand.csv", None)


def test_the_command_prints_every_series_and_the_geometric_mean(
    folder, monkeypatch, capsys
) -> None:
    path, _ = folder
    monkeypatch.setattr("sys.argv", ["series", str(path / "series.toml"), "--rate", "0.2"])
    series.main()
    printed = " ".join(capsys.readouterr().out.split())
    assert "named, 20%: SelfTuning" in printed
    assert "array, 20%: SelfTuning" in printed
    assert "season of 6 + conformal PID" in printed
    assert "Over 2 problems and rates" in printed
