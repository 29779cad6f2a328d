"""The interface of a target: it compiles Programs, launches their code on its device, and shows what the code looks like.

Everything above `targets/` speaks to these classes alone; `devices.py` is the one table that names targets. A target implements
`Target`, `Device`, `Compiled`, `Launcher` and `Listing`; a native entry and peaks are optional.
"""

from __future__ import annotations

import ctypes
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from jitlab import events
from jitlab.ir import Graph, Lowered, Origins, Shape
from jitlab.ir.plans.call_forms import CallForm
from jitlab.ir.programs.program import Program
from jitlab.messages import Message
from jitlab.support import native_call_log
from jitlab.support.direct_calls import Counts
from jitlab.support.later import Later
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass

hashlib = Later("hashlib")

#: How an array may lie in memory, as lowering knows it, in words; "" is what has to be copied first.
LAYOUTS = {"C": "row by row", "F": "column by column", "R": "rows apart", "S": "strided"}

#: Words of `times` that a launch fills in: when it started, when it ended, how long the process and its thread had a processor
#: meanwhile (0: not known), then its own counter before the first phase and after each one (only the shares of the differences
#: matter).
START_NS, END_NS, PROCESS_NS, THREAD_NS, TICKS = range(5)


@dataclass(frozen=True)
class Origin:
    """For whom a Program is compiled: what events say."""

    function: str = ""
    trace: int = 0
    cluster: str = ""


@dataclass(frozen=True)
class Peaks:
    """Bytes a second of a large copy (read and written), floating-point operations a second of a product of matrices."""

    bytes_per_second: float
    flops_per_second: float


@dataclass(frozen=True)
class DevicePeaks(Peaks):
    """The same of a device with memory of its own; bytes a second of copies there and back, and seconds of a launch."""

    to_device: float
    to_host: float
    launch_seconds: float
    name: str  # of the device
    measured: bool  # False: assumed, for a prediction


@dataclass(eq=False)
class Compiled:
    """The code of one Program. It may be replaced by faster code at any time; both give the same bits."""

    target: str  # the target's key
    program: Program
    tier: str = ""  # of the target's compilers, which made the code that runs now
    source: str = "compiled"  # or "disk"
    first_tier: str = ""  # of the code that was there first

    @lazy
    def digest(self) -> str:
        """Names it in events: equal for equal Programs of one target."""
        return str(hashlib.sha256(f"{self.target}\n{self.program.text}".encode()).hexdigest()[:16])

    def wait(self) -> None:  # noqa: B027 - a target with one tier has nothing to wait for
        """Return when the code that later launches will run is in place."""


class Launcher(ABC):
    """The code of a cluster for one combination of layouts, with all that is known before a call. Thread-safe."""

    lowered: Lowered
    code: Compiled
    phases: Sequence[str]  # the kernel of each part that is timed
    results: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]  # shape and dtype of each output
    scratch_bytes: int  # of temporaries, that a call takes
    on_host: Message | None = None  # why the host runs it, with arrays of NumPy's

    def launched(self) -> Sequence[Mapping[str, Any]]:
        """What each part is launched with on a device with a clock of its own, as plain data; () of the processor. Such a
        device's TICKS are nanoseconds, from what the host took to enqueue all of it; 0: nobody knows."""
        return ()

    @abstractmethod
    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], times: np.ndarray[Any, Any] | None) -> int | None:
        """Run it to its end; the number of the check that failed, None if none did. `inputs`: of the cluster; `outputs`: empty
        arrays of the device. `times`, where they are asked for: int64, four words and one more than there are phases, filled
        in as START_NS, END_NS, PROCESS_NS, THREAD_NS and TICKS say. Raises what a signal's handler raised meanwhile."""


