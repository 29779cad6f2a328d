"""The colour of each kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def kernel_colors(clusters: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], int]:
    """Colours by (cluster, kernel), 0 to 5: the cluster's, or where all clusters have one, one each in the kernels' order."""
    several = len({cluster["color"] for cluster in clusters}) > 1
    return {
        (cluster["name"], kernel): (cluster["color"] + (0 if several else i)) % 6
        for cluster in clusters
        for i, kernel in enumerate(dict.fromkeys(cluster["kernels"]))
    }
