"""What a command does: check first, compute with a progress bar, write, and end in order."""

from coldq.cli.ending import command, stoppable

__all__ = ["command", "stoppable"]
