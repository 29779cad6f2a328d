"""Clusters become Programs: fusion, schedule, memory."""

from .lower import Layout, Lowered, lower

__all__ = ["Layout", "Lowered", "lower"]
