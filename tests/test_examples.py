"""The examples run, draw their picture, and show what they say."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import coldq
from coldq import networks
from coldq.problems.dispatch import october_2016
from coldq.problems.job_scheduling import request_trace

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_flow_is_conserved_where_a_slater_method_lets_it_go(tmp_path: Path, capsys) -> None:
    example = runpy.run_path(str(EXAMPLES / "network_flow.py"))
    # Conservation leaves no room: whatever is pushed along an edge leaves one node for another.
    A = example["conservation"]()
    assert np.linalg.matrix_rank(A) == example["NODES"] - 1
    assert set(np.unique(A)) == {-1.0, 0.0, 1.0}
    results = example["compare"]([100, 200, 400])
    ours, theirs = (
        [violation.sum() for violation, _ in results[name]]
        for name in ("COLDQ", "drift plus penalty")
    )
    assert max(ours) < 0.1 * min(theirs)
    assert max(ours) <= 1.05 * min(ours)
    assert theirs[-1] > 1.2 * theirs[0]
    picture = tmp_path / "pictures" / "flow.png"
    example["main"]([str(picture), "--horizons", "30,60"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "T =    60: violation" in capsys.readouterr().out


def test_budgets_are_kept_where_descent_overspends(tmp_path: Path, capsys) -> None:
    example = runpy.run_path(str(EXAMPLES / "ad_budget.py"))
    over = {
        name: np.maximum(spent - example["BUDGETS"], 0.0).sum()
        for name, (spent, _) in example["compare"](300).items()
    }
    assert over["COLDQ"] < 0.1 * over["OGD"]
    picture = tmp_path / "ad.png"
    example["main"]([str(picture), "--horizon", "40"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "clicks" in capsys.readouterr().out


def test_a_web_sites_capacity_is_kept_cheaper_than_by_hand(tmp_path: Path, capsys) -> None:
    example = runpy.run_path(str(EXAMPLES / "web_capacity.py"))
    _, traces = example["play"](600, 0.05)
    for trace in traces.values():  # the requests behind the picture are the real ones
        requests = trace.decisions[0] @ example["CAPACITY"] + trace.constraint[0, :, 0]
        assert requests == pytest.approx(request_trace()[:600], abs=1e-6)
    ours, theirs = (trace.loss[0, 200:].mean() for trace in traces.values())
    assert ours < theirs
    picture = tmp_path / "web.png"
    example["main"]([str(picture), "--slots", "300", "--rate", "0.05"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.count("of the slots lacked capacity") == 2


def test_power_is_bought_for_the_real_loads(tmp_path: Path, capsys) -> None:
    example = runpy.run_path(str(EXAMPLES / "power.py"))
    for trace in example["play"](300, 0.05).values():
        load = trace.decisions[0].sum(axis=-1) + trace.constraint[0, :, 0]
        assert load == pytest.approx(october_2016("load")[:300].sum(axis=-1), rel=1e-9)
    picture = tmp_path / "power.png"
    example["main"]([str(picture), "--slots", "300", "--rate", "0.05"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.count("$/h on average") == 2


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_example_says_how_to_run_it(path: Path) -> None:
    assert f"python examples/{path.name}" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
@pytest.mark.parametrize(("asked", "status"), [("--help", 0), ("--pictures", 2)])
def test_an_option_is_no_picture(
    path: Path, asked: str, status: int, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path), asked])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == status
    assert f"usage: {path.name}" in "".join(capsys.readouterr())
    assert list(tmp_path.iterdir()) == []


def test_where_the_row_of_a_quantised_message_binds_the_step_is_a_closed_form() -> None:
    example = runpy.run_path(str(EXAMPLES / "quantised_logistic.py"))
    rng = np.random.default_rng(1)
    agents, p, radius = example["AGENTS"], example["P"], example["RADIUS"]
    patterns = rng.standard_normal((example["CLASSES"], example["PIXELS"]))
    network, bound = example["learner"](), 0
    state = network.init(1, start=np.zeros((agents, p)))
    W = networks.metropolis(networks.ring(agents))
    for _ in range(12):
        labels, seen = example["images"](rng, patterns, example["IMAGES"])
        loss, g = example["logistic"](seen, labels), example["limit"](state.x)
        told = example["STEP"] * np.round(state.x / example["STEP"])
        heard = np.diag(W)[:, None] * state.x + (W - np.diag(np.diag(W))) @ told
        y = heard - loss.gradient(state.x) / (2.0 * network.learner.alpha(1))
        state = network.update(state, coldq.Feedback(loss, g))
        away = y - told
        length = np.linalg.norm(away, axis=1, keepdims=True)
        nearest = told + away * np.minimum(1.0, radius / length)
        # The row holds at all its weight, and the box is out of reach.
        inside = (np.abs(nearest).max(axis=1) < example["BOUND"]) & (length[:, 0] > radius)
        met = inside & (g.value(state.x)[:, 0] <= 1e-12)
        np.testing.assert_allclose(state.x[met], nearest[met], rtol=0.0, atol=1e-9)
        bound += int(met.sum())
    assert bound >= 12


def test_a_network_with_quantised_messages_learns_within_its_limit(capsys, tmp_path) -> None:
    example = runpy.run_path(str(EXAMPLES / "quantised_logistic.py"))
    found = example["run"](60)
    assert found["loss"][-10:].mean() < 0.2 * found["loss"][0]
    assert found["reach"].max() <= example["RADIUS"] * (1.0 + 1e-9)
    picture = tmp_path / "picture.png"
    example["main"](["--slots", "3", str(picture)])
    assert "p = 7840" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