class Device(ABC):
    """Where a target's code runs: its arrays, how they lie in memory, and copies of them."""

    array_type: ClassVar[type]  # of its arrays

    @abstractmethod
    def array(self, value: Any) -> Any:
        """A value in NumPy's memory as an array of this device."""

    @abstractmethod
    def layout_of(self, array: Any) -> str:
        """One of LAYOUTS that the target's code can take, or "" where `contiguous` has to be called first."""

    @abstractmethod
    def contiguous(self, array: Any) -> Any:
        """The array itself where it lies row by row, else a copy that does."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An array whose elements may have any value."""

    def on_host(self, array: Any) -> np.ndarray[Any, Any]:
        """The array in NumPy's memory: itself, where that is where the device has its arrays."""
        return array  # type: ignore[no-any-return]

    @abstractmethod
    def may_store_into(self, array: Any, others: Sequence[Any]) -> bool:
        """Is it memory that a launch can write: each element once, and apart from the others?"""

    def wait(self) -> None:  # noqa: B027 - where a launch returns when it is done there is nothing to wait for
        """Until all that was launched is done."""

    def trim(self) -> None:  # noqa: B027 - a device without a pool keeps nothing
        """Give memory that is kept for later arrays back to the system."""

    def raised(self) -> BaseException | None:
        """What an operation that code calls on the host raised in this thread's last launch; asked once."""
        return None


class Entry(ABC):
    """The way of calls of one form through a trace without Python."""

    site: native_call_log.Site | None = None  # where its calls are noted, None when they can't be

    @abstractmethod
    def make(self, busy: ctypes.c_int64, calls: ctypes.c_int64, otherwise: Any, name: str) -> tuple[Any, Any]:
        """A builtin function for warm calls, and what has to live as long as it does.

        It calls `otherwise` with the same arguments when anything differs, or `busy` is not 0. `calls` counts what it answers.
        While somebody takes notes it notes each call, and its first one goes on to `otherwise`.
        """


#: The largest int that counts as a number of elements.
LARGEST_SIZE = 1 << 40


@dataclass(frozen=True)
class PlainCall:
    """A kind of call that runs as Python. `values`: of each argument, the last ones by `names`, its type and -1, or of an exact
    array its dtype and number of axes; `elements_bits`: in how many bits the number of all elements is written, of arrays and
    containers, with the lengths of texts and ints up to LARGEST_SIZE as they are; `places`: where such calls are noted for
    somebody who takes notes, None where they take the Python way then."""

    values: tuple[tuple[Any, int], ...]
    names: tuple[str, ...]
    elements_bits: int
    places: native_call_log.Places | None = None


@dataclass(frozen=True)
class Place:
    """Where a line of code came from: operations, or else a part of the machinery around them; and in which kernel it is."""

    origins: Origins
    role: str  # "" for what operations ask for
    kernel: str


@dataclass(frozen=True)
class Listed:
    """A line of a stage. `noise`: it is no work of the program's: labels, directives, the entry, spills, care for signals."""

    text: str
    place: Place
    noise: bool


class Listing(ABC):
    """The stages of one Program's code, line by line; each is made when it is asked for."""

    @property
    @abstractmethod
    def functions(self) -> Mapping[str, str]:
        """The functions that do a kernel's work, each with the kernel's name in the Program."""

    @property
    def helpers(self) -> Mapping[str, str]:
        """Other functions, each with the name that a user sees; "{function}" stands for the user's function."""
        return {}

    @abstractmethod
    def lines(self, stage: str) -> Sequence[Listed]:
        """The code at one of the target's stages."""

    def text(self, stage: str) -> str:
        """The same as one text."""
        return "\n".join(line.text for line in self.lines(stage))

    def comment(self, stage: str) -> str | None:
        """What begins a comment at a stage whose lines call values as the Program does; None where they have other names."""
        return None

    def note(self, stage: str) -> str | None:
        """What a reader has to know about the lines of this stage."""
        return None


