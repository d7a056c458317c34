"""Algorithms that the paper cites and whose rule was not read, in full, in their own papers.

A learner belongs into :mod:`coldq.learners` itself, and into the default comparison, if all of
these hold:

- its rule, with its parameters, was read in its paper, in its authors' released code, or follows
  from either by a derivation that its docstring gives;
- its claims are those of that paper for this rule;
- what of it this library chose is named in its docstring, and can be set by an argument.

One that misses a point, most often the first, is here: its card has the certainty "uncertain", and
its ``unchecked`` names what was not read. It is used in every way that another is, as
``coldq.NAME``, by ``coldq compare --learners NAME`` and by sweeps; it passes the same contract and
has golden values of its own. A comparison that names nobody leaves it out, because a poor result
may be the reading's and not the algorithm's.

Whoever has read the paper moves the file one folder up, with ``certainty="exact"``.
"""
