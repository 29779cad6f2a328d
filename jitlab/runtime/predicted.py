"""What a plan would take on the processor and on a GPU, by a model: bytes, operations, launches and copies over peaks."""

from __future__ import annotations

from jitlab.ir import Cluster, Node, Plan
from jitlab.messages import Message, units
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.target import DevicePeaks, Peaks

#: A GPU is taken from this many times as fast on.
WORTH = 1.5

#: Of the operations a second of a product of matrices, what loops do, whose operations are not multiplied and added in one.
OF_LOOPS = 0.25

#: Seconds that a kernel on the processor takes at least, and a copy over the bus.
KERNEL_SECONDS, COPY_SECONDS = 1e-6, 1e-5

#: Of a machine whose peaks nobody has measured yet.
A_PROCESSOR = Peaks(2e10, 1e11)


@dataclass(frozen=True)
class Predicted:
    """Seconds of a run: on the processor; on the device kernels with their launches, and copies there and back."""

    host_seconds: float
    device_seconds: float
    copy_seconds: float
    copied_bytes: int
    kernels: int
    device: str
    measured: bool  # were the peaks?

    @property
    def ratio(self) -> float:
        """How many times as fast the device is, copies included."""
        return self.host_seconds / max(self.device_seconds + self.copy_seconds, 1e-12)

    @property
    def is_worth_it(self) -> bool:
        return self.ratio >= WORTH

    def said(self, row: str) -> Message:
        """A sentence of the message table with these numbers."""
        return Message(f"predicted.{row}", {
            "host": self.host_seconds, "device": self.device_seconds, "copies": self.copy_seconds, "bytes": self.copied_bytes,
            "kernels": units.counted(self.kernels, "kernel"), "name": self.device, "ratio": f"{self.ratio:.2g}",
        })  # fmt: skip


def predicted(plan: Plan, host: Peaks | None, device: DevicePeaks) -> Predicted:
    """The prediction for a plan that was made for the processor."""
    host = host or A_PROCESSOR
    on_host = on_device = 0.0
    for kernel in plan.kernels:
        moved = kernel.bytes_read + kernel.bytes_written
        share = 1.0 if kernel.kind == "library" else OF_LOOPS
        on_host += max(moved / host.bytes_per_second, kernel.flops / (share * host.flops_per_second), KERNEL_SECONDS)
        on_device += device.launch_seconds + max(
            moved / device.bytes_per_second, kernel.flops / (share * device.flops_per_second)
        )  # fmt: skip
    there, back = _copied(plan)
    copies = sum(COPY_SECONDS + node.type.nbytes / device.to_device for node in there)
    copies += sum(COPY_SECONDS + node.type.nbytes / device.to_host for node in back)
    nbytes = sum(node.type.nbytes for node in (*there, *back))
    return Predicted(on_host, on_device, copies, nbytes, len(plan.kernels), device.name, device.measured)


def _copied(plan: Plan) -> tuple[list[Node], list[Node]]:
    """The values that clusters read of the host, and those of theirs that the host reads."""
    clusters = plan.clustering.clusters
    made = {node for cluster in clusters for node in cluster.outputs}
    there = dict.fromkeys(node for cluster in clusters for node in cluster.inputs if node not in made)
    read = {node for step in plan.clustering.steps if not isinstance(step, Cluster) for node in step.inputs}
    wanted = read.union(plan.clustering.graph.outputs)
    return list(there), [node for node in dict.fromkeys(made) if node in wanted]
