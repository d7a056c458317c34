"""Certificates: realised values beside bounds, and assumptions that are seen to fail."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import coldq
from coldq import bounds
from coldq.problems import Constants, OnlineLinear, OnlineQuadratic, Problem, TimeVarying
from coldq.slot.schedules import Power
from coldq.theory.assumptions import queue_again

T = 60


def run(learner, problem, **options) -> coldq.Trace:
    return coldq.simulate(learner, problem, seeds=range(3), progress=False, **options)


class Scripted(Problem):
    """The same given loss and constraint in every slot, or those of a function of (t, x)."""

    n_constraints = 1

    def __init__(self, reveal, domain=None, horizon=T, constants=None, adaptive=False) -> None:
        self.domain = coldq.Box(-1.0, 1.0, dim=2) if domain is None else domain
        self.horizon, self.reveal, self.known, self.adaptive = horizon, reveal, constants, adaptive

    def _contents(self) -> tuple:
        return (id(self),)

    def start(self, seeds):
        return self

    @property
    def constants(self) -> Constants:
        return self.known  # type: ignore[return-value]


LINE = coldq.Affine([[1.0, 1.0]], [0.5])


def verdicts(report: coldq.BoundReport) -> dict[str, str]:
    return {a.name: a.verdict for a in report.assumptions}


@pytest.mark.filterwarnings("ignore::coldq.WeakPrice")  # the runs are short
@pytest.mark.parametrize("kind", [TimeVarying, OnlineQuadratic, OnlineLinear])
def test_every_constructor_of_coldq_and_the_experts_get_a_bound_report_that_holds(kind) -> None:
    problem = kind(T)
    X, known = problem.domain, problem.constants
    for learner in (
        coldq.COLDQ.for_problem(problem, path_exponent=0.5),
        coldq.COLDQ.strongly_convex(X, T, mu=max(known.strong_convexity, 0.1)),
        coldq.COLDQ.for_problem(problem, scaled=True),
        coldq.COLDQ(X, alpha=Power(0.4, 2.0), eta=0.3, gamma=0.01),
        coldq.COLDQExpert.for_problem(problem),
        coldq.COLDQExpert.for_problem(problem, gradient="shared", kappa=0.01),
        coldq.COLDQ.anytime(X, path_exponent=0.3),
        coldq.COLDQ(X, alpha=Power(0.4), eta=0.3, gamma=Power(1.0)),
        coldq.RECOO.for_problem(problem),
        coldq.RECOO.for_problem(problem, reading="comparison"),
        coldq.CLASP.for_problem(problem),
        coldq.Yi2021.for_problem(problem),
        coldq.Yi2021.strongly_convex(X, T, mu=0.2, gamma0=1.0),
    ):
        report = coldq.bound_report(run(learner, problem))
        assert report.holds, str(report)
        assert set(verdicts(report).values()) <= {"holds", "spot-checked"}
        for check in report.checks:
            assert (check.slack > 0.0).all()


KEPT = {
    "COLDQ": lambda X: coldq.COLDQ(X, T, epsilon=1e-3),
    "anytime": lambda X: coldq.COLDQ.anytime(X, epsilon=1e-3),
    "RECOO as compared": lambda X: coldq.RECOO(X, reading="comparison"),
    "RECOO by drift": lambda X: coldq.RECOO(X),
    "Yi2021": lambda X: coldq.Yi2021(X, T, alpha0=0.5, gamma0=0.5),
}


@pytest.mark.parametrize("name", KEPT)
def test_the_weights_of_a_run_are_those_that_its_steps_were_made_with(name: str) -> None:
    problem = TimeVarying(T)
    learner = KEPT[name](problem.domain)
    trace = run(learner, problem, keep=["queue"])
    stream, state, asked = (
        problem.start(trace.seeds),
        learner.init(2, batch=(3,)),
        learner.assumptions,
    )
    least = np.empty((3, T - 1))
    for t in range(1, T):
        before, state = state, learner.update(state, stream.reveal(t, state.x))
        least[:, t - 1] = learner._caps(before, state).min(axis=-1)  # the multipliers' own bound
    np.testing.assert_allclose(asked.weights(trace), least, rtol=1e-12)
    assert (least >= asked.least(np.arange(1.0, T)) * (1.0 - 1e-12)).all()
    again = asked.weights(replace(trace, queue=None))
    if name == "RECOO by drift":  # its queue takes in g_t(x_{t+1}), which no trace has
        assert again is None
    else:
        np.testing.assert_allclose(again, least, rtol=1e-9)
    kept, plain = (coldq.bound_report(each) for each in (trace, replace(trace, queue=None)))
    assert kept.holds and plain.holds
    tighter = kept.least("hard violation").bound <= plain.least("hard violation").bound * (1 + 1e-9)
    assert tighter.all()


def test_the_least_of_several_bounds_is_taken_seed_by_seed() -> None:
    problem = OnlineQuadratic(500)  # where the path is long, and no bound that counts it small
    report = coldq.bound_report(run(coldq.COLDQ.for_problem(problem), problem))
    named = {c.source: c.bound for c in report.checks if c.measure == "hard violation"}
    least = report.least("hard violation")
    assert least.source == "the step's weight"
    assert (least.bound < 0.6 * named["the queue's floor"]).all()
    assert str(report).count("the step's weight, the least)") == 2
    one, two = (
        replace(least, source=source, bound=np.array(bound))
        for source, bound in (("one", [3.0, 1.0, np.nan]), ("two", [2.0, 4.0, np.nan]))
    )
    both = replace(report, checks=(one, two)).least("hard violation")
    np.testing.assert_array_equal(both.bound, [2.0, 1.0, np.nan])
    assert both.source == "the least"


def test_the_bound_is_theorem_1_for_the_measured_path_and_constants() -> None:
    problem = OnlineQuadratic(T)
    trace = run(coldq.COLDQ.for_problem(problem), problem)
    best = coldq.dynamic_comparator(problem, trace.seeds)
    report = coldq.bound_report(trace)
    for s in range(3):
        path = [np.linalg.norm(b - a) for a, b in zip(best.x[s], best.x[s][1:], strict=False)]
        D = max(  # the gradient 2 x + 18 theta is largest at a corner
            np.linalg.norm(2.0 * np.array([i, j]) + 18.0 * theta[s])
            for theta in problem.start(trace.seeds).theta
            for i in (0.0, 1.0)
            for j in (0.0, 1.0)
        )
        R = np.sqrt(2.0)
        expected = sum(2 * R * np.sqrt(t) * move for t, move in enumerate(path, 1))
        expected += sum(D * D / (4 * np.sqrt(t)) for t in range(1, T + 1)) + R * R * np.sqrt(T)
        np.testing.assert_allclose(
            report.check("dynamic regret").bound[s], expected + D * R, rtol=1e-9
        )
    np.testing.assert_array_equal(
        report.check("dynamic regret").realised, coldq.dynamic_regret(trace)
    )
    np.testing.assert_array_equal(
        report.check("hard violation").realised, coldq.hard_violation(trace)
    )


def test_strongly_convex_losses_use_theorem_3() -> None:
    problem = OnlineQuadratic(T)
    learner = coldq.COLDQ.strongly_convex(problem.domain, T, mu=1.0)
    check = coldq.bound_report(run(learner, problem)).check("static regret")
    assert check.source == "Theorem 3"
    convex = coldq.bound_report(run(learner, problem), mu=0.0).check("static regret")
    assert convex.source == "Theorem 1"
    assert (check.bound < convex.bound).all()


def test_a_bound_report_is_printable_and_plain_data() -> None:
    problem = OnlineLinear(T)
    report = coldq.bound_report(run(coldq.COLDQ.for_problem(problem), problem))
    text = str(report)
    for words in ("dynamic regret", "Theorem 2", "bounded domain", "Every bound holds"):
        assert words in text
    data = json.loads(json.dumps(report.to_dict()))
    assert data["holds"] is True
    assert [c["measure"] for c in data["checks"]].count("hard violation") == 3
    assert len(data["checks"][0]["slack"]) == 3
    with pytest.raises(coldq.InvalidInput, match="there is no 'regret'"):
        report.check("regret")


def test_other_learners_get_realised_values_without_bounds() -> None:
    problem = OnlineLinear(T)
    trace = run(coldq.MOSP.for_problem(problem), problem)
    report = coldq.bound_report(trace)
    assert "only realised values" in str(report)
    assert all(np.isnan(check.bound).all() for check in report.checks)
    np.testing.assert_array_equal(
        report.check("static regret").realised, coldq.static_regret(trace)
    )


def test_what_was_not_compared_with_a_bound_is_not_certified() -> None:
    problem = OnlineLinear(T)
    for learner in (
        coldq.OGD.for_problem(problem),
        coldq.COLDQDoubling(problem.domain),
    ):
        report = coldq.bound_report(run(learner, problem))
        assert not report.holds
        assert "about learners that say their assumptions" in str(report)
        assert "nothing is certified" in str(report)
    report = coldq.bound_report(run(coldq.COLDQ.for_problem(problem), problem))
    static = report.check("static regret")
    unknown = replace(static, realised=np.array([np.nan, 0.0, 0.0]))
    assert replace(report, checks=(static,)).holds
    assert not replace(report, checks=(unknown,)).holds
    assert "so nothing is certified" in str(replace(report, checks=(unknown,)))
    assert "Every bound that is known holds" in str(replace(report, checks=(static, unknown)))


def test_a_bound_that_is_too_small_is_seen_to_be_exceeded() -> None:
    problem = Scripted(lambda t, x: coldq.Feedback(coldq.Linear([-1.0, -1.0]), LINE), horizon=3)
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    report = coldq.bound_report(trace, gradient_bound=5.0)
    check = report.check("dynamic regret")
    assert not check.exceeded.any()
    worse = replace(check, bound=check.realised - 1.0)
    assert worse.exceeded.all()
    assert "EXCEEDED" in str(worse)
    assert not replace(report, checks=(worse,)).holds


def test_given_constants_that_are_too_small_fail_and_void_the_bounds() -> None:
    problem = OnlineLinear(T)
    trace = run(coldq.COLDQ.for_problem(problem), problem)
    for given, name in (
        ({"gradient_bound": 0.1}, "|grad f_t| <= D"),
        ({"constraint_bound": 0.01}, "|g_t| <= G"),
    ):
        report = coldq.bound_report(trace, **given)
        assert verdicts(report)[name] == "fails"
        assert not report.holds
        assert all(np.isnan(check.bound).all() for check in report.checks)
        assert "void" in str(report)


@pytest.mark.parametrize(
    ("domain", "largest", "exact"),
    [
        (coldq.Simplex(3), 0.5, True),  # 0.5 - 1 everywhere
        (coldq.Ball(np.zeros(3), 1.0), np.sqrt(3.0) + 0.5, True),
        (coldq.Product(coldq.Simplex(2), coldq.Ball([0.0], 1.0)), 1.5, True),
        (coldq.Polytope([[1.0, 1.0, 1.0]], [1.0], lower=0.0), 0.5, True),
        (coldq.Polytope([[1.0, 1.0, 2.0]], [1.0], lower=0.0), 0.5, False),
    ],
)
def test_a_constraint_bound_is_refuted_only_by_a_value_in_the_domain(
    domain, largest, exact
) -> None:
    revealed = coldq.Feedback(coldq.Linear([1.0, 2.0, 3.0]), coldq.Affine([[-1.0] * 3], [-0.5]))
    problem = Scripted(lambda t, x: revealed, domain, horizon=5)
    trace = coldq.simulate(coldq.COLDQ(domain, 5), problem, seeds=[0])
    own = coldq.bound_report(trace, constraint_bound=largest)
    assert verdicts(own)["|g_t| <= G"] == ("holds" if exact else "spot-checked")
    assert own.holds
    found = coldq.bound_report(trace)
    bound = found.constants.constraint_bound  # type: ignore[union-attr]
    assert coldq.estimate_constants(problem, [0]).constraint_exact == exact
    height = next(a.words for a in found.assumptions if a.name == "|g_t| <= G")
    assert height.endswith("exact" if exact else "at least the largest")
    if exact:
        np.testing.assert_allclose(bound, largest, rtol=1e-12)
        assert not coldq.bound_report(trace, constraint_bound=0.99 * largest).holds
    assert (largest * (1.0 - 1e-12) <= bound).all() and (bound <= 6.0 * largest).all()


def test_a_capacity_is_exact_on_a_box_alone() -> None:
    g = coldq.LogCapacity(1.0, [1.0, 1.0], [1.0, 1.0])
    assert g.largest(coldq.Box(0.0, 1.0, dim=2))[1]
    bound, exact = g.largest(coldq.Simplex(2))
    assert not exact
    # 1 - log(1 + x) - log(2 - x) is largest in size at the corners, where it is 1 - log 2.
    assert bound >= 1.0 - np.log(2.0)


def test_losses_without_closed_forms_need_constants_from_somewhere() -> None:
    smooth = coldq.Smooth(lambda x: float(x @ x), lambda x: 2.0 * x)
    reveal = lambda t, x: coldq.Feedback(smooth, LINE)  # noqa: E731
    problem = Scripted(reveal, horizon=10)
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    with pytest.raises(coldq.InvalidInput, match="pass gradient_bound="):
        coldq.bound_report(trace)
    report = coldq.bound_report(trace, gradient_bound=4.0)
    assert verdicts(report)["|grad f_t| <= D"] == "spot-checked"
    assert verdicts(coldq.bound_report(trace, gradient_bound=0.1))["|grad f_t| <= D"] == "fails"
    known = Constants(4.0, 4.0, 9.0, 2.0)
    problem = Scripted(reveal, horizon=10, constants=known)
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    assert coldq.bound_report(trace).constants.gradient_bound == 4.0  # type: ignore[union-attr]


@pytest.mark.parametrize("steep", ["smooth", "measured", "linear"])
def test_a_gradient_of_the_run_above_a_given_bound_refutes_it_in_whichever_slot(steep) -> None:
    kinds = {
        "smooth": lambda x: coldq.Smooth(lambda x: 9.0 * x[0], lambda x: np.array([9.0, 0.0])),
        "measured": lambda x: coldq.GradientAt(x, 0.0 * x + [9.0, 0.0], value=9.0 * x[:, 0]),
        "linear": lambda x: coldq.Linear([9.0, 0.0]),
    }
    flat = coldq.Smooth(lambda x: x[0], lambda x: np.array([1.0, 0.0]))

    def reveal(t, x):
        return coldq.Feedback(kinds[steep](x) if t == 35 else flat, LINE)

    problem = Scripted(reveal, horizon=40, adaptive=True)  # of which convexity is looked at in 32
    trace = coldq.simulate(coldq.COLDQ(problem.domain, 40), problem, seeds=[0])
    too_small = coldq.bound_report(trace, gradient_bound=2.0)
    assert verdicts(too_small)["|grad f_t| <= D"] == "fails"
    assert "D = 2, as given, but 9 was revealed" in str(too_small)
    assert (
        verdicts(coldq.bound_report(trace, gradient_bound=9.0))["|grad f_t| <= D"] == "spot-checked"
    )


def test_a_variation_that_is_not_known_leaves_the_regrets_certified() -> None:
    def reveal(t, x):
        g = coldq.Convex(
            lambda x: [x @ x - 1.0 / t], lambda x: [2.0 * x], lambda x: [2 * np.eye(2)]
        )
        return coldq.Feedback(coldq.Linear([1.0, -1.0]), g)

    problem = Scripted(reveal, horizon=5)
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    report = coldq.bound_report(trace, constraint_bound=2.0)
    assert verdicts(report)["the constraint's variation"] == "unknown"
    assert np.isnan(report.check("hard violation").bound).all()
    np.testing.assert_array_equal(
        report.check("hard violation").realised, coldq.hard_violation(trace)
    )
    # The best decisions are -sqrt(1 / (2 t)) (1, -1), of loss -sqrt(2 / t).
    regret = (trace.loss[0] + np.sqrt(2.0 / np.arange(1.0, 6.0))).sum()
    np.testing.assert_allclose(report.check("dynamic regret").realised, regret, atol=1e-6)
    assert report.holds
    assert "Every bound that is known holds" in str(report)


@pytest.mark.parametrize("g", [LINE, coldq.QuadraticConstraint([np.eye(2)], [[0, 0]], [1.0])])
def test_an_unbounded_domain_fails_and_the_realised_values_stand(g) -> None:
    everywhere = coldq.Box(-np.inf, np.inf, dim=2)
    pull = coldq.LeastSquares(np.eye(2), [1.0, 2.0])
    problem = Scripted(lambda t, x: coldq.Feedback(pull, g), everywhere, horizon=10)
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    report = coldq.bound_report(trace)
    for name in ("bounded domain", "|grad f_t| <= D", "|g_t| <= G"):
        assert verdicts(report)[name] == "fails"
    assert not report.holds
    for check in report.checks:
        assert np.isfinite(check.realised).all()
        assert np.isnan(check.bound).all()
    words = next(a.words for a in report.assumptions if a.name.startswith("convex"))
    assert words.endswith("4 pairs of points in 10 slots")


def test_concave_losses_are_noticed() -> None:
    dome = coldq.Smooth(lambda x: -float(x @ x), lambda x: -2.0 * x)
    problem = Scripted(lambda t, x: coldq.Feedback(dome, LINE), horizon=10)
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    report = coldq.bound_report(trace, gradient_bound=9.0)
    assert verdicts(report)["convex losses and constraints"] == "fails"
    # A modulus that the losses do not have is noticed too.
    bowl = coldq.Quadratic(np.eye(2), [0.0, 0.0])
    problem = Scripted(lambda t, x: coldq.Feedback(bowl, LINE), horizon=10)
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    assert coldq.bound_report(trace, mu=0.5).holds
    assert not coldq.bound_report(trace, mu=0.6).holds


def test_late_feedback_and_a_falling_alpha_void_the_bounds() -> None:
    problem = OnlineLinear(T)
    late = coldq.bound_report(run(coldq.COLDQ.for_problem(problem), problem, delay=2))
    assert verdicts(late)["feedback after every slot"] == "fails"
    falling = coldq.COLDQ(problem.domain, T, alpha=Power(-0.5))
    falls = coldq.bound_report(run(falling, problem))
    assert verdicts(falls)["alpha_t does not decrease"] == "fails"
    assert not late.holds
    assert not falls.holds


def test_a_slot_without_a_feasible_decision_leaves_regret_undefined() -> None:
    def reveal(t, x):
        b = -9.0 if t == 5 else 0.5
        return coldq.Feedback(coldq.Linear([1.0, -1.0]), coldq.Affine([[1.0, 1.0]], [b]))

    problem = Scripted(reveal, horizon=10)
    for learner in (
        coldq.COLDQ.for_problem(problem, alpha=0.5, gamma=1e3),
        coldq.COLDQ(problem.domain, alpha=0.5, eta=Power(-2.0), gamma=lambda t: 1e3),
        coldq.RECOO(problem.domain, alpha=0.5, gamma=1e3, eta=1.0, reading="comparison"),
    ):
        trace = coldq.simulate(learner, problem, seeds=[0])
        report = coldq.bound_report(trace)
        assert verdicts(report)["a feasible decision in every slot"] == "fails"
        assert not report.holds
        for check in report.checks:
            if check.source != "the step's weight":
                assert np.isnan(check.realised).all() or np.isnan(check.bound).all()
        # Slot by slot a bound stands, and charges the infeasible slot N G, as it does RECOO's
        # first one, which has no weight. G is reached at (1, 1), V is 9.5 there and back.
        G, V, D, R, alpha = 11.0, 19.0, np.sqrt(2.0), np.sqrt(8.0), 0.5
        c = R / 2.0 + D / (4.0 * alpha)
        charged = 3 if isinstance(learner, coldq.RECOO) else 2
        held = (10 - charged) * (D * c + 2.0 * alpha * c * (R - c)) / 1e3
        check = report.least("hard violation")
        assert V + charged * G < check.bound[0] <= V + charged * G + held
        assert (check.realised <= check.bound).all()


def test_the_queue_is_checked_whether_it_was_kept_or_not() -> None:
    problem = TimeVarying(T)
    learner = coldq.COLDQ.for_problem(problem, epsilon=1e-3)
    plain, kept = run(learner, problem), run(learner, problem, keep=["queue"])
    name = "gamma <= Q <= max(G, eta gamma) / eta"
    again = queue_again(plain.violation, float(learner.eta), float(learner.gamma))
    np.testing.assert_allclose(again[-1], plain.state.queue)
    # The queue of state t is Q_{t-1}; Q_1 stands in slot 1 as well.
    np.testing.assert_allclose(np.moveaxis(again[:-1], 0, 1), kept.queue[:, 1:])
    assert again.max() > 2.0 * learner.gamma
    for trace in (plain, kept):
        assert verdicts(coldq.bound_report(trace))[name] == "holds"
    kept.queue[0, 7, 0] = 1e9  # a queue that no run can have
    assert verdicts(coldq.bound_report(replace(kept, queue=kept.queue)))[name] == "fails"


def test_adversaries_need_the_decisions_they_answered_to() -> None:
    def reveal(t, x):
        return coldq.Feedback(coldq.Linear(np.where(x > 0.0, 1.0, -1.0)), LINE)

    for adaptive in (True, False):  # said, or not: a comparison with NaN would not show it
        problem = Scripted(reveal, horizon=20, adaptive=adaptive)
        report = coldq.bound_report(
            coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
        )
        assert report.holds
        assert "EXCEEDED" not in str(report)


class Forgetful(Scripted):
    """Reveals by a clock of its own, not by what it is asked for."""

    calls = 0

    def __init__(self) -> None:
        super().__init__(self._next, horizon=20)

    def _next(self, t, x):
        type(self).calls += 1
        return coldq.Feedback(coldq.Linear([np.sin(self.calls), 0.0]), LINE)


def test_a_problem_that_does_not_repeat_itself_gets_no_report() -> None:
    problem = Forgetful()
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    with pytest.raises(coldq.InvalidInput, match="reveals another loss in slot 2 than in the run"):
        coldq.bound_report(trace)


def test_an_infeasible_slot_voids_the_violation_of_the_experts_too() -> None:
    def reveal(t, x):
        b = -9.0 if t == 3 else 0.5
        return coldq.Feedback(coldq.Linear([1.0, -1.0]), coldq.Affine([[1.0, 1.0]], [b]))

    problem = Scripted(reveal, horizon=10)
    trace = coldq.simulate(coldq.COLDQExpert.for_problem(problem), problem, seeds=[0, 1])
    report = coldq.bound_report(trace)
    assert np.isnan(report.check("hard violation").bound).all()
    assert np.isnan(report.check("soft violation").bound).all()
    assert not report.holds
    assert "seed 0 in slot 3; seed 1 in slot 3" in str(report)


def test_one_slot_is_too_short_for_the_theorems_and_nothing_else() -> None:
    problem = Scripted(lambda t, x: coldq.Feedback(coldq.Linear([1.0, -1.0]), LINE), horizon=1)
    learner = coldq.COLDQ(problem.domain, alpha=2.0, eta=0.5, gamma=1.0)
    report = coldq.bound_report(coldq.simulate(learner, problem, seeds=[0]))
    found = verdicts(report)
    assert found["alpha_t does not decrease"] == "holds"
    assert found["at least two slots"] == "fails"
    assert not report.holds


def test_a_measured_constraint_has_no_bound() -> None:
    def reveal(t, x):
        x = np.array(x)
        jacobian = np.broadcast_to(LINE.A, (len(x), 1, 2))
        g = coldq.Affine.from_measurement(x, x @ LINE.A[0][:, None] - LINE.b, jacobian)
        return coldq.Feedback(coldq.Linear([1.0, -1.0]), g)

    problem = Scripted(reveal, horizon=10, adaptive=True)
    trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, [0], keep=["decisions"])
    report = coldq.bound_report(trace)
    found = verdicts(report)
    assert found["convex losses and constraints"] == "unknown"
    assert found["|g_t| <= G"] == "unknown"
    assert found["the constraint's variation"] == "unknown"
    # What needs G is not known either: nothing fails.
    assert found["gamma <= Q <= max(G, eta gamma) / eta"] == "unknown"
    assert "unknown (Theorem 2)" in str(report)
    assert "fails" not in str(report)
    assert "void" not in str(report)
    report = coldq.bound_report(trace, constraint_bound=3.0)
    assert verdicts(report)["|g_t| <= G"] == "spot-checked"
    assert not report.holds  # nothing to compare with is known
    problem.known = Constants(3.0, 2.0, 3.0, 2.0)
    assert verdicts(coldq.bound_report(trace))["|g_t| <= G"] == "spot-checked"


def test_no_constraints_at_all() -> None:
    problem = Scripted(lambda t, x: coldq.Feedback(coldq.Linear([1.0, -1.0]), None), horizon=20)
    problem.n_constraints = 0
    report = coldq.bound_report(coldq.simulate(coldq.COLDQ.for_problem(problem), problem, [0]))
    assert report.holds
    assert {check.measure for check in report.checks} == {"dynamic regret", "static regret"}


KNOWN = {"gradient_bound": 3.0, "constraint_bound": 2.0}


class TestPromises:
    X = coldq.Box(0.0, 1.0, dim=4)

    def test_a_promise_is_the_corollary_or_better(self) -> None:
        for vx in (0.0, 0.4, 1.0):
            learner = coldq.COLDQ(self.X, 5000, path_exponent=vx)
            promise = learner.a_priori_bounds(2, path_exponent=vx, variation_exponent=0.3, **KNOWN)
            regret, violation = bounds.corollary_1(
                5000, diameter=2.0, n_constraints=2, path_exponent=vx,
                path_length=promise.constants.path_length,
                constraint_variation=promise.constants.constraint_variation, **KNOWN,
            )  # fmt: skip
            assert 0.98 * regret <= promise.guarantees[0].bound <= regret
            assert 0.98 * violation <= promise.guarantees[2].bound <= violation

    def test_the_useful_horizon_is_where_bounds_fall_below_what_any_run_may_have(self) -> None:
        learner = coldq.COLDQ(self.X, 1000)
        useful = learner.a_priori_bounds(2, **KNOWN).useful_from
        assert useful is not None
        for T, says in ((useful // 2, False), (useful, True), (4 * useful, True)):
            there = coldq.COLDQ(self.X, T).a_priori_bounds(2, **KNOWN)
            least: dict[str, float] = {}
            for g in there.guarantees:
                least[g.measure] = min(least.get(g.measure, np.inf), there.share(g))
            assert (max(least.values()) < 1.0) == says

    def test_where_everything_moves_no_horizon_helps(self) -> None:
        moving = coldq.COLDQ(self.X, 1000).a_priori_bounds(
            2, path_exponent=1.0, variation_exponent=1.0, **KNOWN
        )
        assert moving.constants.path_length == pytest.approx(999 * 2.0)
        assert moving.useful_from is None
        assert "at any horizon" in str(moving)

    def test_experts_promise_without_knowing_the_path(self) -> None:
        promise = coldq.COLDQExpert(self.X, 5000).a_priori_bounds(2, path_exponent=0.5, **KNOWN)
        regret, violation = bounds.corollary_3(
            5000, diameter=2.0, n_constraints=2, path_length=promise.constants.path_length, **KNOWN
        )
        assert promise.guarantees[0].bound <= regret
        assert promise.guarantees[2].bound <= violation
        assert "V_x = 0.5" in str(promise)

    def test_bad_assumptions_get_a_sentence(self) -> None:
        learner = coldq.COLDQ(self.X, 100)
        with pytest.raises(coldq.InvalidInput, match=r"variation_exponent must lie in \[0, 1\]"):
            learner.a_priori_bounds(1, variation_exponent=-0.1, **KNOWN)
        with pytest.raises(coldq.InvalidInput, match="horizon must be given"):
            coldq.COLDQ(self.X, alpha=1.0, eta=0.1, gamma=1.0).a_priori_bounds(1, **KNOWN)
        for wrong in ({"mu": -1.0}, {"mu": np.nan}, {"mu": [1.0]}):
            with pytest.raises(coldq.InvalidInput, match="mu must"):
                learner.a_priori_bounds(1, **KNOWN, **wrong)
        for name in ("gradient_bound", "constraint_bound", "path_exponent"):
            with pytest.raises(coldq.InvalidInput, match=f"{name} must be one number"):
                learner.a_priori_bounds(1, **(KNOWN | {name: [0.5, 1.0]}))
        open_box = coldq.Box(0.0, np.inf, dim=1)
        with pytest.raises(coldq.InvalidInput, match="one bounded domain"):
            coldq.COLDQ(open_box, 100).a_priori_bounds(1, **KNOWN)
        bounds = coldq.COLDQ(open_box, 100).a_priori_bounds(1, diameter=3.0, **KNOWN)
        assert bounds.constants.mu == 0.0
        point = coldq.COLDQ(coldq.Box(1.0, 1.0, dim=1), 100).a_priori_bounds(1, **KNOWN)
        assert "inf% of what any run may have" in str(point)  # and no warning


class OfAnother:
    """A learner that is none of the library's: COLDQ inside, with its theory's word for it."""

    def __init__(self, inside) -> None:
        self.inside, self.domain, self.horizon = inside, inside.domain, inside.horizon

    def init(self, *arguments, **options):
        return self.inside.init(*arguments, **options)

    def update(self, state, feedback):
        return self.inside.update(state, feedback)

    @property
    def assumptions(self):
        return self.inside.assumptions

    def guarantees(self, known):
        return self.inside.guarantees(known)


def test_any_learner_that_says_its_premises_and_guarantees_is_certified() -> None:
    problem = coldq.problems.OnlineLinear(horizon=60)
    own = coldq.COLDQ.for_problem(problem)
    theirs, ours = (coldq.bound_report(run(learner, problem)) for learner in (OfAnother(own), own))
    assert theirs.holds
    assert str(theirs).splitlines()[1:] == str(ours).splitlines()[1:]


def test_theorems_are_not_said_of_a_subclass_that_steps_otherwise() -> None:
    class Renamed(coldq.COLDQ):
        pass

    class Still(coldq.COLDQ):
        def update(self, state, feedback, center=None, played=None):
            return replace(state, t=state.t + 1)

    class Floorless(coldq.COLDQ):
        def rule(self, t):
            return super().rule(t)._replace(floor=0.0)

    class StillAndSaysSo(Still):
        @property
        def assumptions(self):
            return super().assumptions

    problem = OnlineLinear(T)
    named, still, floorless, says = (
        coldq.bound_report(run(kind.for_problem(problem), problem))
        for kind in (Renamed, Still, Floorless, StillAndSaysSo)
    )
    assert named.holds
    assert verdicts(says)["0 < eta < 1"] == "holds"
    for other in (still, floorless):
        assert not other.holds
        assert all(np.isnan(check.bound).all() for check in other.checks)
        assert verdicts(other)["steps that the theorems are about"] == "unknown"
    assert "Still has steps of its own" in str(still)
    assert Renamed.for_problem(problem).a_priori_bounds(3, **KNOWN).guarantees
    assert StillAndSaysSo.for_problem(problem).a_priori_bounds(3, **KNOWN).guarantees
    with pytest.raises(coldq.InvalidInput, match="Still has steps of its own"):
        Still.for_problem(problem).a_priori_bounds(3, **KNOWN)


def test_a_run_that_nothing_could_keep_books_no_slot(recwarn) -> None:
    """A run that is infeasible in every slot counts none."""
    with pytest.warns(coldq.UnlikelyUnits):
        problem = coldq.problems.from_table(
            {"load": np.full(40, 100.0)}, decide={"grid": [0, 10]}, cost=1.0,
            rows={"sum": "all", "at_least": "load"},
        )  # fmt: skip
    trace = coldq.simulate(coldq.SelfTuning(problem.domain, 0.05), problem, [0])
    check = coldq.bound_report(trace).check("violated slots")
    assert check.realised == 0.0
    assert "40 slots were infeasible and are not booked" in str(coldq.bound_report(trace))
    assert "none of it" in str(check)
    assert not recwarn.list
