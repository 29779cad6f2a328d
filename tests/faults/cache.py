"""A folder of kept machine code that is damaged, full, another's, gone, written by several processes, or its writer killed.

A case is (fault, kind of program, seed). Whatever stands in the folder, a call gives Python's result; and when the fault is
over, code is kept and found again.
"""

import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from functools import cache
from pathlib import Path

from jitlab import events
from jitlab.runtime.compiled import forget_compiled
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.cpu_llvm.compiling import background

from .programs import BY_NAME, KINDS, Case

PATIENCE, SHORT = 100, 16
KEPT = 40  # files in the folder, about


def draw(rng):
    return rng.choice(sorted(FAULTS)), rng.choice(KINDS).name, rng.randrange(1 << 20)


def _all_files(damage):
    return lambda folder, rng: [damage(path, rng) for path in sorted(folder.iterdir()) if path.is_file()]


def _flip(path, rng):
    content = bytearray(path.read_bytes())
    for _ in range(rng.randrange(1, 4)):
        if content:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _cut(path, rng):
    os.truncate(path, rng.randrange(path.stat().st_size + 1))


def _swap(folder, rng):
    """Each file has what another one had."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    contents = [path.read_bytes() for path in files]
    rng.shuffle(contents)
    for path, content in zip(files, contents, strict=True):
        path.write_bytes(content)


def _folders(path, rng):
    path.unlink()
    path.mkdir()


def _links(path, rng):
    path.unlink()
    path.symlink_to(rng.choice(["/dev/zero", "/nowhere", str(path)]))


def _pipe(path, rng):
    path.unlink()
    os.mkfifo(path)


def _foreign(path, rng):
    if os.getuid() == 0:
        os.chown(path, 12345, 12345)
    else:
        path.chmod(0)


FAULTS = {
    "flipped": _all_files(_flip),
    "torn": _all_files(_cut),
    "swapped": _swap,
    "folders": _all_files(_folders),
    "links": _all_files(_links),
    "pipes": _all_files(_pipe),
    "foreign": _all_files(_foreign),
    "gone": lambda folder, rng: shutil.rmtree(folder),
    "a file": lambda folder, rng: (shutil.rmtree(folder), folder.write_bytes(b"x")),
    "full": lambda folder, rng: None,
    "raced": lambda folder, rng: None,
    "killed": lambda folder, rng: None,
}


@cache
def folder():
    made = Path(tempfile.mkdtemp(prefix="faults"))
    os.environ["JITLAB_CACHE_DIR"] = str(made)
    return made / "objects"


def tried(fault, kind, seed):
    """What went wrong."""
    rng, place = random.Random(seed), folder()
    _forget()
    told = _run(kind, seed)  # its code is kept
    machine.object_cache().trim()
    background().submit(int).result()
    FAULTS[fault](place, rng)
    _forget()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    if fault == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (rng.choice([0, 1, 40, 1000, 5000]), limit[1]))
    try:
        if fault in ("raced", "killed"):
            told = told or _children(fault, kind, seed, rng)
        told = told or _run(kind, seed)
        background().submit(int).result()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    if fault in ("folders", "links", "pipes", "foreign", "gone", "a file"):
        shutil.rmtree(place, ignore_errors=True)
        place.unlink(missing_ok=True)
        machine.object_cache.cache_clear()
    _forget()
    told = told or _run(kind, seed)
    told = told or _is_found_again(kind, seed)
    background().submit(int).result()  # what it writes is there
    files = sorted(place.iterdir())
    left = [path.name for path in files if not path.name.endswith(".o")]
    if left and fault not in ("killed",):
        told = told or f"left in the folder: {left}"
    for path in files if len(files) > KEPT else ():
        path.unlink()
    return told


def _forget():
    background().submit(int).result()
    forget_compiled()


def _run(kind, seed):
    return Case(BY_NAME[kind], seed % 40 + 3, seed).run()


def _is_found_again(kind, seed):
    """The second time all code comes from the folder."""
    background().submit(int).result()
    forget_compiled()
    origins = []
    take = {events.ProgramCompiled: lambda event: origins.append(event.origin)}
    with events.listen(lambda event: take.get(type(event), id)(event)):
        told = _run(kind, seed)
    return told or ("" if set(origins) <= {"disk", "memory"} and "disk" in origins else f"code came from {origins}")


def _children(fault, kind, seed, rng):
    children = []
    for number in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            sys.unraisablehook = lambda _: None
            try:
                _forget()
                told = ""
                for turn in range(3 if fault == "raced" else 100):
                    told = told or _run(kind, seed + turn * number)
                    machine.object_cache().trim()
                    background().submit(int).result()
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(1 if told else 0)
        children.append(child)
    if fault == "killed":
        time.sleep(rng.random() * 0.1)
        for child in children:
            os.kill(child, signal.SIGKILL)
    ends = [os.waitpid(child, 0)[1] for child in children]
    return f"children ended with {ends}" if fault == "raced" and any(ends) else ""
