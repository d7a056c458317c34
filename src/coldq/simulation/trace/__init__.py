"""What happened in a run: arrays, a table, a file, a picture."""

from coldq.simulation.trace.compared import plot_compare
from coldq.simulation.trace.trace import Trace, require_known, require_trace

__all__ = ["Trace", "plot_compare", "require_known", "require_trace"]
