"""The text of kernels for people: as numba.cuda functions, LLVM's as they are written, PTX, and SASS where NVIDIA's programs
are there to make it; each line has its place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from jitlab import messages
from jitlab.ir.types import UNKNOWN
from jitlab.support.lazy import lazy
from jitlab.targets.llvm.assembly_places import is_instruction, numbers_beside
from jitlab.targets.target import Listed, Listing, Place

from . import ptx
from .kernels.kernel_module import ScheduledKernels
from .kernels.located_kernels import LocatedKernels, located_kernels
from .kernels.schedules import Unscheduled
from .numba_source.numba_module import NumbaModule, numba_module
from .ptx_gaps import filled

NUMBA, SASS = "numba", "sass"

#: Instructions of SASS that do no work: the end, room behind it, and a jump to itself that nothing reaches.
_ENDS = re.compile(r"\*/\s+(?:EXIT|NOP|RET\.\S+ .*|BRA `?\(?(\.L_x_\d+)\)?`?)\s*;")

#: The architecture that PTX is shown for where no GPU says one.
SHOWN_ARCH = "sm_90"


class KernelListing(Listing):
    """The stages of one Program's kernels; a Program that the host runs has none, and a note says why."""

    def __init__(self, program: ScheduledKernels, arch: str) -> None:
        self.program, self.arch = program, arch if arch.startswith("sm_") else SHOWN_ARCH

    @lazy
    def _made(self) -> LocatedKernels | Unscheduled:
        if self.program.host is not None:
            return self.program.host
        try:
            return located_kernels(self.program)
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
        return {} if isinstance(made, Unscheduled) else made.functions

    def lines(self, stage: str) -> Sequence[Listed]:
        if stage == NUMBA:
            source = self._numba
            lines = () if isinstance(source, Unscheduled) else source.lines
            return [Listed(s.text, Place(s.origins, "", s.kernel), not s.origins) for s in lines]
        made = self._made
        if isinstance(made, Unscheduled):
            return []
        if stage == SASS:
            return self._sass if isinstance(self._sass, list) else []
        return self._llvm(made) if stage == "llvm" else self._ptx

    def _llvm(self, made: LocatedKernels) -> list[Listed]:
        found, kernel = [], ""
        for text, number in made.lines:
            if text.startswith("define "):
                kernel = made.functions.get(text.partition("@")[2].partition("(")[0], "")
            found.append(_listed(text, made, frozenset((number,) if number else ()), kernel, text.startswith("  ")))
        return found

    @lazy
    def _ptx(self) -> list[Listed]:
        made = self._made
        assert not isinstance(made, Unscheduled)
        lines = ptx.ptx_of(made.text, self.arch).splitlines()
        numbers, _ = numbers_beside(lines, ptx.ptx_of(made.debug, self.arch).splitlines())
        own = iter(numbers)
        at = [next(own) if is_instruction(line) else 0 for line in lines]
        known = [frozenset((n,) if n else ()) for n in at]
        found: list[Listed] = []
        starts = [k for k, line in enumerate(lines) if ".entry " in line or line.startswith((".func", ".visible .func"))]
        for start, end in zip([0, *starts], [*starts, len(lines)], strict=True):
            name = lines[start].partition(".entry ")[2].partition("(")[0] if start in starts else ""
            for line, places in zip(lines[start:end], filled(lines[start:end], known[start:end]), strict=True):
                kernel = made.functions.get(name, "")
                is_work = is_instruction(line) and line.endswith(";") and line[1] not in "{}()" and line != "\tret;"
                found.append(_listed(line, made, places, kernel, is_work))
        return found

    @lazy
    def _sass(self) -> list[Listed] | str:
        """Each instruction has the place of the PTX that it was made of; or why there is none."""
        lines = self._ptx
        try:
            made = ptx.sass_of("".join(f"{line.text}\n" for line in lines), self.arch)
        except LookupError as missing:
            return str(missing)
        found, label = [], ""
        for text, number in made:
            place, is_noise = (lines[number - 1].place, lines[number - 1].noise) if number else (Place(UNKNOWN, "", ""), True)
            end = _ENDS.search(text)
            is_end = end is not None and (end[1] is None or f"{end[1]}:" == label)
            found.append(Listed(text, Place(UNKNOWN, place.role, place.kernel) if is_end else place, is_noise or is_end))
            label = text.strip() if not ptx.is_sass(text) else ""
        return found

    def comment(self, stage: str) -> str | None:
        return "#" if stage == NUMBA and not isinstance(self._numba, Unscheduled) else None

    def note(self, stage: str) -> str | None:
        made = self._numba if stage == NUMBA else self._made
        if isinstance(made, Unscheduled):
            return messages.text(made.code, **made.operands)
        if stage == SASS:
            return self._sass if isinstance(self._sass, str) else messages.text("gpu.sass_note", arch=self.arch)
        return messages.text("gpu.numba_note") if stage == NUMBA else None


def _listed(text: str, made: LocatedKernels, numbers: frozenset[int], kernel: str, is_work: bool) -> Listed:
    """A line with all the places of its numbers; what only readies a function is no work."""
    places = [made.places[n] for n in numbers]
    origins = UNKNOWN.union(*(place.origins for place in places))
    role = "" if origins else next((place.role for place in places), "")
    noise = not is_work or not kernel or bool(role)
    return Listed(text, Place(UNKNOWN if noise else origins, role, kernel), noise)
