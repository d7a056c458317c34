"""Steps that are drawn to break the solver with affine rows, and those that real traffic drew."""

from __future__ import annotations

import pathlib
from fractions import Fraction

import numpy as np
import pytest

import coldq
from tests.adversary.__main__ import crossed, run
from tests.adversary.affine_rows import DRAWS, in_decimals, judged
from tests.adversary.drawn import EXTREME, MODERATE, Drawn
from tests.adversary.traffic import DOMAIN, draw_traffic

INF = np.inf
BACKBONE = pathlib.Path(__file__).parents[1] / "data" / "backbone-steps.npz"


@pytest.mark.parametrize("domain", [domain for _, domain in DRAWS])
@pytest.mark.parametrize(("scale", "steps"), [(MODERATE, 80), (EXTREME, 40)])
def test_no_answer_is_wrong_and_no_step_fails(domain: str, scale: str, steps: int) -> None:
    count = run("affine", domain, DRAWS["affine", domain], steps, 12, scale, timed=False)
    assert not crossed(count, scale), count.counts
    assert count.counts["inexact"] == 0


def test_traffic_in_raw_units_is_solved_without_a_word() -> None:
    count = run("affine", "traffic", draw_traffic, 60, 12, MODERATE, timed=False)
    assert count.counts == {"right": 60}


def test_a_batch_of_traffic_has_the_bits_of_its_members() -> None:
    steps = [draw_traffic(np.random.default_rng([17, k]), MODERATE).arguments for k in range(4)]
    center, gradient, alpha, weights = (np.array([s[j] for s in steps]) for j in range(4))
    rows = coldq.Affine(np.array([s[4].A for s in steps]), np.array([s[4].b for s in steps]))
    batch = coldq.penalised_step(center, gradient, alpha, weights, rows, DOMAIN)
    for k, arguments in enumerate(steps):
        alone = coldq.penalised_step(*arguments)
        for one, all_ in zip(alone, batch, strict=True):
            np.testing.assert_array_equal(one, all_[k])


def drawn(domain: str, seed: int, k: int, scale: str = MODERATE) -> Drawn:
    key = [seed, k, *f"affine {domain} {scale}".encode()]
    return DRAWS["affine", domain](np.random.default_rng(key), scale)


@pytest.mark.parametrize(
    ("domain", "seed", "k", "scale"),
    [
        ("product", 21, 1538, MODERATE),  # given up on the way, and near enough by its residual
        ("capped simplex", 23, 499, EXTREME),  # two bounds left at once, but for the 20th digit
        ("product", 23, 436, EXTREME),  # multipliers that were 1e12 times as long on the way
        ("product", 23, 616, EXTREME),  # a row that depends on others, beside one violated more
        ("product", 23, 3, EXTREME),  # a part of the product 1e27 times as large as another
        ("product with a ball", 23, 505, EXTREME),  # a ball's multiplier of 1e30
        ("product with a ball", 24, 1302, EXTREME),  # the same beside another ball
        ("product with a ball", 24, 1186, EXTREME),  # prices of 1e21 that hide a wrong x
        ("product with a ball", 25, 554, EXTREME),
        ("product with a ball", 811, 6334, MODERATE),  # no digit left for a ball's tangent
        ("product with a ball", 32, 141, EXTREME),  # rounding of a row moves x out of the ball
        ("polytope", 72, 16, EXTREME),  # no way in the box is long beside prices of 1e16
        ("box", 35, 195, EXTREME),  # a limit of zero, relative to twice what x can be
        ("capped simplex", 601, 2082, MODERATE),  # a corner where faces went in circles
        ("ball", 601, 5574, MODERATE),  # off its sphere by little beside a center far away
    ],
)
def test_steps_that_were_missed_once_are_solved(domain: str, seed: int, k: int, scale: str) -> None:
    one = drawn(domain, seed, k, scale)
    step = one.solve()
    assert step.residual <= 1e-9
    assert one.judge(step) <= one.allowed


@pytest.mark.filterwarnings("ignore::coldq.Inexact")  # exact or not with the rounding of BLAS
def test_rows_that_are_broken_by_rounding_alone_are_not_priced_for_it() -> None:
    # Near-parallel enforced rows, with multipliers of 8e12: some BLAS leave no digit of them.
    one = drawn("product with a ball", 9401, 1521)
    try:
        step = one.solve()
    except coldq.StepFailed as failed:
        assert "may be infeasible" in str(failed)
        step = failed.step
        assert step.residual > 1e-6
    else:
        assert step.residual <= 1e-6


@pytest.mark.parametrize(
    ("domain", "seed", "k"), [("polytope", 21, 1188), ("product with a ball", 1, 1460)]
)
def test_the_judge_explains_right_answers_where_least_squares_in_floats_do_not(
    domain: str, seed: int, k: int
) -> None:
    one = drawn(domain, seed, k)
    step = one.solve()
    assert one.judge(step) <= one.allowed
    for share in (1e-6, 1e-3):
        away = one.arguments[-1].project(step.x + share * np.abs(step.x).max())
        assert one.judge(step._replace(x=away)) > one.allowed


