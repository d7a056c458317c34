"""Every learner passes the contract, and a learner broken on purpose fails each check."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

import coldq
from coldq import checks
from coldq.cli.catalogue import rows
from coldq.learners import ALGORITHMS, CONTRIB
from coldq.learners.card import GRADIENT_ELSEWHERE, Card, Claim, Largest, Rate
from coldq.learners.state import State

X = coldq.Box([-1.0, 0.0, -2.0], [1.0, 2.0, 0.5])
UNLIKE = coldq.Box([-1.0, 0.0, -2.0], [1.0, 2e6, 0.5])  # as watts beside shares
OPEN = coldq.Box([-1.0, -np.inf, -2.0], [1.0, np.inf, 0.5])


@dataclass(frozen=True)
class Halfspace:
    """The projection onto x_1 + x_2 + x_3 <= 1, for a domain of the user's own."""

    limit: float = 1.0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x - max(x[0] + x[1] + x[2] - self.limit, 0.0) / 3.0


SIMPLEX = coldq.Simplex(3, total=2.0)
CAPPED = coldq.Simplex(3, cap=0.5)
POLYTOPE = coldq.Polytope(
    [[1.0, 1.0, 1.0]], [1.0], [-1.0, 0.0, -np.inf], 1.0, A_eq=[[1.0, -1.0, 0.5]], b_eq=[0.25]
)
BALL = coldq.Ball([0.5, 0.0, -0.5], radius=1.0)
PRODUCT = coldq.Product(coldq.Simplex(2), coldq.Box(-1.0, 1.0, dim=1))
WITH_BALL = coldq.Product(coldq.Ball([0.0, 1.0], radius=0.5), coldq.Simplex(1))
OWN = coldq.CustomDomain(3, Halfspace(), diameter=np.inf)
BOUNDED = coldq.CustomDomain(3, Halfspace(), diameter=9.0, start=[0.0, 0.5, 0.0])
LEARNERS = [
    coldq.SelfTuning(X),
    coldq.SelfTuning(X, violation_rate=0.1),
    coldq.SelfTuning(X, 0.2, forecasts=[coldq.forecasts.Seasonal(3)], pool=[1.0, 0.1]),
    *(coldq.SelfTuning(domain, 0.05) for domain in (UNLIKE, SIMPLEX, CAPPED, BALL, PRODUCT)),
    coldq.COLDQ(X, horizon=50),
    coldq.COLDQ(X, horizon=50, epsilon=1e-3, path_exponent=0.5),
    coldq.COLDQ(OPEN, horizon=50),
    coldq.COLDQ.strongly_convex(X, horizon=50, mu=0.3),
    coldq.COLDQ.anytime(X, epsilon=0.05),
    coldq.COLDQDoubling(X, epsilon=0.05, path_exponent=0.3),
    coldq.COLDQExpert(X, horizon=50),
    coldq.COLDQExpert(X, horizon=5000, epsilon=1e-4, gradient="shared"),
    coldq.RECOO(X),
    coldq.RECOO(X, reading="comparison"),
    coldq.RECOO.strongly_convex(X, mu=0.5),
    coldq.RECOOExpert(X, horizon=50),
    coldq.Yi2021(X, horizon=50, alpha0=1.0, gamma0=2.0),
    coldq.Yi2021.strongly_convex(X, horizon=50, mu=0.5, gamma0=1.0),
    coldq.Yi2021Expert(X, horizon=50, alpha0=1.0, gamma0=1.0),
    coldq.Yi2023.from_exponents(X, a=1.0, b=1.0, g=1.0),
    coldq.SinhaVaze(X, horizon=50, lipschitz=3.0),
    coldq.SinhaVaze(X, horizon=50, lipschitz=3.0, modulus=0.5),
    coldq.SarkarSinha2025(X, lipschitz=3.0),
    coldq.SarkarSinha2025(BOUNDED, lipschitz=3.0, c=2.0),
    coldq.LekeufackJordan2024(X, lipschitz=3.0),
    coldq.LekeufackJordan2024(SIMPLEX, lipschitz=0.5),
    coldq.SupanthaSinha2026(X, horizon=50, lipschitz=3.0),
    coldq.SupanthaSinha2026(BALL, horizon=50, lipschitz=1.0),
    coldq.SupanthaSinha2026ProjectionFree(X, horizon=50),
    coldq.SupanthaSinha2026ProjectionFree(CAPPED, horizon=50, V=0.5),
    coldq.NestedProjections(X, lipschitz=5.0),
    coldq.Switch(X, horizon=50, lipschitz=3.0),
    coldq.Switch(X, horizon=50, lipschitz=3.0, limit=1.0),
    coldq.PolyakFeasibility(X, eta=0.2, rho=0.05),
    coldq.PolyakFeasibility.safe(X, 50, gradient_bound=5.0, lipschitz=3.0, slack=0.2),
    coldq.CLASP(X, gradient_bound=5.0),
    coldq.CLASP.strongly_convex(OPEN, mu=0.5),
    coldq.BestResponse(X, safety_margin=0.2),
    coldq.BestResponse(SIMPLEX),
    coldq.ForecastWithMargin(SIMPLEX),
    *(
        coldq.ForecastWithMargin(X, forecast, margin)
        for forecast, margin in (
            (coldq.limit_forecasts.ExponentialSmoothing(0.3), coldq.margins.ShareOfLimit(0.2)),
            (coldq.limit_forecasts.SeasonalValue(3), coldq.margins.RollingQuantile(0.2, 5)),
            (
                coldq.limit_forecasts.AutoRegressive((1, 2, 4)),
                coldq.margins.RollingQuantile(0.2, 5, 0.1),
            ),
            (
                coldq.limit_forecasts.AutoRegressive((1, 3), 0.9),
                coldq.margins.AdaptiveConformal(0.2, 0.05, 6),
            ),
            (coldq.limit_forecasts.LastValue(), coldq.margins.ConformalPID(0.2)),
        )
    ),
    coldq.OGD(X, gradient_bound=5.0),
    coldq.OGD.strongly_convex(OPEN, mu=0.5),
    coldq.Ader(X, horizon=50, gradient_bound=5.0),
    coldq.Mahdavi2012(OPEN, horizon=50, eta=0.1, delta=2.0),
    coldq.Jenatton2016(X, lipschitz=3.0),
    coldq.YuanLamperski2018(OPEN, horizon=50, eta=0.1, sigma=2.0),
    coldq.YuNeelyWei2017(OPEN, horizon=50),
    coldq.YuNeely2020(X, horizon=50, lipschitz=2.0),
    coldq.YuNeely2020(OPEN, horizon=50, alpha=1.0, gamma=0.5),
    coldq.WeiYuNeely2020(X, horizon=50),
    coldq.WeiYuNeely2020(coldq.Simplex(3), horizon=50, divergence="entropy", V=2.0, alpha=1.5),
    coldq.MOSP(X, horizon=50),
    coldq.CaoLiu2019(X, horizon=50, eta=0.1, delta=2.0),
    coldq.CaoZhangPoor2021(X, horizon=50, eta=0.1, delta=2.0),
    coldq.Liu2022(X, lipschitz=2.0),
    coldq.Wang2023(X, horizon=50, delay=0, alpha=1.0, eta=0.5, gamma=0.8),
    coldq.Wang2023(OPEN, horizon=50, delay=3, alpha=1.0, eta=0.5, gamma=0.8),
    *(
        coldq.COLDQ(domain, horizon=50, epsilon=0.01)
        for domain in (SIMPLEX, CAPPED, POLYTOPE, BALL, PRODUCT)
    ),
    coldq.COLDQExpert(SIMPLEX, horizon=50),
    coldq.COLDQExpert(BALL, horizon=50, gradient="shared"),
    coldq.RECOO(POLYTOPE),
    coldq.Yi2021(BALL, horizon=50, alpha0=1.0, gamma0=2.0),
    coldq.Yi2023.from_exponents(OWN, a=1.0, b=1.0, g=1.0),
    coldq.SinhaVaze(BOUNDED, horizon=50, lipschitz=3.0),
    coldq.SinhaVaze(CAPPED, horizon=50, lipschitz=3.0),
    *(coldq.OGD(domain, eta=0.3) for domain in (POLYTOPE, BALL, PRODUCT, WITH_BALL, OWN)),
]

