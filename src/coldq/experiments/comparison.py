"""Learners beside what is done today, on any problem: a table with intervals and differences.

Headroom is tuned on the first third of the slots, every learner plays all of them, and all are
scored on the last two thirds, on which nothing was tuned. Intervals are those of a circular
block bootstrap over the scored slots; differences from the reference are paired slot by slot, and
their p-values hold for all of them together (Holm).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from coldq._notebook import html_table
from coldq._values import Array, percent, quiet
from coldq.errors import Error, InvalidInput, installed
from coldq.experiments.coinciding import coinciding
from coldq.experiments.intervals import brief
from coldq.experiments.named import absences, learners_of, make, told_apart
from coldq.experiments.targets import (
    BLOCK,
    Score,
    block_interval,
    block_length,
    block_means,
    first_scored,
    score,
)
from coldq.frames import Tabular
from coldq.headroom import Headroom, tune_headroom
from coldq.learners import CATALOGUE, COLDQ, BestResponse, SafetyMargin, SelfTuning
from coldq.learners.foresight import rate_of
from coldq.protocols import require_learner, require_problem
from coldq.simulate import seed_tuple
from coldq.trace.plots import NO_MATPLOTLIB, drawn_on

RATE = 0.05
SEEDS = (0, 1, 2, 3, 4)  # of a problem that differs from seed to seed
# Fewer than six blocks of a difference have the same sign by chance more often than in 5% of cases.
FEWEST = 6 * BLOCK  # slots that a p-value needs
MET_OTHERS = "The problem answers to decisions, so that each met functions of its own."
IN_LATEX = str.maketrans(
    {mark: f"\\{mark}" for mark in "&%_#${}"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
)


class Result(NamedTuple):
    """One learner on the scored slots: means a slot, each with the ends of its 95% interval.

    `share` is that of the slots in which any row was violated, `violation` the sum of all. The
    differences are those from the reference, slot by slot; each p is that no such difference is
    there, corrected for all comparisons of the table, and 1 where too few slots are scored to tell.
    """

    learner: str
    cost: float
    cost_low: float
    cost_high: float
    share: float
    share_low: float
    share_high: float
    violation: float
    cost_difference: float
    cost_difference_low: float
    cost_difference_high: float
    cost_p: float
    share_difference: float
    share_difference_low: float
    share_difference_high: float
    share_p: float


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Tabular):
    """What learners would have done with a problem, as :func:`coldq.compare` returns it.

    `results` has a row for each, those that keep the rate first, by cost, then the others, by
    share; a rate counts as kept where the interval of the share reaches down to it. Slots from
    `begin` + 1 on are scored, intervals are by `block` slots that follow each other. `left_out`
    says why others did not play, `tuned` what the headroom did where it was tuned, `coinciding`
    which learners decided the same, and why.

    >>> import coldq
    >>> problem = coldq.problems.Autoscale(120)
    >>> table = coldq.compare(problem, ["SelfTuning", "COLDQ"], rate=0.1)
    >>> len(table), table["SelfTuning"].share < 0.2
    (3, True)
    >>> table.to_pandas().shape
    (3, 16)
    """

    title: str
    problem: Any
    seeds: tuple[int, ...]
    rate: float
    begin: int
    block: int
    reference: str
    results: tuple[Result, ...]
    left_out: Mapping[str, str]
    tuned: Headroom | None = None
    coinciding: tuple[str, ...] = ()

    headings: ClassVar[tuple[str, ...]] = (
        "learner", "cost a slot", "slots violated", "violation", "cost, difference",
        "violated, difference",
    )  # fmt: skip

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __getitem__(self, learner: str) -> Result:
        for one in self.results:
            if one.learner == learner:
                return one
        played = ", ".join(one.learner for one in self.results)
        raise InvalidInput(f"no learner {learner!r} played; there are {played}")

    def __repr__(self) -> str:
        return f"Comparison({self.title}: {', '.join(one.learner for one in self.results)})"

    @property
    def columns(self) -> dict[str, list[Any]]:
        """Every column by its name."""
        return {name: [getattr(one, name) for one in self.results] for name in Result._fields}

    def _columns(self) -> dict[str, np.ndarray]:
        return {name: np.array(column) for name, column in self.columns.items()}

    def keeps(self, one: Result) -> bool:
        """Whether a learner's share of violated slots is at the rate, but for its interval."""
        return one.share_low <= self.rate

    @property
    def about(self) -> str:
        """How the numbers came about, in sentences."""
        T, seeds = self.problem.horizon, len(self.seeds)
        tuned = "Nothing was tuned"
        if self.tuned is not None:
            tuned = (
                f"Headroom is tuned for at most {100 * self.rate:g}% of slots violated, on slots 2 "
                f"to {self.begin:,}, where it violated {percent(self.tuned.share)}"
            )
            if self.tuned.share > self.rate:
                tuned += ", the least of all headrooms tried"
        answers = ""
        if getattr(self.problem, "adaptive", False):
            answers = f"{MET_OTHERS} "
        stars = f"* is p < 0.05, Holm's correction for all {2 * (len(self) - 1)} of them"
        if T - self.begin < FEWEST:
            stars = f"p-values need {FEWEST} scored slots, so that no * says which are no chance"
        return (
            f"{self.title}: {T:,} slots{'' if seeds == 1 else f', {seeds} seeds'}. {answers}{tuned}"
            f"; all are scored on slots {self.begin + 1:,} to {T:,}, on which nothing was tuned. "
            f"Brackets: 95% intervals by blocks of {self.block} slots. "
            f"Differences are those from {self.reference}, slot by slot; {stars}."
        )

    def cells(self) -> list[tuple[str, ...]]:
        """The table as it is read: a row of texts for each learner."""
        return [
            (
                one.learner,
                f"{brief(one.cost)} [{brief(one.cost_low)}, {brief(one.cost_high)}]",
                f"{100 * one.share:.1f}% [{100 * one.share_low:.1f}, {100 * one.share_high:.1f}]",
                brief(one.violation),
                "" if one.learner == self.reference
                else f"{brief(one.cost_difference, '+')}{'*' if one.cost_p < 0.05 else ''}",
                "" if one.learner == self.reference
                else f"{100 * one.share_difference:+.1f}%{'*' if one.share_p < 0.05 else ''}",
            )
            for one in self.results
        ]  # fmt: skip

    def __str__(self) -> str:
        rows = [self.headings, *self.cells()]
        widths = [max(len(row[k]) for row in rows) for k in range(len(self.headings))]
        lines = []
        for row in rows:
            first, *others = row
            cells = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
            lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
        lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join([*lines, "", self.about, *self.coinciding, *absences(self.left_out)])

    def _repr_html_(self) -> str:
        """The table, as `print` has it."""
        notes = (self.about, *self.coinciding, *absences(self.left_out))
        return html_table(self.title, self.headings, self.cells(), notes)

    def to_latex(self) -> str:
        r"""The table for a paper, with ``\toprule`` and the like of booktabs.

        >>> import coldq
        >>> table = coldq.compare(coldq.problems.Autoscale(60), ["COLDQ"])
        >>> print(table.to_latex().splitlines()[0])
        \begin{tabular}{lrrrrr}
        """
        lines = [r"\begin{tabular}{l" + "r" * (len(self.headings) - 1) + "}", r"\toprule"]
        lines.append(" & ".join(map(escaped, self.headings)) + r" \\")
        lines.append(r"\midrule")
        lines += [" & ".join(map(escaped, row)) + r" \\" for row in self.cells()]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", f"% {self.about}"])

    def plot(self, axes: Any = None) -> Any:
        """Cost and share of every learner, a row each, with their intervals.

        `axes` are two of Matplotlib's, side by side, and are returned; without them a new figure
        is, which a notebook shows by itself.
        """
        given = axes
        if axes is None:
            new = installed("coldq._figure", NO_MATPLOTLIB)
            axes = new.subplots(7.0, 1.0 + 0.16 * len(self), 1, 2, sharey=True)[0]
        left, right = axes
        rows = np.arange(len(self))
        for panel, name, times, title in (
            (left, "cost", 1.0, "cost a slot"),
            (right, "share", 100.0, "slots violated, %"),
        ):
            mean, low, high = (
                times * np.array([getattr(one, name + end) for one in self.results])
                for end in ("", "_low", "_high")
            )
            ends = np.stack([np.maximum(mean - low, 0.0), np.maximum(high - mean, 0.0)])
            for kept, colour, label in (
                (True, "#0072B2", "keeps the rate, within its interval"),
                (False, "#D55E00", "violates more"),
            ):
                k = [row for row in rows if self.keeps(self.results[row]) is kept]
                panel.errorbar(
                    mean[k], rows[k], xerr=ends[:, k], fmt="o", markersize=3.5, elinewidth=0.8,
                    color=colour, label=label,
                )  # fmt: skip
            panel.set_title(title, loc="left")
            panel.grid(visible=True, axis="x")
            panel.set_axisbelow(True)
        right.axvline(100.0 * self.rate, color="#888888", linewidth=0.8, linestyle=":")
        names = [one.learner for one in self.results]
        left.set_yticks(rows, names, parse_math=False)  # a $ is a dollar
        left.set_ylim(len(self) - 0.4, -0.6)
        return drawn_on(axes, given)


