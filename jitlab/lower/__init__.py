"""Clusters become Programs: fusion, schedule, memory.

Parts, in the order of the data: block, sizes, value_names, fusion, schedule, memory, temporaries, program_builder,
lower.
"""

from .block import overwritten
from .lower import lower
from .program_builder import Layout

__all__ = ["Layout", "lower", "overwritten"]
