"""The paper's lemmas as properties of runs in which the queue does move.

They are asked of affine rows on a box, and of every other kind of rows on every kind of domain: the
per-slot inequality is the sharpest test of an exact step, whichever kernel makes it.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import coldq
from tests.convex_functions import make_functions

DOMAINS = ("box", "simplex", "polytope", "ball", "product", "product with a ball")
ROWS = ("affine", "quadratic", "max-affine", "convex", "stacked")
SOLVED = [  # pieces have no solver beside a ball
    (domain, rows)
    for domain in DOMAINS
    for rows in ROWS
    if (domain, rows) != ("box", "affine") and not ("ball" in domain and rows == "max-affine")
]


def corners(box: coldq.Box) -> np.ndarray:
    return np.array(list(product(*zip(box.lower, box.upper, strict=True))))


def draw_domain(rng: np.random.Generator, kind: str, p: int) -> coldq.Box:
    match kind:
        case "simplex":
            total = rng.uniform(0.5, 2.0)
            return coldq.Simplex(p, total, cap=total * rng.uniform(1.01 / p, 1.5))
        case "polytope":
            return coldq.Polytope(rng.standard_normal((2, p)), rng.uniform(0.1, 1.0, 2), -1.5, 1.5)
        case "ball":
            return coldq.Ball(0.3 * rng.standard_normal(p), rng.uniform(0.5, 1.5))
        case "product":
            return coldq.Product(coldq.Simplex(p), coldq.Box(-1.0, rng.uniform(0.1, 1.0), dim=1))
        case "product with a ball":
            return coldq.Product(coldq.Ball(np.zeros(p), 1.0), coldq.Box(-1.0, 1.0, dim=1))
    return coldq.Box(-rng.uniform(0.0, 2.0, p), rng.uniform(0.1, 2.0, p))


def draw_rows(rng: np.random.Generator, kind: str, N: int, p: int, spread: float):
    """N rows of a kind; the larger the spread, the more slots have no feasible decision."""
    match kind:
        case "quadratic":
            roots = rng.standard_normal((N, p, p))
            P = roots @ np.swapaxes(roots, -1, -2) / p
            return coldq.QuadraticConstraint(
                P, rng.standard_normal((N, p)), spread * rng.standard_normal(N)
            )
        case "max-affine":
            A, b = rng.standard_normal((N, 3, p)), spread * rng.standard_normal((N, 3))
            return coldq.MaxAffine(A, b)
        case "convex":
            functions = make_functions(rng, str(rng.choice(["log-sum-exp", "exponentials"])), N, p)
            return coldq.Convex(
                functions.value, functions.jacobian, functions.hessian, n_constraints=N
            )
        case "stacked":
            parts = [draw_rows(rng, kind, 1, p, spread) for kind in ("quadratic", "affine")]
            return coldq.Stacked(*parts, *(draw_rows(rng, "affine", 1, p, spread),) * (N - 2))
    return coldq.Affine(rng.standard_normal((N, p)), spread * rng.standard_normal(N))


def value_bound(g, box: coldq.Box) -> float:
    """|g| on a box: a convex function is largest at a corner, and nowhere below its tangent."""
    middle = 0.5 * (box.lower + box.upper)
    reach = 0.5 * (box.upper - box.lower)
    highest = max(float(g.value(corner).max()) for corner in corners(box))
    return max(highest, float((np.abs(g.jacobian(middle)) @ reach - g.value(middle)).max()))


class Run:
    """A run of COLDQ on random losses and constraints, infeasible rounds included."""

    def __init__(
        self,
        seed: int,
        T: int,
        N: int,
        p: int,
        epsilon: float,
        spread: float,
        pair: tuple[str, str] = ("box", "affine"),
    ) -> None:
        rng = np.random.default_rng(seed)
        self.domain = draw_domain(rng, pair[0], p)
        p, N = self.domain.dim, N + 1 if pair[1] == "stacked" else N
        self.tolerance = 1e-9 if pair == ("box", "affine") else 1e-8
        alpha = coldq.schedules.Power(rng.choice([0.0, 0.25, 0.5, 1.0]), 10.0 ** rng.uniform(-2, 1))
        self.learner = coldq.COLDQ(self.domain, horizon=T, epsilon=epsilon, alpha=alpha)
        self.feedbacks = []
        for _ in range(T):
            H, y = rng.standard_normal((3, p)), 3.0 * rng.standard_normal(3)
            rows = draw_rows(rng, pair[1], N, p, spread)
            self.feedbacks.append((coldq.LeastSquares(H, y), rows))
        self.states = [self.learner.init(N, start=self.domain.project(rng.standard_normal(p)))]
        for f, g in self.feedbacks:
            self.states.append(self.learner.update(self.states[-1], coldq.Feedback(f, g)))
        vertices = corners(self.domain.box)
        self.G = max(value_bound(g, self.domain.box) for _, g in self.feedbacks)
        # Norms of affine maps are convex, so that their maxima are at corners.
        self.D = max(
            float(np.linalg.norm(f.gradient(vertices), axis=-1).max()) for f, _ in self.feedbacks
        )
        self.points = self.domain.project(rng.standard_normal((T, p)))
        self.vertices = self.domain.project(vertices)


def drawn(
    slots: int, rows: int, coordinates: int, **others: st.SearchStrategy
) -> st.SearchStrategy:
    return st.builds(
        Run,
        seed=st.integers(0, 10**6),
        T=st.integers(3, slots),
        N=st.integers(1, rows),
        p=st.integers(1, coordinates),
        epsilon=st.sampled_from([1e-6, 1e-3, 0.1, 0.5, 5.0]),
        spread=st.sampled_from([0.0, 0.1, 1.0, 4.0]),
        **others,
    )


runs = drawn(15, 4, 4)
other_runs = drawn(8, 3, 3, pair=st.sampled_from(SOLVED))
some = settings(max_examples=150, derandomize=True)
many = settings(some, max_examples=300)  # some five for each pair
any_run = runs | other_runs


@many
@given(any_run)
def test_lemmas_1_and_3_hold_and_steps_are_exact(run: Run) -> None:
    lemma_1_the_queue_is_bounded_from_both_sides(run)
    lemma_3_the_per_slot_inequality(run)
    an_exact_step_beats_every_other_point_by_its_distance(run)


def lemma_1_the_queue_is_bounded_from_both_sides(run: Run) -> None:
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


def lemma_3_the_per_slot_inequality(run: Run) -> None:
    # For any points u_t in place of x*_t; where they are infeasible their penalty is added.
    R, D, alpha = float(run.domain.diameter), run.D, run.learner.alpha
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
        assert left <= right + run.tolerance * (1.0 + size)


def an_exact_step_beats_every_other_point_by_its_distance(run: Run) -> None:
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
            assert best <= objective(u) - margin + run.tolerance * (
                1.0 + abs(best) + now.queue.sum()
            )


def test_the_queue_moves_in_these_runs() -> None:
    moved = [
        (Run(seed, 12, 3, 3, epsilon, 1.0).states[-1].queue > 12 * epsilon).any()
        for seed in range(20)
        for epsilon in (1e-3, 0.1)
    ]
    assert np.mean(moved) > 0.9