@quiet
def compare(
    problem: Any,
    learners: Any = None,
    *,
    rate: float = RATE,
    seeds: Iterable[int] | None = None,
    last: int | None = None,
    title: str | None = None,
    done: Callable[[str], None] = lambda what: None,
) -> Comparison:
    """What learners would have done with a problem, beside headroom as it is tuned by hand.

    Parameters
    ----------
    problem
        One of :mod:`coldq.problems`, one from :func:`coldq.problems.from_table`, or your own.
    learners
        Names or classes of the catalogue, learners, or a mapping of learners by name; by default
        the catalogue, and COLDQ with a safety margin. Beside them always stands
        :class:`~coldq.BestResponse` with the headroom that was cheapest at the rate on the first
        part; it is the reference that the others are compared with.
    rate
        The share of slots that may be violated: headroom is tuned for it, and those that can be
        told it, are.
    seeds
        By default five; of a problem that is the same for all, one is played.
    last
        Score the last so many slots, not the last two thirds.
    title
        What the problem is called in the table; by default its own name.

    >>> import coldq
    >>> table = coldq.compare(coldq.problems.Autoscale(90), ["COLDQ"])
    >>> [one.learner.partition(" ")[0] for one in table]
    ['headroom', 'COLDQ']
    """
    require_problem(problem)
    if getattr(problem, "agents", None) is not None:
        raise InvalidInput("coldq.compare plays problems without agents")
    seeds = told_apart(problem, seed_tuple(SEEDS if seeds is None else seeds))
    q = rate_of(rate)
    if q is None:
        raise InvalidInput("compare needs a rate, such as 0.05")
    if title is not None and not isinstance(title, str):
        raise InvalidInput(f"title must be some text, but is {title!r:.200}")
    if not callable(done):
        raise InvalidInput(f"done must be a function that hears who has played, but is {done!r}")
    begin = first_scored(problem.horizon, last)
    if not 1 < begin < problem.horizon:
        raise InvalidInput(f"{problem.horizon} slots are too few to tune on some and score others")
    left_out: dict[str, str] = {}
    scores: list[Score] = []
    played: list[Any] = []

    def play(name: str, learner: Any) -> None:
        try:
            scores.append(score(name, learner, problem, seeds, begin))
            played.append(learner)
        except Error as error:
            left_out[name] = str(error)
        done(name)

    chosen = _listed(learners)
    tuned = None
    try:
        tuned = tune_headroom(problem, q, (0.0, begin / problem.horizon), seeds=seeds)
        h = tuned.headroom
        play(f"headroom {h:.3g}, tuned", BestResponse.for_problem(problem, headroom=h))
    except Error as error:
        left_out["headroom, tuned"] = str(error)
        done("headroom")
    for name, learner in _chosen(problem, chosen, q):
        if isinstance(learner, str):
            left_out[name] = learner
            done(name)
        else:
            play(name, learner)
    if not scores:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise InvalidInput(f"no learner can play this problem: {reasons}")
    title = getattr(problem, "title", type(problem).__name__) if title is None else title
    block = block_length(problem.horizon - begin)
    rows = list(_results(scores))
    same = coinciding(
        problem,
        {row.learner: one for row, one in zip(rows, played, strict=True)},
        {row.learner: _measured(one) for row, one in zip(rows, scores, strict=True)},
    )
    found = sorted(rows, key=lambda one: _standing(one, q))
    return Comparison(
        str(title),
        problem,
        seeds,
        q,
        begin,
        block,
        scores[0].name,
        tuple(found),
        left_out,
        tuned,
        same,
    )


