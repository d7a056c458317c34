"""A run: the loop, its trace, metrics, comparators, and the bounds that hold for it."""
