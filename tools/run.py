"""Run the workflow so that a run killed at any moment heals: hold a lock, unlock a dead run, run Snakemake.

Usage: python tools/run.py [SNAKEMAKE OPTIONS]. Used by `make run` and `make demo`. Snakemake leaves its own lock behind
when it is killed; removing that lock is safe only while nothing runs, which the lock file held here guarantees.
"""

import subprocess
import sys
from pathlib import Path

from filelock import FileLock, Timeout

LOCK = Path("results/.run.lock")
# Snakemake looks for jobs to start once a timespan for every job that has finished: with its default of a second that is two
# hundred times a second at the end of the default study. It waits for one timespan before it ends.
RATE = ("--max-jobs-per-timespan", "10000/5s")


def main(options: list[str]) -> int:
    """Run Snakemake with ``options``; return its exit status."""
    LOCK.parent.mkdir(exist_ok=True)
    try:
        with FileLock(LOCK, timeout=0):
            command = [sys.executable, "-m", "snakemake"]
            if Path(".snakemake/locks").is_dir() and any(Path(".snakemake/locks").iterdir()):
                subprocess.run([*command, "--unlock", *options], check=False, capture_output=True)
            return subprocess.run([*command, *RATE, *options], check=False).returncode
    except Timeout:
        print("Another 'make run' is at work in this folder; wait for it, or stop it first.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
