"""`python -m tests.fuzz functions --count 1000 --seed 0`: operations, functions, cells or sizes; prints what fails."""

import sys

from .running import main

if __name__ == "__main__":
    sys.exit(main())
