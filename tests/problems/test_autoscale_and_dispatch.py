"""Autoscale and Dispatch: what is revealed is the data, and the constants bound it."""

from __future__ import annotations

import numpy as np
import pytest

import coldq
from coldq.problems.dispatch import october_2016
from coldq.problems.job_scheduling import request_trace

P = coldq.problems


@pytest.mark.parametrize("problem", [P.Autoscale(500), P.Dispatch(500)])
def test_the_constants_bound_what_is_revealed_and_are_reached(problem) -> None:
    known, stream = problem.constants, problem.start([0])
    steepest = tallest = 0.0
    for t in range(1, 501):
        revealed = stream.reveal(t, problem.domain.start())
        steepest = max(steepest, float(np.sqrt(np.square(revealed.loss.c).sum())))
        tallest = max(tallest, float(revealed.constraint.largest(problem.domain)[0]))
        rows = np.sqrt(np.square(revealed.constraint.A).sum(axis=-1))
        assert rows.max() <= known.constraint_lipschitz * (1 + 1e-12)
    assert known.gradient_bound == pytest.approx(steepest)
    assert known.constraint_bound == pytest.approx(tallest)


def test_autoscale_serves_the_requests_of_the_trace() -> None:
    problem = P.Autoscale()
    stream, trace = problem.start([0, 1]), request_trace()
    x = np.array([1.0, 2.0, 3.0])
    for t in (1, 1000, 2880):
        revealed = stream.reveal(t, x)
        assert revealed.constraint.value(x)[0] == pytest.approx(trace[t - 1] - (8 + 20 + 36))
        assert revealed.loss.c[:2].tolist() == [6.0, 12.0]
    assert stream.reveal(1, x).loss.c[2] == 14.0
    logs = np.log(problem._prices()[:, 2] / 14.0) / 0.6
    shocks = (logs[1:] - 0.98 * logs[:-1]) / 0.12
    assert abs(shocks.mean()) < 0.1
    assert abs(shocks.std() - 1.0) < 0.05


def test_dispatch_has_the_loads_and_prices_of_the_week() -> None:
    loads, prices = october_2016("load"), october_2016("lbmp")
    assert loads[0, 8] == 4694.5  # N.Y.C. at midnight, 23 October
    assert prices[0].tolist() == [
        20.61, 1.93, 14.99, 1.55, 15.07, 15.0, 1.4, 15.18, 15.0, -0.88, 2.14,
    ]  # fmt: skip
    problem = P.Dispatch()
    g = problem.start([0]).reveal(7, problem.domain.start()).constraint
    load = loads[6]
    assert np.allclose(
        g.value(np.zeros(11)), [load.sum(), load[5] + load[8] - 3500, load[8] - 2500]
    )
    assert np.allclose(g.value(load), [0.0, -3500.0, -2500.0])
    assert np.allclose(problem.domain.upper, 2.5 * loads[:288].mean(axis=0))
    more = problem.tighten(g, np.array(0.1))
    assert np.allclose(more.value(1.1 * load), [0.0, -3500.0, -2500.0])


def test_a_horizon_beyond_the_data_is_refused() -> None:
    for make, most in ((P.Autoscale, 2880), (P.Dispatch, 2016)):
        with pytest.raises(coldq.InvalidInput, match=str(most)):
            make(most + 1)
        assert make.__name__ in repr(make(10))
        assert make(10).provenance
