"""``python -m tests.fuzz KIND FIRST [END]``: run some cases, and say which are faulty."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz import run

if __name__ == "__main__":
    kind, first = sys.argv[1], int(sys.argv[2])
    end = int(sys.argv[3]) if len(sys.argv) > 3 else first + 1
    start, faults = time.monotonic(), run.faults(kind, first, end)
    for fault in faults:
        print(fault)
    print(f"{end - first} {kind}, {len(faults)} faults, {time.monotonic() - start:.1f} s")
    sys.exit(bool(faults))
