"""The per-slot problem in arrays: no domain and no constraint is known here.

- :mod:`~coldq.solver.problem`: the problem, by name; :mod:`~coldq.solver.answer`: what is returned
- :mod:`~coldq.solver.cascade`: affine rows on a box, from the first attempt to the last
- `large`, `interior_point`, `extended`: the methods that it tries
- `ball`, `curved`, `max_affine`, `models`, `cutting_planes`: other sets and rows, on top of it;
  `last_resort` is what they try in the end
- `threads` runs a kernel over a batch; `kernels` are what is compiled
"""
