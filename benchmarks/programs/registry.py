"""All programs, by name."""

from __future__ import annotations

from . import estimates, signals
from .record import Program

MODULES = (signals, estimates)

PROGRAMS: dict[str, Program] = {program.name: program for module in MODULES for program in module.PROGRAMS}
