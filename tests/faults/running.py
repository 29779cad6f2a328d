"""Runs cases of one sort in a process of their own, many a process; what hangs or kills it is a case that went wrong, too."""

import faulthandler
import json
import random
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from importlib import import_module

SORTS = ("signals", "forks", "memory", "cache", "threads", "pool")


@dataclass
class Count:
    """What came of cases of one sort."""

    sort: str
    seed: int
    cases: int = 0
    wrong: list = field(default_factory=list)  # (case, what went wrong)
    memory: list = field(default_factory=list)  # resident bytes after each tenth

    def __str__(self):
        grown = f", resident memory {self.growth:+.1%} since the first tenth" if len(self.memory) > 1 else ""
        lines = [f"{self.sort}, seed {self.seed}: {self.cases} cases, {len(self.wrong)} went wrong{grown}"]
        lines += [f"{text}\n    again: {command_of(self.sort, case)}" for case, text in self.wrong]
        return "\n".join(lines)

    @property
    def growth(self):
        return self.memory[-1] / self.memory[0] - 1


def command_of(sort, case):
    """What repeats a case; of a process that ended badly behind its last case nobody knows which it was: all of them."""
    if case is None:
        return f"python -m tests.faults {sort}, with the count and the seed of this run"
    return f"python -m tests.faults {sort} --case '{','.join(map(str, case))}'"


def module_of(sort):
    return import_module(f"tests.faults.{sort}")


def case_of(sort, seed, number):
    return module_of(sort).draw(random.Random(f"{sort} {seed} {number}"))


def run(sort, seed, count, seconds=None, most_wrong=20, tell=id):
    """`count` cases, or as many as there is time for. `tell` hears after each what came of all so far."""
    total, end = Count(sort, seed), time.monotonic() + (seconds or 1e9)
    while total.cases < count and time.monotonic() < end and len(total.wrong) < most_wrong:
        _run_worker(total, count, end, tell)
    return total


def _run_worker(total, count, end, tell):
    """A process until it ends: by itself, or by a case that hangs or kills it."""
    module = module_of(total.sort)
    command = [sys.executable, "-m", "tests.faults.running", total.sort, str(total.seed), str(total.cases), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        case = None
        try:
            while True:
                if not select.select([process.stdout], [], [], module.PATIENCE)[0]:
                    total.wrong.append((case, f"hung for {module.PATIENCE} s"))
                    total.cases += 1
                    return
                line = process.stdout.readline()
                if not line:
                    break
                said = json.loads(line)
                if "case" in said:
                    case = said["case"]
                    if time.monotonic() > end:
                        return
                if "done" in said:
                    total.cases, case = total.cases + 1, None
                    if said["done"]:
                        total.wrong.append((said["of"], said["done"]))
                    tell(total)
                if "memory" in said:
                    total.memory.append(said["memory"])
        finally:
            process.kill()
    if process.returncode or case is not None:
        total.wrong.append((case, f"the process ended with {process.returncode}"))
        total.cases += 1


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def _work(sort, seed, first, count):
    def say(**what):
        print(json.dumps(what), file=told, flush=True)

    told, sys.stdout = sys.stdout, sys.stderr
    faulthandler.enable()  # where it dies
    module, tenth = module_of(sort), max(count // 10, 1)
    for number in range(first, count):
        case = case_of(sort, seed, number)
        say(case=case)
        faulthandler.dump_traceback_later(0.8 * module.PATIENCE)  # where it hangs
        say(done=module.tried(*case), of=case)
        if first == 0 and (number + 1) % tenth == 0 and sys.platform == "linux":
            say(memory=resident_bytes())


if __name__ == "__main__":
    import signal

    signal.signal(signal.SIGINT, signal.default_int_handler)
    _work(sys.argv[1], *map(int, sys.argv[2:]))