def _measured(one: Score) -> Array:
    """What tells the decisions of one learner from those of another."""
    return np.concatenate([one.cost_series, one.share_series, [one.violation]])


def _standing(one: Result, rate: float) -> tuple[float, ...]:
    """Those that keep the rate by their cost, then the others by how often they violate."""
    return (0.0, one.cost) if one.share_low <= rate else (1.0, one.share, one.cost)


def count_of(learners: Any) -> int:
    """How many runs a comparison is made of, as far as it is known before."""
    return 2 + (len(CATALOGUE) if not learners else len(learners))


def _listed(learners: Any) -> Any:
    """Learners by name, or classes of the catalogue by theirs; refused before anybody plays."""
    if learners is None:
        return None
    if isinstance(learners, Mapping):
        pairs = [(str(name), learner) for name, learner in learners.items()]
    else:
        some = [learners] if isinstance(learners, str | type) else learners
        if not isinstance(some, Iterable) or isinstance(some, np.ndarray):
            raise InvalidInput(
                f"learners must be names, classes or learners, but is {learners!r:.200}"
            )
        found = [learners_of([one])[0] if isinstance(one, str) else one for one in some]
        pairs = [(getattr(one, "__name__", type(one).__name__), one) for one in found]
    if not pairs:
        raise InvalidInput("learners is empty; leave it out to have the whole catalogue")
    for name, one in pairs:
        if not isinstance(one, type):
            require_learner(one)
        elif not hasattr(one, "for_problem"):
            raise InvalidInput(f"{name} is a class without for_problem: pass a learner of it")
    return pairs


