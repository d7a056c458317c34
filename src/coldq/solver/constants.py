"""Numbers that several solvers share."""

TOLERANCE = 1e-9  # the relative KKT residual above which no answer passes silently
CANCELLATION_ROUNDING = 1e-6  # of y: x is known up to the rounding of what it is the difference of
MIN_COORDINATE_SIZE = 1e-6  # of the largest: what a coordinate counts at least where x is judged
ENFORCED_TOLERANCE = 1e-9  # of its terms: by how much an enforced row may be broken
ORIGIN_SIZE = 1e-3  # the least size that a coordinate counts with, so that x = 0 has one
LARGE_DATA_ENTRIES = 300_000  # numbers of A: with more, every pass over them counts
MAX_DENSE_ENTRIES = 4_000_000  # numbers that a sparse A may have as a dense one
DIVISION_GUARD = 1e-300  # guards divisions that the compiler may run ahead of their condition
