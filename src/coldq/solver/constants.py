"""Numbers that several solvers share, compiled ones and others."""

TOLERANCE = 1e-9  # the relative KKT residual above which no answer passes silently
X_FLOOR = 1e-3  # of the largest coordinate, or of 1: as what a coordinate counts in a row's terms
ROW_TOLERANCE = 1e-13  # of a row's scale |b| + |a|'max(|x|, X_FLOOR): a few hundred roundings
REGULARISATION = 1e-11  # of a row's squared norm: the piece has one maximiser, duplicates included
SEARCH_TOLERANCE = 0.02  # of the slope at the start: looser searches cost more Newton steps
DOUBT = 1e-6  # of y: x is known up to the rounding of what it is the difference of
LEAST_SIZE = 1e-6  # of the largest coordinate: as what every coordinate counts where x is judged
TERMS = 1e-7  # of the terms of a slope: a last digit of x moves them by as much as promised of W
NOISE = 4e-16  # of the terms that z is the sum of: its rounding
ROUNDING = 1e-9  # what the step promises of a hard row, relative to the size of its terms
ORIGIN_SIZE = 1e-3  # the least size that a coordinate counts with, so that x = 0 has one
MUCH_DATA = 300_000  # numbers of A: with more, every pass over them counts
MUCH_DENSE = 4_000_000  # numbers that a sparse A may have as a dense one
TINY = 1e-300  # guards divisions that the compiler may run ahead of their condition