AROUND = [
    coldq.SafetyMargin(coldq.COLDQ(X, horizon=50), 0.1),
    coldq.SafetyMargin(coldq.COLDQ(OPEN, horizon=50), 0.1),
    coldq.SafetyMargin(coldq.RECOO(X), 0.2, forecasts=coldq.forecasts.DEFAULT),
    coldq.SafetyMargin(coldq.RECOO(BALL, reading="comparison"), 0.2),
    coldq.SafetyMargin(coldq.Yi2021(X, horizon=50, alpha0=1.0, gamma0=2.0), 0.2),
    coldq.Forecasting(coldq.COLDQDoubling(X)),
    coldq.Forecasting(coldq.COLDQExpert(X, horizon=50)),
    coldq.Forecasting(coldq.MOSP(X, horizon=50), [coldq.forecasts.Seasonal(4)]),
    coldq.OnePoint(coldq.OGD(X, eta=0.1), seed=3),
    coldq.OnePoint(coldq.Yi2023.from_exponents(SIMPLEX, a=1.0, b=1.0, g=1.0), 0.1),
    coldq.OnePoint(coldq.Ader(BALL, horizon=50, gradient_bound=5.0)),
    coldq.TwoPoint(coldq.SinhaVaze(X, horizon=50, lipschitz=3.0)),
    coldq.TwoPoint(coldq.Mahdavi2012(PRODUCT, horizon=50, eta=0.1, delta=2.0)),
    coldq.TwoPoint(coldq.LekeufackJordan2024(BALL, lipschitz=3.0)),
    coldq.TwoPoint(coldq.OGD(WITH_BALL, eta=0.3)),
    coldq.TwoPoint(
        coldq.SarkarSinha2025(BOUNDED, lipschitz=3.0), centre=[-1.0, -1.0, -1.0], radius=0.5
    ),
    coldq.TwoPoint(coldq.SupanthaSinha2026ProjectionFree(CAPPED, horizon=50)),
]


