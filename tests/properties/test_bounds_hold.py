"""No bound of COLDQ's is ever exceeded, whatever an adversary that sees x_t does."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings, target
from hypothesis import strategies as st

import coldq
from coldq.problems import Problem
from coldq.slot.schedules import Power


class Adversary(Problem):
    """Answers to every decision with what hurts; a decision of its own stays feasible.

    It keeps a feasible target of its own, which jumps every `period` slots. The loss pushes away
    from the target: linear, or with a bowl around it. Each row passes through the target at its
    margin and leans so that x_t breaks it as much as the row's norm allows; every `rest` slots it
    is lax instead, so that the learner walks where the next row will cut.
    """

    adaptive = True

    def __init__(
        self, domain: coldq.Box, horizon: int, rows: int, period: int, rest: int, margin: float,
        bowl: float, push: float, lean: float, seed: int,
    ) -> None:  # fmt: skip
        self.domain, self.horizon, self.n_constraints = domain, horizon, rows
        self.period, self.rest, self.margin = period, rest, margin
        self.bowl, self.push, self.lean, self.seed = bowl, push, lean, seed

    __hash__ = None  # type: ignore[assignment]

    def start(self, seeds: Any) -> Any:
        return _AdversaryStream(self, len(tuple(seeds)))


class _AdversaryStream:
    def __init__(self, problem: Adversary, count: int) -> None:
        self.problem, self.rng = problem, np.random.default_rng(problem.seed)
        self.count = count

    def reveal(self, t: int, x: np.ndarray) -> coldq.Feedback:
        a, box, p = self.problem, self.problem.domain, self.problem.domain.dim
        if (t - 1) % a.period == 0:
            far = np.where(x > 0.5 * (box.lower + box.upper), box.lower, box.upper)
            random = self.rng.uniform(box.lower, box.upper, (self.count, p))
            self.target = far if (t // a.period) % 2 == 0 else random
        away = x - self.target
        size = np.linalg.norm(away, axis=-1, keepdims=True)
        noise = self.rng.standard_normal((self.count, p))
        away = np.where(size > 1e-9, away / np.maximum(size, 1e-9), noise)
        q = a.push * away - a.bowl * self.target
        loss = coldq.Quadratic(a.bowl * np.eye(p), q)
        lax = a.rest > 0 and t % a.rest == 0
        rows = a.lean * away[:, None, :] + self.rng.standard_normal(
            (self.count, a.n_constraints, p)
        )
        limit = np.einsum("snp,sp->sn", rows, self.target) + a.margin + (5.0 if lax else 0.0)
        return coldq.Feedback(loss, coldq.Affine(rows, limit), slot=t)


adversaries = st.fixed_dictionaries(
    {
        "rows": st.integers(1, 3),
        "period": st.integers(1, 30),
        "rest": st.integers(0, 4),
        "margin": st.sampled_from([0.0, 0.05, 1.0]),
        "bowl": st.sampled_from([0.0, 0.3, 2.0]),
        "push": st.floats(0.01, 5.0),
        "lean": st.floats(-1.0, 5.0),
        "seed": st.integers(0, 10**6),
    }
)
learners = st.fixed_dictionaries(
    {
        "exponent": st.sampled_from([0.0, 0.25, 0.5, 1.0]),
        "scale": st.floats(0.01, 30.0),
        "eta": st.floats(0.001, 0.9),
        "gamma": st.floats(0.001, 100.0),
    }
)
some = settings(max_examples=40, derandomize=True)


def bound_report(learner: Any, problem: Problem, mu: float) -> coldq.BoundReport:
    trace = coldq.simulate(learner, problem, seeds=[0], keep=["decisions"], progress=False)
    return coldq.bound_report(trace, mu=mu)


def hunt(report: coldq.BoundReport) -> None:
    """Assert that no bound is exceeded; let hypothesis look for runs that come close."""
    assert report.holds, str(report)
    for check in report.checks:
        assert not np.isnan(check.bound).any()
        ratio = float((check.realised / check.bound).max())
        if not np.isnan(ratio):  # no decision was feasible in every slot
            target(ratio, label=f"{check.measure}, {check.source}")


@some
@given(how=adversaries, parameters=learners, p=st.integers(1, 3), T=st.integers(2, 25))
def test_no_adversary_exceeds_a_bound_of_coldq(how: dict, parameters: dict, p: int, T: int) -> None:
    box = coldq.Box(-1.0, 1.0, dim=p)
    alpha = Power(parameters["exponent"], parameters["scale"])
    learner = coldq.COLDQ(box, alpha=alpha, eta=parameters["eta"], gamma=parameters["gamma"])
    hunt(bound_report(learner, Adversary(box, T, **how), mu=0.5 * how["bowl"]))


@some
@given(how=adversaries, epsilon=st.sampled_from([1e-3, 0.5, 4.0]), p=st.integers(1, 3),
       T=st.integers(2, 25), shared=st.booleans())  # fmt: skip
def test_no_adversary_exceeds_a_bound_of_the_experts(
    how: dict, epsilon: float, p: int, T: int, shared: bool
) -> None:
    box = coldq.Box(-1.0, 1.0, dim=p)
    gradient = "shared" if shared else "own"
    learner = coldq.COLDQExpert(box, T, epsilon, gradient=gradient)
    hunt(bound_report(learner, Adversary(box, T, **how), mu=0.0))


class Script(Problem):
    """Losses and limits on a line, slot by slot: ``f_t(x) = c_t x`` and ``x <= b_t``."""

    n_constraints = 1

    def __init__(self, domain: coldq.Box, c: np.ndarray, b: np.ndarray) -> None:
        self.domain, self.c, self.b, self.horizon = domain, c, b, len(c)

    __hash__ = None  # type: ignore[assignment]

    def start(self, seeds: Any) -> Any:
        return self

    def reveal(self, t: int, x: Any) -> coldq.Feedback:
        return coldq.Feedback(
            coldq.Linear([self.c[t - 1]]), coldq.Affine([[1.0]], [self.b[t - 1]]), slot=t
        )


def worst_share(problem: Problem, learner: Any, start: float, measure: str, source: str) -> float:
    trace = coldq.simulate(learner, problem, seeds=[0], start=[start], progress=False)
    report = coldq.bound_report(trace)
    assert report.holds
    for check in report.checks:
        if (check.measure, check.source) == (measure, source):
            return float((check.realised / check.bound).max())
    raise AssertionError(report)


def test_theorem_1_cannot_be_much_smaller() -> None:
    # The best decision is at the other end, and the learner walks there at D / (2 alpha) a slot.
    T, alpha = 1000, 500.0
    problem = Script(coldq.Box(0.0, 1.0, dim=1), np.ones(T), np.full(T, 2.0))
    learner = coldq.COLDQ(problem.domain, alpha=alpha, eta=0.1, gamma=1.0)
    assert worst_share(problem, learner, 1.0, "static regret", "Theorem 1") > 0.98


def test_the_floor_s_bound_cannot_be_half_as_large() -> None:
    # The limit falls in every slot, and the learner, pulled up, is always one slot late.
    T = 400
    problem = Script(coldq.Box(-1.0, 1.0, dim=1), -np.ones(T), np.linspace(1.0, -1.0, T))
    learner = coldq.COLDQ(problem.domain, alpha=1.0, eta=1e-6, gamma=1e6)
    assert worst_share(problem, learner, 1.0, "hard violation", "the queue's floor") > 0.49
