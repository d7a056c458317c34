"""What is compiled of the solvers, one idea a file; :mod:`coldq.compiled` says how.

- `piece`: the named lines of memory, the residual, the quadratic piece; `factors`: sums, Cholesky's
  factor; `tiles`: products and factors of dozens of rows
- `affine`, `ball`, `capacity`, `quadratic`: the dual Newton method for each kind of rows
- `small`: affine rows, very few; `side_by_side`: many such instances in the processor's lanes
- `working_set`, `sparse_working_set`: many rows, few at a time
- `one_row`, `thin_rows`: quadratic rows without matrices
- `large`, `sparse`: passes over large matrices; `interior_point`, `inside`: rows that clash
- `max_affine`: groups of pieces; `pieces_inside`: which of them decide
- `pairs`, `long_numbers`: double-double arithmetic; `face` and `extended`: affine rows in it;
  `last_resort`: others
"""