def named(learner) -> str:
    return f"{type(learner).__name__} on a {type(learner.domain).__name__}"


def test_every_learner_of_the_catalogue_is_here() -> None:
    assert {type(learner) for learner in LEARNERS} == set(ALGORITHMS)


def test_uncertain_rules_say_what_was_not_read_and_stand_apart() -> None:
    assert set(CONTRIB) == {one for one in ALGORITHMS if one.card.certainty == "uncertain"}
    for one in ALGORITHMS:
        assert (one in CONTRIB) == one.__module__.startswith("coldq.learners.contrib.")
        assert bool(one.card.unchecked) == (one in CONTRIB)


case_of = cache(checks.Case.of)  # a case is a value, which no check changes


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("learner", LEARNERS + AROUND, ids=named)
def test_the_contract(learner, check) -> None:
    check(case_of(learner))


@pytest.mark.parametrize("learner", LEARNERS, ids=named)
def test_the_contract_without_and_with_many_constraints(learner, monkeypatch) -> None:
    # What grows with the slots is seen with two constraints; here are shapes, beyond any delay.
    monkeypatch.setattr(checks, "SLOTS", 5)
    checks.check_learner(learner, n_constraints=0)
    checks.check_learner(learner, n_constraints=7, seed=1)


class Broken(coldq.OGD):
    """A learner to break: its card is its parent's."""

    def __init__(self) -> None:
        super().__init__(X, eta=0.1)


class ChangesItsInput(Broken):
    def update(self, state, feedback):
        object.__setattr__(state, "x", 0.5 * state.x)
        return super().update(state, feedback)


class Remembers(Broken):
    calls = 0

    def update(self, state, feedback):
        type(self).calls += 1
        new = super().update(state, feedback)
        return replace(new, x=self.domain.project(new.x + 1e-9 * type(self).calls))


