"""What a good engineer would build to keep a violation rate, tuned: forecasts with margins.

Every forecast of :mod:`coldq.limit_forecasts` is combined with every margin of
:mod:`coldq.margins`. The parameters of a rival are tuned on the slots before those that are scored:
the cheapest that keep the named rate there. For a comparison at the same share its level is then
chosen in hindsight, which favours it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.base.protocols import Problem
from coldq.evaluation.safety_margins import COST_TOLERANCE, SAFETY_MARGINS, is_violated
from coldq.learners.best_response import respond
from coldq.learners.forecast_with_margin import ForecastWithMargin
from coldq.learners.limit_forecasts import (
    AutoRegressive,
    ExponentialSmoothing,
    LastValue,
    SeasonalValue,
)
from coldq.learners.margins import AdaptiveConformal, ConformalPID, RollingQuantile, ShareOfLimit
from coldq.simulation.replay import replay

RISK_LEVELS = (0.32, 0.16, 0.08, 0.04, 0.02, 0.01, 0.005, 0.002, 0.0005)  # from the riskiest
LIMIT_SHARES = SAFETY_MARGINS  # of a limit, by hand
SMOOTHING_WEIGHTS = (0.1, 0.3, 0.6)  # of exponential smoothing
FORGETTING_FACTORS = (0.995, 0.999)  # of the regression
SCALE_WEIGHT = 0.05  # of the average size of errors
CONFORMAL_STEPS = (0.005, 0.02)  # of adaptive conformal inference
PID_STEPS = (0.05, 0.2)  # of conformal PID
SHORT_LAGS = (1, 2, 3)
REFINED_LEVELS = 4  # levels tried between two
TUNING_PASSES = 3  # all parameters, then twice the levels between


class Choice(NamedTuple):
    """The parameters of a rival that are tuned: its level, and 0 for what it does not have.

    `weight` is the forecast's, or how much of the past a regression keeps; `step` is the margin's.
    """

    level: float
    weight: float
    step: float


@dataclass(frozen=True)
class Rival:
    """A forecast and a margin, made from arrays of parameters, and which of these are tried."""

    forecast_name: str
    margin_name: str
    forecast: Callable[[Any], Any]
    margin: Callable[[Any, Any], Any]
    levels: tuple[float, ...]
    weights: tuple[float, ...] = (0.0,)
    steps: tuple[float, ...] = (0.0,)

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.forecast_name} + {self.margin_name}"

    @property
    def grid(self) -> list[Choice]:
        """Everything that is tried first."""
        return list(map(Choice._make, product(self.levels, self.weights, self.steps)))

    def words(self, choice: Choice) -> str:
        """Its name with its parameters.

        >>> from coldq.evaluation.rivals import Choice, rivals_of
        >>> rivals_of(())[4].words(Choice(0.01, 0.0, 0.02))
        'last value + conformal PID (level 0.01, step 0.02)'
        """
        parts = [f"{'share' if self.levels is LIMIT_SHARES else 'level'} {choice.level:.3g}"]
        weight = "forgetting" if self.weights is FORGETTING_FACTORS else "weight"
        parts += [f"{weight} {choice.weight:g}"] if choice.weight else []
        parts += [f"step {choice.step:g}"] if choice.step else []
        return f"{self.name} ({', '.join(parts)})"

    def learner(self, domain: Any, choices: Sequence[Choice]) -> ForecastWithMargin:
        """One learner for all choices, which are its first leading axis; seeds are the second."""
        level, weight, step = (np.array(part)[:, None] for part in zip(*choices, strict=True))
        return ForecastWithMargin(domain, self.forecast(weight), self.margin(level, step))


@dataclass(frozen=True, eq=False)
class RivalRun:
    """What a rival did: cost and whether some row was violated, each (S, T).

    `violation` is the total of the slots that are scored, in the mean of the seeds.
    """

    cost: Array
    bad: np.ndarray
    violation: float


@dataclass(frozen=True, eq=False)
class TunedRival:
    """A rival tuned on the slots before, and with its level chosen at a share in hindsight."""

    rival: Rival
    before: Choice
    at_share: Choice
    played: Mapping[Choice, RivalRun]


def rivals_of(periods: Iterable[int]) -> list[Rival]:
    """Every forecast with every margin, for a problem with such natural periods.

    >>> from coldq.evaluation.rivals import rivals_of
    >>> [rival.name for rival in rivals_of((24, 168))][::5]
    ['last value + share of the limit', 'exponential smoothing + share of the limit',
    'season of 24 + share of the limit', 'season of 168 + share of the limit',
    'autoregressive + share of the limit']
    """
    periods = tuple(periods)
    lags = (*SHORT_LAGS, *(lag for period in periods for lag in (period, period + 1)))
    forecasts: list[tuple[str, Callable[[Any], Any], tuple[float, ...]]] = [
        ("last value", lambda weight: LastValue(), (0.0,)),
        ("exponential smoothing", ExponentialSmoothing, SMOOTHING_WEIGHTS),
        *(
            (f"season of {period}", lambda weight, period=period: SeasonalValue(period), (0.0,))
            for period in periods
        ),
        ("autoregressive", lambda weight: AutoRegressive(lags, weight), FORGETTING_FACTORS),
    ]
    none = (0.0,)
    margins: list[tuple[str, Callable[[Any, Any], Any], tuple[float, ...], tuple[float, ...]]] = [
        ("share of the limit", lambda level, step: ShareOfLimit(level), LIMIT_SHARES, none),
        ("rolling quantile", lambda level, step: RollingQuantile(level), RISK_LEVELS, none),
        (
            "scaled rolling quantile",
            lambda level, step: RollingQuantile(level, weight=SCALE_WEIGHT), RISK_LEVELS, none,
        ),
        ("adaptive conformal", AdaptiveConformal, RISK_LEVELS, CONFORMAL_STEPS),
        ("conformal PID", ConformalPID, RISK_LEVELS, PID_STEPS),
    ]  # fmt: skip
    return [
        Rival(of_limits, of_errors, forecast, margin, levels, weights, steps)
        for of_limits, forecast, weights in forecasts
        for of_errors, margin, levels, steps in margins
    ]


def tune(
    problem: Problem,
    seeds: tuple[int, ...],
    begin: int,
    targets: Sequence[tuple[float, float]],
    done: Callable[[str], None] = lambda what: None,
) -> list[list[TunedRival]]:
    """All rivals tuned for each of several targets: a rate, and a share not to be exceeded.

    The slots before `begin` are for tuning, but for the first, which is decided before anything is
    known. All parameters are tried at once; then levels between the one chosen and the next that is
    riskier, twice.
    """
    periods = tuple(p for p in getattr(problem, "periods", ()) if p < problem.horizon)
    rivals, T = rivals_of(periods), problem.horizon
    before, after = slice(min(1, begin - 1), begin), slice(begin, T)
    played: list[dict[Choice, RivalRun]] = [{} for _ in rivals]
    wanted = [rival.grid for rival in rivals]
    for turn in range(TUNING_PASSES):
        for known, new in zip(played, play(problem, seeds, begin, rivals, wanted), strict=True):
            known.update(new)
        done("rivals with all parameters" if turn == 0 else "rivals, finer")
        wanted = []
        for rival, known in zip(rivals, played, strict=True):
            finer: set[Choice] = set()
            for rate, share in targets:
                chosen = _cheapest(known, rate, before)
                alike = _alike(known, chosen)
                finer |= _between(alike, chosen, rival)
                finer |= _between(alike, _cheapest(alike, share, after), rival)
            wanted.append(sorted(finer - set(known)))
    tuned = []
    for rate, share in targets:
        chosen = [_cheapest(known, rate, before) for known in played]
        tuned.append(
            [
                TunedRival(rival, one, _cheapest(_alike(known, one), share, after), known)
                for rival, one, known in zip(rivals, chosen, played, strict=True)
            ]
        )
    return tuned


def play(
    problem: Problem,
    seeds: tuple[int, ...],
    begin: int,
    rivals: Sequence[Rival],
    choices: Sequence[Sequence[Choice]],
) -> list[dict[Choice, RivalRun]]:
    """What each rival does with each of its choices: all decisions of a slot are one batch."""
    domain, T = problem.domain, problem.horizon
    count = sum(map(len, choices))
    cost, bad = np.empty((count, len(seeds), T)), np.empty((count, len(seeds), T), bool)
    total = np.zeros((count, len(seeds)))
    playing = [k for k, some in enumerate(choices) if some]
    learners = [rivals[k].learner(domain, choices[k]) for k in playing]
    ends = np.cumsum([0, *(len(choices[k]) for k in playing)])
    spans = [slice(a, b) for a, b in pairwise(ends.tolist())]
    states = [
        learner.init(problem.n_constraints, batch=(span.stop - span.start, len(seeds)))
        for learner, span in zip(learners, spans, strict=True)
    ]
    if not count:
        return [{} for _ in choices]
    x = np.concatenate([state.x for state in states])
    for t, revealed in replay(problem, seeds):
        rows = revealed.constraint
        g = rows.value(x)
        violated = np.broadcast_to(is_violated(rows, g, x, domain), x.shape[:-1])
        cost[..., t - 1], bad[..., t - 1] = revealed.loss.value(x), violated
        if t > begin:
            total += np.maximum(g, 0.0).sum(axis=-1)
        seen = [
            learner.look_ahead(state, rows, g[span], violated[span])
            for learner, state, span in zip(learners, states, spans, strict=True)
        ]
        shift = np.concatenate([one.change + one.margin for one in seen])
        x = respond(revealed.loss, rows.tightened(shift), domain, x)
        g = rows.value(x)
        states = [
            learner.decided(state, x[span], g[span], one)
            for learner, state, span, one in zip(learners, states, spans, seen, strict=True)
        ]
    played: list[dict[Choice, RivalRun]] = [{} for _ in choices]
    for k, span in zip(playing, spans, strict=True):
        for choice, at in zip(choices[k], range(span.start, span.stop), strict=True):
            played[k][choice] = RivalRun(cost[at], bad[at], float(total[at].mean()))
    return played


def _cheapest(played: Mapping[Choice, RivalRun], share: float, part: slice) -> Choice:
    """The cheapest choice whose share on a part is at most this, or else that of least share."""
    shares = {choice: one.bad[:, part].mean() for choice, one in played.items()}
    costs = {choice: one.cost[:, part].mean() for choice, one in played.items()}
    kept = [choice for choice in played if shares[choice] <= share]
    if not kept:
        return min(played, key=lambda choice: (shares[choice], costs[choice]))
    least = min(costs[choice] for choice in kept)
    return min(choice for choice in kept if costs[choice] <= least + COST_TOLERANCE * abs(least))


def _alike(played: Mapping[Choice, RivalRun], chosen: Choice) -> dict[Choice, RivalRun]:
    """The choices that differ in the level alone."""
    return {choice: one for choice, one in played.items() if choice[1:] == chosen[1:]}


def _between(alike: Iterable[Choice], chosen: Choice, rival: Rival) -> set[Choice]:
    """Choices with levels between that of a chosen one and the next riskier level."""
    by_hand = rival.levels is LIMIT_SHARES  # a lower share is riskier, but a higher level
    levels = sorted((choice.level for choice in alike), reverse=not by_hand)
    at = levels.index(chosen.level)
    if at == 0:
        return set()
    between = np.linspace(levels[at - 1], levels[at], REFINED_LEVELS + 2)[1:-1]
    return {chosen._replace(level=float(level)) for level in between}