def _chosen(problem: Any, pairs: Any, rate: float) -> Iterator[tuple[str, Any]]:
    """Learners by name, or a sentence on why one does not play."""
    every = [(kind.__name__, kind) for kind in CATALOGUE]
    for name, one in every if pairs is None else pairs:
        told = {"violation_rate": rate} if one is SelfTuning else {}
        made = isinstance(one, type)
        yield name, make(one, problem, named=bool(pairs), **told) if made else one
    if pairs is None:
        try:
            yield "SafetyMargin(COLDQ)", SafetyMargin(COLDQ.for_problem(problem), rate)
        except (InvalidInput, TypeError) as error:
            yield "SafetyMargin(COLDQ)", str(error)


def _results(scores: list[Score]) -> Iterator[Result]:
    """A row for each score; the first is what the others are compared with."""
    names = _different([one.name for one in scores])
    base = scores[0]
    pairs = [
        (one.cost_series - base.cost_series, one.share_series - base.share_series)
        for one in scores[1:]
    ]
    p = iter(holm([p_value(series) for pair in pairs for series in pair]))
    for name, one, pair in zip(names, scores, [None, *pairs], strict=True):
        apart = [0.0, 0.0, 0.0, 1.0] * 2
        if pair is not None:
            apart = [number for series in pair for number in (*block_interval(series), next(p))]
        yield Result._make((name, *one.cost, *one.share, one.violation, *apart))


def _different(names: list[str]) -> list[str]:
    """Names, those that come again with a number."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def p_value(series: Array) -> float:
    """How often the blocks of a series without a mean would have one as far from zero.

    It is 1 for a series that is too short to tell.

    >>> import numpy as np
    >>> from coldq.experiments.comparison import p_value
    >>> noise = np.random.default_rng(0).standard_normal(500)
    >>> p_value(noise + 1.0) < 0.01, p_value(noise - noise.mean()) > 0.5
    (True, True)
    """
    if series.size < FEWEST or not series.any():
        return 1.0
    means = block_means(series)
    far = np.abs(means - means.mean()) >= abs(series.mean())
    return float((1 + far.sum()) / (1 + far.size))


def holm(p: Iterable[float]) -> list[float]:
    """p-values that hold together: Holm's step-down correction.

    >>> from coldq.experiments.comparison import holm
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.array(list(p))
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)) if len(p) else p
    found = np.empty(len(p))
    found[order] = np.minimum(steps, 1.0)
    return found.tolist()


def escaped(text: str) -> str:
    r"""A text as LaTeX takes it.

    >>> from coldq.experiments.comparison import escaped
    >>> print(escaped("a_1 ^ {50%}"))
    a\_1 \textasciicircum{} \{50\%\}
    """
    return text.translate(IN_LATEX)