class KeepsTheOldArray(Broken):
    def update(self, state, feedback):
        new = super().update(state, feedback)
        return replace(new, t=np.add(state.t, 1, out=np.asarray(state.t).copy()), x=state.x)


class MixesTheBatch(Broken):
    def update(self, state, feedback):
        new = super().update(state, feedback)
        return replace(new, x=self.domain.project(new.x + 1e-9 * new.x.mean()))


class LosesItsClock(Broken):
    def update(self, state, feedback):
        return replace(super().update(state, feedback), t=np.max(state.t) + 1)


@dataclass(frozen=True, eq=False, slots=True)
class ForgetfulState(State):
    momentum: np.ndarray

    def to_arrays(self):
        return super(ForgetfulState, self).to_arrays() | {"momentum": np.zeros(self.x.shape)}


class Forgets(Broken):
    state_type = ForgetfulState

    def init(self, n_constraints, start=None, batch=()):
        state = Broken().init(n_constraints, start, batch)
        return self.new_state(state.t, state.x.copy(), np.zeros(state.x.shape))

    def update(self, state, feedback):
        new = Broken().update(State(state.t, state.x), feedback)
        momentum = 0.5 * state.momentum + 0.01
        return self.new_state(new.t, self.domain.project(new.x + momentum), momentum)


class LeavesItsStatesUnsigned(Broken):
    def new_state(self, *arrays):
        return State(*arrays)


class TakesAnybodysArrays(Broken):
    def from_arrays(self, arrays, *, strict=True):
        return super().from_arrays(arrays, strict=False)


class SharesAClock(Broken):
    """Its members move together, so that none can go on alone."""

    def update(self, state, feedback):
        new = super().update(state, feedback)
        return replace(new, x=self.domain.project(new.x + 1e-9 * np.sum(state.t)))


class Strays(Broken):
    def update(self, state, feedback):
        new = super().update(state, feedback)
        return replace(new, x=new.x + 5.0)


class Peeks(Broken):
    def update(self, state, feedback):
        feedback.constraint.value(state.x)
        return super().update(state, feedback)


class PeeksElsewhere(Broken):
    def update(self, state, feedback):
        feedback.loss.gradient(state.x + 1.0)
        return super().update(state, feedback)


class IgnoresWhatWasPlayed(Broken):
    def update(self, state, feedback, played=None):
        return super().update(state, feedback)


class StepsFromWhatWasPlayed(Broken):
    def update(self, state, feedback, played=None):
        at = state.x if played is None else self._place(state, played)
        return super().update(replace(state, x=np.array(at)), feedback)


class CannotBeLate(Broken):
    def update(self, state, feedback):
        return super().update(state, feedback)


class TakesAnything(Broken):
    def update(self, state, feedback):
        self._require_own(state, feedback)
        gradient = np.nan_to_num(feedback.loss.gradient(state.x))
        return State(t=state.t + 1, x=self.domain.project(state.x - 0.1 * gradient))


class RaisesAnything(Broken):
    def gradient_of(self, state, feedback, played=None):
        raise KeyError("gradient")


class EqualsNothing(Broken):
    def __eq__(self, other):
        return False

    __hash__ = coldq.OGD.__hash__


class PrintsNothing(Broken):
    def __repr__(self):
        return "<learner>"


class HasNoCard(Broken):
    card = None  # type: ignore[assignment]


