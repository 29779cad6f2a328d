"""The processor as a target: machine code by LLVM, run in this process on NumPy's arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from jitlab.ir import Graph, Lowered, Shape
from jitlab.ir.plans.call_forms import CallForm
from jitlab.ir.programs.program import Program
from jitlab.messages import Message
from jitlab.support.direct_calls import Counts
from jitlab.support.later import Later
from jitlab.support.lazy import Kept
from jitlab.targets.target import Compiled, Launcher, Origin, Peaks, PlainCall, Target

from . import machine
from .calls.blas import blas_address
from .calls.device import Memory
from .calls.entry import CEntry, c_entry
from .calls.launcher import ContextLauncher
from .compiling import MachineCode, background, final_tier, kept_code, machine_code
from .cpu_schedule import Scheduled, scheduled
from .cpu_shape import shape
from .emit import codegen
from .peaks import known_peaks
from .preparing import preparation

if TYPE_CHECKING:
    from . import cost_model, speeds
    from . import listing as listings
    from .calls import python_way
    from .threads import thread_words
else:
    cost_model = Later(f"{__package__}.cost_model")
    thread_words = Later(f"{__package__}.threads.thread_words")
    python_way = Later(f"{__package__}.calls.python_way")
    speeds = Later(f"{__package__}.speeds")
    listings = Later(f"{__package__}.listing")


class CpuTarget(Target):
    """Everything else in this folder, behind the interface."""

    key = machine.KEY
    stages = ("llvm", "llvm-optimized", "asm")

    def __init__(self) -> None:
        self.device = Memory()

    def prepare(self, practice: str = "") -> None:
        preparation.begin(practice)

    def practise(self, program: Program) -> None:
        text = codegen.quick_module_for(cast(Scheduled, program))
        machine.load(machine.compile_object(text, "quick"), ["run"])

    @property
    def machine(self) -> str:
        return machine.cpu_name()

    @property
    def shape(self) -> Shape:
        return shape(bool(blas_address("dgemm") and blas_address("dsyrk")), _slowness())

    def scheduled(self, program: Program) -> Scheduled:
        return scheduled(program)

    def threads(self, lowered: Lowered) -> Mapping[str, Message]:
        return thread_words.threads_of(lowered)

    def compiled(self, program: Program, origin: Origin) -> MachineCode:
        return machine_code(self.key, cast(Scheduled, program), origin)

    def launcher(self, lowered: Lowered, code: Compiled) -> ContextLauncher:
        return ContextLauncher(lowered, cast(MachineCode, code))

    keeps_plans = True

    @property
    def has_plans(self) -> bool:
        return self.keeps_plans and not machine.object_cache().is_empty

    def find_plan(self, form: bytes) -> bytes | None:
        key = self._plan_key(form)
        return machine.object_cache().read(key) if key else None

    def keep_plan(self, form: bytes, plan: bytes) -> None:
        key = self._plan_key(form)
        if key:
            machine.object_cache().write(key, plan)

    def _plan_key(self, form: bytes) -> str:
        """"": nobody knows what stages would make of it."""
        known = codegen.sources()
        return machine.object_cache().key(f"{known} {self.shape} {form.hex()}", "plan") if known else ""

    def kept(self, launcher: Launcher) -> tuple[Any, ...] | None:
        assert isinstance(launcher, ContextLauncher)
        code = launcher.code
        return (code.kept_as, code.digest, *launcher.kept) if code.kept_as else None

    def restored(self, kept: tuple[Any, ...], lowered: Lowered) -> ContextLauncher | None:
        name, digest, *launched = kept
        code = kept_code(self.key, name, digest)
        return None if code is None else ContextLauncher(lowered, code, tuple(launched))

    def behind(self, job: Callable[[], None]) -> None:
        background().submit(job)

    def listing(self, program: Program) -> listings.ModuleListing:
        return listings.listing(program, final_tier(program))

    def last_tier(self, program: Program) -> str:
        return final_tier(program)

    def entry(self, graph: Graph, launchers: Sequence[ContextLauncher], form: CallForm) -> CEntry | None:  # type: ignore[override]
        return c_entry(graph, launchers, form)

    def python_entry(
        self, function: Any, otherwise: Any, calls: Sequence[PlainCall], stops: Sequence[ctypes.c_int64],
        under_way: Counts, name: str,
    ) -> Any:  # fmt: skip
        return python_way.python_entry(function, otherwise, calls, stops, under_way, name)

    @property
    def is_improving(self) -> bool:
        return background.cache_info().currsize > 0 and background().is_busy

    @property
    def is_loaded(self) -> bool:
        return machine.is_loaded()

    def predicted_seconds(self, program: Program, sizes: Mapping[str, int] | None = None) -> Mapping[str, float | None]:
        speed = speeds.speeds()
        key = f"{program.text} {sizes or program.sizes} {speed}"
        return _predictions.of(key, lambda: cost_model.predicted_seconds(self.scheduled(program), sizes, speed))

    def known_peaks(self) -> Peaks | None:
        return known_peaks()



@cache
def _slowness() -> tuple[tuple[str, float], ...]:
    """As the process found it. Where nothing was kept on this machine, LLVM need not say which one it is."""
    return () if machine.object_cache().is_empty else speeds.slowness()


#: Of the Programs that were asked for last.
_predictions: Kept[str, Mapping[str, float | None]] = Kept(256)

CPU = CpuTarget()
