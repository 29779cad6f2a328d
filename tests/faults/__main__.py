"""Long runs of the fault harness, whose counts add up over runs.

python -m tests.faults signals --count 10000 --seed 3
    cases of one sort; those that went wrong are printed, each with the command that repeats it
python -m tests.faults signals --case loop,interrupt,40,7
    one case alone
python -m tests.faults all --seconds 60 --total counts.json
    each sort for a while; what came of it is added to a file, and the sums are printed
"""

import argparse
import json
from functools import partial
from pathlib import Path

from .running import SORTS, module_of, run

#: Cases after which the counts are told.
EVERY = 20

raw = argparse.RawTextHelpFormatter
parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__, formatter_class=raw)
parser.add_argument("sort", choices=[*SORTS, "all"])
parser.add_argument("--count", type=int, default=10**9, help="so many cases")
parser.add_argument("--seconds", type=float, help="as many cases as there is time for")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--case", help="one case, as it was printed")
parser.add_argument("--total", type=Path, help="a file in which counts add up over runs")
options = parser.parse_args()
if options.case:
    case = [int(part) if part.lstrip("-").isdigit() else part for part in options.case.split(",")]
    wrong = module_of(options.sort).tried(*case)
    print(wrong or "right")
    raise SystemExit(bool(wrong))
if options.seconds is None and options.count == 10**9:
    parser.error("say --count or --seconds")


def told(sort, known, count, is_end=False):
    """The cases so far, now and then, and the sums in the file: whatever ends this process, they are counted."""
    if is_end or count.cases % EVERY == 0:
        known = {name: dict(one) for name, one in known.items()}
        one = known.setdefault(sort, {"cases": 0, "wrong": 0, "seeds": []})
        one["cases"] += count.cases
        one["wrong"] += len(count.wrong)
        one["seeds"] = sorted({*one["seeds"], options.seed})
        if options.total:
            options.total.write_text(json.dumps(known, indent=1) + "\n")
        print(count if is_end else str(count).splitlines()[0], flush=True)
    return known


sums = json.loads(options.total.read_text()) if options.total and options.total.exists() else {}
failed = False
for sort in SORTS if options.sort == "all" else [options.sort]:
    count = run(sort, options.seed, options.count, options.seconds, tell=partial(told, sort, sums))
    sums = told(sort, sums, count, is_end=True)
    failed |= bool(count.wrong)
if options.total:
    for sort, known in sums.items():
        seeds = ", ".join(map(str, known["seeds"]))
        print(f"{sort}: {known['cases']} cases so far, {known['wrong']} went wrong, seeds {seeds}")
raise SystemExit(failed)