BROKEN = [
    (ChangesItsInput, checks.update_is_pure, "changed the state it was given"),
    (Remembers, checks.update_is_pure, "two updates differ"),
    (KeepsTheOldArray, checks.states_are_not_aliased, "shares memory"),
    (MixesTheBatch, checks.a_batch_equals_one_by_one, "differs from the same alone"),
    (LosesItsClock, checks.a_batch_equals_one_by_one, "state.t must have the batch's shape"),
    (Forgets, checks.resume_equals_continue, "goes on differently"),
    (LeavesItsStatesUnsigned, checks.a_state_knows_its_learner, "must have a text 'learner'"),
    (TakesAnybodysArrays, checks.a_state_knows_its_learner, "another learner saved should be"),
    (SharesAClock, checks.some_members_go_on_alone, r"updated alone, in slot 1"),
    (Strays, checks.decisions_stay_in_the_domain, "outside the domain"),
    (Peeks, checks.declared_needs_are_the_only_thing_touched, "asked for the value"),
    (PeeksElsewhere, checks.declared_needs_are_the_only_thing_touched, "gradient elsewhere"),
    (IgnoresWhatWasPlayed, checks.late_feedback_is_about_what_was_played, "should be refused"),
    (StepsFromWhatWasPlayed, checks.late_feedback_is_about_what_was_played, "acts otherwise"),
    (CannotBeLate, checks.late_feedback_is_about_what_was_played, "must take played=None"),
    (TakesAnything, checks.bad_input_is_refused, "should be refused"),
    (RaisesAnything, checks.bad_input_is_refused, "should raise a coldq.Error, but raised"),
    (EqualsNothing, checks.learners_are_values, "must equal the original"),
    (PrintsNothing, checks.learners_are_values, "repr must show"),
    (HasNoCard, checks.the_card_is_filled_in, "needs a card"),
]


@pytest.mark.parametrize(
    ("kind", "check", "words"), BROKEN, ids=lambda v: getattr(v, "__name__", "")
)
def test_a_broken_learner_fails(kind, check, words: str) -> None:
    with pytest.raises(checks.CheckFailed, match=words):
        check(checks.Case.of(kind()))


def test_each_check_is_shown_to_fail() -> None:
    assert {check for _, check, _ in BROKEN} == set(checks.CHECKS)
    checks.check_learner(Broken())  # what is broken above is not the parent


def test_cards_refuse_what_nobody_knows() -> None:
    for change, words in [
        ({"needs": frozenset({"luck"})}, "needs may name"),
        ({"certainty": "hearsay"}, "certainty must be one of"),
        ({"memory": "fades"}, "memory must be one of"),
        ({"played": "well"}, "played must be one of"),
    ]:
        with pytest.raises(coldq.InvalidInput, match=words):
            replace(coldq.COLDQ.card, **change)
    with pytest.raises(coldq.InvalidInput, match="has none"):
        coldq.citation("COLDQ")
    assert isinstance(coldq.COLDQExpert.card, Card)
    assert GRADIENT_ELSEWHERE in coldq.COLDQExpert.card.needs
    assert "Doubly-Bounded Queue" in coldq.citation(coldq.COLDQ(X, horizon=10))


def test_rates_print_as_the_paper_writes_them() -> None:
    for rate, words in [
        (Rate(0.5, vx=1), "O(T^(1/2+Vx))"),
        (Rate(0, log=1), "O(log T)"),
        (Rate(0.5, log=0.5), "O(T^(1/2) (log T)^1/2)"),
        (Rate(1), "O(T)"),
        (Rate(0.75), "O(T^(3/4))"),
        (Rate(0.5, vx=-0.5, vg=2), "O(T^(1/2-Vx/2+2Vg))"),
        (Rate(1 / 3, vx=-2 / 3), "O(T^(1/3-2Vx/3))"),
        (Largest(Rate(1, vx=-1), Rate(vg=1), Rate(0)), "O(T^max(1-Vx, Vg, 0))"),
    ]:
        assert str(rate) == words
    assert Rate(0.5, vx=0.5).exponent(vx=0.4) == 0.7
    assert Largest(Rate(0.5, vx=-0.5), Rate(vg=1)).exponent(vx=0.5, vg=0.1) == 0.25
    assert Largest(Rate(0.5, vx=-0.5), Rate(vg=1)).exponent(vx=0.5, vg=0.3) == 0.3
    with pytest.raises(coldq.InvalidInput, match="without logarithms"):
        Largest(Rate(0.5), Rate(0, log=1))


def test_claims_say_which_violation_they_bound() -> None:
    with pytest.raises(coldq.InvalidInput, match="measure must be one of"):
        Claim("convex", "fixed", Rate(0), measure="squared")
    assert ("MOSP", "O(T^(2/3)) soft") in {(row[0], row[4]) for row in rows()}
    assert ("COLDQ", "O(1)") in {(row[0], row[4]) for row in rows()}


