"""What a violation rate costs: learners that keep one beside headroom, and beside COLDQ.

Each learner plays a whole problem and is scored on its last two thirds. Intervals are those of a
moving-block bootstrap over the scored slots, because slots that follow each other are alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coldq._values import Array
from coldq.errors import InvalidInput, WeakPrice
from coldq.headroom import (
    HEADROOMS,
    Headroom,
    choose_headroom,
    is_violated,
    try_headrooms,
)
from coldq.learners import COLDQ, RECOO, BestResponse, SafetyMargin, SelfTuning
from coldq.learners.foresight import rate_of
from coldq.problems import Autoscale, Dispatch, JobScheduling, TimeVarying
from coldq.simulate import replay, seed_tuple, simulate

PROBLEMS: Mapping[str, Callable[..., Any]] = {
    "autoscale": Autoscale,
    "dispatch": Dispatch,
    "jobs": JobScheduling,
    "time-varying": TimeVarying,
}
SCORED_FROM = 1.0 / 3.0
BLOCK, DRAWS = 48, 2000  # slots of a block, four hours of five minutes, and samples
RATES = (0.1, 0.05, 0.02, 0.01, 0.005)  # of the curves in the picture
FINE, ROUNDS = 7, 2  # headrooms tried between two of the grid before, and how often


@dataclass(frozen=True, eq=False)
class Score:
    """One learner on the scored slots: means a slot, each with its 95% interval."""

    name: str
    cost: tuple[float, float, float]
    share: tuple[float, float, float]
    violation: float
    saturated: float
    cost_series: Array
    share_series: Array


@dataclass(frozen=True, eq=False)
class Target:
    """All scores of one problem at one rate, and points of cost against share for each curve.

    `saved` is how much cheaper SelfTuning is than the hindsight-best headroom at the share that it
    realised itself, as a share of that cost, with its paired interval.
    """

    key: str
    rate: float
    problem: Any
    seeds: tuple[int, ...]
    scores: tuple[Score, ...]
    saved: tuple[float, float, float]
    curves: Mapping[str, tuple[tuple[float, float], ...]]


def target_problem(key: str, horizon: int | None = None) -> Any:
    """The problem of this name."""
    if key not in PROBLEMS:
        raise InvalidInput(
            f"there is no problem {key!r} to compare at a rate; there are {', '.join(PROBLEMS)}"
        )
    return PROBLEMS[key]() if horizon is None else PROBLEMS[key](horizon=horizon)


def keys_of(names: str) -> tuple[str, ...]:
    """Problems by their names with commas between; "all" is all of them.

    >>> from coldq.experiments.targets import keys_of
    >>> keys_of("jobs, autoscale"), len(keys_of("all"))
    (('jobs', 'autoscale'), 4)
    """
    if names.strip() == "all":
        return tuple(PROBLEMS)
    return tuple(name.strip() for name in names.split(",") if name.strip())


def rates_of(text: str) -> tuple[float, ...]:
    """Rates with commas between.

    >>> from coldq.experiments.targets import rates_of
    >>> rates_of("0.01, 0.05")
    (0.01, 0.05)
    """
    try:
        rates = tuple(float(one) for one in text.split(","))
    except ValueError:
        raise InvalidInput(f"rate must be a share such as 0.01, but is {text!r}") from None
    for rate in rates:
        rate_of(rate)
    return rates


def measure_target(
    key: str,
    rate: float,
    seeds: Iterable[int] = range(5),
    *,
    horizon: int | None = None,
    curves: bool = True,
    done: Callable[[str], None] = lambda what: None,
) -> Target:
    """Play all that keep a rate, and those who do not know it, on the problem of this name.

    >>> from coldq.experiments.targets import measure_target
    >>> target = measure_target("autoscale", 0.1, seeds=[0], horizon=150, curves=False)
    >>> [score.name for score in target.scores][:2]
    ['SelfTuning', 'SafetyMargin(COLDQ)']
    """
    problem, seeds, q = target_problem(key, horizon), seed_tuple(seeds), rate_of(rate)
    if q is None:
        raise InvalidInput("compare at a rate needs one, such as 0.01")
    X = problem.domain
    makers: dict[str, Callable[[float], Any]] = {
        "SelfTuning": lambda rate: SelfTuning(X, rate),
        "SafetyMargin(COLDQ)": lambda rate: SafetyMargin(COLDQ.for_problem(problem), rate),
        "SafetyMargin(RECOO)": lambda rate: SafetyMargin(RECOO.for_problem(problem), rate),
    }
    scores = []
    for name, make in makers.items():
        scores.append(score(name, make(q), problem, seeds))
        done(name)
    drawn = {name: [scores[k]] for k, name in enumerate(makers)}
    if curves:
        for name, make in makers.items():
            others = [r for r in RATES if r != q]
            drawn[name] += [score(name, make(r), problem, seeds) for r in others]
            done(f"{name}'s curve")
    tried = _headrooms(problem, seeds, (q, scores[0].share[0]))
    done("headrooms")
    first, rest = tried
    by_size = {one.headroom: one for one in rest}
    chosen = {
        "headroom, tuned on the first third": choose_headroom(first, q).headroom,
        "headroom, best in hindsight": choose_headroom(rest, q).headroom,
        "headroom, best at SelfTuning's share": choose_headroom(
            rest, max(scores[0].share[0], 1e-9)
        ).headroom,
    }
    for name, h in chosen.items():
        learner = BestResponse.for_problem(problem, headroom=h)
        scores.append(score(f"{name} ({h:.3g})", learner, problem, seeds))
    saved = _saved(scores[0], scores[-1])
    for name, learner in (
        ("COLDQ", COLDQ.for_problem(problem)),
        ("COLDQ.scaled", _quiet_scaled(problem)),
    ):
        scores.append(score(name, learner, problem, seeds))
        done(name)
    points = {
        name: tuple(sorted((one.share[0], one.cost[0]) for one in some))
        for name, some in drawn.items()
    }
    points["headroom"] = tuple((one.share, one.cost) for one in by_size.values())
    return Target(key, q, problem, seeds, tuple(scores), saved, points)


def _quiet_scaled(problem: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakPrice)  # what it does is to be seen
        return COLDQ.for_problem(problem, scaled=True)


def _headrooms(
    problem: Any, seeds: tuple[int, ...], rates: tuple[float, ...]
) -> tuple[list[Headroom], list[Headroom]]:
    """What headrooms do on the first third and on the rest, finer where rates are just kept."""
    parts = [(0.0, SCORED_FROM), (SCORED_FROM, 1.0)]
    found = try_headrooms(problem, parts, seeds, HEADROOMS[:1] + HEADROOMS[1::3])
    for _ in range(ROUNDS):
        grid, finer = [one.headroom for one in found[0]], set[float]()
        for tried in found:
            for rate in rates:
                at = grid.index(choose_headroom(tried, max(rate, 1e-9)).headroom)
                if at > 0:
                    finer |= set(np.linspace(grid[at - 1], grid[at], FINE + 1)[1:-1].tolist())
        if finer:
            more = try_headrooms(problem, parts, seeds, sorted(finer))
            found = [sorted(a + b) for a, b in zip(found, more, strict=True)]
    return found[0], found[1]


def score(name: str, learner: Any, problem: Any, seeds: tuple[int, ...]) -> Score:
    """One learner's run, scored on the last two thirds."""
    trace = simulate(learner, problem, seeds, keep=["decisions"], progress=False)
    begin = round(SCORED_FROM * problem.horizon)
    bad = np.zeros(trace.loss.shape, bool)
    for t, revealed in replay(problem, seeds):
        g, x = trace.constraint[:, t - 1], trace.decisions[:, t - 1]  # type: ignore[index]
        bad[:, t - 1] = is_violated(revealed.constraint, g, x, problem.domain)
    cost, share = trace.loss[:, begin:].mean(axis=0), bad[:, begin:].mean(axis=0)
    full = np.nan if trace.saturated is None else float(trace.saturated[:, begin:].mean())
    return Score(
        name,
        block_interval(cost),
        block_interval(share),
        float(trace.violation[:, begin:].sum(axis=(1, 2)).mean()),
        full,
        cost,
        share,
    )