def test_nonnegative_least_squares_in_decimals_explain_what_nearly_parallel_rows_do() -> None:
    rng = np.random.default_rng(16)
    for _ in range(20):
        p = int(rng.integers(2, 8))
        lines = rng.standard_normal((p + 2, p))
        lines[1] = lines[0] + 1e-13 * rng.standard_normal(p)
        lines[-1] = lines[2] * -3.0
        true = rng.integers(0, 2, p + 2) * 2.0 ** rng.integers(-3, 10, p + 2)
        want = [sum(Fraction(t) * Fraction(v) for t, v in zip(true, column, strict=True))
                for column in lines.T]  # fmt: skip
        rounded = np.array([np.longdouble(float(v)) for v in want])
        found = in_decimals(lines, rounded)
        assert (found >= 0).all()
        left = rounded - found @ lines.astype(np.longdouble)
        # p of the lines explain any point of their cone; rounding may put `want` just outside it.
        assert np.abs(left).max() <= 1e-15 * np.abs(rounded).max() + 1e-300


@pytest.mark.parametrize("k", range(3))
def test_steps_of_real_traffic_are_solved_within_the_promise(k: int) -> None:
    with np.load(BACKBONE) as data:
        names = ("center", "gradient", "alpha", "weights", "A", "b")
        center, gradient, alpha, weights, A, b = (data[f"{name}_{k}"] for name in names)
    g = coldq.Affine(A, b)
    step = coldq.penalised_step(center, gradient, alpha, weights, g, DOMAIN)
    assert step.residual <= 1e-9
    zeros = np.zeros(len(b))
    assert judged(center, gradient, float(alpha), weights, zeros, A, b, DOMAIN)(step) <= 1e-9


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9, 1e12])
def test_consistent_hard_rows_are_not_called_infeasible_at_any_scale(size: float) -> None:
    A = np.array([[1.1], [3.0]])
    b = A @ np.array([-size])
    box = coldq.Box(-size, size, dim=1)
    g = coldq.Affine(A, b)
    step = coldq.penalised_step([0.0], [0.0], 1.0, INF, g, box, multiplier_lower=-INF)
    np.testing.assert_allclose(step.x, [-size], rtol=1e-9)
    rng = np.random.default_rng(13)
    for _ in range(40):
        N, p = int(rng.integers(1, 8)), int(rng.integers(1, 6))
        A = rng.standard_normal((N, p))
        b = A @ (size * rng.uniform(-1.0, 1.0, p))  # met by a point of the box, but for rounding
        center, box = size * rng.standard_normal(p), coldq.Box(-size, size, dim=p)
        step = coldq.penalised_step(
            center, 0.0 * center, 1.0, INF, coldq.Affine(A, b), box, multiplier_lower=-INF
        )
        np.testing.assert_allclose(A @ step.x, b, rtol=0.0, atol=1e-9 * size)


@pytest.mark.parametrize("size", [1e-15, 1e-12, 1e-9])
def test_an_answer_scales_with_its_problem(size: float) -> None:
    rng = np.random.default_rng(14)
    for _ in range(60):
        N, p = (int(k) for k in rng.integers(1, 8, 2))
        A, center = rng.standard_normal((N, p)), rng.standard_normal(p)
        b, gradient = 0.3 * rng.standard_normal(N), rng.standard_normal(p)
        weights = 10.0 ** rng.uniform(-1.0, 2.0, N)
        box, rows = coldq.Box(-1.0, 1.0, dim=p), coldq.Affine(A, b)
        small_box, small_rows = coldq.Box(-size, size, dim=p), coldq.Affine(A, size * b)
        plain = coldq.penalised_step(center, gradient, 1.0, weights, rows, box).x
        small = coldq.penalised_step(
            size * center, size * gradient, 1.0, size * weights, small_rows, small_box
        ).x
        np.testing.assert_allclose(small / size, plain, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("far", [1e3, 1e5, 1e7])
def test_no_decision_leaves_a_ball_far_from_the_origin(far: float) -> None:
    rng = np.random.default_rng(15)
    for _ in range(40):
        middle = far * rng.standard_normal(3)
        ball, rest = coldq.Ball(middle, 1.0), coldq.Simplex(2)
        A = rng.standard_normal((2, 5))
        b = A @ np.append(middle, [0.5, 0.5])
        for domain, rows in ((ball, A[:, :3]), (coldq.Product(ball, rest), A)):
            p = domain.dim
            center = np.append(middle, [0.5, 0.5])[:p]
            g = coldq.Affine(rows, rows @ center if p == 3 else b)
            gradient = 30.0 * rng.standard_normal(p)
            x = coldq.penalised_step(center, gradient, 1.0, 5.0, g, domain).x
            # The center's own rounding is 1e-16 of its size in each coordinate.
            assert np.linalg.norm(x[:3] - middle) <= 1.0 + 1e-12 + 1e-15 * far
            assert domain.contains(x)


def test_a_learner_takes_back_its_state_from_a_ball_far_away() -> None:
    domain = coldq.Product(coldq.Ball([1e5, -2e5], 1.0), coldq.Box(0.0, 1.0, dim=1))
    learner = coldq.COLDQ(domain, horizon=50)
    state = learner.init(n_constraints=1)
    rows = coldq.Affine([[1.0, 0.0, 1.0]], [1e5])
    for k in range(10):
        loss = coldq.Linear([30.0 * (-1) ** k, 20.0, -1.0])
        state = learner.update(state, coldq.Feedback(loss, rows))
        learner.from_arrays(state.to_arrays())
