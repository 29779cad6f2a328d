"""All programs, by name."""

from __future__ import annotations

from . import estimates, images, markets, networks, optimizers, shapes, signals, tables, trajectories, ways
from .record import Program

MODULES = (signals, estimates, optimizers, trajectories, tables, images, networks, shapes, markets, ways)

PROGRAMS: dict[str, Program] = {program.name: program for module in MODULES for program in module.PROGRAMS}