def block_interval(
    series: Array, statistic: Callable[[Array], Array] | None = None
) -> tuple[float, float, float]:
    """The mean of a series and its 95% interval by a moving-block bootstrap; bits stay the same.

    >>> import numpy as np
    >>> from coldq.experiments.targets import block_interval
    >>> mean, low, high = block_interval(np.arange(200.0) % 7)
    >>> low < mean < high
    True
    """
    T = series.shape[-1]
    block = min(BLOCK, max(T // 4, 1))
    starts = np.random.default_rng(0).integers(0, T - block + 1, (DRAWS, -(-T // block)))
    sums = np.concatenate([np.zeros((*series.shape[:-1], 1)), np.cumsum(series, axis=-1)], axis=-1)
    means = (sums[..., starts + block] - sums[..., starts]).mean(axis=-1) / block
    value = statistic or (lambda mean: mean)
    low, high = np.quantile(value(means), (0.025, 0.975))
    return float(value(series.mean(axis=-1))), float(low), float(high)


def _saved(one: Score, other: Score) -> tuple[float, float, float]:
    """How much cheaper one is than another, as a share of the other's cost, slot by slot."""
    both = np.stack([one.cost_series, other.cost_series])
    return block_interval(both, lambda means: 1.0 - means[0] / means[1])
