"""The paper's lemmas as properties of runs in which the queue does move."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import coldq


def corners(box: coldq.Box) -> np.ndarray:
    return np.array(list(product(*zip(box.lower, box.upper, strict=True))))


class Run:
    """A run of COLDQ on random losses and constraints, infeasible rounds included."""

    def __init__(self, seed: int, T: int, N: int, p: int, epsilon: float, spread: float) -> None:
        rng = np.random.default_rng(seed)
        self.box = coldq.Box(-rng.uniform(0.0, 2.0, p), rng.uniform(0.1, 2.0, p))
        alpha = coldq.schedules.Power(rng.choice([0.0, 0.25, 0.5, 1.0]), 10.0 ** rng.uniform(-2, 1))
        self.learner = coldq.COLDQ(self.box, horizon=T, epsilon=epsilon, alpha=alpha)
        self.feedbacks = []
        for _ in range(T):
            H, y = rng.standard_normal((3, p)), 3.0 * rng.standard_normal(3)
            A, b = rng.standard_normal((N, p)), spread * rng.standard_normal(N)
            self.feedbacks.append((coldq.LeastSquares(H, y), coldq.Affine(A, b)))
        self.states = [self.learner.init(N, start=self.box.project(rng.standard_normal(p)))]
        for f, g in self.feedbacks:
            self.states.append(self.learner.update(self.states[-1], coldq.Feedback(f, g)))
        vertices = corners(self.box)
        # Norms of affine maps are convex, so that their maxima are at corners.
        self.G = max(float(np.abs(g.value(vertices)).max()) for _, g in self.feedbacks)
        self.D = max(
            float(np.linalg.norm(f.gradient(vertices), axis=-1).max()) for f, _ in self.feedbacks
        )
        self.points = self.box.project(rng.standard_normal((T, p)))
        self.vertices = vertices


runs = st.builds(
    Run,
    seed=st.integers(0, 10**6),
    T=st.integers(3, 15),
    N=st.integers(1, 4),
    p=st.integers(1, 4),
    epsilon=st.sampled_from([1e-6, 1e-3, 0.1, 0.5, 5.0]),
    spread=st.sampled_from([0.0, 0.1, 1.0, 4.0]),
)
some = settings(max_examples=150, deadline=None, derandomize=True)


@some
@given(runs)
def test_lemma_1_the_queue_is_bounded_from_both_sides(run: Run) -> None:
    eta, gamma = float(run.learner.eta), float(run.learner.gamma)
    for state in run.states:
        assert (state.queue >= gamma).all()
        assert (state.queue <= max(run.G, eta * gamma) / eta * (1.0 + 1e-12)).all()


@some
@given(runs)
def test_lemma_2_the_drift_is_bounded(run: Run) -> None:
    eta, gamma = float(run.learner.eta), float(run.learner.gamma)
    G = max(run.G, eta * gamma)
    for t in range(2, len(run.feedbacks) + 1):
        (_, before), (_, now) = run.feedbacks[t - 2], run.feedbacks[t - 1]
        # states[k] is the state of slot k + 1: its queue is Q_k, its x is x_{k+1}.
        old, new, x = run.states[t - 1].queue, run.states[t].queue, run.states[t - 1].x
        drift = 0.5 * np.square(new - gamma).sum() - 0.5 * np.square(old - gamma).sum()
        change = now.value(run.vertices) - before.value(run.vertices)
        N = old.size
        bound = (
            old @ np.maximum(before.value(x), 0.0)
            - gamma * np.maximum(now.value(x), 0.0).sum()
            + G * np.sqrt(N) / eta * np.linalg.norm(change, axis=-1).max()
            + 2.0 * N * G * G
        )
        assert drift <= bound + 1e-9 * (1.0 + abs(bound))


@some
@given(runs)
def test_lemma_3_the_per_slot_inequality(run: Run) -> None:
    # For any points u_t in place of x*_t; where they are infeasible their penalty is added.
    R, D, alpha = float(run.box.diameter), run.D, run.learner.alpha
    for t in range(2, len(run.feedbacks) + 1):
        f, g = run.feedbacks[t - 2]
        before, now = run.states[t - 2], run.states[t - 1]
        queue, x, following = now.queue, before.x, now.x
        u, v = run.points[t - 2], run.points[t - 1]
        a, b = float(alpha(t - 1.0)), float(alpha(float(t)))
        left = f.value(x) - f.value(u) + queue @ np.maximum(g.value(following), 0.0)
        right = (
            2.0 * R * a * np.linalg.norm(v - u)
            + R * R * (b - a)
            + D * D / (4.0 * a)
            + a * np.square(u - x).sum()
            - b * np.square(v - following).sum()
            + queue @ np.maximum(g.value(u), 0.0)
        )
        size = abs(f.value(x)) + abs(f.value(u)) + abs(right) + queue.sum()
        assert left <= right + 1e-9 * (1.0 + size)


@some
@given(runs)
def test_an_exact_step_beats_every_other_point_by_its_distance(run: Run) -> None:
    # The strong convexity inequality behind Lemma 3, without any of its slack.
    for t in range(2, len(run.feedbacks) + 1):
        f, g = run.feedbacks[t - 2]
        x, now = run.states[t - 2].x, run.states[t - 1]
        alpha, gradient = float(run.learner.alpha(t - 1.0)), f.gradient(x)

        def objective(z: np.ndarray, x=x, g=g, now=now, alpha=alpha, gradient=gradient) -> float:
            penalty = now.queue @ np.maximum(g.value(z), 0.0)
            return gradient @ (z - x) + alpha * np.square(z - x).sum() + penalty

        best = objective(now.x)
        for u in [*run.vertices, *run.points, x]:
            margin = alpha * np.square(u - now.x).sum()
            assert best <= objective(u) - margin + 1e-9 * (1.0 + abs(best) + now.queue.sum())


def test_the_queue_moves_in_these_runs() -> None:
    moved = [
        (Run(seed, 12, 3, 3, epsilon, 1.0).states[-1].queue > 12 * epsilon).any()
        for seed in range(20)
        for epsilon in (1e-3, 0.1)
    ]
    assert np.mean(moved) > 0.9
