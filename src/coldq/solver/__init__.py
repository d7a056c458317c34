"""The per-slot problem in arrays: no domain and no constraint is known here.

- `api`: the door to the native core; `problem`, `answer`: what goes in and what comes out
- `cascade`: affine rows on a box, from the first attempt to the last; `simplices`: on blocks with
  sums; `extended`: whether enforced rows conflict
- `ball`, `curved`, `thin_rows`, `max_affine`, `models`, `cutting_planes`: other sets and rows
- `interior_point`: the general problem, for a guess where rows conflict and for what is left
- `threads`: a batch, split over threads; `blas`: one thread for LAPACK
"""
