"""What is compiled of the solvers, one idea a file; :mod:`coldq.compiled` says how.

- `piece`: the named lines of memory, the residual, the quadratic piece; `factors`: Cholesky's
- `affine`, `ball`, `capacity`, `quadratic`: the dual Newton method for each kind of rows
- `small`: affine rows, very few; `side_by_side`: many such instances in the processor's lanes
- `working_set`, `sparse_working_set`: many rows, few at a time
- `simplices`: affine rows on products of simplices; `thresholds`: the projection on these;
  `block_pieces`: their dual's quadratic piece
- `one_row`, `thin_rows`: quadratic rows without matrices
- `large`, `sparse`: passes over large matrices; `interior_point`: that of rows that clash
- `max_affine`: groups of pieces
- `pairs`: double-double arithmetic; `face` and `extended`: affine rows in it; `last_resort`: others
"""
