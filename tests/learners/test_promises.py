"""What docstrings promise: COLDQ without a horizon, CLASP, nested projections, Switch, Polyak."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import coldq
from coldq.base.contractions import implied
from coldq.learners.checks import SLOTS, Case
from coldq.learners.doubling import epoch
from coldq.learners.nested_projections import intersect
from coldq.problems import OnlineLinear, TimeVarying
from coldq.slot.schedules import Power
from coldq.slot.step.projection import project_on_rows

X = coldq.Box([-1.0, 0.0, -2.0], [1.0, 2.0, 0.5])


# -- COLDQ with schedules ------------------------------------------------------------------------


def test_numbers_and_constant_schedules_give_the_same_bits() -> None:
    number = coldq.COLDQ(X, alpha=2.0, eta=0.1, gamma=0.3)
    schedule = coldq.COLDQ(X, alpha=2.0, eta=Power(0.0, 0.1), gamma=lambda t: 0.3 + 0.0 * t)
    case = Case.of(number)
    one, two = number.init(2, batch=(3,)), schedule.init(2, batch=(3,))
    for slot in range(1, SLOTS + 1):
        one, two = (
            learner.update(state, case.feedback(slot))
            for learner, state in ((number, one), (schedule, two))
        )
        assert one.x.tobytes() == two.x.tobytes()
        assert one.queue.tobytes() == two.queue.tobytes()


def test_the_anytime_queue_never_leaves_its_two_bounds() -> None:
    # Q_t >= epsilon t^2, and Q_t <= sum of what was added: at most t times the largest violation
    # above the floor.
    problem = TimeVarying(horizon=200)
    trace = coldq.simulate(
        coldq.COLDQ.anytime(problem.domain, epsilon=0.01), problem, range(4), keep="queue"
    )
    t = np.maximum(np.arange(1, 201) - 1, 1)  # the state before slot t has Q_{t-1}
    assert trace.queue is not None
    floor = 0.01 * t[:, None] ** 2
    assert (trace.queue >= floor * (1.0 - 1e-12)).all()
    assert (trace.queue <= floor + problem.constants.constraint_bound * t[:, None]).all()
    assert (trace.queue > 1.01 * floor).any()


def test_an_eta_of_one_is_for_the_first_slot_only() -> None:
    nothing = coldq.Feedback(coldq.Linear(np.zeros(3)), coldq.Affine(np.ones((1, 3)), [1.0]))
    learner = coldq.COLDQ(X, alpha=1.0, eta=lambda t: np.ones_like(t), gamma=1.0)
    state = learner.update(learner.init(1), nothing)
    with pytest.raises(coldq.InvalidInput, match="eta must be below 1 from slot 2 on"):
        learner.update(state, nothing)
    for eta in (1.0, 0.0):
        with pytest.raises(coldq.InvalidInput, match="eta must lie strictly between 0 and 1"):
            coldq.COLDQ(X, alpha=1.0, eta=eta, gamma=1.0)
    with pytest.raises(coldq.InvalidInput, match="epsilon must be positive"):
        coldq.COLDQ.anytime(X, epsilon=0.0)


def test_saved_anytime_states_know_the_floor_of_their_own_slot() -> None:
    learner, case = coldq.COLDQ.anytime(X), Case.of(coldq.COLDQ.anytime(X))
    state = case.init((3,))
    for slot in range(1, 6):
        state = learner.update(state, case.feedback(slot))
    arrays = state.to_arrays()
    assert learner.from_arrays(arrays).queue.tobytes() == state.queue.tobytes()
    with pytest.raises(coldq.InvalidInput, match="queue must be at least gamma"):
        learner.from_arrays(arrays | {"t": arrays["t"] + 1})


def test_doubling_is_coldq_started_anew_bit_for_bit() -> None:
    learner = coldq.COLDQDoubling(X, epsilon=0.03, path_exponent=0.4)
    case = Case.of(learner)
    state = case.init()
    x = state.x
    for first in (1, 2, 4, 8):
        alpha = Power(0.5 * (1.0 - 0.4))
        # One slot is no horizon; its queue is not moved, so that its eta does not matter.
        once = coldq.COLDQ(X, alpha=alpha, eta=1.0 / max(first, 2), gamma=0.03 * first)
        own = once.init(2, start=x)
        for slot in range(first, min(2 * first, SLOTS + 1)):
            H, y, A, b = (array[0] for array in case.data[slot - 1])
            revealed = coldq.Feedback(coldq.LeastSquares(H, y), coldq.Affine(A, b))
            state, own = learner.update(state, revealed), once.update(own, revealed)
            assert state.x.tobytes() == own.x.tobytes()
            assert state.queue.tobytes() == own.queue.tobytes()
        x = own.x
    assert state.t == SLOTS + 1


def test_members_of_a_batch_double_by_their_own_clocks() -> None:
    learner = coldq.COLDQDoubling(X, epsilon=0.03)
    case = Case.of(learner)
    late, fresh = case.init(), case.init()
    for slot in range(1, 7):
        late = learner.update(late, case.feedback(slot, 0))
    for slot in range(1, 6):  # late is in slots 7, 8, ...: an epoch starts while fresh is in 2
        both = learner.from_arrays(
            {name: np.stack([a, fresh.to_arrays()[name]]) for name, a in late.to_arrays().items()}
        )
        H, y, A, b = (array[0] for array in case.data[slot - 1])
        revealed = coldq.Feedback(coldq.LeastSquares(H, y), coldq.Affine(A, b))
        both = learner.update(both, revealed)
        late, fresh = learner.update(late, revealed), learner.update(fresh, revealed)
        for k, one in enumerate((late, fresh)):
            assert both.x[k].tobytes() == one.x.tobytes()
            assert both.queue[k].tobytes() == one.queue.tobytes()


def test_epochs_are_the_largest_powers_of_two() -> None:
    t = np.array([*range(1, 5000), 2**40 - 1, 2**40])
    expected = [2.0 ** (int(slot).bit_length() - 1) for slot in t]
    np.testing.assert_array_equal(epoch(t), expected)
    assert [epoch(slot) for slot in t[:9]] == expected[:9]


# -- CLASP ----------------------------------------------------------------------------------------


def test_clasp_takes_the_steps_of_coldq_with_a_queue_that_is_large_enough() -> None:
    problem = TimeVarying(horizon=300)
    eta = Power(-0.5, 0.5)  # 1 / (2 alpha_t) for alpha_t = sqrt(t)
    one, two = (
        coldq.simulate(learner, problem, range(3), keep="decisions")
        for learner in (coldq.CLASP(problem.domain, eta=eta), coldq.COLDQ.for_problem(problem))
    )
    np.testing.assert_allclose(one.decisions, two.decisions, atol=1e-9)


def test_clasp_holds_every_constraint_one_slot_late() -> None:
    problem = TimeVarying(horizon=100)
    learner, stream = coldq.CLASP.for_problem(problem), problem.start([0, 1])
    state = learner.init(2, batch=(2,))
    for t in range(1, 101):
        revealed = stream.reveal(t, state.x)
        state = learner.update(state, revealed)
        assert revealed.constraint.value(state.x).max() <= 1e-10


@pytest.mark.parametrize(
    "learner", [coldq.CLASP(X, eta=1.0), coldq.NestedProjections(X, eta=1.0)], ids=repr
)
def test_an_empty_set_names_its_instances_and_changes_nothing(learner) -> None:
    state = learner.init(1, batch=(2, 3))
    before = [array.copy() for array in state.to_arrays().values()]
    limits = np.full((2, 3, 1), 1.0)
    limits[0, 2] = limits[1, 0] = -9.0  # x_1 <= -9 on [-1, 1]
    rows = coldq.Affine([[1.0, 0.0, 0.0]], limits)
    with pytest.raises(
        coldq.Infeasible, match=r"in instances \(0, 2\), \(1, 0\) of the batch"
    ) as e:
        learner.update(state, coldq.Feedback(coldq.Linear(np.ones(3)), rows))
    assert e.value.indices == [(0, 2), (1, 0)]
    for old, new in zip(before, state.to_arrays().values(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_constructors_ask_for_what_is_missing() -> None:
    for make, words in [
        (lambda: coldq.CLASP(X), "either gradient_bound or eta"),
        (lambda: coldq.CLASP(X, gradient_bound=1.0, b=1.0), "b must lie strictly between"),
        (lambda: coldq.CLASP(X, eta=1.0, b=0.5), "give one of them"),
        (lambda: coldq.CLASP(coldq.Box(0.0, np.inf, dim=1), gradient_bound=1.0), "bounded domain"),
        (lambda: coldq.NestedProjections(X), "either lipschitz or eta"),
        (lambda: coldq.NestedProjections(coldq.Box(np.zeros((2, 1)), 1.0), eta=1.0), "one domain"),
        (
            lambda: coldq.PolyakFeasibility.safe(
                X, 9, gradient_bound=1.0, lipschitz=1.0, slack=0.1, steepness=2.0
            ),
            "steepness must be at most lipschitz",
        ),
    ]:
        with pytest.raises(coldq.InvalidInput, match=words):
            make()


def test_shapes_that_do_not_fit_are_refused_by_name_when_a_learner_is_made() -> None:
    two, three = np.ones(2), np.ones(3)
    boxes = coldq.Box(np.zeros((3, 1)), 1.0)
    for make, words in [
        (lambda: coldq.COLDQ(X, 9, epsilon=two, alpha=Power(0.5, three)), "alpha.*gamma"),
        (lambda: coldq.COLDQDoubling(boxes, epsilon=two), "domain.*epsilon"),
        (lambda: coldq.RECOO(X, alpha=two, eta=three), "alpha.*eta"),
        (lambda: coldq.OGD(boxes, eta=two), "domain.*eta"),
        (lambda: coldq.Yi2021(X, alpha=two, gamma=three), "alpha.*gamma"),
        (lambda: coldq.Yi2023(X, alpha=two, beta=1.0, gamma=three), "alpha.*gamma"),
        (lambda: coldq.MOSP(X, 9, alpha=two, mu=three), "alpha.*mu"),
        (lambda: coldq.SinhaVaze(X, 9, lipschitz=two, modulus=three), "lipschitz.*modulus"),
        (lambda: coldq.PolyakFeasibility(X, eta=two, rho=three), "eta.*rho"),
        (lambda: coldq.BestResponse(boxes, safety_margin=two), "domain.*safety_margin"),
    ]:
        with pytest.raises(coldq.InvalidInput, match=f"do not fit together: .*{words}"):
            make()


def test_a_learner_that_needs_a_horizon_refuses_to_be_made_without() -> None:
    known = {"alpha": 1.0, "eta": 1.0, "gamma": 1.0}
    for make in (
        lambda none: coldq.SinhaVaze(X, none, lipschitz=1.0),
        lambda none: coldq.Mahdavi2012(X, none, eta=1.0, delta=1.0),
        lambda none: coldq.YuanLamperski2018(X, none, eta=1.0, sigma=1.0),
        lambda none: coldq.Wang2023(X, none, 1, **known),
        lambda none: coldq.MOSP(X, none, alpha=1.0, mu=1.0),
        lambda none: coldq.YuNeely2020(X, none, alpha=1.0, gamma=1.0),
        lambda none: coldq.YuNeelyWei2017(X, none, V=1.0, alpha=1.0),
        lambda none: coldq.COLDQExpert(X, none, kappa=1.0),
        lambda none: coldq.Switch(X, none, lipschitz=1.0),
    ):
        with pytest.raises(coldq.InvalidInput, match="horizon must be a whole number"):
            make(None)


# -- Nested projections ----------------------------------------------------------------------------


def largest(a: np.ndarray, A: np.ndarray, b: np.ndarray, X: coldq.Box) -> float:
    """max of a x over the box and the rows, by a linear program."""
    answer = linprog(-a, A_ub=A if len(A) else None, b_ub=b if len(A) else None,
                     bounds=list(zip(X.lower, X.upper, strict=True)), method="highs")  # fmt: skip
    assert answer.status == 0
    return float(-answer.fun)


@pytest.mark.parametrize("low", [0.0, -1.0])
def test_rows_are_dropped_only_where_the_set_stays_the_same(low: float) -> None:
    box = coldq.Box(low, [1.0, 2.0, 3.0])
    rng = np.random.default_rng(5)
    A, b = np.zeros((0, 3)), np.zeros(0)
    every_A, every_b = A, b
    for _ in range(25):
        more, limits = rng.uniform(-0.3, 1.0, (3, 3)), rng.uniform(0.1, 2.5, 3)
        A, b = intersect(A, b, more, limits, box)
        every_A, every_b = np.concatenate([every_A, more]), np.concatenate([every_b, limits])
    assert 0 < len(b) < 40 < len(every_b)
    for a, limit in zip(every_A, every_b, strict=True):
        assert largest(a, A, b, box) <= limit + 1e-9


def test_what_one_row_implies_is_found_as_a_linear_program_finds_it() -> None:
    rng = np.random.default_rng(6)
    agree = {True: 0, False: 0}
    for _ in range(300):
        box = coldq.Box(rng.uniform(-2.0, 0.0, 3), rng.uniform(0.1, 2.0, 3))
        (a, other), (b, limit) = rng.normal(size=(2, 3)), rng.uniform(0.2, 2.0, 2)
        found = implied(a, b, other[None], np.array([limit]), box.lower, box.upper) == 1.0
        gap = b - largest(a, other[None], np.array([limit]), box)
        if abs(gap) > 1e-9:
            assert found == (gap > 0.0)
            agree[bool(found)] += 1
    assert min(agree.values()) > 50


def test_implication_is_not_claimed_within_rounding_except_of_copies() -> None:
    low, high = np.full(2, -np.inf), np.full(2, np.inf)
    a = np.array([0.1, 0.7])
    for box in ((low, high), (-np.ones(2), np.ones(2))):
        assert implied(a, np.float64(0.5), a[None], np.array([0.5]), *box) == 1.0
        assert implied(a, np.float64(0.6), a[None], np.array([0.5]), *box) == 1.0
        assert implied(a, np.float64(0.4), a[None], np.array([0.5]), *box) == 0.0
    # Three times the same row: rounding decides whether 3 * 0.1 is above or below.
    three, unit = 3.0 * a[None], np.ones(2)
    assert implied(a, np.float64(0.5), three, np.array([1.5]), low, high) == 0.0
    assert implied(a, np.float64(0.5), three, np.array([1.5]), -unit, unit) == 0.0
    assert implied(a, np.float64(0.6), three, np.array([1.5]), -unit, unit) == 1.0


def test_a_fixed_constraint_is_kept_once() -> None:
    problem = OnlineLinear(horizon=60)
    trace = coldq.simulate(coldq.NestedProjections.for_problem(problem), problem, range(4))
    assert trace.state.b.shape[-1] <= 3
    assert coldq.hard_violation(trace).max() <= 1e-9


@pytest.mark.parametrize("low", [0.0, -5.0])
def test_nested_decisions_satisfy_all_constraints_so_far(low: float) -> None:
    problem = TimeVarying(horizon=60, domain=coldq.Box(low, 5.0, dim=10))
    learner, stream = coldq.NestedProjections.for_problem(problem), problem.start([0])
    state, past = learner.init(2, batch=(1,)), []
    for t in range(1, 61):
        revealed = stream.reveal(t, state.x)
        past.append(revealed.constraint)
        state = learner.update(state, revealed)
        assert max(g.value(state.x).max() for g in past) <= 1e-9


def test_rows_of_zeros_do_not_change_a_bit() -> None:
    learner = coldq.NestedProjections(X, lipschitz=5.0)
    case = Case.of(learner, 7)
    plain = padded = case.init()
    for slot in range(1, SLOTS + 1):
        arrays = padded.to_arrays()
        arrays["A"] = np.concatenate([arrays["A"], np.zeros((6, 3))])
        arrays["b"] = np.concatenate([arrays["b"], np.zeros(6)])
        padded = learner.update(learner.from_arrays(arrays), case.feedback(slot, 0))
        plain = learner.update(plain, case.feedback(slot, 0))
        assert padded.x.tobytes() == plain.x.tobytes()
    assert len(plain.b) > 5


def test_projection_onto_many_rows_agrees_with_a_conic_solver() -> None:
    import cvxpy as cp

    rng = np.random.default_rng(8)
    box = coldq.Box(-1.0, 1.0, dim=6)
    A = rng.normal(size=(4, 80, 6))
    b = rng.uniform(0.05, 1.0, (4, 80))  # the origin is feasible
    y = rng.normal(size=(4, 6)) * 2.0
    ours = project_on_rows(y, A, b, box)
    for k in range(4):
        x = cp.Variable(6)
        rows = [A[k] @ x <= b[k], x >= -1.0, x <= 1.0]
        cp.Problem(cp.Minimize(cp.sum_squares(x - y[k])), rows).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(ours[k], x.value, atol=1e-5)
        assert (A[k] @ ours[k] - b[k]).max() <= 1e-10
        assert project_on_rows(y[k], A[k], b[k], box).tobytes() == ours[k].tobytes()


def test_nested_sets_take_affine_constraints_alone() -> None:
    box = coldq.Box(0.0, 1.0, dim=2)
    capacity = coldq.LogCapacity(1.0, np.ones(2), np.ones(2))
    revealed = coldq.Feedback(coldq.Linear(np.ones(2)), capacity)
    for learner in (
        coldq.NestedProjections(box, eta=1.0),
        coldq.Switch(box, horizon=9, lipschitz=1.0),
    ):
        with pytest.raises(coldq.InvalidInput, match=r"coldq\.Affine constraint.*LogCapacity"):
            learner.update(learner.init(1), revealed)


def test_a_state_that_grows_says_so() -> None:
    from coldq.learners import ALGORITHMS

    growing = {learner for learner in ALGORITHMS if learner.card.memory == "grows"}
    assert growing == {coldq.NestedProjections, coldq.Switch}
    from coldq.cli.catalogue import rows

    assert {row[0] for row in rows() if "memory grows" in row[6]} == {"NestedProjections", "Switch"}


def test_switch_is_nested_projections_before_and_sinha_vaze_after() -> None:
    box = coldq.Box(0.0, 1.0, dim=2)
    switch = coldq.Switch(box, horizon=60, lipschitz=2.0, limit=0.6)
    nested = coldq.NestedProjections(box, lipschitz=2.0)
    universal = coldq.SinhaVaze(box, horizon=60, lipschitz=2.0)
    rng = np.random.default_rng(4)
    state, first, second, slots = switch.init(1), nested.init(1), None, 0
    for _ in range(60):
        loss, row = coldq.Linear(-rng.uniform(0.0, 1.0, 2)), rng.uniform(0.2, 1.0, (1, 2))
        revealed = coldq.Feedback(loss, coldq.Affine(row, [rng.uniform(0.05, 1.0)]))
        state_new = switch.update(state, revealed)
        if state_new.ccv <= 0.6:
            first = nested.update(first, revealed)
            assert state_new.x.tobytes() == first.x.tobytes()
        else:
            if second is None:
                second = universal.init(1, start=state.x)
            second = universal.update(second, revealed)
            assert state_new.x.tobytes() == second.x.tobytes()
            slots += 1
        state = state_new
    assert 5 <= slots <= 55


# -- Polyak feasibility ----------------------------------------------------------------------------


def test_safe_parameters_keep_every_decision_feasible() -> None:
    # Losses that pull outwards all the time, on a polygon with corners; x_1 = 0 has a slack of 0.3.
    rng = np.random.default_rng(9)
    box = coldq.Box(-1.0, 1.0, dim=2)
    angles = np.linspace(0.0, 2.0 * np.pi, 7)[:-1]
    g = coldq.Affine(np.stack([np.cos(angles), np.sin(angles)], axis=1), np.full(6, 0.3))
    for T in (50, 2000):
        learner = coldq.PolyakFeasibility.safe(box, T, gradient_bound=2.0, lipschitz=1.0, slack=0.3)
        hasty = coldq.PolyakFeasibility(box, T, eta=0.3, rho=learner.rho)
        worst = {}
        for name, player in (("safe", learner), ("hasty", hasty)):
            state = player.init(6)
            level = []
            for _ in range(T):
                pull = rng.normal(size=2)
                loss = coldq.Linear(-2.0 * pull / np.linalg.norm(pull))
                state = player.update(state, coldq.Feedback(loss, g))
                level.append(g.value(state.x).max())
            worst[name] = max(level)
        assert worst["safe"] <= 1e-12
        assert worst["hasty"] > 1e-3


def test_polyak_s_step_leaves_a_constraint_without_slope_alone() -> None:
    learner = coldq.PolyakFeasibility(X, eta=0.5, rho=0.1)
    flat = coldq.Affine(np.zeros((1, 3)), [-1.0])
    state = learner.update(learner.init(1), coldq.Feedback(coldq.Linear([1.0, 0.0, 1.0]), flat))
    np.testing.assert_allclose(state.x, [-0.5, 0.0, -0.5])


@pytest.mark.parametrize("unit", [1e-6, 1e3, 1e9])
def test_safe_polyak_steps_are_the_same_in_any_units_of_decisions(unit: float) -> None:
    known = {"gradient_bound": 2.0 / unit, "lipschitz": 3.0 / unit, "slack": 1e-6}
    learner = coldq.PolyakFeasibility.safe(coldq.Box(0.0, unit, dim=3), 100, **known)
    # steepness / L = s is so small that 1 - sqrt(1 - s^2) is s^2 / 2 in sixteen digits
    steepness = 0.9e-6 / (np.sqrt(3.0) * unit)
    half = 0.5 * (steepness * unit / 3.0) ** 2
    expected = half * 1e-7 / (6.0 / unit**2)
    np.testing.assert_allclose(learner.eta(1.0), expected, rtol=1e-12)


def test_polyak_takes_a_lipschitz_constant_of_ones_own() -> None:
    problem = coldq.problems.OnlineLinear(horizon=100)
    learner = coldq.PolyakFeasibility.for_problem(problem, slack=0.1, lipschitz=9.0)
    given = {"gradient_bound": problem.constants.gradient_bound, "lipschitz": 9.0, "slack": 0.1}
    assert learner == coldq.PolyakFeasibility.safe(problem.domain, 100, **given)


@pytest.mark.parametrize(
    "make",
    [
        lambda X: coldq.SinhaVaze(X, 10_000, lipschitz=1e-3),  # as if in other units
        lambda X: coldq.SarkarSinha2025(X, lipschitz=1e-3),
        lambda X: coldq.LekeufackJordan2024(X, lipschitz=np.sqrt(5.0)),
    ],
)
def test_a_row_that_stays_out_of_reach_leaves_a_state_that_goes_on(make) -> None:
    learner = make(coldq.Box(0.0, 1.0, dim=2))
    state = learner.init(1)
    short = coldq.Feedback(coldq.Linear([1.0, 2.0]), coldq.Affine([[-1.0, -1.0]], [-9.0]))
    for _ in range(1000):
        state = learner.update(state, short)
    restored = learner.from_arrays(state.to_arrays())
    np.testing.assert_array_equal(learner.update(restored, short).x, [1.0, 1.0])
