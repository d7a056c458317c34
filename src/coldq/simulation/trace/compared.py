"""Several traces in one picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from coldq.base.arrays import is_several
from coldq.base.errors import InvalidInput
from coldq.simulation.trace.plots import draw_panels, drawn_on
from coldq.simulation.trace.saved import Text, kind_name
from coldq.simulation.trace.trace import Trace, require_trace


def plot_compare(
    traces: Iterable[Trace] | Mapping[str, Trace],
    what: str | Iterable[str] | None = None,
    *,
    ax: Any = None,
    cumulative: bool = True,
    **line: Any,
) -> Any:
    """Draw the losses and violations of several traces of one problem, a line for each.

    Traces of different seeds met different data, which may be all that sets their lines apart: the
    legend says so.

    Parameters
    ----------
    traces
        Several, or a dictionary of them, whose keys are then their labels.
    what, ax, cumulative, line
        As in :meth:`coldq.Trace.plot`; `what` is "loss", "violation" or both.

    Returns
    -------
    The figure, which a notebook shows by itself; `ax`, if that was given.

    >>> import coldq
    >>> problem = coldq.problems.OnlineLinear(horizon=50)
    >>> learners = coldq.COLDQ.for_problem(problem), coldq.RECOO.for_problem(problem)
    >>> traces = [coldq.simulate(learner, problem, seeds=range(3)) for learner in learners]
    >>> loss, violation = coldq.plot_compare(traces).axes
    >>> [line.get_label() for line in violation.lines]
    ['COLDQ', 'RECOO']
    """
    named = _named(traces)
    series = {
        "loss": [(label, trace.loss) for label, trace in named],
        "violation": [(label, trace.violation.sum(axis=-1)) for label, trace in named],
    }
    axes = draw_panels(series, what, ax, cumulative, line, named=0)
    seeds = {frozenset(trace.seeds) for _, trace in named}
    apart = len(seeds) > 1 and getattr(named[0][1].problem, "seeds_differ", True)
    axes[0].legend(
        frameon=False, ncols=min(len(named), 4), title="of different seeds" if apart else None
    )
    return drawn_on(axes, ax)


def _named(traces: Any) -> list[tuple[str, Trace]]:
    """Labels and traces, which must be of one problem."""
    if not is_several(traces):
        raise InvalidInput(f"traces must be several, or a dictionary, but is {traces!r:.200}")
    if isinstance(traces, Mapping):
        named = [(str(label), require_trace(trace)) for label, trace in traces.items()]
    else:
        listed = [require_trace(trace) for trace in traces]
        names = [kind_name(trace.learner) for trace in listed]
        named = [
            (name if names.count(name) == 1 else f"{name} {names[: k + 1].count(name)}", trace)
            for k, (name, trace) in enumerate(zip(names, listed, strict=True))
        ]
    if not named:
        raise InvalidInput("traces must have at least one trace, but is empty")
    first = named[0][1]
    for label, trace in named[1:]:
        if differ(trace.problem, first.problem) or trace.loss.shape[1] != first.loss.shape[1]:
            raise InvalidInput(
                f"traces must be of one problem, but {named[0][0]!r} played {first.problem!r:.120} "
                f"and {label!r} {trace.problem!r:.120}"
            )
    return named


def differ(one: Any, other: Any) -> bool:
    """Whether two problems are known to differ: by name, or by content if they compare so."""
    kind = type(one)
    if kind is Text or kind is not type(other):  # a class may be defined again in a notebook
        return kind_name(one) != kind_name(other)
    try:
        return kind.__eq__ is not object.__eq__ and bool(one != other)
    except ValueError:  # of a user's own that holds arrays
        return False
