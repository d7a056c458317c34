"""Files that older versions wrote are opened as they were, or refused with a sentence."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import coldq

DATA = Path(__file__).parent / "data"


def test_an_agent_of_0_3_goes_on_where_it_stood(tmp_path: Path) -> None:
    path = Path(shutil.copy(DATA / "agent-0.3.db", tmp_path))
    with coldq.Agent.open(path) as agent:
        assert agent.learner == coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=50)
        assert (agent.round, agent.in_flight, agent.waiting) == (6, (5,), (6,))
        state = agent.state.to_arrays()
        assert state["t"] == 5 and state["queue"] == 25.0
        np.testing.assert_allclose(state["x"], [0.5, 0.25], atol=1e-9)
        np.testing.assert_allclose(state["multipliers"], [5.1059980084937955], rtol=1e-9)
        loss, rows = coldq.Linear([-1.0, -2.0]), coldq.Affine([[1.0, 1.0]], [0.5])
        ahead, pieces = coldq.Forecast(loss, rows), [[[1.0, 0.0], [0.0, 1.0]]]
        told = coldq.MaxAffine(pieces, [[0.5, 0.25]])
        assert agent.observe(4, loss, told, ahead).status == "repeated"
        assert agent.observe(6, loss, rows).status == "repeated"
        assert agent.observe(5, loss, rows).status == "applied" and agent.waiting == ()


def test_an_agent_of_0_2_is_refused_with_its_format(tmp_path: Path) -> None:
    path = Path(shutil.copy(DATA / "agent-0.2.db", tmp_path))
    before = path.read_bytes()
    with pytest.raises(coldq.NotReadable, match="has the format 1, but this version of coldq"):
        coldq.Agent.open(path)
    assert path.read_bytes() == before


def test_a_trace_of_0_2_is_as_it_was() -> None:
    trace = coldq.Trace.load(DATA / "trace-0.2.npz")
    problem = coldq.problems.TimeVarying(horizon=5, domain=coldq.Box(0.0, 5.0, dim=2))
    assert trace.problem == problem and trace.learner == coldq.COLDQ.for_problem(problem)
    assert trace.seeds == (4,) and trace.loss.shape == (1, 5)
    np.testing.assert_allclose(trace.state.queue, [[2.5, 2.5]])
    again = coldq.simulate(trace.learner, problem, seeds=[4], keep=["decisions"])
    np.testing.assert_allclose(trace.decisions, again.decisions, atol=1e-6)
