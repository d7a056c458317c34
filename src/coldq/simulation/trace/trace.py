"""What happened in some runs of a learner on a problem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import InvalidInput
from coldq.base.notebook import html_table
from coldq.base.tabular import Tabular, numbered
from coldq.simulation.trace import plots, saved
from coldq.simulation.trace.saved import Text, kind_name

DUAL_FIELDS = ("queue", "multipliers", "margin")
VIOLATION_TOLERANCE = 1e-8  # of g: a violation up to this is rounding
SUMMARIES = (np.mean, np.min, np.max)
OPTIONAL_FIELDS = (
    *("decisions", *DUAL_FIELDS),
    *("network_violation", "own_violation", "agent_loss", "agent_violation"),
    *("reduced", "booked", "overdraft", "overdraft_bound"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Tabular):
    """What happened in S runs of T slots.

    `loss` (S, T) holds f_t(x_t), `constraint` (S, T, N) the signed g_t(x_t). On request:
    `decisions` (S, T, p) holds x_t; `queue` (S, T, N) the queue and `multipliers` (S, T, N) the
    dual variables of the step that led to x_t, `margin` (S, T, N) that of a learner that keeps a
    violation rate, at t = 1 those of the initial state. `state` is the learner's state after the
    last slot, ready to go on. Of a learner that keeps a violation rate, `reduced` (S, T) says
    whether x_t keeps less than the whole margin, because no decision keeps all of it, `booked`
    whether slot t was booked as violated, and `overdraft` how many such slots there were by then
    beyond what the rate allows, beside the most that there can be, `overdraft_bound`.

    On a network of n agents every agent's decision x_i is judged by what it would mean to all of
    them, and the agents' results are averaged: `loss` is the mean over i and j of f_j(x_i),
    `constraint` that of g_j(x_i), and `violation` that of ``[g_j(x_i)]_+``, so that neither agent
    nor slot makes up for another one; `own_violation` (S, T, N) is the mean over i of
    ``[g_i(x_i)]_+``, what each agent breaks of its own rows. `agent_loss` (S, T, n) and
    `agent_violation` (S, T, n, N), on request, have the means over j alone; `decisions`, `queue`
    and `multipliers` have the agents as an axis after T.

    As a table it has a row for each seed and slot: `seed`, `slot`, the decision `x_1`, `x_2` ...,
    `loss`, `violation` (the sum over the rows), and of each row n `constraint_n`, `violation_n`,
    `queue_n`, `multipliers_n` and `margin_n`, as far as they were kept; what is an agent's own
    begins with `agent_1_`, `agent_2_` and so on.

    >>> import coldq
    >>> problem = coldq.problems.TimeVarying(horizon=50)
    >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=range(3))
    >>> trace
    Trace(COLDQ on TimeVarying: 3 seeds, 50 slots, 2 constraints)
    >>> trace.violation.min() >= 0.0
    np.True_
    >>> trace.to_pandas().groupby("seed")["loss"].sum().round(1).shape
    (3,)
    """

    learner: Any
    problem: Any
    seeds: tuple[int, ...]
    delay: int
    loss: Array
    constraint: Array
    decisions: Array | None
    queue: Array | None
    multipliers: Array | None
    state: Any
    network_violation: Array | None = None
    agent_loss: Array | None = None
    agent_violation: Array | None = None
    reduced: np.ndarray | None = None
    margin: Array | None = None
    own_violation: Array | None = None
    booked: np.ndarray | None = None
    overdraft: Array | None = None
    overdraft_bound: Array | None = None

    @property
    def violation(self) -> Array:
        """``[g_t(x_t)]_+``, of shape (S, T, N); on a network, its mean over the agents."""
        if self.network_violation is not None:
            return self.network_violation
        return np.maximum(self.constraint, 0.0)

    @property
    def horizon(self) -> int:
        """The number of slots T."""
        return self.loss.shape[1]

    def save(self, path: str | PathLike[str]) -> None:
        """Write all of it to one file, whole or not at all, every bit as it is and no pickle.

        The file is one of NumPy's (.npz), whatever its name. Learner and problem go in as
        :func:`coldq.describe` describes them. What cannot be described, as it is made of functions
        or classes of your own, goes in as text, and a :class:`~coldq.KeptAsText` warning says so.

        >>> import pathlib, tempfile, coldq
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.npz"
        >>> problem = coldq.problems.OnlineLinear(horizon=50)
        >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=range(3))
        >>> trace.save(path)
        >>> again = coldq.Trace.load(path)
        >>> again, again.problem == problem, coldq.bound_report(again).holds
        (Trace(COLDQ on OnlineLinear: 3 seeds, 50 slots, 3 constraints), True, True)
        """
        arrays = {name: getattr(self, name) for name in ("loss", "constraint", *OPTIONAL_FIELDS)}
        saved.write(path, self.learner, self.problem, self.seeds, self.delay, arrays, self.state)

    @classmethod
    def load(cls, path: str | PathLike[str], *, learner: Any = None, problem: Any = None) -> Trace:
        """The trace that :meth:`save` wrote, bit for bit. Nothing in the file is executed.

        Where the file has the learner or the problem as text only, what needs them, such as regret
        and bound reports, is refused with a sentence; a :class:`~coldq.KeptAsText` warning says so.
        `learner` and `problem` give them back, and others than the file describes are refused;
        without its learner `state` is a dictionary of arrays. A file that is damaged, or none of
        ours, is a :class:`~coldq.NotReadable`.
        """
        return cls(**saved.read(path, learner, problem, OPTIONAL_FIELDS))

    def plot(
        self,
        what: str | Iterable[str] | None = None,
        *,
        ax: Any = None,
        cumulative: bool = False,
        **line: Any,
    ) -> Any:
        """Draw measures over the slots with Matplotlib: the seeds' mean, their range as a band.

        Parameters
        ----------
        what
            One of "loss", "violation", "decisions", "queue", "multipliers", "margin", or several;
            by default all that the trace has. Of violations the sum over the rows is drawn, of the
            others a line for each coordinate or row. On a network the agents count as seeds do.
        ax
            The axes to draw on, one for each panel; by default those of a new figure, which
            Matplotlib's pyplot knows nothing of.
        cumulative
            Whether losses and violations are summed up to each slot.
        line
            Passed on to ``Axes.plot``.

        Returns
        -------
        The figure, which a notebook shows by itself; `ax`, if that was given.

        >>> import coldq
        >>> problem = coldq.problems.OnlineLinear(horizon=50)
        >>> learner = coldq.COLDQ.for_problem(problem)
        >>> trace = coldq.simulate(learner, problem, seeds=range(3), keep=["queue"])
        >>> [axes.get_title() for axes in trace.plot().axes]
        ['loss', 'violation', 'queue']
        >>> trace.plot("loss", color="black").axes[0].lines[0].get_ydata().shape
        (50,)
        """
        series: dict[str, plots.Lines] = {
            "loss": [("loss", self.loss)],
            "violation": [("violation", self.violation.sum(axis=-1))],
        }
        network = self.network_violation is not None
        for name in ("decisions", *DUAL_FIELDS):
            values = getattr(self, name)
            if values is not None:
                series[name] = plots.lines_of(name, values, agents=network)
        return plots.drawn_on(plots.draw_panels(series, what, ax, cumulative, line), ax)

    def _columns(self) -> dict[str, np.ndarray]:
        S, T, _ = self.constraint.shape
        violation, network = self.violation, self.network_violation is not None
        columns: dict[str, np.ndarray] = {
            "seed": np.repeat(np.array(self.seeds, np.int64), T),
            "slot": np.tile(np.arange(1, T + 1), S),
        }
        if not network:
            columns |= _numbered("x", self.decisions)
        columns["loss"] = self.loss.ravel()
        columns["violation"] = violation.sum(axis=-1).ravel()
        columns |= numbered("constraint", self.constraint) | numbered("violation", violation)
        own = {"x": self.decisions} | {name: getattr(self, name) for name in DUAL_FIELDS}
        if not network:
            for name in DUAL_FIELDS:
                columns |= _numbered(name, own[name])
        else:
            own |= {"loss": self.agent_loss, "violation": self.agent_violation}
            columns |= _by_agent(own)
        for name in ("reduced", "booked", "overdraft"):
            if (kept := getattr(self, name)) is not None:
                columns[name] = kept.ravel()
        return columns

    def _repr_html_(self) -> str:
        """Totals over all slots: of several seeds the mean, the least and the greatest."""
        violation = self.violation
        rows = [
            ("accumulated loss", self.loss.sum(axis=1)),
            ("hard violation, all slots", violation.sum(axis=(1, 2))),
            ("largest violation of a row", violation.max(axis=(1, 2), initial=0.0)),
            (
                "slots violated, %",
                100.0 * (violation > VIOLATION_TOLERANCE).any(axis=2).mean(axis=1),
            ),
        ]
        if self.booked is not None:
            rows.append(("slots booked as violated, %", 100.0 * self.booked.mean(axis=1)))
        if self.reduced is not None:
            rows.append(("reduced decisions, %", 100.0 * self.reduced.mean(axis=1)))
        ends = ("mean", "least", "greatest") if len(self.seeds) > 1 else ("",)
        cells = [
            (name, *(f"{mean(v):,.5g}" for mean in SUMMARIES[: len(ends)])) for name, v in rows
        ]
        notes = ["Violated are slots in which a row is above 1e-8."]
        return html_table(repr(self)[6:-1], ("", *ends), cells, notes)

    def __repr__(self) -> str:
        agents = getattr(self.problem, "agents", None)
        network = "" if agents is None else f"{agents} agent{'s' if agents != 1 else ''}, "
        seeds, slots, rows = self.constraint.shape
        return (
            f"Trace({_name(self.learner)} on {_name(self.problem)}: "
            f"{seeds} seed{'s' if seeds != 1 else ''}, {network}{slots} slots, "
            f"{rows} constraint{'s' if rows != 1 else ''})"
        )


def _name(part: Any) -> str:
    return kind_name(part) + (" (as text)" if isinstance(part, Text) else "")


def _numbered(name: str, values: Array | None) -> dict[str, np.ndarray]:
    return {} if values is None else numbered(name, values)


def _by_agent(own: dict[str, Array | None]) -> dict[str, np.ndarray]:
    """Columns for what each agent of a network has of its own, one agent after the other."""
    columns = {}
    counts = [values.shape[2] for values in own.values() if values is not None]
    for agent in range(max(counts, default=0)):
        for name, values in own.items():
            if values is None:
                continue
            mine, label = values[:, :, agent], f"agent_{agent + 1}_{name}"
            columns |= {label: mine.ravel()} if mine.ndim == 2 else numbered(label, mine)
    return columns


def require_trace(trace: Any) -> Trace:
    """The trace itself; raise unless it is one."""
    if not isinstance(trace, Trace):
        raise InvalidInput(f"this takes a Trace, as coldq.simulate returns it, but got {trace!r}")
    return trace


def require_known(trace: Trace, *names: str) -> Trace:
    """The trace itself; raise if of its learner or problem it has the text alone."""
    for name in names:
        part = getattr(trace, name)
        if isinstance(part, Text):
            raise InvalidInput(
                f"this needs the {name} of the trace, whose file has it as text only, because "
                f"{part.reason}: coldq.Trace.load(path, {name}=...) takes it"
            )
    return trace