def test_an_expert_learner_says_that_it_shares_a_gradient() -> None:
    learner = coldq.COLDQExpert(X, horizon=50)
    state = learner.init(1)
    g = coldq.Affine(np.ones((1, 3)), [1.0])
    loss = coldq.GradientAt(state.x, np.ones(3))
    with pytest.warns(coldq.SharedGradient, match="experts share its gradient"):
        learner.update(state, coldq.Feedback(loss, g))
    shared = coldq.COLDQExpert(X, horizon=50, gradient="shared")
    assert shared.update(shared.init(1), coldq.Feedback(loss, g)).t == 2


@pytest.mark.parametrize("learner", [a for a in LEARNERS if a.horizon == 50], ids=named)
def test_going_past_the_horizon_is_flagged_once_at_the_callers_line(learner) -> None:
    case, state = checks.Case.of(learner), learner.init(2)
    revealed = replace(case.feedback(1, member=0), slot=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(52):
            state = learner.update(state, revealed)
            line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    assert [(w.category, w.filename, w.lineno) for w in caught] == [
        (coldq.PastHorizon, __file__, line)
    ]


@pytest.mark.parametrize("thing", [object(), coldq.COLDQ, None])
def test_what_is_no_learner_is_told_what_it_lacks(thing) -> None:
    with pytest.raises(checks.CheckFailed, match="a learner needs domain, which this has not"):
        checks.check_learner(thing)


@pytest.mark.parametrize("learner", LEARNERS, ids=named)
def test_rows_of_zeros_never_act(learner) -> None:
    case = checks.Case.of(learner)
    # These two look at the largest row alone, which a value of zero may be.
    limit = 100.0 if isinstance(learner, coldq.Jenatton2016 | coldq.PolyakFeasibility) else 0.0
    plain, filled = learner.init(2, batch=(3,)), learner.init(4, batch=(3,))
    for slot in range(1, checks.SLOTS + 1):
        revealed, (_, _, A, b) = case.feedback(slot), case.data[slot - 1]
        zeros = np.zeros((*A.shape[:-2], 2, A.shape[-1]))
        limits = np.append(b, zeros[..., 0] + limit, axis=-1)
        more = coldq.Affine(np.concatenate([A, zeros], axis=-2), limits)
        plain = learner.update(plain, revealed)
        filled = learner.update(filled, coldq.Feedback(revealed.loss, more, slot))
    assert np.allclose(plain.x, filled.x, rtol=0.0, atol=1e-9)


class StartsAnywhere(coldq.OGD):
    """Takes any start without a look at the domain."""

    def init(self, n_constraints, start=None, batch=()):
        state = super().init(n_constraints, batch=batch)
        return state if np.shape(start)[-1:] != (self.domain.dim,) else replace(state, x=start)


HALFSPACE = coldq.Polytope([[1.0, -1.0]], [0.0], -np.inf, np.inf)


@pytest.mark.parametrize(
    "domain",
    [
        coldq.Box(0.0, np.inf, dim=2),
        coldq.Box(-np.inf, 1.0, dim=2),
        coldq.Box(-np.inf, np.inf, dim=2),
        HALFSPACE,
        coldq.Polytope([[0.0, 0.0]], [1.0], -np.inf, np.inf, A_eq=[[1.0, -1.0]], b_eq=[0.0]),
    ],
    ids=str,
)
def test_an_unbounded_domain_is_no_fault_of_the_learner(domain) -> None:
    for learner in (coldq.COLDQ(domain, horizon=100), coldq.OGD(domain, eta=0.1)):
        checks.check_learner(learner)
    if domain != coldq.Box(-np.inf, np.inf, dim=2):
        with pytest.raises(
            checks.CheckFailed, match="a start outside the domain should be refused"
        ):
            checks.bad_input_is_refused(checks.Case.of(StartsAnywhere(domain, eta=0.1)))
