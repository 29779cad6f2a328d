"""Clusters become Programs: fusion, schedule, memory."""

from .block import overwritten
from .lower import Lowered, lower
from .shared import Layout

__all__ = ["Layout", "Lowered", "lower", "overwritten"]
