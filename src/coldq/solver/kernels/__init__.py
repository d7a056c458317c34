"""What Numba compiles of the solvers, one idea a file; :mod:`coldq.compiled` says how.

Affine rows on boxes and roots in one multiplier are not here: ``native/`` has them, behind
:mod:`coldq.solver.api`.

- `piece`: the named lines of memory, the residual, the quadratic piece; `factors`: sums, Cholesky's
  factor; `tiles`: products and factors of dozens of rows
- `affine` (in all of space, for `ball`), `capacity`, `quadratic`: the dual Newton method for each
  kind of rows
- `one_row`, `thin_rows`: quadratic rows without matrices
- `large`, `sparse`: passes over large matrices
- `quadratic`, `thin_rows` (without matrices): the dual Newton method for each kind of rows;
  `affine`: its line search
- `large`, `sparse`: passes over large matrices; `interior_point`, `inside`: rows that clash
- `max_affine`: groups of pieces; `pieces_inside`: which of them decide
- `pairs`, `long_numbers`: double-double arithmetic; `last_resort`: rows that are not affine in it
- `large`, `sparse`: passes over large matrices; `interior_point`, `inside`: rows that clash
"""
