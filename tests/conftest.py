"""One thread for every numeric library, set before any is imported.

Two cores serve the tests badly with two thread pools each, and a process that forks while OpenMP threads run can hang.
"""

import os

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
