"""Speed as ratios: coldq and its peers, timed side by side in one run.

``python -m benchmarks`` prints all tables; ``--quick`` takes fewer steps.
"""

import os

# Read by the numerical libraries when they are first imported, so set before any of them is.
SINGLE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "COLDQ_THREADS")
for _name in SINGLE_THREAD:
    os.environ[_name] = "1"
