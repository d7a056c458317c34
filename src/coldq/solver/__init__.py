"""The per-slot problem in arrays: no domain and no constraint is known here.

- `api`: the door to the native core; `problem`, `answer`: what goes in and what comes out
- `cascade`: affine rows on a box, from the first attempt to the last; `simplices`: on blocks with
  sums; `interior_point` and `extended`: what both try where rows conflict
- `ball`, `curved`, `thin_rows`, `max_affine`, `models`, `cutting_planes`: other sets and rows;
  `last_resort`: the general problem, which they try in the end
- `threads`: a batch, split over threads; `blas`: one thread for LAPACK
"""
