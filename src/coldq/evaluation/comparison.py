"""What a comparison of learners found: one table, as text, HTML, LaTeX, data frame and picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array, percent
from coldq.base.errors import InvalidInput, installed
from coldq.base.notebook import html_table
from coldq.base.palette import BLUE, VERMILION
from coldq.base.tabular import Tabular
from coldq.evaluation.intervals import (
    MIN_TESTED_SLOTS,
    block_interval,
    block_length,
    block_means,
    brief,
    duration,
)
from coldq.evaluation.named import absences
from coldq.evaluation.safety_margins import MarginScore
from coldq.simulation.trace.plots import NO_MATPLOTLIB, drawn_on

TUNED_BEFORE = "tuned before"
IN_HINDSIGHT = "in hindsight"
HINDSIGHT_AT_RATE = "in hindsight at the rate"
ADAPTIVE_NOTE = "The problem answers to decisions, so that each met functions of its own."
HEADINGS = (
    "learner", "loss a slot", "violation a slot", "slots violated", "dynamic regret",
    "static regret", "a slot", "start-up",
)  # fmt: skip
KEPT_WITHIN = 1.2  # times the rate that a share may be, to count as keeping it
MAX_DECADES = 6  # that a logarithmic axis has at most: what is below counts as nothing
LATEX_ESCAPES = str.maketrans(
    {mark: f"\\{mark}" for mark in "&%_#${}"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    | {"★": r"$\star$", "µ": r"$\mu$"}
)


class Result(NamedTuple):
    """One learner on the scored slots: means a slot, with the ends of their 95% intervals.

    `share` is that of the slots in which any row was violated, `violation` the sum over the rows,
    `soft_violation` that in which slack of one slot pays for another. The regrets are NaN where
    there is nothing to compare with. `tuned` is empty, or "tuned before" for what was tuned on the
    slots before those that are scored, "in hindsight" on these, for SelfTuning's share of violated
    slots, and "in hindsight at the rate". Differences are those from the reference, each p that no
    such difference is there, corrected for all comparisons of the table, and 1 where there is too
    little to tell. `reduced` is the share of decisions that kept
    less than the whole safety margin, `start_seconds` the time until the second decision.
    """

    learner: str
    tuned: str
    loss: float
    loss_low: float
    loss_high: float
    violation: float
    violation_low: float
    violation_high: float
    share: float
    share_low: float
    share_high: float
    soft_violation: float
    dynamic_regret: float
    static_regret: float
    loss_difference: float
    loss_difference_low: float
    loss_difference_high: float
    loss_p: float
    share_difference: float
    share_difference_low: float
    share_difference_high: float
    share_p: float
    reduced: float
    seconds_per_slot: float
    start_seconds: float
    on_front: bool


@dataclass(frozen=True, eq=False)
class Rivalry:
    """SelfTuning and the best rival at its share of violated slots: name, share, losses (T) each.

    Both are on one seed. The rival is the cheapest with the parameters that hindsight chooses, or
    that of least share where none has as small a share.
    """

    share: float
    loss: Array
    rival: str
    rival_share: float
    rival_loss: Array

    @property
    def pair(self) -> Array:
        """Both losses, of shape (2, T)."""
        return np.stack([self.loss, self.rival_loss])

    @property
    def saved(self) -> tuple[float, float, float]:
        """How much SelfTuning saves, as a share of the rival's loss, with its paired interval."""
        return block_interval(self.pair, lambda means: 1.0 - means[0] / means[1])

    @property
    def words(self) -> str:
        """What SelfTuning costs less, or more, in a sentence."""
        saved, low, high = (100.0 * value for value in self.saved)
        more = saved < 0.0
        if more:
            saved, low, high = -saved, -high, -low
        kept = self.rival_share <= max(self.share, 1e-9)
        which = "the best rival at its own share" if kept else "the rival nearest to its own share"
        return (
            f"SelfTuning costs {saved:.2f}% [{low:.2f}, {high:.2f}] {'more' if more else 'less'} "
            f"than {which} of violated slots: {self.rival}, {100.0 * self.rival_share:.2f}%."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Tabular):
    """What learners would have done with a problem, as :func:`coldq.compare` returns it.

    `results` has a row for each. With a `rate` those that keep it come first, by loss, then the
    others, by share, at last what was tuned in hindsight; a rate counts as kept where the share is
    at most a fifth above it. Without one they come by violation. Slots from `begin` + 1 on are
    scored. `left_out` says why others did not play, `tuned` what the safety margin did where it
    was tuned, `notes` what else there is to know, such as which learners decided the same.
    `by_seed` has losses, violations and regrets of each seed, `rivalry` SelfTuning beside the best
    rival.

    >>> import coldq
    >>> problem = coldq.problems.Autoscale(120)
    >>> table = coldq.compare(problem, ["SelfTuning", "COLDQ"], rate=0.1)
    >>> len(table), table["SelfTuning"].share < 0.2
    (3, True)
    >>> table.to_pandas().shape
    (3, 26)
    """

    title: str
    problem: Any
    seeds: tuple[int, ...]
    rate: float | None
    begin: int
    reference: str
    results: tuple[Result, ...]
    by_seed: Mapping[str, Sequence[Any]]
    left_out: Mapping[str, str]
    tuned: MarginScore | None = None
    notes: tuple[str, ...] = ()
    rivalry: Rivalry | None = None

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

    def _columns(self) -> dict[str, np.ndarray]:
        columns = zip(*self.results, strict=True)
        return dict(zip(Result._fields, map(np.array, columns), strict=True))

    @property
    def front(self) -> tuple[str, ...]:
        """The Pareto front: those that no other beats in both loss and violation; no hindsight."""
        return tuple(one.learner for one in self.results if one.on_front)

    def keeps(self, one: Result) -> bool:
        """Whether a learner's share of violated slots is at most a fifth above the rate."""
        return self.rate is not None and is_kept(one.share, self.rate)

    @property
    def sentences(self) -> tuple[str, ...]:
        """How the numbers came about, what is to know, and who did not play."""
        verdict = () if self.rivalry is None else (self.rivalry.words,)
        return (self._about, *verdict, *self.notes, *absences(self.left_out))

    @property
    def _about(self) -> str:
        T, seeds, scored = self.problem.horizon, len(self.seeds), self.problem.horizon - self.begin
        words = [f"{self.title}: {T:,} slots, {seeds} seed{'' if seeds == 1 else 's'}."]
        if getattr(self.problem, "adaptive", False):
            words.append(ADAPTIVE_NOTE)
        if self.rate is None:
            words.append("Each learner has the parameters that its own theory gives it.")
        elif self.tuned is None:
            words.append(f"Nothing was tuned. Scored are slots {self.begin + 1:,} to {T:,}.")
        else:
            above = self.tuned.share > self.rate
            least = ", the least of all safety margins tried" if above else ""
            words.append(
                f"The safety margin is tuned for at most {100 * self.rate:g}% of slots violated, "
                f"on slots 2 to {self.begin:,}, where it violated {percent(self.tuned.share)}"
                f"{least}; scored are slots {self.begin + 1:,} to {T:,}."
            )
        if seeds > 1:
            words.append("Means a slot; brackets: 95% intervals over seeds.")
        else:
            block = block_length(scored)
            words.append(f"Means a slot; brackets: 95% intervals by blocks of {block} slots.")
        if self._told_apart:
            words.append(
                f"*: differs from {self.reference}, p < 0.05 with Holm's correction for all of "
                "them."
            )
        else:
            words.append(f"p-values need {MIN_TESTED_SLOTS} scored slots, so no * is shown.")
        if self.rate is not None:
            words.append(
                "Learners whose share of violated slots is at most a fifth above the rate come "
                "first, by loss; then the others, by share."
            )
        words.append(
            "★: no other is better in both loss and violation. Times are of one seed alone, "
            "problem included; start-up is until the second decision, with what is compiled or "
            "loaded for it. `coldq list` has what each assumes."
        )
        return " ".join(words)

    @property
    def _told_apart(self) -> bool:
        return len(self.seeds) > 1 or self.problem.horizon - self.begin >= MIN_TESTED_SLOTS

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of the table as it is read."""
        return HEADINGS

    def cells(self, hindsight: bool | None = None) -> list[tuple[str, ...]]:
        """The table as it is read: texts for each learner, those tuned in hindsight, or others."""
        return [
            self._row(one)
            for one in self.results
            if hindsight in (None, one.tuned.startswith(IN_HINDSIGHT))
        ]

    def _row(self, one: Result) -> tuple[str, ...]:
        loss, share = (
            "*" if p < 0.05 and one.learner != self.reference else ""
            for p in (one.loss_p, one.share_p)
        )
        violation, violated = brief(one.violation), f"{100 * one.share:.2f}%"
        if self.rate is None:
            violation += _bracket(one.violation_low, one.violation_high)
        else:
            violated += _bracket(one.share_low, one.share_high, 100.0)
        return (
            f"{one.learner} ★" if one.on_front else one.learner,
            f"{brief(one.loss)}{_bracket(one.loss_low, one.loss_high)}{loss}",
            violation,
            violated + share,
            *("-" if np.isnan(r) else brief(r) for r in (one.dynamic_regret, one.static_regret)),
            *(
                "" if np.isnan(s) else duration(s)
                for s in (one.seconds_per_slot, one.start_seconds)
            ),
        )

    def __str__(self) -> str:
        rows = [self.headings, *self.cells()]
        widths = [max(len(row[k]) for row in rows) for k in range(len(self.headings))]
        lines = []
        for first, *others in rows:
            cells = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
            lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
        lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join([*lines, "", *self.sentences])

    def _repr_html_(self) -> str:
        """The table, as `print` has it."""
        return html_table(self.title, self.headings, self.cells(), self.sentences)

    def to_latex(self) -> str:
        r"""The table for a paper, with ``\toprule`` and the like of booktabs.

        >>> import coldq
        >>> table = coldq.compare(coldq.problems.Autoscale(60), ["COLDQ"])
        >>> print(table.to_latex().splitlines()[0])
        \begin{tabular}{lrrrrrrr}
        """
        lines = [r"\begin{tabular}{l" + "r" * (len(self.headings) - 1) + "}", r"\toprule"]
        lines.append(" & ".join(map(escaped, self.headings)) + r" \\")
        lines.append(r"\midrule")
        lines += [" & ".join(map(escaped, row)) + r" \\" for row in self.cells()]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", f"% {self._about}"])

    def plot(self, axes: Any = None) -> Any:
        """Draw loss and violation of every learner, a row each, with their intervals.

        With a rate, the share of violated slots is in the place of the violation. `axes` are two of
        Matplotlib's, side by side, and are returned; without them a new figure is, which a notebook
        shows by itself. What was tuned in hindsight is left out.
        """
        given, with_rate = axes, self.rate is not None
        some = [one for one in self.results if not one.tuned.startswith(IN_HINDSIGHT)]
        if axes is None:
            new = installed("coldq.base.figure", NO_MATPLOTLIB)
            axes = new.subplots(7.0, 1.0 + 0.16 * len(some), 1, 2, sharey=True)[0]
        left, right = axes
        words = "keeps the rate within a fifth", "violates more"
        if not with_rate:
            words = "on the Pareto front: beaten by no other in both", "beaten"
        first = [self.keeps(one) if with_rate else one.on_front for one in some]
        second = ("share", 100.0, "slots violated, %") if with_rate else (
            "violation", 1.0, "hard violation a slot"
        )  # fmt: skip
        for panel, (name, times, title) in ((left, ("loss", 1.0, "loss a slot")), (right, second)):
            mean, low, high = (
                times * np.array([getattr(one, name + end) for one in some])
                for end in ("", "_low", "_high")
            )
            ends = np.nan_to_num(np.maximum([mean - low, high - mean], 0.0))
            for kind, look, label in ((True, BLUE, words[0]), (False, VERMILION, words[1])):
                k = [row for row, one in enumerate(first) if one is kind]
                panel.errorbar(
                    mean[k], k, xerr=ends[:, k], fmt=look.marker, markersize=3.5, elinewidth=0.8,
                    color=look.colour, label=label,
                )  # fmt: skip
            panel.set_title(title, loc="left")
            panel.grid(visible=True, axis="x")
            panel.set_axisbelow(True)
        floor = None if with_rate else log_floor([one.violation for one in some])
        if floor is not None:
            right.set_xscale("symlog", linthresh=floor, linscale=0.5)
            right.set_xlim(left=-0.3 * floor)  # a point at zero lies beside the axis, not on it
        if with_rate:
            right.axvline(100.0 * self.rate, color="#888888", linewidth=0.8, linestyle=":")  # type: ignore[operator]
        names = [one.learner.partition(" (")[0] if one.tuned else one.learner for one in some]
        left.set_yticks(range(len(some)), names, parse_math=False)  # a $ is a dollar
        left.set_ylim(len(some) - 0.4, -0.6)
        return drawn_on(axes, given)


def is_kept(share: float, rate: float) -> bool:
    """Whether a share of violated slots keeps a rate within a fifth.

    >>> from coldq.evaluation.comparison import is_kept
    >>> is_kept(0.012, 0.01), is_kept(0.0804, 0.05)
    (True, False)
    """
    return share <= KEPT_WITHIN * rate


def _bracket(low: float, high: float, times: float = 1.0) -> str:
    """An interval in brackets; nothing where there is none."""
    if np.isnan(low):
        return ""
    if times != 1.0:
        return f" [{times * low:.2f}, {times * high:.2f}]"
    return f" [{brief(low)}, {brief(high)}]"


def log_floor(means: Sequence[float]) -> float | None:
    """The power of ten where a logarithmic axis of violations begins; None where none is needed.

    >>> from coldq.evaluation.comparison import log_floor
    >>> log_floor([0.0, 0.02, 3.0]), log_floor([1.0, 2.0, 3.0]), log_floor([1e-15, 0.5, 30.0])
    (0.01, None, 0.1)
    """
    most = max(means)
    if most <= 0.0:
        return None
    shown = [mean for mean in means if mean > 10.0**-MAX_DECADES * most]
    floor = float(10.0 ** np.floor(np.log10(min(shown))))
    return floor if most > 20.0 * max(min(means), floor) else None


def overall(comparisons: Sequence[Comparison]) -> tuple[float, float, float]:
    """The geometric mean of SelfTuning's loss over the best rival's, with its 95% interval.

    >>> import coldq
    >>> from coldq.evaluation.comparison import overall
    >>> table = coldq.compare(coldq.problems.Autoscale(60), rate=0.1)
    >>> ratio, low, high = overall([table])
    >>> round(ratio + table.rivalry.saved[0], 12)
    1.0
    """
    pairs = [one.rivalry.pair for one in comparisons if one.rivalry is not None]
    means = np.mean([np.log(pair[0].mean() / pair[1].mean()) for pair in pairs])
    drawn = np.mean([np.log(np.divide(*block_means(pair))) for pair in pairs], axis=0)
    low, high = np.exp(np.quantile(drawn, (0.025, 0.975)))
    return float(np.exp(means)), float(low), float(high)


def escaped(text: str) -> str:
    r"""A text as LaTeX takes it.

    >>> from coldq.evaluation.comparison import escaped
    >>> print(escaped("a_1 ^ {50%}"))
    a\_1 \textasciicircum{} \{50\%\}
    """
    return text.translate(LATEX_ESCAPES)
