"""The text of kernels for people: as numba.cuda functions, LLVM's as they are written, and PTX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jitlab import messages
from jitlab.ir.types import UNKNOWN
from jitlab.support.lazy import lazy
from jitlab.targets.target import Listed, Listing, Place

from . import ptx
from .kernels.kernel_module import Kernels, ScheduledKernels, kernels_of
from .kernels.schedules import Unscheduled
from .numba_source.numba_module import NumbaModule, numba_module

NUMBA = "numba"

#: The architecture that PTX is shown for where no GPU says one.
SHOWN_ARCH = "sm_90"


class KernelListing(Listing):
    """The stages of one Program's kernels; a Program that the host runs has none, and a note says why."""

    def __init__(self, program: ScheduledKernels, arch: str) -> None:
        self.program, self.arch = program, arch if arch.startswith("sm_") else SHOWN_ARCH

    @lazy
    def _made(self) -> Kernels | Unscheduled:
        if self.program.host is not None:
            return self.program.host
        try:
            return kernels_of(self.program)
        except Unscheduled as reason:
            return reason

    @lazy
    def _numba(self) -> NumbaModule | Unscheduled:
        try:
            return numba_module(self.program)
        except Unscheduled as reason:
            return reason

    @property
    def functions(self) -> Mapping[str, str]:
        made = self._made
        if isinstance(made, Unscheduled):
            return {}
        return {f.name: phase.kernel for f, phase in zip(made.functions, made.slots.phases, strict=True)}

    def _numba_lines(self) -> list[Listed]:
        made = self._numba
        if isinstance(made, Unscheduled):
            return []
        return [Listed(s.text, Place(s.origins, "", s.kernel), not s.origins) for s in made.lines]

    def lines(self, stage: str) -> Sequence[Listed]:
        if stage == NUMBA:
            return self._numba_lines()
        made = self._made
        if isinstance(made, Unscheduled):
            return []
        text = made.text if stage == "llvm" else ptx.ptx_of(made.text, self.arch)
        found, kernel = [], ""
        for line in text.splitlines():
            name = next((name for name in self.functions if f"@{name}(" in line or f".entry {name}(" in line), "")
            kernel = self.functions.get(name, kernel)
            word = line.strip()
            is_noise = not word or word.endswith((":", ",", "(", ")")) or word[0] in "./{}@;$!" or not line[0].isspace()
            found.append(Listed(line, Place(UNKNOWN, "", kernel), is_noise))
        return found

    def comment(self, stage: str) -> str | None:
        return "#" if stage == NUMBA and self._numba_lines() else None

    def note(self, stage: str) -> str | None:
        made = self._numba if stage == NUMBA else self._made
        if isinstance(made, Unscheduled):
            return messages.text(made.code, **made.operands)
        return messages.text("gpu.numba_note") if stage == NUMBA else None