class Target(ABC):
    """Compiles Programs for one kind of device."""

    key: ClassVar[str]  # names it in caches, plans and events
    stages: ClassVar[tuple[str, ...]]  # of its code, from what it writes itself to what the device gets
    device: Device

    def prepare(self, practice: str = "") -> None:
        """A call may come: what the first one takes may be loaded behind, once in a process; then the `steps` of a module of
        this name may be done."""
        return

    def practise(self, program: Program) -> None:
        """Do once what compiling a Program takes, and forget it."""
        return

    @property
    @abstractmethod
    def machine(self) -> str:
        """What the code is compiled for, as compilers call it: code and times are those of this machine."""

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """What loops are cut by on this machine."""

    def scheduled(self, program: Program) -> Program:
        """The Program with what makes it fast on this machine and changes no bit: what is compiled, and its text the key."""
        return program

    def threads(self, lowered: Lowered) -> Mapping[str, Message]:
        """Of kernels of its Program, by their names: on how many threads they may run, or why on one."""
        return {}

    @abstractmethod
    def compiled(self, program: Program, origin: Origin) -> Compiled:
        """The code of a Program, which may still get better. What a later tier makes is told by `tell_compiled`."""

    @abstractmethod
    def launcher(self, lowered: Lowered, code: Compiled) -> Launcher:
        """What launches the code of a cluster."""

    @abstractmethod
    def listing(self, program: Program) -> Listing:
        """The code of a Program for people."""

    keeps_plans = False  # is there a place where they are found by what they were made of?

    @property
    def has_plans(self) -> bool:
        """May there be something in it?"""
        return self.keeps_plans

    def find_plan(self, form: bytes) -> bytes | None:
        """What `keep_plan` was given for this form, in any process of this machine, sources and versions; None: nothing."""
        return None

    def keep_plan(self, form: bytes, plan: bytes) -> None:
        """Keep a plan, to be found by its form."""
        raise NotImplementedError

    def kept(self, launcher: Launcher) -> tuple[Any, ...] | None:
        """A launcher as plain data, of which `restored` makes one that does the same; None where its code is not kept."""
        return None

    def restored(self, kept: tuple[Any, ...], lowered: Lowered) -> Launcher | None:
        """A launcher of what `kept` gave, for values as `lowered` has them, which has no Program; None: the code is gone."""
        return None

    def behind(self, job: Callable[[], None]) -> None:
        """Do it after what is compiled in the background. Raises RuntimeError or MemoryError where no thread does."""
        raise NotImplementedError

    def last_tier(self, program: Program) -> str:
        """The tier whose code runs in the end."""
        return ""

    @property
    def is_improving(self) -> bool:
        """Is something compiled in the background that calls will run?"""
        return False

    @property
    def is_loaded(self) -> bool:
        """Is what it compiles with in this process already?"""
        return True

    def entry(self, graph: Graph, launchers: Sequence[Launcher], form: CallForm) -> Entry | None:
        """A way for calls of this form that Python has no part in, for launches one after the other that compute the graph's
        outputs; None: there is none."""
        return None

    def python_entry(
        self, function: Any, otherwise: Any, calls: Sequence[PlainCall], stops: Sequence[ctypes.c_int64],
        under_way: Counts, name: str,
    ) -> Any:  # fmt: skip
        """A builtin function that calls `function` where the call is one of `calls` and the two `stops` are 0, else
        `otherwise`, with the same arguments; None: there is none. While somebody takes notes, calls are noted, or go to
        `otherwise`. `under_way` counts what was called and has not ended, and what has."""
        return None

    def device_peaks(self) -> DevicePeaks | None:
        """What its device can do, with copies; None of the processor."""
        return None

    def predicted_seconds(self, program: Program, sizes: Mapping[str, int] | None = None) -> Mapping[str, float | None]:
        """How long each kernel takes in one call, by its name, as far as a cost model says; `sizes`: of the Program's symbols,
        else those that it was lowered for."""
        return {}

    def known_peaks(self) -> Peaks | None:
        """What the machine can do; None while nobody knows: the first call may have it measured in the background."""
        return None


def tell_compiled(code: Compiled, origin: Origin, tier: str, how: str, started_ns: int) -> None:
    """Send ProgramCompiled. `how`: "compiled", "disk" or "memory"."""
    if events.active():
        events.send(
            events.ProgramCompiled(
                function=origin.function, trace=origin.trace, cluster=origin.cluster, target=code.target,
                program=code.digest, tier=tier, origin=how, start_ns=started_ns,
                duration_ns=time.perf_counter_ns() - started_ns,
            )
        )  # fmt: skip
